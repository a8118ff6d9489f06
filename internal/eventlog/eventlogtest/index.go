package eventlogtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

// lifetime is the history of a session with events of every kind that the index knows.
func lifetime(id session.ID) []session.Record {
	events := []session.Event{
		session.Created{ID: id, Cwd: "/home/me", Name: "first", Model: model, Thinking: session.ThinkingLow, Parent: "p", Origin: "test"},
		session.Renamed{Name: "second"},
		session.RunStarted{Run: 1, Item: "u1"},
		session.Delta{Text: "x"},
		session.RunEnded{Outcome: session.RunFailed, Error: "no"},
		session.ModelSet{Model: session.ModelRef{Provider: "other", ID: "m2"}, Thinking: session.ThinkingHigh},
		session.ThinkingSet{Thinking: session.ThinkingMax},
		session.RunStarted{Run: 2, Item: "u2"},
	}
	records := make([]session.Record, len(events))
	for i, e := range events {
		records[i] = session.Record{Seq: session.Seq(i + 1), At: int64(1000 + i), Event: e}
	}
	return records
}

func listFoldsMeta(t *testing.T, log eventlog.Log) {
	records := lifetime("a")
	var want session.Meta
	for _, r := range records {
		appendTo(t, log, "a", r)
		want.Apply(r)
		same(t, fmt.Sprintf("index after event %d", r.Seq), list(t, log), []session.Meta{want})
	}
	appendTo(t, log, "b", lifetime("b")...)
	want.ID = "b"
	same(t, "index after one append", list(t, log)[1], want)
}

func listOrder(t *testing.T, log eventlog.Log) {
	same(t, "nothing", list(t, log), []session.Meta{})
	for i, at := range []int64{50, 10, 40, 40, 30} {
		appendTo(t, log, session.ID('a'+rune(i)), created(session.ID('a'+rune(i)), at))
	}
	order := func() (ids string) {
		for _, m := range list(t, log) {
			ids += string(m.ID)
		}
		return ids
	}
	same(t, "order", order(), "acdeb")
	appendTo(t, log, "b", session.Record{Seq: 2, At: 60, Event: session.Renamed{Name: "n"}})
	appendTo(t, log, "e", session.Record{Seq: 2, At: 70, Event: session.Delta{}})
	same(t, "order after updates", order(), "bacde")
	if err := log.Delete(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	same(t, "order after a deletion", order(), "bade")
	for _, err := range log.List(t.Context()) {
		if err != nil {
			t.Error(err)
		}
		break
	}
}

func activeSessions(t *testing.T, log eventlog.Log) {
	active := func() []session.ID {
		ids, err := log.Active(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return ids
	}
	same(t, "none", active(), []session.ID{})
	for _, id := range []session.ID{"c", "a", "b"} {
		appendTo(t, log, id, lifetime(id)...)
	}
	same(t, "all", active(), []session.ID{"a", "b", "c"})
	appendTo(t, log, "b", session.Record{Seq: 9, At: 2000, Event: session.RunEnded{}})
	same(t, "two", active(), []session.ID{"a", "c"})
	if err := log.Delete(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	same(t, "one", active(), []session.ID{"c"})
}

func closeRefusesCalls(t *testing.T, log eventlog.Log) {
	appendTo(t, log, "a", history("a", 3)...)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	ctx := t.Context()
	_, load := log.Load(ctx, "a")
	_, active := log.Active(ctx)
	var listed error
	for _, listed = range log.List(ctx) {
		continue
	}
	for name, err := range map[string]error{
		"append": log.Append(ctx, "a", 3, deltas(3, 1)), "load": load, "read": readError(t, log, "a", 0),
		"compact": log.Compact(ctx, "a", snapshot("a", 3, 0)), "delete": log.Delete(ctx, "a"), "list": listed, "active": active,
	} {
		if !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("%s of a closed log: %v", name, err)
		}
	}
}

// closeWaits closes a log while many append: each append is stored or refused.
func closeWaits(t *testing.T, log eventlog.Log) {
	started := make(chan struct{}, 20)
	var wg sync.WaitGroup
	for i := range 20 {
		id := session.ID(fmt.Sprintf("s%d", i))
		wg.Go(func() {
			err := log.Append(context.WithoutCancel(t.Context()), id, 0, history(id, 1))
			started <- struct{}{}
			for seq := session.Seq(1); err == nil; seq++ {
				err = log.Append(context.WithoutCancel(t.Context()), id, seq, deltas(seq, 1))
			}
			if !errors.Is(err, eventlog.ErrClosed) {
				t.Errorf("append while closing: %v", err)
			}
		})
	}
	for range 20 {
		<-started
	}
	if err := log.Close(); err != nil {
		t.Error(err)
	}
	wg.Wait()
}

func reopen(t *testing.T, open func(t *testing.T, dir string) eventlog.Log) {
	dir := t.TempDir()
	log := open(t, dir)
	epoch := log.Epoch()
	appendTo(t, log, "a", lifetime("a")...)
	appendTo(t, log, "b", history("b", 700)...)
	compact(t, log, "b", snapshot("b", 600, 0, items("x", 0, 100, 500)...))
	appendTo(t, log, "c", history("c", 900)...)
	if err := log.Delete(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	index := list(t, log)
	for range 3 {
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
		log = open(t, dir)
		same(t, "epoch", log.Epoch(), epoch)
		same(t, "index", list(t, log), index)
		same(t, "a", read(t, log, "a", 0), lifetime("a"))
		same(t, "snapshot of b", load(t, log, "b"), snapshot("b", 600, 0, items("x", 0, 100, 500)...))
		same(t, "b", read(t, log, "b", 600), history("b", 700)[600:])
		if _, err := log.Load(t.Context(), "c"); !errors.Is(err, eventlog.ErrNotFound) {
			t.Fatalf("a deleted session is back: %v", err)
		}
	}
	appendTo(t, log, "b", deltas(700, 1)...)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
}
