package sqlitelog_test

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

// together runs calls that the writer finds waiting at the same time.
func together(log *sqlitelog.Log, calls ...func() error) []error {
	release := log.Hold()
	errs := make([]error, len(calls))
	var wg sync.WaitGroup
	for i, call := range calls {
		wg.Go(func() { errs[i] = call() })
		for log.Waiting() <= i {
			runtime.Gosched()
		}
	}
	release()
	wg.Wait()
	return errs
}

func TestAFencedAppendFailsAlone(t *testing.T) {
	log := open(t, t.TempDir())
	add(t, log, "a", created("a"))
	add(t, log, "b", created("b"))
	appends := func(id session.ID, r session.Record) func() error {
		return func() error { return log.Append(t.Context(), id, r.Seq-1, []session.Record{r}) }
	}
	errs := together(log,
		appends("a", delta(2, "x")), appends("b", delta(9, "x")), appends("a", delta(2, "again")), appends("c", created("c")),
		appends("a", delta(3, "y")), appends("d", delta(2, "x")), appends("b", delta(2, "x")), appends("c", created("c")))
	for i, want := range []error{nil, eventlog.ErrFenced, eventlog.ErrFenced, nil, nil, eventlog.ErrNotFound, nil, eventlog.ErrFenced} {
		if !errors.Is(errs[i], want) {
			t.Errorf("append %d: got %v, want %v", i, errs[i], want)
		}
	}
	for id, want := range map[session.ID]session.Seq{"a": 3, "b": 2, "c": 1} {
		if seq, err := last(t, log, id); seq != want || err != nil {
			t.Errorf("session %s ends at %d (%v), want %d", id, seq, err, want)
		}
	}
}

// Appends that wait together are one commit, and what is rolled back is none.
func TestCommitsAreObserved(t *testing.T) {
	log := open(t, t.TempDir())
	add(t, log, "a", created("a"))
	var commits []time.Duration // by the writer, between the requests that are waited for
	log.ObserveCommits(func(d time.Duration) { commits = append(commits, d) })
	errs := together(log,
		func() error { return log.Append(t.Context(), "a", 1, []session.Record{delta(2, "x")}) },
		func() error { return log.Append(t.Context(), "a", 2, []session.Record{delta(3, "x")}) })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	// One that holds the writer, one of the two appends.
	if len(commits) < 2 || len(commits) > 3 {
		t.Errorf("%d commits", len(commits))
	}
	for _, d := range commits {
		if d <= 0 || d > time.Minute {
			t.Errorf("a commit took %v", d)
		}
	}
}

func TestAFailedRequestFailsAlone(t *testing.T) {
	log := open(t, t.TempDir())
	add(t, log, "a", created("a"))
	errBad := errors.New("bad")
	errs := together(log,
		func() error { return log.Append(t.Context(), "a", 1, []session.Record{delta(2, "x")}) },
		func() error { return log.Append(t.Context(), "b", 0, []session.Record{created("b")}) },
		func() error { return log.Fail(errBad) },
		func() error { return log.Append(t.Context(), "a", 2, []session.Record{delta(3, "x")}) },
		func() error { return log.Append(t.Context(), "b", 1, []session.Record{delta(2, "x")}) })
	for i, want := range []error{nil, nil, errBad, nil, nil} {
		if !errors.Is(errs[i], want) {
			t.Errorf("request %d: got %v, want %v", i, errs[i], want)
		}
	}
	for id, want := range map[session.ID]session.Seq{"a": 3, "b": 2} {
		if seq, err := last(t, log, id); seq != want || err != nil {
			t.Errorf("session %s ends at %d (%v), want %d", id, seq, err, want)
		}
	}
	if metas := index(t, log); len(metas) != 2 {
		t.Errorf("index: %v", metas)
	}
}

func TestFullDisk(t *testing.T) {
	log := open(t, t.TempDir())
	add(t, log, "a", created("a"))
	add(t, log, "old", created("old"), delta(2, strings.Repeat("x", 200<<10)))
	pages, err := log.Count(`SELECT page_count FROM pragma_page_count`)
	if err != nil {
		t.Fatal(err)
	}
	run(t, log, fmt.Sprintf(`PRAGMA max_page_count = %d`, pages+20))
	big := []session.Record{delta(2, "small"), delta(3, strings.Repeat("x", 500<<10))}
	errs := together(log,
		func() error { return log.Append(t.Context(), "a", 1, big) },
		func() error { return log.Append(t.Context(), "b", 0, []session.Record{created("b")}) })
	if !errors.Is(errs[0], eventlog.ErrFull) || errs[1] != nil {
		t.Fatalf("on a full disk: %v", errs)
	}
	if seq, err := last(t, log, "a"); seq != 1 || err != nil {
		t.Fatalf("session ends at %d (%v)", seq, err)
	}
	// Deleting makes room, once it has been swept.
	if err := log.Delete(t.Context(), "old"); err != nil {
		t.Fatal(err)
	}
	if n, err := log.Count(`SELECT count(*) FROM events WHERE session = 2`); n != 0 || err != nil {
		t.Fatalf("%d events are left of the deleted session (%v)", n, err)
	}
	add(t, log, "a", delta(2, strings.Repeat("x", 150<<10)))
	run(t, log, `PRAGMA max_page_count = 1000000`)
	add(t, log, "a", delta(3, strings.Repeat("x", 500<<10)))
	if seq, err := last(t, log, "a"); seq != 3 || err != nil {
		t.Fatalf("session ends at %d (%v)", seq, err)
	}
}

// TestSweep makes sure that nothing is left of what was compacted or deleted.
func TestSweep(t *testing.T) {
	log := open(t, t.TempDir())
	for _, id := range []session.ID{"a", "b", "c"} {
		records := []session.Record{created(id)}
		for seq := session.Seq(2); seq <= 1500; seq++ {
			records = append(records, delta(seq, "x"))
		}
		add(t, log, id, records...)
	}
	var items []session.Item
	for range 3000 {
		items = append(items, &session.User{ID: "u"})
	}
	for _, id := range []session.ID{"a", "b"} {
		if err := log.Compact(t.Context(), id, eventlog.Snapshot{Head: session.Head{ID: id, Seq: 1400}, Items: items}); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Delete(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	// A transaction that fails meanwhile must not end the sweeping for good.
	errBad := errors.New("bad")
	if err := log.Fail(errBad); !errors.Is(err, errBad) {
		t.Fatal(err)
	}
	for query, want := range map[string]int{
		`SELECT count(*) FROM events WHERE session = 1`:                             100,
		`SELECT count(*) FROM events WHERE session = 3`:                             1500,
		`SELECT count(*) FROM events`:                                               1600,
		`SELECT sum(items) FROM chunks`:                                             3000,
		`SELECT count(*) FROM snapshots`:                                            1,
		`SELECT count(*) FROM garbage`:                                              0,
		`SELECT count(*) FROM pragma_integrity_check WHERE integrity_check <> 'ok'`: 0,
	} {
		if n, err := log.Count(query); n != want || err != nil {
			t.Errorf("%s: got %d (%v), want %d", query, n, err, want)
		}
	}
	if seq, err := last(t, log, "c"); seq != 1500 || err != nil {
		t.Errorf("session c ends at %d (%v)", seq, err)
	}
}

// TestMoreSessionsThanCached goes round more sessions than the writer remembers.
func TestMoreSessionsThanCached(t *testing.T) {
	log := open(t, t.TempDir())
	const sessions, writers = 4400, 40
	for seq := session.Seq(1); seq <= 3; seq++ {
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				for i := w; i < sessions; i += writers {
					id := session.ID(fmt.Sprintf("s%d", i))
					r := delta(seq, "x")
					if seq == 1 {
						r = created(id)
					}
					if err := log.Append(t.Context(), id, seq-1, []session.Record{r}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	if n, err := log.Count(`SELECT count(*) FROM events`); n != 3*sessions || err != nil {
		t.Fatal(n, err)
	}
}

// TestCheckpoint writes many times what the write-ahead log may hold.
func TestCheckpoint(t *testing.T) {
	dir := t.TempDir()
	log := open(t, dir)
	add(t, log, "a", created("a"))
	text := strings.Repeat("x", 64<<10)
	for seq := session.Seq(2); seq < 1000; seq++ {
		add(t, log, "a", delta(seq, text))
	}
	if size := walSize(t, dir); size > 24<<20 {
		t.Fatalf("the write-ahead log has %d MiB", size>>20)
	}
}
