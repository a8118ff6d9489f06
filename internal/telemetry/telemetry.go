// Package telemetry holds the numbers that a server tells its operator about itself, and
// writes them in Prometheus' text format. Whoever counts gets a Counter, a Gauge or a
// Histogram from the server's one Set, or a plain function around one; nothing is global.
//
//	Counter.Add, Gauge.Add, Histogram.Observe ──┐
//	functions that are asked when somebody looks ┴─▶ Set ─▶ GET /metrics
package telemetry

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// Set is the metrics of one server. The zero Set is empty and ready. It is safe for
// concurrent use.
//
// The methods that add a metric take its name, the help that explains it, and its labels as
// names and values in turn. All values of a label are known to whoever reads the code: never
// an id, a path or anything a client has said. Metrics of one name differ in their labels and
// share kind and help. Anything else is a mistake of the program, and panics.
type Set struct {
	mu       sync.Mutex
	families []*family
}

// family is the metrics of one name.
type family struct {
	name, help, kind string
	series           []series
}

// series is one metric: its labels as they are written, and how to write its samples.
type series struct {
	labels string
	append func(dst []byte, name, labels string) []byte
}

var validName = regexp.MustCompile(`^roost_[a-z0-9_]+$`)

// add makes a series part of the set.
func (s *Set) add(kind, name, help string, labels []string, write func([]byte, string, string) []byte) {
	if !validName.MatchString(name) || help == "" {
		panic(fmt.Sprintf("telemetry: %q needs a name that begins with roost_, and help", name))
	}
	text := labelText(labels)
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.families, func(f *family) bool { return f.name == name })
	if i < 0 {
		i = len(s.families)
		s.families = append(s.families, &family{name: name, help: help, kind: kind})
	}
	f := s.families[i]
	if f.kind != kind || f.help != help || slices.ContainsFunc(f.series, func(x series) bool { return x.labels == text }) {
		panic(fmt.Sprintf("telemetry: %s%s is there already, or as something else", name, text))
	}
	f.series = append(f.series, series{labels: text, append: write})
}

// Counter only goes up. It is safe for concurrent use.
type Counter struct{ n atomic.Uint64 }

// Counter adds a counter, whose name ends in _total.
func (s *Set) Counter(name, help string, labels ...string) *Counter {
	c := new(Counter)
	s.add("counter", name, help, labels, func(dst []byte, name, labels string) []byte {
		return appendSample(dst, name, labels, float64(c.n.Load()))
	})
	return c
}

// Inc adds one.
func (c *Counter) Inc() { c.n.Add(1) }

// Add adds n.
func (c *Counter) Add(n uint64) { c.n.Add(n) }

// Value returns the count.
func (c *Counter) Value() uint64 { return c.n.Load() }

// Gauge goes up and down. It is safe for concurrent use.
type Gauge struct{ n atomic.Int64 }

// Gauge adds a gauge.
func (s *Set) Gauge(name, help string, labels ...string) *Gauge {
	g := new(Gauge)
	s.GaugeFunc(name, help, func() float64 { return float64(g.n.Load()) }, labels...)
	return g
}

// Add adds n, which may be negative.
func (g *Gauge) Add(n int64) { g.n.Add(n) }

// Value returns the number.
func (g *Gauge) Value() int64 { return g.n.Load() }

// GaugeFunc adds a gauge that is the value of f when somebody looks. F is called from many
// goroutines and must not block for long.
func (s *Set) GaugeFunc(name, help string, f func() float64, labels ...string) {
	s.add("gauge", name, help, labels, func(dst []byte, name, labels string) []byte {
		return appendSample(dst, name, labels, f())
	})
}

// Histogram counts values by their size. It is safe for concurrent use.
type Histogram struct {
	bounds []float64
	counts []atomic.Uint64 // of the values up to each bound and above the one before; last, of those above all
	sum    atomic.Uint64   // the bits of a float64
}

// Histogram adds a histogram with the given upper bounds, which ascend.
func (s *Set) Histogram(name, help string, bounds []float64, labels ...string) *Histogram {
	if len(bounds) == 0 || !slices.IsSorted(bounds) {
		panic(fmt.Sprintf("telemetry: the bounds of %s do not ascend", name))
	}
	h := &Histogram{bounds: slices.Clone(bounds), counts: make([]atomic.Uint64, len(bounds)+1)}
	s.add("histogram", name, help, labels, h.appendTo)
	return h
}

// Observe counts a value. A NaN is counted as the largest.
func (h *Histogram) Observe(v float64) {
	h.counts[sort.SearchFloat64s(h.bounds, v)].Add(1)
	for {
		old := h.sum.Load()
		if h.sum.CompareAndSwap(old, math.Float64bits(math.Float64frombits(old)+v)) {
			return
		}
	}
}
