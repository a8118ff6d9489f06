package piview_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/piview"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/testkit"
)

func images(session.Image) ([]byte, bool) { return []byte{1, 2, 3}, true }

func snapshot(t interface{ Fatal(...any) }, s *session.State) *piwire.SessionSnapshot {
	w, err := piview.Snapshot(s, true, piwire.MaxFrame, images)
	if err != nil {
		t.Fatal(err)
	}
	m := roundTrip(t, &piwire.SessionSnapshotEvent{Snapshot: w}).(*piwire.SessionSnapshotEvent)
	return m.Snapshot
}

// roundTrip puts a message on the wire and takes it off again, as the client would.
func roundTrip(t interface{ Fatal(...any) }, m piwire.ServerMessage) piwire.ServerMessage {
	b, err := piwire.AppendServer(nil, m)
	if err != nil {
		t.Fatal(err)
	}
	got, err := piwire.DecodeServer(b)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// show prints a transcript with everything a client can see. Arguments that stream in are a
// string in a snapshot, while a client that got their deltas parses them once they are whole:
// that difference lasts until the block ends, and is none here.
func show(items []piwire.Item) string {
	var b strings.Builder
	for _, i := range items {
		if a, ok := i.(*piwire.AssistantItem); ok && a.Status == piwire.AssistantStreaming {
			i = parsed(a)
		}
		raw, err := piwire.AppendItem(nil, i)
		fmt.Fprintf(&b, "%x %v %T\n", raw, err, i)
	}
	return b.String()
}

func parsed(a *piwire.AssistantItem) *piwire.AssistantItem {
	item := *a
	item.Content = slices.Clone(a.Content)
	for n, b := range item.Content {
		if call, ok := b.(*piwire.ToolCall); ok {
			text, _ := call.Input.Text()
			if v, err := piwire.ValueFromJSON([]byte(text), piwire.ToolCallLevels); err == nil {
				item.Content[n] = &piwire.ToolCall{ToolCallID: call.ToolCallID, ToolName: call.ToolName, Input: v}
			}
		}
	}
	return &item
}

// A snapshot at any event and the progress after it show what a snapshot at the end shows,
// however the events are cut into updates. No delta is lost because its block is unknown.
func TestSnapshotPlusProgress(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := testkit.History(t)
		cut := rapid.IntRange(1, len(records)).Draw(t, "cut")
		state := testkit.Fold(records[:cut])
		var (
			view   pi.View
			stream piview.Stream
		)
		view.SetSnapshot(snapshot(t, state))
		stream.Reset(state)
		for rest := records[cut:]; len(rest) > 0; {
			n := rapid.IntRange(1, min(len(rest), 8)).Draw(t, "update")
			for _, r := range rest[:n] {
				state.Apply(r)
			}
			progress, due := stream.Project(rest[:n], state.Clone(), images)
			for _, p := range progress {
				m := roundTrip(t, &piwire.SessionProgressEvent{SessionID: "s1", Progress: p}).(*piwire.SessionProgressEvent)
				view.Apply(m.Progress)
			}
			if due == piview.Needed {
				view.SetSnapshot(snapshot(t, state))
				stream.Reset(state)
			}
			rest = rest[n:]

			var want pi.View
			want.SetSnapshot(snapshot(t, state))
			if got, want := show(view.Transcript()), show(want.Transcript()); got != want {
				t.Fatalf("after event %d the client shows\n%swant\n%s", state.Seq, got, want)
			}
		}
	})
}

func TestSnapshotStaysBelowItsLimit(t *testing.T) {
	big := strings.Repeat("x", 40<<10)
	var items []session.Item
	for n := range 40 {
		items = append(items,
			&session.User{ID: session.ItemID(fmt.Sprintf("u%d", n)), Blocks: []session.Block{session.Text{Text: "u"}, session.Image{MIME: "image/png", Blob: "b"}}},
			&session.Tool{ID: session.ItemID(fmt.Sprintf("t%d", n)), Call: "c", Name: "bash", Status: session.Complete, Output: big, Details: []byte(`{"a":1}`)},
		)
	}
	s := &session.State{Head: session.Head{ID: "s", Cwd: "/", Model: session.ModelRef{Provider: "p", ID: "m"}, Thinking: "off"}, Settled: items}
	picture := func(session.Image) ([]byte, bool) { return make([]byte, 10<<10), true }
	for _, c := range []struct {
		limit  int
		items  int
		images int
		last   string
	}{
		{4 << 20, 80, 40, big},                          // all of it
		{2 << 20, 80, 4, big},                           // old images left out
		{1 << 20, 80, 0, big},                           // and old outputs shortened
		{256<<10 + 5000, 4, 0, big[:2000] + "\n[short"}, // and old items dropped
	} {
		w, err := piview.Snapshot(s, true, c.limit, picture)
		if err != nil {
			t.Fatal(err)
		}
		b, err := piwire.AppendServer(nil, &piwire.SessionSnapshotEvent{Snapshot: w})
		if err != nil || len(b) > c.limit {
			t.Fatalf("limit %d: %d bytes, %v", c.limit, len(b), err)
		}
		m, err := piwire.DecodeServer(b)
		if err != nil {
			t.Fatal(err)
		}
		transcript := m.(*piwire.SessionSnapshotEvent).Snapshot.Transcript
		pictures := 0
		for _, i := range transcript {
			if u, ok := i.(*piwire.UserItem); ok {
				if _, ok := u.Content[1].(*piwire.Image); ok {
					pictures++
				}
			}
		}
		if len(transcript) != c.items || pictures != c.images {
			t.Errorf("limit %d: %d items with %d images, want %d with %d", c.limit, len(transcript), pictures, c.items, c.images)
		}
		last := transcript[len(transcript)-1].(*piwire.ToolItem)
		if got := last.Content[0].(*piwire.Text).Text; !strings.HasPrefix(got, c.last) {
			t.Errorf("limit %d: the newest output begins %.20q (%d bytes)", c.limit, got, len(got))
		}
	}
}

// What a provider or tool may produce and the wire cannot carry is reduced, never refused.
func TestOddItemsCanBeSent(t *testing.T) {
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for name, item := range map[string]session.Item{
		"deep input":        &session.Assistant{ID: "a", Model: session.ModelRef{Provider: "p", ID: "m"}, Status: session.Complete, Blocks: []session.Block{session.ToolCall{Call: "c", Name: "n", Input: deep, Complete: true}}},
		"malformed input":   &session.Tool{ID: "t", Call: "c", Name: "n", Input: `{"a`, Status: session.Failed},
		"no name":           &session.Tool{ID: "t", Call: "c", Input: `{}`, Status: session.Complete},
		"unsafe number":     &session.Tool{ID: "t", Call: "c", Name: "n", Input: `{"a":12345678901234567890}`, Status: session.Complete},
		"lone surrogate":    &session.Tool{ID: "t", Call: "c", Name: "n", Input: `"\ud800"`, Status: session.Complete},
		"deep details":      &session.Tool{ID: "t", Call: "c", Name: "n", Input: `1`, Details: []byte(deep), Status: session.Complete},
		"negative usage":    &session.Assistant{ID: "a", Model: session.ModelRef{Provider: "p", ID: "m"}, Status: session.Complete, Usage: &session.Usage{Input: -1, Output: 1 << 60}},
		"empty error":       &session.Assistant{ID: "a", Model: session.ModelRef{Provider: "p", ID: "m"}, Status: session.Failed},
		"aborted":           &session.Assistant{ID: "a", Model: session.ModelRef{Provider: "p", ID: "m"}, Status: session.Aborted},
		"redacted thinking": &session.Assistant{ID: "a", Model: session.ModelRef{Provider: "p", ID: "m"}, Status: session.Complete, Blocks: []session.Block{session.Reasoning{Redacted: true, Signature: "x"}}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &session.State{Head: session.Head{ID: "s", Cwd: "/", Model: session.ModelRef{Provider: "p", ID: "m"}, Thinking: "off"}, Settled: []session.Item{item}}
			if got := snapshot(t, s); len(got.Transcript) != 1 {
				t.Errorf("transcript %v", got.Transcript)
			}
		})
	}
}
