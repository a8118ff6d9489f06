package order_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire/order"
)

var (
	limits = order.Limits{Messages: 4, Bytes: 100, Gap: 10 * time.Second}
	epoch  = time.Unix(1_000_000, 0)
)

// step is one thing that happens to a stream, and what must follow.
type step struct {
	after     time.Duration // since the beginning
	seq       int64
	kind      order.Kind
	hash      byte
	size      int
	value     string // "" is an Expire
	ready     []string
	newEpoch  bool
	duplicate bool
	late      bool
	skipped   int64
	dropped   int
}

func start(seq int64, hash byte, value string) step {
	return step{seq: seq, kind: order.Start, hash: hash, value: value, ready: []string{value}, newEpoch: true}
}

func waits(seq int64, value string) step { return step{seq: seq, value: value} }

func ready(seq int64, value string, more ...string) step {
	return step{seq: seq, value: value, ready: append([]string{value}, more...)}
}

func TestStream(t *testing.T) {
	for name, steps := range map[string][]step{
		"in order":            {start(0, 1, "run"), ready(1, "a"), ready(2, "b")},
		"counted from 1":      {start(1, 1, "run"), ready(2, "a"), ready(3, "b")},
		"out of order":        {start(0, 1, "run"), waits(3, "c"), waits(2, "b"), ready(1, "a", "b", "c")},
		"without a number":    {start(0, 1, "run"), ready(0, "x"), ready(-5, "y"), ready(0, "x")},
		"the run comes third": {waits(1, "a"), waits(2, "b"), {seq: 0, kind: order.Start, hash: 1, value: "run", ready: []string{"run", "a", "b"}, newEpoch: true}},
		"duplicates": {
			start(0, 1, "run"),
			{seq: 0, kind: order.Start, hash: 1, value: "run", duplicate: true},
			ready(1, "a"),
			{seq: 1, value: "a", duplicate: true},
			waits(3, "c"),
			{seq: 3, value: "c", duplicate: true},
			ready(2, "b", "c"),
			{seq: 3, value: "c", duplicate: true},
		},
		"the id is used again from 0": {
			start(0, 1, "run"), ready(1, "a"), waits(3, "c"),
			{seq: 0, kind: order.Start, hash: 2, value: "again", ready: []string{"again"}, newEpoch: true, dropped: 1},
			ready(1, "a2"), ready(2, "b2"),
			{seq: 0, kind: order.Start, hash: 2, value: "again", duplicate: true},
		},
		"the id is used again from 1": {
			start(1, 1, "run"), ready(2, "a"),
			start(1, 2, "again"), ready(2, "a2"),
			{seq: 1, kind: order.Start, hash: 2, value: "again", duplicate: true},
		},
		"used again from 1 after 0": {start(0, 1, "run"), ready(1, "a"), start(1, 2, "again"), ready(2, "b")},
		"a start as the second message": {
			start(0, 1, "prewarm"),
			{seq: 1, kind: order.Start, hash: 2, value: "run", ready: []string{"run"}},
			{seq: 1, kind: order.Start, hash: 2, value: "run", duplicate: true},
			ready(2, "a"),
		},
		"a start in the middle": {start(0, 1, "run"), ready(1, "a"), {seq: 2, kind: order.Start, hash: 2, value: "odd", ready: []string{"odd"}}},
		"free ones do not wait": {
			start(0, 1, "run"),
			{seq: 2, kind: order.Free, value: "cancel", ready: []string{"cancel"}},
			{seq: 2, kind: order.Free, value: "cancel", duplicate: true},
			waits(3, "c"), ready(1, "a", "c"),
			{seq: 2, kind: order.Free, value: "cancel", duplicate: true},
		},
		"free ones wait for the run": {
			{seq: 2, kind: order.Free, value: "beat"},
			waits(1, "a"),
			{seq: 0, kind: order.Start, hash: 1, value: "run", ready: []string{"run", "a", "beat"}, newEpoch: true},
		},
		"a gap is given up after a while, and its message is late": {
			start(0, 1, "run"),
			{after: time.Second, seq: 3, value: "c"},
			{after: 2 * time.Second, seq: 5, value: "e"},
			{after: 10 * time.Second},
			{after: 11 * time.Second, ready: []string{"c"}, skipped: 2},
			{after: 12 * time.Second, ready: []string{"e"}, skipped: 1},
			{seq: 2, value: "b", ready: []string{"b"}, late: true},
			{seq: 2, value: "b", duplicate: true},
			{seq: 1, value: "a", ready: []string{"a"}, late: true},
			ready(6, "f"),
		},
		"the run is slower than the gap": {
			{seq: 1, value: "a"},
			{after: 10 * time.Second, ready: []string{"a"}, skipped: 1},
			{seq: 3, kind: order.Free, value: "beat", ready: []string{"beat"}},
			start(0, 1, "run"),
			{seq: 0, kind: order.Start, hash: 1, value: "run", duplicate: true},
			ready(2, "b"), ready(4, "d"),
		},
		"after a restart of the server": {
			waits(8, "h"), waits(7, "g"), {after: 10 * time.Second, ready: []string{"g", "h"}, skipped: 7}, ready(9, "i"),
		},
		"too many": {
			start(0, 1, "run"), waits(2, "b"), waits(4, "d"), waits(6, "f"), waits(8, "h"),
			{seq: 10, value: "j", ready: []string{"b"}, skipped: 1},
		},
		"too much": {
			start(0, 1, "run"),
			{seq: 2, size: 60, value: "b"},
			{seq: 3, size: 40, value: "c"},
			{seq: 5, size: 1, value: "e", ready: []string{"b", "c"}, skipped: 1},
		},
		"one that is too much by itself": {start(0, 1, "run"), {seq: 2, size: 101, value: "b", ready: []string{"b"}, skipped: 1}},
		"the last number": {
			start(0, 1, "run"), waits(math.MaxInt64, "z"),
			{after: 10 * time.Second, ready: []string{"z"}, skipped: math.MaxInt64 - 1},
			{seq: math.MaxInt64, value: "z", duplicate: true},
			{seq: 77, value: "b", ready: []string{"b"}, late: true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := order.New[string](limits)
			for i, st := range steps {
				var r order.Result[string]
				if st.value == "" {
					r = s.Expire(epoch.Add(st.after))
				} else {
					r = s.Accept(order.Message[string]{Seq: st.seq, Kind: st.kind, Hash: [32]byte{st.hash}, Size: st.size, Value: st.value}, epoch.Add(st.after))
				}
				if !slices.Equal(r.Ready, st.ready) || r.NewEpoch != st.newEpoch || r.Duplicate != st.duplicate ||
					r.Late != st.late || r.Skipped != st.skipped || r.Dropped != st.dropped {
					t.Fatalf("step %d %+v gave %+v", i, st, r)
				}
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	s := order.New[string](limits)
	deadline := func(want time.Duration) {
		t.Helper()
		at, ok := s.Deadline()
		if ok != (want > 0) || ok && !at.Equal(epoch.Add(want)) {
			t.Fatalf("%v %v, want %v", at, ok, want)
		}
	}
	accept := func(seq int64, kind order.Kind, at time.Duration) {
		s.Accept(order.Message[string]{Seq: seq, Kind: kind, Value: "x"}, epoch.Add(at))
	}
	deadline(0)
	accept(0, order.Start, 0)
	deadline(0)
	accept(2, order.Free, time.Second) // nothing waits behind what was applied at once
	deadline(0)
	accept(5, order.Ordered, 3*time.Second)
	accept(3, order.Ordered, 4*time.Second)
	deadline(13 * time.Second)
	accept(1, order.Ordered, 5*time.Second)
	deadline(13 * time.Second)
	accept(4, order.Ordered, 6*time.Second)
	deadline(0)
}

// Marks of what was applied at once are bounded too.
func TestMarksAreBounded(t *testing.T) {
	s := order.New[int64](order.DefaultLimits)
	s.Accept(order.Message[int64]{Kind: order.Start}, epoch)
	skipped := int64(0)
	for seq := int64(2); seq < 5000; seq += 2 {
		r := s.Accept(order.Message[int64]{Seq: seq, Kind: order.Free, Value: seq}, epoch)
		if !slices.Equal(r.Ready, []int64{seq}) {
			t.Fatalf("%d: %+v", seq, r)
		}
		skipped += r.Skipped
	}
	if skipped < 1000 {
		t.Errorf("only %d given up", skipped)
	}
	// Of the gaps only the newest are remembered.
	if r := s.Accept(order.Message[int64]{Seq: 1, Value: 1}, epoch); !r.Duplicate {
		t.Errorf("%+v", r)
	}
}
