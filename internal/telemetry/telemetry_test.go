package telemetry

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

func text(t testing.TB, s *Set) string {
	t.Helper()
	var b bytes.Buffer
	if _, err := s.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestText(t *testing.T) {
	var s Set
	s.Counter("roost_a_total", "Things\\ that\nhappen.", "outcome", "ok").Add(3)
	s.Gauge("roost_b", "Now.").Add(-2)
	s.Counter("roost_a_total", "Things\\ that\nhappen.", "outcome", `a "b" \c`+"\n").Inc()
	s.GaugeFunc("roost_c_seconds", "Half.", func() float64 { return 0.5 })
	h := s.Histogram("roost_d_seconds", "How long.", []float64{0.001, 1}, "kind", "x")
	for _, v := range []float64{0.0005, 0.001, 0.25, 7} {
		h.Observe(v)
	}
	const want = `# HELP roost_a_total Things\\ that\nhappen.
# TYPE roost_a_total counter
roost_a_total{outcome="ok"} 3
roost_a_total{outcome="a \"b\" \\c\n"} 1
# HELP roost_b Now.
# TYPE roost_b gauge
roost_b -2
# HELP roost_c_seconds Half.
# TYPE roost_c_seconds gauge
roost_c_seconds 0.5
# HELP roost_d_seconds How long.
# TYPE roost_d_seconds histogram
roost_d_seconds_bucket{kind="x",le="0.001"} 2
roost_d_seconds_bucket{kind="x",le="1"} 3
roost_d_seconds_bucket{kind="x",le="+Inf"} 4
roost_d_seconds_sum{kind="x"} 7.2515
roost_d_seconds_count{kind="x"} 4
`
	if got := text(t, &s); got != want {
		t.Errorf("got\n%s", got)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 1e15: "1000000000000000", 1e20: "1e+20", -0.25: "-0.25", math.Inf(1): "+Inf", math.Inf(-1): "-Inf",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %s, want %s", v, got, want)
		}
	}
	if got := number(math.NaN()); got != "NaN" {
		t.Errorf("not a number is %s", got)
	}
}

func TestMistakesPanic(t *testing.T) {
	for name, f := range map[string]func(*Set){
		"foreign name":   func(s *Set) { s.Gauge("other", "Help.") },
		"strange name":   func(s *Set) { s.Gauge("roost_A b", "Help.") },
		"no help":        func(s *Set) { s.Gauge("roost_a", "") },
		"twice":          func(s *Set) { s.Gauge("roost_x", "Help.") },
		"another kind":   func(s *Set) { s.Counter("roost_x", "Help.", "a", "b") },
		"another help":   func(s *Set) { s.Gauge("roost_x", "Other.", "a", "b") },
		"no bounds":      func(s *Set) { s.Histogram("roost_h", "Help.", nil) },
		"falling bounds": func(s *Set) { s.Histogram("roost_h", "Help.", []float64{2, 1}) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			s := new(Set)
			s.Gauge("roost_x", "Help.")
			f(s)
		})
	}
}

// Whatever is observed, the buckets ascend, the last one counts all, and the sum is right.
func TestHistogramProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := new(Set)
		h := s.Histogram("roost_h", "Help.", []float64{-1, 0, 2.5, 100})
		values := rapid.SliceOf(rapid.Float64Range(-200, 200)).Draw(t, "values")
		sum := 0.0
		for _, v := range values {
			h.Observe(v)
			sum += v
		}
		last := 0
		for line := range strings.Lines(string(s.append(nil))) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
			bound, bucket := strings.CutPrefix(name, `roost_h_bucket{le="`)
			if !bucket {
				continue
			}
			limit, err := strconv.ParseFloat(strings.TrimSuffix(bound, `"}`), 64)
			if err != nil {
				t.Fatal(err)
			}
			want := 0
			for _, v := range values {
				if v <= limit {
					want++
				}
			}
			if last, err = strconv.Atoi(value); err != nil || last != want {
				t.Fatalf("%s, want %d", line, want)
			}
		}
		if last != len(values) || math.Float64frombits(h.sum.Load()) != sum {
			t.Fatalf("%d values of sum %v, want %d of %v", last, math.Float64frombits(h.sum.Load()), len(values), sum)
		}
	})
}

// Any value of a label comes out as one that can be read back.
func TestLabelsAreEscaped(t *testing.T) {
	sample := regexp.MustCompile(`(?s)^roost_g\{v="((?:[^"\\\n]|\\["\\n])*)"\} 0\n$`)
	back := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\"`, `"`)
	rapid.Check(t, func(t *rapid.T) {
		s := new(Set)
		value := rapid.String().Draw(t, "value")
		s.Gauge("roost_g", "Help.", "v", value)
		_, line, _ := strings.Cut(string(s.append(nil)), "gauge\n")
		m := sample.FindStringSubmatch(line)
		if m == nil || back.Replace(m[1]) != value {
			t.Fatalf("%q is written as %q", value, line)
		}
	})
}

func TestProcess(t *testing.T) {
	s := new(Set)
	s.AddProcess(`v1 "x"`)
	got := text(t, s)
	for _, want := range []string{`roost_build_info{version="v1 \"x\"",go="go`, "\nroost_goroutines ", "\nroost_heap_bytes ", "\nroost_memory_bytes "} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	for line := range strings.Lines(got) {
		if strings.HasPrefix(line, "roost_") && strings.HasSuffix(line, " 0\n") {
			t.Errorf("a program that runs has %s", line)
		}
	}
}

func TestLogIsCounted(t *testing.T) {
	s := new(Set)
	var out bytes.Buffer
	log := slog.New(s.CountLog(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelError})))
	log.Info("quiet")
	log.Warn("not wanted")
	log.With(slog.String("a", "b")).WithGroup("g").Error("bad", slog.Any("error", errors.New("x")))
	log.Error("worse", slog.Any(PanicKey, "boom"), slog.String("stack", "…"))
	got := text(t, s)
	for _, want := range []string{`messages_total{level="warn"} 1`, `messages_total{level="error"} 2`, "panics_total 1"} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	if strings.Contains(out.String(), "wanted") || !strings.Contains(out.String(), "a=b g.error=x") || !strings.Contains(out.String(), "boom") {
		t.Errorf("the log is\n%s", out.String())
	}
	if log.Enabled(context.Background(), slog.LevelInfo) {
		t.Error("info is not wanted, and need not be made")
	}
}

func TestServeHTTP(t *testing.T) {
	s := new(Set)
	s.Counter("roost_a_total", "Help.")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "GET", "/metrics", nil))
	if w.Code != 200 || w.Header().Get("Content-Type") != ContentType || w.Body.String() != text(t, s) {
		t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
	}
}

// Many count while many look, and nothing is lost.
func TestConcurrency(t *testing.T) {
	const goroutines, each = 8, 1000
	s := new(Set)
	c, g := s.Counter("roost_a_total", "Help."), s.Gauge("roost_b", "Help.")
	h := s.Histogram("roost_h", "Help.", []float64{1})
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for i := range each {
				c.Inc()
				g.Add(1)
				h.Observe(float64(i % 2))
				g.Add(-1)
			}
		})
		all.Go(func() {
			for range 20 {
				_ = s.append(nil)
			}
		})
	}
	all.Wait()
	if c.Value() != goroutines*each || g.Value() != 0 || math.Float64frombits(h.sum.Load()) != goroutines*each/2 {
		t.Errorf("%d, %d, %v", c.Value(), g.Value(), math.Float64frombits(h.sum.Load()))
	}
}
