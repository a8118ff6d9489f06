package eventlogtest

import (
	"context"
	"errors"
	"testing"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

func readHasBounds(t *testing.T, log eventlog.Log) {
	const n = 1500 // more than an implementation reads at once
	all := history("a", n)
	appendTo(t, log, "a", all...)
	for _, after := range []session.Seq{0, 1, 2, 511, 512, 513, 1023, 1024, n - 1} {
		same(t, "records", read(t, log, "a", after), all[after:])
	}
	for _, after := range []session.Seq{n, n + 1, 1 << 62} {
		same(t, "records", read(t, log, "a", after), []session.Record{})
	}
	if err := readError(t, log, "b", 0); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("read of a session that is not there: %v", err)
	}
	if _, err := log.Load(t.Context(), "b"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("load of a session that is not there: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range log.Read(ctx, "a", 0) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("read with an ended context: %v", err)
		}
	}
}

func readStopsEarly(t *testing.T, log eventlog.Log) {
	appendTo(t, log, "a", history("a", 1200)...)
	for _, stop := range []session.Seq{1, 2, 600, 1200} {
		for r, err := range log.Read(t.Context(), "a", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Seq == stop {
				break
			}
		}
	}
	appendTo(t, log, "a", deltas(1200, 1)...)
}

func readEndsAtTheCall(t *testing.T, log eventlog.Log) {
	appendTo(t, log, "a", history("a", 1100)...)
	seen := session.Seq(0)
	for r, err := range log.Read(t.Context(), "a", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if seen = r.Seq; seen == 1 {
			appendTo(t, log, "a", deltas(1100, 700)...)
		}
	}
	if seen != 1100 {
		t.Fatalf("read up to %d", seen)
	}
}

// callsInsideLoops makes sure that a log holds nothing while its consumer works.
func callsInsideLoops(t *testing.T, log eventlog.Log) {
	ids := []session.ID{"a", "b", "c", "d", "e", "f", "g", "h"}
	for _, id := range ids {
		appendTo(t, log, id, history(id, 2)...)
	}
	var nest func(depth int)
	nest = func(depth int) {
		if depth == len(ids) {
			appendTo(t, log, "a", deltas(2, 1)...)
			return
		}
		for m, err := range log.List(t.Context()) {
			if err != nil || m.ID == "" {
				t.Fatal(m, err)
			}
			for _, err := range log.Read(t.Context(), ids[depth], 0) {
				if err != nil {
					t.Fatal(err)
				}
				nest(depth + 1)
				break
			}
			break
		}
	}
	nest(0)
	same(t, "records", read(t, log, "a", 0), history("a", 3))
}

func compactReplacesEvents(t *testing.T, log eventlog.Log) {
	appendTo(t, log, "a", history("a", 10)...)
	s := snapshot("a", 7, 0, items("x", 0, 3, 20)...)
	s.Head.Usage = session.Usage{Input: 1, Cost: session.Cost{Output: 0.25}}
	compact(t, log, "a", s)
	same(t, "snapshot", load(t, log, "a"), s)
	same(t, "records", read(t, log, "a", 7), history("a", 10)[7:])
	for after := range session.Seq(7) {
		if err := readError(t, log, "a", after); !errors.Is(err, eventlog.ErrCompacted) {
			t.Errorf("read after %d: %v", after, err)
		}
	}
	appendTo(t, log, "a", deltas(10, 2)...)
	same(t, "records", read(t, log, "a", 8), history("a", 12)[8:])

	compact(t, log, "a", snapshot("a", 12, 3))
	same(t, "snapshot", load(t, log, "a"), snapshot("a", 12, 0, items("x", 0, 3, 20)...))
	same(t, "records", read(t, log, "a", 12), []session.Record{})
	if err := log.Append(t.Context(), "a", 7, deltas(7, 1)); !errors.Is(err, eventlog.ErrFenced) {
		t.Errorf("append in the middle: %v", err)
	}
	appendTo(t, log, "a", deltas(12, 1)...)
}

func deleteRemovesAll(t *testing.T, log eventlog.Log) {
	if err := log.Delete(t.Context(), "a"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Fatalf("delete of nothing: %v", err)
	}
	appendTo(t, log, "b", history("b", 3)...)
	appendTo(t, log, "a", history("a", 2000)...)
	compact(t, log, "a", snapshot("a", 1000, 0, items("x", 0, 200, 2000)...))
	if err := log.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if err := log.Delete(t.Context(), "a"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Fatalf("second delete: %v", err)
	}
	if _, err := log.Load(t.Context(), "a"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Fatalf("load: %v", err)
	}
	if err := readError(t, log, "a", 0); !errors.Is(err, eventlog.ErrNotFound) {
		t.Fatalf("read: %v", err)
	}
	if err := log.Append(t.Context(), "a", 2000, deltas(2000, 1)); !errors.Is(err, eventlog.ErrNotFound) {
		t.Fatalf("append: %v", err)
	}
	appendTo(t, log, "a", history("a", 4)...)
	same(t, "snapshot", load(t, log, "a"), eventlog.Snapshot{})
	same(t, "records", read(t, log, "a", 0), history("a", 4))
	same(t, "the other", read(t, log, "b", 0), history("b", 3))
}
