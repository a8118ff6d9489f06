package main

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestQuantile(t *testing.T) {
	hundred := make([]int, 100)
	for i := range hundred {
		hundred[i] = 100 - i // 100 to 1
	}
	for _, tc := range []struct {
		values []int
		q      float64
		want   int
	}{
		{nil, 0.5, 0},
		{[]int{7}, 0, 7},
		{[]int{7}, 1, 7},
		{[]int{3, 1, 2}, 0.5, 2},
		{[]int{4, 3, 2, 1}, 0.5, 3},
		{hundred, 0, 1},
		{hundred, 0.5, 51},
		{hundred, 0.99, 100},
		{hundred, 1, 100},
	} {
		if got := quantile(tc.values, tc.q); got != tc.want {
			t.Errorf("%v of %v is %v instead of %v", tc.q, tc.values, got, tc.want)
		}
	}
	if hundred[0] != 100 {
		t.Error("the values were sorted in place")
	}
}

// At most the part q of the values is below a quantile, and at most 1-q above it.
func TestQuantileLies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.IntRange(0, 50), 1, 200).Draw(t, "values")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		got := quantile(values, q)
		below, above := 0, 0
		for _, v := range values {
			if v < got {
				below++
			}
			if v > got {
				above++
			}
		}
		n := float64(len(values))
		if !slices.Contains(values, got) || float64(below) > q*n || float64(above) > (1-q)*n {
			t.Fatalf("%v of %v is %v: %d below, %d above", q, values, got, below, above)
		}
	})
}

func TestRows(t *testing.T) {
	for _, tc := range []struct {
		name string
		row  row
		want row
	}{
		{"at the limit", atMost("a", 1.5, figure{value: 1.5, unit: "ms"}), row{"a", "≤ 1.5 ms", "1.5 ms", "–", "ok"}},
		{"above", atMost("a", 4, figure{value: 4.01, unit: "ms", peer: "1 ms"}), row{"a", "≤ 4 ms", "4.01 ms", "1 ms", "**over**"}},
		{"at least", atLeast("a", 0.5, figure{value: 0.5}), row{"a", "≥ 0.5", "0.5", "–", "ok"}},
		{"below", atLeast("a", 0.5, figure{value: 0.49}), row{"a", "≥ 0.5", "0.49", "–", "**over**"}},
		{"no limit", noLimit("a", figure{value: 12.34, unit: "MB"}), row{"a", "–", "12.3 MB", "–", "–"}},
	} {
		if tc.row != tc.want {
			t.Errorf("%s: %+v instead of %+v", tc.name, tc.row, tc.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.004: "0", -0.001: "0", 0.734: "0.73", 1: "1", 9.999: "10", 12.34: "12.3", -12.34: "-12.3", 98_765.4: "98765", 300: "300", 10: "10",
	} {
		if got := number(v); got != want {
			t.Errorf("%v is %q instead of %q", v, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	header(&b)
	write(&b, []row{noLimit("a", figure{value: 1, unit: "ms", peer: "2 ms"})})
	const want = "| measure | budget | roost | direct | verdict |\n|---|---|---|---|---|\n| a | – | 1 ms | 2 ms | – |\n"
	if b.String() != want {
		t.Errorf("got\n%s", b.String())
	}
}

func TestTurns(t *testing.T) {
	at := func(ms int) time.Time { return time.UnixMilli(1_790_000_000_000 + int64(ms)) }
	ts := turns{
		{sent: at(0), answer: answer{tokens: 3, last: at(400), delays: []time.Duration{time.Second, time.Millisecond, 2 * time.Millisecond}}},
		{sent: at(100), answer: answer{tokens: 2, last: at(1000), delays: []time.Duration{time.Second, 3 * time.Millisecond}}},
	}
	if got := ts.rate(); got != 5 {
		t.Errorf("%v tokens/s instead of 5", got)
	}
	if got := ts.delays(); !slices.Equal(got, []float64{1, 2, 3}) {
		t.Errorf("delays %v", got)
	}
}

func TestShare(t *testing.T) {
	m := load{through: []float64{50, 30, 80}, plain: []float64{100, 100, 100}}
	if got := m.share(); got != 0.5 {
		t.Errorf("%v instead of 0.5", got)
	}
}

func TestContent(t *testing.T) {
	for line, want := range map[string]string{
		chunkTop + `{"content":"t1 "}` + chunkEnd:                 "t1 ",
		chunkTop + `{"role":"assistant","content":""}` + chunkEnd: "",
		"":             "",
		"data: [DONE]": "",
	} {
		if got := content([]byte(line)); got != want {
			t.Errorf("%q has %q", line, got)
		}
	}
}

func TestChoose(t *testing.T) {
	if all, err := choose(""); err != nil || len(all) != len(measures) {
		t.Errorf("%d, %v", len(all), err)
	}
	if two, err := choose("crowd, first"); err != nil || len(two) != 2 || two[0].name != "crowd" || two[1].name != "first" {
		t.Errorf("%v, %v", two, err)
	}
	if _, err := choose("crowd,nothing"); err == nil || !strings.Contains(err.Error(), "attach") {
		t.Errorf("%v: an unknown name must be refused and the known ones listed", err)
	}
}
