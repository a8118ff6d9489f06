package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/eventlog/memlog"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/telemetry"
)

// metric is one name of the text format.
type metric struct {
	help, kind string
	samples    map[string]float64 // by what is written before the value
}

var (
	headLine   = regexp.MustCompile(`^# (HELP|TYPE) (roost_[a-z0-9_]+) (.+)$`)
	sampleLine = regexp.MustCompile(`^(roost_[a-z0-9_]+)((?:\{[a-z]+="(?:[^"\\]|\\["\\n])*"(?:,[a-z]+="(?:[^"\\]|\\["\\n])*")*\})?) (\S+)$`)
)

// parseMetrics reads the text format and takes nothing that a careful reader might not: each
// name once, with HELP, TYPE and then its samples, which differ.
func parseMetrics(text string) (map[string]*metric, error) {
	all := make(map[string]*metric)
	if !strings.HasSuffix(text, "\n") {
		return nil, errors.New("the last line has no end")
	}
	var m *metric
	var now string
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if head := headLine.FindStringSubmatch(line); head != nil {
			switch {
			case head[1] == "HELP" && all[head[2]] == nil && (m == nil || len(m.samples) > 0):
				now, m = head[2], &metric{help: head[3], samples: make(map[string]float64)}
				all[now] = m
			case head[1] == "TYPE" && head[2] == now && m.kind == "" && slices.Contains([]string{"counter", "gauge", "histogram"}, head[3]):
				m.kind = head[3]
			default:
				return nil, fmt.Errorf("%q is not expected here", line)
			}
			continue
		}
		sample := sampleLine.FindStringSubmatch(line)
		if sample == nil || m == nil || m.kind == "" {
			return nil, fmt.Errorf("%q is not expected here", line)
		}
		name := sample[1]
		if m.kind == "histogram" {
			name = strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_sum"), "_count")
		}
		value, err := strconv.ParseFloat(sample[3], 64)
		if _, twice := m.samples[sample[1]+sample[2]]; err != nil || name != now || twice {
			return nil, fmt.Errorf("%q is not expected here", line)
		}
		if (m.kind == "counter") != strings.HasSuffix(now, "_total") || m.kind == "counter" && value < 0 {
			return nil, fmt.Errorf("%q is no %s", line, m.kind)
		}
		m.samples[sample[1]+sample[2]] = value
	}
	return all, nil
}

// scrape reads the metrics of a server.
func scrape(t *testing.T, url, token string) map[string]*metric {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+metricsPath, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	transport := new(http.Transport)
	defer transport.CloseIdleConnections()
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != telemetry.ContentType {
		t.Fatalf("%d %v: %v", resp.StatusCode, resp.Header, err)
	}
	if strings.Contains(string(text), token) {
		t.Error("the token is in the metrics")
	}
	all, err := parseMetrics(string(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return all
}

// value returns a sample, which must be there.
func value(t *testing.T, all map[string]*metric, sample string) float64 {
	t.Helper()
	name, _, _ := strings.Cut(sample, "{")
	for _, suffix := range []string{"", "_bucket", "_sum", "_count"} {
		if m := all[strings.TrimSuffix(name, suffix)]; m != nil {
			if v, ok := m.samples[sample]; ok {
				return v
			}
		}
	}
	t.Errorf("there is no %s", sample)
	return -1
}

const lookAround = `
rules:
  - contains: wait
    passes:
      - - text: "word "
          repeat: "10000"
          every: 1s
  - default: true
    passes:
      - - tool: {name: ls, input: {path: "."}}
        - tool: {name: ls, input: {path: "nowhere"}}
      - - text: seen
`

// What the numbers say is what clients have just had done.
func TestMetricsFollowSessions(t *testing.T) {
	h := newHome(t, lookAround)
	h.start()
	c := h.api()
	token, err := client.ReadToken(filepath.Join(h.dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	before := scrape(t, h.url, token)
	for sample, want := range map[string]float64{
		"roost_sessions": 0, "roost_runs": 0, `roost_watchers{client="pi"}`: 0, `roost_sessions_total{change="created"}`: 0,
		"roost_panics_total": 0, `roost_log_messages_total{level="error"}`: 0,
	} {
		if got := value(t, before, sample); got != want {
			t.Errorf("at the start %s is %v", sample, got)
		}
	}

	looked, waits := h.newSession(c), h.newSession(c)
	h.promptAs(c, looked, "", "look")
	h.follow(c, looked, over)
	one := h.dial()
	h.attach(one, waits)
	h.promptAs(c, waits, "", "wait")
	h.until(one, waits, "a word", func(v *pi.View) bool { return assistantText(v) != "" })
	after := scrape(t, h.url, token)
	for sample, want := range map[string]float64{
		"roost_sessions": 2, "roost_runs": 1, `roost_watchers{client="pi"}`: 1, "roost_provider_requests": 1,
		`roost_sessions_total{change="created"}`: 2, `roost_runs_total{outcome="completed"}`: 1, `roost_runs_total{outcome="aborted"}`: 0,
		`roost_tool_calls_total{outcome="ok"}`: 1, `roost_tool_calls_total{outcome="error"}`: 1,
		`roost_provider_requests_total{outcome="ok"}`: 2, `roost_eventlog_appends_total{outcome="error"}`: 0, "roost_panics_total": 0,
	} {
		if got := value(t, after, sample); got != want {
			t.Errorf("%s is %v, want %v", sample, got, want)
		}
	}
	appends, events := value(t, after, `roost_eventlog_appends_total{outcome="ok"}`), value(t, after, "roost_events_total")
	commits := value(t, after, "roost_commit_seconds_count")
	if appends < 4 || events < appends || commits < 2 || value(t, after, "roost_commit_seconds_sum") <= 0 {
		t.Errorf("%v appends of %v events in %v commits", appends, events, commits)
	}
	if value(t, after, `roost_database_bytes{file="wal"}`) <= 0 || value(t, after, `roost_tokens_total{kind="output"}`) <= 0 {
		t.Error("nothing was written, or said")
	}

	h.do(one, &piwire.Abort{SessionID: waits})
	h.until(one, waits, "the end", idle)
	one.Close()
	if err := c.Delete(h.context(), looked); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the watcher has left", func() bool {
		end := scrape(t, h.url, token)
		return value(t, end, `roost_watchers{client="pi"}`) == 0 && value(t, end, "roost_runs") == 0 &&
			value(t, end, "roost_provider_requests") == 0 && value(t, end, `roost_provider_requests_total{outcome="canceled"}`) == 1 &&
			value(t, end, `roost_runs_total{outcome="aborted"}`) == 1 && value(t, end, `roost_sessions_total{change="deleted"}`) == 1
	})
}

const flooded = `
rules:
  - default: true
    passes:
      - - text: "` + "${words}" + `"
          repeat: "5000"
`

// A watcher that does not read while much is said is counted as slow, once it is.
func TestSlowWatchersAreCounted(t *testing.T) {
	h := newHome(t, strings.Replace(flooded, "${words}", strings.Repeat("word ", 200), 1))
	h.start()
	c := h.api()
	token, err := client.ReadToken(filepath.Join(h.dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	id := h.newSession(c)
	const resets = `roost_watcher_resets_total{client="roost"}`
	asked := false
	h.follow(c, id, func(v *client.View) bool {
		if !asked { // and until the answer is there nothing is read
			asked = true
			h.promptAs(c, id, "", "go")
			eventually(t, "the run has ended", func() bool { return value(t, scrape(t, h.url, token), "roost_runs") == 0 })
		}
		return over(v)
	})
	if got := value(t, scrape(t, h.url, token), resets); got < 1 {
		t.Errorf("%s is %v", resets, got)
	}
}

// eventually asks until the answer is yes.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	limit, tick := time.After(time.Minute), time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("within a minute it was not true that %s", what)
		}
	}
}

// The manual lists every metric with its kind and its labels, and no other.
func TestManualListsTheMetrics(t *testing.T) {
	e := open(t)
	manual, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]string)
	for _, row := range regexp.MustCompile("(?m)^\\| `(roost_[a-z_]+)` \\| (\\w+) \\| (.*?) \\| .+ \\|$").FindAllStringSubmatch(string(manual), -1) {
		listed[row[1]] = row[2] + " " + row[3]
	}
	served := make(map[string]string)
	for name, m := range scrape(t, e.URL, e.Token) {
		served[name] = m.kind + " " + labelsOf(m)
	}
	for _, name := range slices.Sorted(maps.Keys(served)) {
		if listed[name] != served[name] {
			t.Errorf("docs/operations.md says of %s %q, the server %q", name, listed[name], served[name])
		}
	}
	for name := range listed {
		if served[name] == "" {
			t.Errorf("docs/operations.md lists %s, which there is not", name)
		}
	}
}

var labelPair = regexp.MustCompile(`([a-z]+)="((?:[^"\\]|\\.)*)"`)

// labelsOf writes the labels of a metric as the manual does.
func labelsOf(m *metric) string {
	values := make(map[string][]string)
	var names []string
	for sample := range m.samples {
		for _, pair := range labelPair.FindAllStringSubmatch(sample, -1) {
			if pair[1] == "le" {
				continue
			}
			if !slices.Contains(names, pair[1]) {
				names = append(names, pair[1])
			}
			if !slices.Contains(values[pair[1]], pair[2]) {
				values[pair[1]] = append(values[pair[1]], pair[2])
			}
		}
	}
	slices.Sort(names)
	var parts []string
	for _, name := range names {
		slices.Sort(values[name])
		part := "`" + name + "`: " + strings.Join(values[name], ", ")
		if name == "version" || name == "go" {
			part = "`" + name + "`"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, "; ")
}

// stream is a model that answers with parts and an error.
type stream struct {
	parts []provider.Part
	err   error
}

func (s stream) Stream(context.Context, *provider.Request) iter.Seq2[provider.Part, error] {
	return func(yield func(provider.Part, error) bool) {
		for _, p := range s.parts {
			if !yield(p, nil) {
				return
			}
		}
		if s.err != nil {
			yield(provider.Part{}, s.err)
		}
	}
}

func TestRequestsAreCounted(t *testing.T) {
	text := provider.Part{Kind: provider.TextDelta, Text: "x"}
	finish := provider.Part{Kind: provider.Finish}
	usage := func(n int64) provider.Part {
		return provider.Part{Kind: provider.UsageReport, Usage: session.Usage{Input: n, Output: 2 * n, CacheRead: 3, CacheWrite: -1}}
	}
	for name, c := range map[string]struct {
		stream
		leave   int // after so many parts; 0 for never
		outcome string
		input   uint64
	}{
		"whole":            {stream{[]provider.Part{text, usage(5), usage(7), finish}, nil}, 0, "ok", 7},
		"left":             {stream{[]provider.Part{usage(5), text, finish}, nil}, 2, "canceled", 5},
		"canceled":         {stream{[]provider.Part{text}, context.Canceled}, 0, "canceled", 0},
		"too many":         {stream{nil, provider.Errorf(provider.FaultRateLimit, "slow down")}, 0, "rate_limit", 0},
		"overloaded later": {stream{[]provider.Part{usage(4), text}, fmt.Errorf("x: %w", provider.Errorf(provider.FaultOverload, "x"))}, 0, "overload", 4},
	} {
		t.Run(name, func(t *testing.T) {
			set := new(telemetry.Set)
			counts := newRequests(set)
			n := 0
			for range (countedModel{c.stream, counts}).Stream(t.Context(), nil) {
				if counts.open.Value() != 1 {
					t.Error("the request is not in progress")
				}
				if n++; n == c.leave {
					break
				}
			}
			var text strings.Builder
			if _, err := set.WriteTo(&text); err != nil {
				t.Fatal(err)
			}
			all, err := parseMetrics(text.String())
			if err != nil {
				t.Fatal(err)
			}
			for sample, got := range all["roost_provider_requests_total"].samples {
				if want := float64(strings.Count(sample, `"`+c.outcome+`"`)); got != want {
					t.Errorf("%s is %v", sample, got)
				}
			}
			if counts.input.Value() != c.input || counts.output.Value() != 2*c.input || counts.cacheIn.Value() != 0 || counts.open.Value() != 0 {
				t.Errorf("after it %s", text.String())
			}
		})
	}
}

func TestEventsAreCounted(t *testing.T) {
	log := memlog.New()
	counts := newCountedLog(new(telemetry.Set), log)
	records := []session.Record{
		{Seq: 1, Event: session.Created{ID: "a", Cwd: "/"}},
		{Seq: 2, Event: session.PassResumed{}},
		{Seq: 3, Event: session.ToolEnded{IsError: true}},
		{Seq: 4, Event: session.RunEnded{Outcome: session.RunFailed}},
	}
	if err := counts.Append(t.Context(), "a", 0, records); err != nil {
		t.Fatal(err)
	}
	if err := counts.Append(t.Context(), "a", 0, records); err == nil {
		t.Fatal("the same again was taken")
	}
	if err := counts.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if counts.Delete(t.Context(), "a") == nil {
		t.Fatal("it was deleted twice")
	}
	for name, c := range map[string]*telemetry.Counter{
		"appends": counts.appends, "failed": counts.failed, "created": counts.created, "deleted": counts.deleted,
		"retries": counts.retries, "calls that failed": counts.calls[true], "runs that failed": counts.runs[session.RunFailed],
	} {
		if c.Value() != 1 {
			t.Errorf("%s: %d", name, c.Value())
		}
	}
	if counts.events.Value() != 4 || counts.calls[false].Value() != 0 {
		t.Errorf("%d events, %d good calls", counts.events.Value(), counts.calls[false].Value())
	}
}
