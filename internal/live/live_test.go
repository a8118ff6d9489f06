package live

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/session"
)

func records(from, to session.Seq, text string) (list []session.Record) {
	for s := from; s <= to; s++ {
		list = append(list, session.Record{Seq: s, Event: session.Delta{Text: text}})
	}
	return list
}

func at(seq session.Seq) *session.State { return &session.State{Head: session.Head{Seq: seq}} }

func missed(list []session.Record, err error) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
		if err != nil {
			yield(session.Record{}, err)
		}
	}
}

func next(t *testing.T, s *Subscription) Update {
	t.Helper()
	u, err := s.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// wants checks an update: its records are from to to, or it is a reset when to is 0.
func wants(t *testing.T, u Update, from, to, state session.Seq) {
	t.Helper()
	if u.Reset != (to == 0) || (u.State == nil) != (state == 0) || (u.State != nil && u.State.Seq != state) {
		t.Fatalf("reset %v, state %v", u.Reset, u.State)
	}
	n := 0
	if to > 0 {
		n = int(to-from) + 1
	}
	if len(u.Records) != n {
		t.Fatalf("%d records, want %d", len(u.Records), n)
	}
	for i, r := range u.Records {
		if r.Seq != from+session.Seq(i) {
			t.Fatalf("record %d has seq %d", i, r.Seq)
		}
	}
}

func TestNewWatcherGetsTheStateFirst(t *testing.T) {
	var h Hub
	s := h.Subscribe(at(3), nil)
	defer s.Close()
	h.Publish(records(4, 5, "x"), at(5))
	wants(t, next(t, s), 0, 0, 5) // with what came meanwhile
	h.Publish(records(6, 6, "x"), at(6))
	h.Publish(records(7, 8, "x"), at(8))
	wants(t, next(t, s), 6, 8, 8)
}

func TestReturningWatcherGetsWhatItMissed(t *testing.T) {
	var h Hub
	s := h.Subscribe(at(5), missed(records(3, 7, "x"), nil)) // 6 and 7 are published as well
	defer s.Close()
	h.Publish(records(6, 7, "x"), at(7))
	wants(t, next(t, s), 3, 5, 0)
	wants(t, next(t, s), 6, 7, 7)
}

func TestMuchThatWasMissedComesInPieces(t *testing.T) {
	var h Hub
	s := h.Subscribe(at(100), missed(records(1, 100, strings.Repeat("x", Limit/20)), nil))
	defer s.Close()
	want := session.Seq(1)
	for want <= 100 {
		u := next(t, s)
		if Cost(u.Records) > Limit || u.Records[0].Seq != want {
			t.Fatalf("%d bytes from %d, want from %d", Cost(u.Records), u.Records[0].Seq, want)
		}
		want += session.Seq(len(u.Records))
	}
}

func TestUnreadableHistoryIsAReset(t *testing.T) {
	var h Hub
	s := h.Subscribe(at(5), missed(records(3, 3, "x"), errors.New("damaged")))
	defer s.Close()
	wants(t, next(t, s), 3, 3, 0)
	wants(t, next(t, s), 0, 0, 5)
}

func TestSlowWatcherIsReset(t *testing.T) {
	var h Hub
	s := h.Subscribe(at(0), nil)
	defer s.Close()
	next(t, s)
	slow := 0
	s.OnSlow(func() { slow++ })
	text := strings.Repeat("x", Limit/4)
	seq := session.Seq(0)
	for range 10 {
		seq++
		h.Publish(records(seq, seq, text), at(seq))
		if s.cost > Limit || Cost(s.records) != s.cost {
			t.Fatalf("%d bytes wait, counted as %d", Cost(s.records), s.cost)
		}
	}
	wants(t, next(t, s), 0, 0, 10)
	if slow != 1 {
		t.Errorf("OnSlow was called %d times", slow)
	}
	h.Publish(records(11, 11, "x"), at(11))
	wants(t, next(t, s), 11, 11, 11)
}

func TestTouch(t *testing.T) {
	var h Hub
	s := h.Subscribe(at(1), nil)
	defer s.Close()
	next(t, s)
	s.Touch()
	if u := next(t, s); u.Reset || u.Records != nil || u.State.Seq != 1 {
		t.Errorf("got %+v", u)
	}
}

func TestEnds(t *testing.T) {
	var h Hub
	closed := 0
	s, other := h.Subscribe(at(1), nil), h.Subscribe(at(1), missed(records(1, 1, "x"), nil))
	s.OnClose(func() { closed++ })
	s.OnClose(func() { closed += 10 })
	if s.Err() != nil || h.Len() != 2 {
		t.Errorf("%v, %d watchers", s.Err(), h.Len())
	}
	canceled, cancel := context.WithCancel(t.Context())
	next(t, s)
	cancel()
	if _, err := s.Next(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	h.Close(ErrRemoved)
	s.Touch()
	h.Publish(records(2, 2, "x"), at(2))
	if _, err := s.Next(t.Context()); !errors.Is(err, ErrRemoved) || !errors.Is(s.Err(), ErrRemoved) {
		t.Errorf("removed: %v, %v", err, s.Err())
	}
	s.Close()
	s.Close()
	if closed != 11 {
		t.Errorf("the two functions of OnClose made %d of 0, want 11", closed)
	}
	other.Close()
	if h.Len() != 0 {
		t.Errorf("%d watchers are left", h.Len())
	}
}

// Who comes after the end learns the reason of the end, whatever is closed once more later.
func TestSubscribedTooLate(t *testing.T) {
	var h Hub
	h.Close(ErrRemoved)
	s := h.Subscribe(at(3), nil)
	h.Close(errors.New("later"))
	if _, err := s.Next(t.Context()); !errors.Is(err, ErrRemoved) {
		t.Errorf("got %v", err)
	}
	s.Close()
}
