package eventlogtest

import (
	"errors"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

func compactAddsItems(t *testing.T, log eventlog.Log) {
	appendTo(t, log, "a", history("a", 1)...)
	count, seq := 0, session.Seq(1)
	for _, n := range []int{1, 2, 0, 5, 70, 1, 64, 63, 1, 130, 3} {
		appendTo(t, log, "a", deltas(seq, 2)...)
		seq += 2
		compact(t, log, "a", snapshot("a", seq, count, items("x", count, count+n, 300)...))
		count += n
		same(t, "snapshot", load(t, log, "a"), snapshot("a", seq, 0, items("x", 0, count, 300)...))
	}
}

func compactRewinds(t *testing.T, log eventlog.Log) {
	appendTo(t, log, "a", history("a", 2)...)
	for _, from := range []int{0, 1, 63, 64, 65, 100, 128, 199, 200} {
		compact(t, log, "a", snapshot("a", 2, 0, items("old", 0, 200, 50)...))
		compact(t, log, "a", snapshot("a", 2, from, items("new", from, from+3, 50)...))
		want := append(items("old", 0, from, 50), items("new", from, from+3, 50)...)
		same(t, fmt.Sprintf("snapshot after a rewind to %d", from), load(t, log, "a").Items, want)
	}
	compact(t, log, "a", snapshot("a", 2, 0))
	same(t, "nothing", load(t, log, "a"), snapshot("a", 2, 0))
}

func compactRefuses(t *testing.T, log eventlog.Log) {
	appendTo(t, log, "a", history("a", 9)...)
	compact(t, log, "a", snapshot("a", 5, 0, items("x", 0, 4, 10)...))
	for name, c := range map[string]struct {
		snapshot eventlog.Snapshot
		want     error
	}{
		"older":         {snapshot("a", 4, 4), eventlog.ErrCompacted},
		"ahead":         {snapshot("a", 10, 4), eventlog.ErrFenced},
		"gap in items":  {snapshot("a", 9, 5, items("x", 5, 6, 10)...), eventlog.ErrFenced},
		"wrong session": {snapshot("b", 9, 4), nil},
		"no event":      {snapshot("a", 0, 4), nil},
		"negative from": {snapshot("a", 9, -1), nil},
		"no item":       {snapshot("a", 9, 4, nil), nil},
	} {
		err := log.Compact(t.Context(), "a", c.snapshot)
		if err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := log.Compact(t.Context(), "b", snapshot("b", 1, 0)); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("compact of a session that is not there: %v", err)
	}
	same(t, "snapshot", load(t, log, "a"), snapshot("a", 5, 0, items("x", 0, 4, 10)...))
	same(t, "records", read(t, log, "a", 5), history("a", 9)[5:])
}

// compactAgain makes sure that a compaction whose outcome was unknown may be repeated.
func compactAgain(t *testing.T, log eventlog.Log) {
	appendTo(t, log, "a", history("a", 9)...)
	compact(t, log, "a", snapshot("a", 5, 0, items("x", 0, 100, 10)...))
	for range 3 {
		compact(t, log, "a", snapshot("a", 9, 100, items("x", 100, 180, 10)...))
		same(t, "snapshot", load(t, log, "a"), snapshot("a", 9, 0, items("x", 0, 180, 10)...))
	}
}

// compactAgainstAModel compares a log with a slice of items, through any compactions.
func compactAgainstAModel(t *testing.T, log eventlog.Log) {
	n := 0
	rapid.Check(t, func(rt *rapid.T) {
		n++
		id := session.ID(fmt.Sprintf("s%d", n))
		appendTo(t, log, id, history(id, 1)...)
		var want []session.Item
		for step := range rapid.IntRange(1, 8).Draw(rt, "steps") {
			from := len(want)
			if rapid.IntRange(0, 3).Draw(rt, "rewind") == 0 {
				from = rapid.IntRange(0, len(want)).Draw(rt, "from")
			}
			to := from + rapid.IntRange(0, 150).Draw(rt, "items")
			size := rapid.SampledFrom([]int{10, 400, 9000}).Draw(rt, "size")
			added := items(fmt.Sprintf("step %d", step), from, to, size)
			compact(t, log, id, snapshot(id, 1, from, added...))
			want = append(want[:from:from], added...)
			same(t, "items", load(t, log, id).Items, want)
		}
	})
}
