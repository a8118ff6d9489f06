package memlog_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/memlog"
	"github.com/roost-dev/roost/internal/session"
)

func created(id session.ID) []session.Record {
	return []session.Record{{Seq: 1, At: 1, Event: session.Created{ID: id, Cwd: "/work"}}}
}

func delta(seq session.Seq) []session.Record {
	return []session.Record{{Seq: seq, At: 2, Event: session.Delta{Text: "x"}}}
}

func add(t *testing.T, log eventlog.Log, id session.ID, records []session.Record) {
	t.Helper()
	if err := log.Append(t.Context(), id, records[0].Seq-1, records); err != nil {
		t.Fatal(err)
	}
}

// last returns the last event of a session, 0 when there is no session.
func last(t *testing.T, log eventlog.Log, id session.ID) (seq session.Seq) {
	t.Helper()
	for r, err := range log.Read(t.Context(), id, 0) {
		switch {
		case errors.Is(err, eventlog.ErrNotFound):
			return 0
		case err != nil:
			t.Fatal(err)
		}
		seq = r.Seq
	}
	return seq
}

func TestFail(t *testing.T) {
	for name, c := range map[string]struct {
		fault memlog.Fault
		want  error
		last  session.Seq
	}{
		"none":   {memlog.None, nil, 3},
		"before": {memlog.Before, memlog.ErrInjected, 2},
		"after":  {memlog.After, memlog.ErrInjected, 3},
		"full":   {memlog.Full, eventlog.ErrFull, 2},
	} {
		t.Run(name, func(t *testing.T) {
			log := memlog.New()
			add(t, log, "a", created("a"))
			log.Fail(2, c.fault)
			add(t, log, "a", delta(2))
			if err := log.Append(t.Context(), "a", 2, delta(3)); !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if got := last(t, log, "a"); got != c.last {
				t.Fatalf("the session ends at %d, want %d", got, c.last)
			}
			add(t, log, "a", delta(c.last+1))
			if log.Writes() != 4 {
				t.Errorf("%d writes", log.Writes())
			}
		})
	}
}

func TestFailConcernsEveryWrite(t *testing.T) {
	log := memlog.New()
	add(t, log, "a", created("a"))
	for i := range 2 {
		log.Fail(i+1, memlog.After)
	}
	if err := log.Compact(t.Context(), "a", eventlog.Snapshot{Head: session.Head{ID: "a", Seq: 1}}); !errors.Is(err, memlog.ErrInjected) {
		t.Fatal(err)
	}
	if s, err := log.Load(t.Context(), "a"); s.Head.Seq != 1 || err != nil {
		t.Fatal(s, err)
	}
	if err := log.Delete(t.Context(), "a"); !errors.Is(err, memlog.ErrInjected) {
		t.Fatal(err)
	}
	if _, err := log.Load(t.Context(), "a"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Fatal(err)
	}
}

// TestAFaultHidesNoRefusal makes sure that a lost acknowledgement is not seen where nothing
// would have been written.
func TestAFaultHidesNoRefusal(t *testing.T) {
	log := memlog.New()
	add(t, log, "a", created("a"))
	log.Fail(1, memlog.After)
	if err := log.Append(t.Context(), "a", 5, delta(6)); !errors.Is(err, eventlog.ErrFenced) {
		t.Fatal(err)
	}
}

func TestDelayAndCrashInSimulatedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memlog.New()
		log.Delay = func() { time.Sleep(time.Hour) }
		start := time.Now()
		add(t, log, "a", created("a"))
		if took := time.Since(start); took != time.Hour {
			t.Fatalf("the append took %v", took)
		}
		var under error
		var wg sync.WaitGroup
		wg.Go(func() { under = log.Append(t.Context(), "a", 1, delta(2)) })
		synctest.Wait()
		if got := last(t, log, "a"); got != 1 {
			t.Fatalf("an append under way is visible: %d", got)
		}
		next := log.Crash()
		wg.Wait()
		if !errors.Is(under, eventlog.ErrClosed) {
			t.Fatalf("the append under way: %v", under)
		}
		if err := log.Append(t.Context(), "a", 1, delta(2)); !errors.Is(err, eventlog.ErrClosed) {
			t.Fatalf("append after the crash: %v", err)
		}
		if got := last(t, next, "a"); got != 1 {
			t.Fatalf("the session ends at %d", got)
		}
		add(t, next, "a", delta(2))
		if again := next.Crash(); last(t, again, "a") != 2 || again.Epoch() != 1 {
			t.Fatal("a second crash has lost something")
		}
	})
}

func TestCloseWaitsForDelayedWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log := memlog.New()
		log.Delay = func() { time.Sleep(time.Minute) }
		var wg sync.WaitGroup
		var under error
		wg.Go(func() { under = log.Append(t.Context(), "a", 0, created("a")) })
		synctest.Wait()
		start := time.Now()
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took != time.Minute {
			t.Fatalf("close took %v", took)
		}
		wg.Wait()
		if under != nil {
			t.Fatal(under)
		}
	})
}

// A crash in the middle of a write leaves what the fault says, and the log to nobody.
func TestCrashAt(t *testing.T) {
	for name, c := range map[string]struct {
		fault memlog.Fault
		last  session.Seq
	}{
		"before":                   {memlog.Before, 1},
		"torn":                     {memlog.Torn, 1},
		"stored, not acknowledged": {memlog.None, 2},
	} {
		t.Run(name, func(t *testing.T) {
			log := memlog.New()
			add(t, log, "a", created("a"))
			died := make(chan struct{})
			log.CrashAt(1, c.fault, func() { close(died) })
			if err := log.Append(t.Context(), "a", 1, delta(2)); !errors.Is(err, eventlog.ErrClosed) {
				t.Fatal(err)
			}
			<-died
			if err := log.Append(t.Context(), "a", 1, delta(2)); !errors.Is(err, eventlog.ErrClosed) {
				t.Fatal(err)
			}
			next := log.Crash()
			if got := last(t, next, "a"); got != c.last {
				t.Fatalf("the session ends at %d, want %d", got, c.last)
			}
			add(t, next, "a", delta(c.last+1))
		})
	}
}

// Behind half a write nothing can be appended until somebody has dropped it.
func TestTorn(t *testing.T) {
	log := memlog.New()
	add(t, log, "a", created("a"))
	log.Fail(1, memlog.Torn)
	for range 2 {
		if err := log.Append(t.Context(), "a", 1, delta(2)); !errors.Is(err, memlog.ErrInjected) {
			t.Fatal(err)
		}
	}
	next := log.Crash()
	add(t, next, "a", delta(2))
}

// Who has lost the log can still read what it had, and writes no more; the next owner is not disturbed.
func TestRevoke(t *testing.T) {
	log := memlog.New()
	add(t, log, "a", created("a"))
	next := log.Revoke()
	if err := log.Append(t.Context(), "a", 1, delta(2)); !errors.Is(err, eventlog.ErrFenced) {
		t.Fatal(err)
	}
	add(t, next, "a", delta(2))
	if a, b := last(t, log, "a"), last(t, next, "a"); a != 1 || b != 2 {
		t.Fatalf("the old owner reads up to %d, the new one up to %d", a, b)
	}
}
