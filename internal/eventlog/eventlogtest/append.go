package eventlogtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

func appendThenRead(t *testing.T, log eventlog.Log) {
	want := history("a", 5)
	appendTo(t, log, "a", want[0])
	appendTo(t, log, "a", want[1:4]...)
	appendTo(t, log, "a", want[4])
	same(t, "all", read(t, log, "a", 0), want)
	same(t, "the rest", read(t, log, "a", 3), want[3:])
	same(t, "snapshot", load(t, log, "a"), eventlog.Snapshot{})
	if log.Epoch() == 0 {
		t.Fatal("epoch 0")
	}
}

func appendIsFenced(t *testing.T, log eventlog.Log) {
	appendTo(t, log, "a", history("a", 3)...)
	for _, after := range []session.Seq{0, 1, 2, 4, 100} {
		records := deltas(after, 1)
		if after == 0 {
			records = history("a", 1)
		}
		if err := log.Append(t.Context(), "a", after, records); !errors.Is(err, eventlog.ErrFenced) {
			t.Errorf("append after %d: %v", after, err)
		}
	}
	if err := log.Append(t.Context(), "b", 3, deltas(3, 1)); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("append to a session that is not there: %v", err)
	}
	same(t, "records", read(t, log, "a", 0), history("a", 3))
	appendTo(t, log, "a", deltas(3, 1)...)
}

func appendRefusesNonsense(t *testing.T, log eventlog.Log) {
	appendTo(t, log, "a", history("a", 2)...)
	gap := deltas(2, 3)
	gap[2].Seq++
	for name, c := range map[string]struct {
		id      session.ID
		after   session.Seq
		records []session.Record
	}{
		"no records":      {"a", 2, nil},
		"gap":             {"a", 2, gap},
		"wrong first":     {"a", 2, deltas(3, 1)},
		"no Created":      {"b", 0, deltas(0, 1)},
		"Created later":   {"a", 2, []session.Record{{Seq: 3, Event: session.Created{ID: "a"}}}},
		"Created another": {"b", 0, history("c", 1)},
		"no id":           {"", 0, history("", 1)},
		"path as id":      {"../b", 0, history("../b", 1)},
		"no event":        {"a", 2, []session.Record{{Seq: 3}}},
	} {
		if err := log.Append(t.Context(), c.id, c.after, c.records); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	same(t, "records", read(t, log, "a", 0), history("a", 2))
	same(t, "sessions", len(list(t, log)), 1)
}

func appendIsAllOrNone(t *testing.T, log eventlog.Log) {
	appendTo(t, log, "a", history("a", 2)...)
	bad := deltas(2, 3)
	bad[2].Event = nil
	if err := log.Append(t.Context(), "a", 2, bad); err == nil {
		t.Fatal("an event that cannot be stored was accepted")
	}
	same(t, "records", read(t, log, "a", 0), history("a", 2))
	appendTo(t, log, "a", deltas(2, 3)...)
	same(t, "records", read(t, log, "a", 0), history("a", 5))
}

func appendOfAnEndedContext(t *testing.T, log eventlog.Log) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := log.Append(ctx, "a", 0, history("a", 1)); !errors.Is(err, context.Canceled) {
		t.Fatalf("append: %v", err)
	}
	same(t, "sessions", list(t, log), []session.Meta{})
	appendTo(t, log, "a", history("a", 1)...)
	if err := log.Delete(ctx, "a"); !errors.Is(err, context.Canceled) {
		t.Fatalf("delete: %v", err)
	}
	if err := log.Compact(ctx, "a", snapshot("a", 1, 0)); !errors.Is(err, context.Canceled) {
		t.Fatalf("compact: %v", err)
	}
	same(t, "records", read(t, log, "a", 0), history("a", 1))
}

func appendKeepsBigEvents(t *testing.T, log eventlog.Log) {
	records := history("a", 8)
	for i := range records[1:] {
		// Bytes that are no UTF-8 and would be lost by any cleaning up.
		records[i+1].Event = session.Delta{Text: strings.Repeat(string([]byte{byte(i), 0xff, 0, 'x'}), 64<<10+i)}
	}
	appendTo(t, log, "a", records...)
	same(t, "records", read(t, log, "a", 0), records)
}

func manySessionsAtOnce(t *testing.T, log eventlog.Log) {
	const sessions, rounds = 40, 25
	var wg sync.WaitGroup
	for i := range sessions {
		id := session.ID(fmt.Sprintf("s%d", i))
		wg.Go(func() {
			records := history(id, 1+rounds*2)
			err := log.Append(t.Context(), id, 0, records[:1])
			for n := 1; n < len(records) && err == nil; n += 2 {
				err = log.Append(t.Context(), id, records[n].Seq-1, records[n:n+2])
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for i := range sessions {
		id := session.ID(fmt.Sprintf("s%d", i))
		same(t, string(id), read(t, log, id, 0), history(id, 1+rounds*2))
	}
}

func oneOfManyWritersWins(t *testing.T, log eventlog.Log) {
	appendTo(t, log, "a", history("a", 1)...)
	for after := session.Seq(1); after <= 20; after++ {
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() { errs[i] = log.Append(t.Context(), "a", after, deltas(after, 1)) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, eventlog.ErrFenced):
				t.Fatal(err)
			}
		}
		if won != 1 {
			t.Fatalf("%d writers appended after %d", won, after)
		}
	}
	same(t, "records", read(t, log, "a", 0), history("a", 21))
}

func readersSeePrefixes(t *testing.T, log eventlog.Log) {
	const rounds, batch = 60, 3
	appendTo(t, log, "a", history("a", 1)...)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			before := 1
			for ctx.Err() == nil {
				records := read(t, log, "a", 0)
				if n := len(records); n < before || (n-1)%batch != 0 {
					t.Errorf("a reader saw %d records after %d", n, before)
					return
				}
				before = len(records)
			}
		})
	}
	for i := range rounds {
		appendTo(t, log, "a", deltas(session.Seq(1+i*batch), batch)...)
		// What was acknowledged is there for whoever asks afterwards.
		same(t, "last", len(read(t, log, "a", session.Seq(1+i*batch))), batch)
	}
	stop()
	wg.Wait()
}
