package main

import (
	"encoding/json"
	"testing"
	"time"
)

func TestOrderThroughARequest(t *testing.T) {
	want := order{tokens: 2000, rate: 100, size: 40}
	body, err := json.Marshal(map[string]any{"messages": []any{
		map[string]any{"role": "user", "content": order{tokens: 1}.String()},
		map[string]any{"role": "user", "content": want.String()},
		map[string]any{"role": "user", "content": "Go on."},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := findOrder(body); err != nil || got != want {
		t.Errorf("%+v, %v instead of %+v", got, err, want)
	}
}

func TestOrderDefaultSize(t *testing.T) {
	if got, err := findOrder([]byte(order{tokens: 3}.String())); err != nil || got.size != tokenSize {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestNoOrder(t *testing.T) {
	for _, body := range []string{
		"", "bench", "bench: ", "bench: tokens=x rate=1 size=21.", "bench: tokens=1 rate=1 size=20.", "bench: tokens=-1 rate=1 size=21.", "bench: tokens=1 rate=-1 size=21.",
	} {
		if o, err := findOrder([]byte(body)); err == nil {
			t.Errorf("%q is %+v", body, o)
		}
	}
}

func TestPeriod(t *testing.T) {
	for _, tc := range []struct {
		rate int
		want time.Duration
	}{{0, 0}, {1, time.Second}, {50, 20 * time.Millisecond}, {2000, 500 * time.Microsecond}} {
		if got := (order{rate: tc.rate}).period(); got != tc.want {
			t.Errorf("rate %d: %v instead of %v", tc.rate, got, tc.want)
		}
	}
}
