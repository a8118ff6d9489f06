package controlview_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/controlview"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/testkit"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// history is a possible history of a session, with the states on its way.
type history struct {
	state   session.State
	records []session.Record
	states  []*session.State // states[i] is the state before records[i]
}

func (h *history) add(r session.Record) {
	h.states = append(h.states, h.state.Clone())
	h.state.Apply(r)
	h.records = append(h.records, r)
}

func (h *history) emit(events ...session.Event) {
	for _, e := range events {
		h.add(session.Record{Seq: h.state.Seq + 1, At: 1000, Event: e})
	}
}

var words = rapid.StringOfN(rapid.RuneFrom([]rune("abc é世🙂\n\x1b")), 1, 8, -1)

func newHistory(t *rapid.T) *history {
	h := &history{}
	for _, r := range testkit.History(t) {
		h.add(r)
	}
	return h
}

func reset(s *session.State) *roostv1.WatchResponse {
	items, first := controlview.Items(s, 0, 1000)
	return &roostv1.WatchResponse{Frame: &roostv1.WatchResponse_Reset_{Reset_: &roostv1.Reset{
		Session: controlview.Session(s), Items: items, FirstIndex: uint32(first),
		Position: controlview.Position(session.Position{Epoch: 1, Seq: s.Seq}),
	}}}
}

// overWire gives a frame as the client decodes it.
func overWire(t *rapid.T, frame *roostv1.WatchResponse) *roostv1.WatchResponse {
	raw, err := proto.Marshal(frame)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "signature") {
		t.Fatal("a frame holds a reasoning signature")
	}
	out := new(roostv1.WatchResponse)
	if err := proto.Unmarshal(raw, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// A view that was told the state at k and the events after it equals one that is told the
// state at any later n; also when k is before the first event.
func TestEventsAfterResetEqualLaterReset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		h.states = append(h.states, &h.state)
		k := rapid.IntRange(0, len(h.records)-1).Draw(t, "k")
		var got client.View
		if k > 0 {
			got.Apply(overWire(t, reset(h.states[k])))
		}
		for k < len(h.records) {
			n := min(k+rapid.IntRange(1, 6).Draw(t, "frame"), len(h.records))
			got.Apply(overWire(t, events(h.records[k:n])))
			k = n
			same(t, h.states[k], &got)
		}
	})
}

func events(records []session.Record) *roostv1.WatchResponse {
	return &roostv1.WatchResponse{Frame: &roostv1.WatchResponse_Events{Events: &roostv1.Events{
		Position: controlview.Position(session.Position{Epoch: 1, Seq: records[len(records)-1].Seq}),
		Events:   controlview.Events(records),
	}}}
}

// same checks that a view is what a reset would have told.
func same(t *rapid.T, state *session.State, got *client.View) {
	var want client.View
	want.Apply(overWire(t, reset(state)))
	head := proto.CloneOf(got.Session)
	if head.Usage == nil {
		head.Usage = &roostv1.Usage{}
	}
	alike := []cmp.Option{protocmp.Transform(), cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })}
	if !slices.EqualFunc(want.Items, got.Items, func(a, b *roostv1.Item) bool { return proto.Equal(a, b) || cmp.Equal(a, b, alike...) }) {
		t.Fatalf("items at %d (-want +got):\n%s", state.Seq, cmp.Diff(want.Items, got.Items, alike...))
	}
	if diff := cmp.Diff(want.Session, head, alike...); diff != "" {
		t.Fatalf("session at %d (-want +got):\n%s", state.Seq, diff)
	}
	if !proto.Equal(want.Position, got.Position) || got.First != want.First {
		t.Fatalf("at %v from %d, want %v from %d", got.Position, got.First, want.Position, want.First)
	}
}

// The output of a running tool is cut alike on both sides.
func TestLongOutput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := &history{}
		h.emit(session.Created{ID: "s", Model: session.ModelRef{Provider: "p", ID: "m"}},
			session.RunStarted{Run: 1, Item: "u1"}, session.PassStarted{Pass: 1, Item: "a1-1"},
			session.BlockStarted{Block: session.ToolCall{Call: "c", Name: "bash"}}, session.PassEnded{Status: session.Complete},
			session.ToolStarted{Call: "c"})
		var got client.View
		got.Apply(overWire(t, reset(&h.state)))
		for range 8 {
			line := words.Draw(t, "line") + "\n"
			h.emit(session.ToolOutput{Call: "c", Text: strings.Repeat(line, rapid.IntRange(1, 30<<10/len(line)).Draw(t, "lines"))})
			got.Apply(overWire(t, events(h.records[len(h.records)-1:])))
			same(t, &h.state, &got)
		}
	})
}

// Pages of the transcript, put together, are the transcript.
func TestPagesAreTheTranscript(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := newHistory(t)
		size := rapid.IntRange(1, 5).Draw(t, "size")
		all, first := controlview.Items(&h.state, 0, 1000)
		if first != 0 || len(all) != len(h.state.Transcript()) {
			t.Fatalf("the whole page begins at %d and has %d items", first, len(all))
		}
		got, at := controlview.Items(&h.state, 0, size)
		for at > 0 {
			page, from := controlview.Items(&h.state, at, size)
			if from >= at || len(page) > size {
				t.Fatalf("page of %d items goes from %d back to %d", len(page), at, from)
			}
			got, at = append(page, got...), from
		}
		if diff := cmp.Diff(all, got, protocmp.Transform()); diff != "" {
			t.Fatal(diff)
		}
	})
}

func TestLargePagesAreCut(t *testing.T) {
	s := &session.State{}
	for i := range 10 {
		s.Settled = append(s.Settled, &session.Tool{Call: session.CallID(fmt.Sprint("c", i)), Output: strings.Repeat("x", 900<<10)})
	}
	items, first := controlview.Items(s, 0, 100)
	if len(items) != 2 || first != 8 {
		t.Errorf("got %d items from %d, want 2 from 8", len(items), first)
	}
	s.Settled = s.Settled[:1]
	if items, first = controlview.Items(s, 0, 0); len(items) != 1 || first != 0 {
		t.Errorf("got %d items from %d, want the one", len(items), first)
	}
}

// allEvents has one of each; the compiler cannot tell that a new one is missing, but
// TestEveryEventIsProjected reads the declarations.
var allEvents = []session.Event{
	session.ToolIssued{},
	session.FrontSet{},
	session.TakenUp{},
	session.Created{ID: "s", Model: session.ModelRef{Provider: "p", ID: "m"}},
	session.Renamed{},
	session.ModelSet{},
	session.ThinkingSet{},
	session.RunStarted{},
	session.SteerQueued{},
	session.SteerDelivered{},
	session.PassStarted{},
	session.BlockStarted{Block: session.Text{}},
	session.Delta{},
	session.BlockEnded{},
	session.PassInterrupted{},
	session.PassResumed{},
	session.PassEnded{},
	session.ToolStarted{},
	session.ToolOutput{},
	session.ToolEnded{},
	session.AbortRequested{},
	session.RunEnded{},
	session.ModeSet{},
	session.ItemsCopied{},
	session.Rewound{},
	session.NoteAdded{},
	session.CompactionStarted{},
	session.CompactionEnded{},
	session.QueryAnswered{},
}

func TestDeltaCost(t *testing.T) {
	const said = "twelve bytes"
	frame := &roostv1.WatchResponse{Frame: &roostv1.WatchResponse_Events{Events: &roostv1.Events{
		Position: &roostv1.Position{Epoch: 3, Seq: 1_000_000},
		Events: controlview.Events([]session.Record{
			{Seq: 1_000_000, At: 1_790_000_000_123, Event: session.Delta{Index: 2, Text: said}},
		}),
	}}}
	const envelope = 5 // of Connect
	if cost := envelope + proto.Size(frame) - len(said); cost > 60 {
		t.Errorf("a delta costs %d bytes beside its text", cost)
	} else {
		t.Logf("a delta costs %d bytes beside its text", cost)
	}
}

func TestDeltasAreMerged(t *testing.T) {
	records := []session.Record{
		{Seq: 1, Event: session.Delta{Index: 0, Text: "a"}},
		{Seq: 2, Event: session.Delta{Index: 0, Text: "b"}},
		{Seq: 3, Event: session.Delta{Index: 1, Text: "c"}},
		{Seq: 4, Event: session.BlockEnded{Index: 1}},
		{Seq: 5, Event: session.Delta{Index: 1, Text: strings.Repeat("x", 60<<10)}},
		{Seq: 6, Event: session.Delta{Index: 1, Text: strings.Repeat("y", 60<<10)}},
	}
	var got []string
	for _, e := range controlview.Events(records) {
		text := e.GetDelta().GetText()
		got = append(got, fmt.Sprint(e.Seq, " ", text[:min(3, len(text))]))
	}
	if diff := cmp.Diff([]string{"2 ab", "3 c", "4 ", "5 xxx", "6 yyy"}, got); diff != "" {
		t.Error(diff)
	}
}
