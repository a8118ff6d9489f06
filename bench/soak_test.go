package main

import (
	"math"
	"strings"
	"testing"
	"time"

	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// line is samples a minute apart with a resident size of f(minute) bytes.
func line(n int, f func(i int) float64) []sample {
	samples := make([]sample, n)
	for i := range samples {
		samples[i] = sample{at: time.Duration(i) * time.Minute, resident: f(i)}
	}
	return samples
}

func resident(x sample) float64 { return x.resident }

func TestFit(t *testing.T) {
	noise := []float64{0.3, -0.2, 0.5, -0.6, 0.1, 0.2, -0.4, 0.1}
	for name, c := range map[string]struct {
		f     func(i int) float64
		slope float64 // per hour
		flat  bool
	}{
		"constant":         {func(int) float64 { return 50 }, 0, true},
		"falls":            {func(i int) float64 { return 100 - float64(i) }, -60, true},
		"grows a little":   {func(i int) float64 { return 100 + float64(i)/10 }, 6, true},
		"leaks":            {func(i int) float64 { return 100 + float64(i) }, 60, false},
		"leaks with noise": {func(i int) float64 { return 100 + float64(i) + noise[i%8] }, 60, false},
		"a slow wave":      {func(i int) float64 { return 100 + 20*math.Sin(2*math.Pi*float64(i+16)/36) }, 43, true},
		"chance":           {func(i int) float64 { return 1 + noise[i%8] }, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := fit(line(40, c.f), resident)
			if math.Abs(l.slope-c.slope) > 1.5 || l.flat() != c.flat || math.Abs(l.hours-39./60) > 1e-9 {
				t.Errorf("%v, flat %v", l, l.flat())
			}
		})
	}
	if l := fit(line(2, func(int) float64 { return 1 }), resident); l.flat() {
		t.Error("two samples are no line")
	}
}

func TestDrift(t *testing.T) {
	for name, c := range map[string]struct {
		f  func(i int) float64
		ok bool
	}{
		"same":  {func(int) float64 { return 3 }, true},
		"less":  {func(i int) float64 { return 10 / float64(i+1) }, true},
		"grows": {func(i int) float64 { return float64(1 + i) }, false},
	} {
		if got := drift(name, line(30, c.f), resident); got.ok != c.ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if drift("too few", line(2, func(int) float64 { return 1 }), resident).ok {
		t.Error("two samples have no thirds")
	}
}

func TestWarmUpIsLeftOut(t *testing.T) {
	s := &soak{soakOptions: soakOptions{duration: 10 * time.Minute}, samples: line(11, func(int) float64 { return 0 })}
	if warm := s.warm(); len(warm) != 9 || warm[0].at != 2*time.Minute {
		t.Errorf("%d samples from %v", len(warm), warm[0].at)
	}
}

func TestParseMetrics(t *testing.T) {
	all, err := parseMetrics("# HELP a b\n# TYPE a gauge\na 1\na{x=\"y z\"} 2.5\n\nab 4\n")
	x := sample{metrics: all}
	if err != nil || len(all) != 3 || x.sum("a") != 3.5 || x.sum("b") != 0 {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := parseMetrics("nonsense\n"); err == nil {
		t.Error("nonsense was taken")
	}
}

func TestCheckOfAnAnswer(t *testing.T) {
	a := task{seed: 3, tokens: 30, tools: 1}
	want := a.text()
	for name, c := range map[string]struct {
		got     string
		aborted bool
		ok, gap bool
	}{
		"whole":             {want, false, true, true},
		"whole and aborted": {want, true, true, true},
		"cut":               {want[:20], false, false, true},
		"cut and aborted":   {want[:20], true, true, true},
		"nothing":           {"", true, true, true},
		"a hole":            {want[:20] + want[60:], true, false, true},
		"something twice":   {want[:40] + want[20:], true, false, false},
		"something else":    {want[:20] + "?" + want[21:], true, false, false},
	} {
		if err := a.check(c.got, c.aborted); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
		if got := a.gap(c.got); got != c.gap {
			t.Errorf("%s: a gap: %v", name, got)
		}
	}
}

func TestTurnsOfATranscript(t *testing.T) {
	says := func(text string) *roostv1.Item {
		return &roostv1.Item{Kind: &roostv1.Item_Assistant{Assistant: &roostv1.Assistant{Blocks: []*roostv1.Block{
			{Kind: &roostv1.Block_Reasoning{Reasoning: &roostv1.Reasoning{Text: "hm"}}}, {Kind: &roostv1.Block_Text{Text: &roostv1.Text{Text: text}}},
		}}}}
	}
	user := func(note string) *roostv1.Item {
		return &roostv1.Item{Kind: &roostv1.Item_User{User: &roostv1.User{Note: note}}}
	}
	called := func(s roostv1.Status) *roostv1.Item {
		return &roostv1.Item{Kind: &roostv1.Item_Tool{Tool: &roostv1.Tool{Status: s}}}
	}
	texts, calls := turnsOf([]*roostv1.Item{
		user("context"), user(""), says("a"), called(roostv1.Status_STATUS_COMPLETE), called(roostv1.Status_STATUS_FAILED), says("b"),
		user(""), user("mode"), says("c"),
	})
	if strings.Join(texts, "|") != "ab|c" || len(calls) != 2 || calls[0] != 1 || calls[1] != 0 {
		t.Errorf("%q, %v", texts, calls)
	}
}

func TestSoakOptions(t *testing.T) {
	o := soakOptions{duration: 30 * time.Minute, sessions: 200, rate: 4}
	if o.check() != nil || o.think() != 50*time.Second || o.every() != time.Minute || o.floodEvery() != 50*time.Second {
		t.Errorf("%v, %v, %v", o.check(), o.think(), o.every())
	}
	if every := (soakOptions{duration: 2 * time.Minute}).floodEvery(); every != 12*time.Second {
		t.Errorf("a short soak has a flood every %v", every)
	}
	for _, bad := range []soakOptions{{time.Second, 1, 1}, {time.Hour, 0, 1}, {time.Hour, 1, 0}} {
		if bad.check() == nil {
			t.Errorf("%+v is taken", bad)
		}
	}
}
