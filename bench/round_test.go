package main

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/eventlog"
)

// A prompt through a whole server gives what a direct connection gives, and all the figures.
func TestRoundThroughRoost(t *testing.T) {
	h := open(t)
	c, err := h.gather(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	o := order{tokens: 100, rate: 1000}
	for range 2 { // the second run finds an answer in the transcript that is not its own
		ts, err := c.prompt(o)
		if err != nil {
			t.Fatal(err)
		}
		if ts.tokens() != 200 || ts.rate() <= 0 || len(ts.delays()) != 198 {
			t.Errorf("%d tokens, %v tokens/s, %d delays", ts.tokens(), ts.rate(), len(ts.delays()))
		}
		for _, turn := range ts {
			if turn.acked.Before(turn.sent) || turn.first.Before(turn.sent) || turn.last.Before(turn.first) {
				t.Errorf("sent %v, acked %v, first %v, last %v", turn.sent, turn.acked, turn.first, turn.last)
			}
			if turn.wire.deltas > 0 && turn.wire.bytes <= turn.wire.deltas*tokenSize {
				t.Errorf("%d bytes for %d deltas", turn.wire.bytes, turn.wire.deltas)
			}
		}
	}
}

func TestDirect(t *testing.T) {
	p := &provider{}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/chat/completions", p.complete)
	mux.HandleFunc("POST /tally", p.tally)
	s := httptest.NewServer(mux)
	defer s.Close()
	d := newDirect(s.URL)
	defer d.close()
	ts, err := d.runMany(t.Context(), 3, order{tokens: 50, size: 30})
	if err != nil {
		t.Fatal(err)
	}
	if ts.tokens() != 150 {
		t.Errorf("%d tokens", ts.tokens())
	}
	l := &lab{url: s.URL, direct: d}
	newest, err := l.streaming(t.Context(), 3)
	if err != nil || newest.After(time.Now()) || newest.Before(ts[0].sent) {
		t.Errorf("%v, %v", newest, err)
	}
	if n, err := l.tally(t.Context(), ""); err != nil || n.Streaming != 0 {
		t.Errorf("the tally was not reset: %+v, %v", n, err)
	}
}

func TestDirectRefusals(t *testing.T) {
	for body, want := range map[string]string{
		"data: {}\n\n":     "broke off",
		"data: [DONE]\n\n": "0 tokens of 5",
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(body)) }))
		d := newDirect(s.URL)
		if _, err := d.run(t.Context(), order{tokens: 5}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", body, err)
		}
		d.close()
		s.Close()
	}
}

// What fill and long write is a history that a server takes up.
func TestPreparedHistories(t *testing.T) {
	l := &lab{dir: t.TempDir(), url: "http://127.0.0.1:1"}
	h, err := l.newHome(time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer h.remove()
	if err := h.fill(t.Context(), 30, 5); err != nil {
		t.Fatal(err)
	}
	if err := h.long(t.Context(), "long", 400); err != nil {
		t.Fatal(err)
	}
	fresh, err := h.copy()
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.remove()
	err = fresh.write(func(log eventlog.Log) error {
		sessions := 0
		for _, err := range log.List(t.Context()) {
			if err != nil {
				return err
			}
			sessions++
		}
		if active, err := log.Active(t.Context()); err != nil || sessions != 36 || len(active) != 5 {
			t.Errorf("%d sessions, %d of them active, %v", sessions, len(active), err)
		}
		state, err := eventlog.Restore(t.Context(), log, "bench00034")
		if err == nil && (state.Run == nil || state.Run.Live == nil) {
			t.Error("the run was not cut in the middle of an answer")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
