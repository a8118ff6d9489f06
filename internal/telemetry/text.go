package telemetry

import (
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// ContentType is that of the text format, version 0.0.4.
const ContentType = "text/plain; version=0.0.4; charset=utf-8"

// WriteTo writes every metric as it is now, in the order in which the names were added:
//
//	# HELP roost_runs_total Runs that have ended.
//	# TYPE roost_runs_total counter
//	roost_runs_total{outcome="completed"} 7
//
// The samples of one histogram belong together; apart from that each is of its own moment.
func (s *Set) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(s.append(nil))
	return int64(n), err
}

// ServeHTTP answers with every metric as it is now.
func (s *Set) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", ContentType)
	w.Header().Set("Cache-Control", "no-store")
	_, _ = s.WriteTo(w) // an error is that of a client that has gone
}

func (s *Set) append(dst []byte) []byte {
	s.mu.Lock()
	families := make([]family, len(s.families)) // copies: what is asked below may take a while
	for i, f := range s.families {
		families[i] = *f
	}
	s.mu.Unlock()
	for _, f := range families {
		dst = append(dst, "# HELP "+f.name+" "+helpEscapes.Replace(f.help)+"\n# TYPE "+f.name+" "+f.kind+"\n"...)
		for _, x := range f.series {
			dst = x.append(dst, f.name, x.labels)
		}
	}
	return dst
}

func appendSample(dst []byte, name, labels string, v float64) []byte {
	dst = append(append(append(dst, name...), labels...), ' ')
	return append(append(dst, number(v)...), '\n')
}

// number writes a value as the format wants it. Whole numbers have no exponent, for people.
func number(v float64) string {
	switch {
	case math.IsInf(v, 1):
		return "+Inf"
	case math.IsInf(v, -1):
		return "-Inf"
	case v == math.Trunc(v) && math.Abs(v) < 1<<53:
		return strconv.FormatInt(int64(v), 10)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// appendTo writes the samples of a histogram, whose buckets count what is in smaller ones too.
func (h *Histogram) appendTo(dst []byte, name, labels string) []byte {
	sum := math.Float64frombits(h.sum.Load())
	var count uint64
	for i := range h.counts {
		count += h.counts[i].Load()
		bound := math.Inf(1)
		if i < len(h.bounds) {
			bound = h.bounds[i]
		}
		dst = appendSample(dst, name+"_bucket", withLabel(labels, `le="`+number(bound)+`"`), float64(count))
	}
	dst = appendSample(dst, name+"_sum", labels, sum)
	return appendSample(dst, name+"_count", labels, float64(count))
}

var (
	helpEscapes  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	valueEscapes = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// labelText writes labels, names and values in turn: {outcome="completed"}.
func labelText(labels []string) string {
	text := ""
	for i := 0; i+1 < len(labels); i += 2 {
		text = withLabel(text, labels[i]+`="`+valueEscapes.Replace(strings.ToValidUTF8(labels[i+1], "\uFFFD"))+`"`)
	}
	return text
}

func withLabel(labels, label string) string {
	if labels == "" {
		return "{" + label + "}"
	}
	return strings.TrimSuffix(labels, "}") + "," + label + "}"
}
