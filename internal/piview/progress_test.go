package piview_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/piview"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
)

// tellProgress says a step of progress in a few words.
func tellProgress(p piwire.Progress) string {
	item := func(i piwire.Item) string {
		switch i := i.(type) {
		case *piwire.UserItem:
			return "user"
		case *piwire.AssistantItem:
			text := "assistant " + string(i.Status)
			for _, b := range i.Content {
				switch b := b.(type) {
				case *piwire.Text:
					text += fmt.Sprintf(" text%q", b.Text)
				case *piwire.Thinking:
					text += fmt.Sprintf(" thinking%q", b.Thinking)
				case *piwire.ToolCall:
					text += " call" + b.Input.String()
				}
			}
			return text
		case *piwire.ToolItem:
			text := "tool " + string(i.Status)
			for _, b := range i.Content {
				text += fmt.Sprintf(" %q", b.(*piwire.Text).Text)
			}
			return text
		}
		return "?"
	}
	switch p := p.(type) {
	case *piwire.ItemStarted:
		return "started " + item(p.Item)
	case *piwire.ItemUpdated:
		return "updated " + item(p.Item)
	case *piwire.ItemFinished:
		return "finished " + item(p.Item)
	case *piwire.AssistantDelta:
		return fmt.Sprintf("delta %d %s %q", p.ContentIndex, p.Kind, p.Delta)
	}
	return "?"
}

// A turn, as clients are told it (SPEC 3.9): an item and its block come before their deltas,
// arguments stream as text, a tool's output replaces what was shown.
func TestProgressOfATurn(t *testing.T) {
	state := &session.State{}
	var records []session.Record
	emit := func(events ...session.Event) {
		for _, e := range events {
			r := session.Record{Seq: state.Seq + 1, At: 5, Event: e}
			state.Apply(r)
			records = append(records, r)
		}
	}
	model := session.ModelRef{Provider: "p", ID: "m"}
	emit(session.Created{ID: "s", Cwd: "/", Model: model, Thinking: "off"})
	emit(session.RunStarted{Run: 1, Item: "u1", Blocks: []session.Block{session.Text{Text: "hi"}}})
	emit(session.PassStarted{Pass: 1, Item: "a1", Model: model})
	emit(session.BlockStarted{Block: session.Text{}}, session.Delta{Index: 0, Text: "on"}, session.Delta{Index: 0, Text: "e"})
	emit(session.BlockStarted{Block: session.ToolCall{Call: "c1", Name: "n"}})
	emit(session.Delta{Index: 1, Text: `{"a"`}, session.Delta{Index: 1, Text: `:1}`}, session.BlockEnded{Index: 1})
	emit(session.PassEnded{Status: session.Complete, Stop: session.StopToolUse})
	emit(session.ToolStarted{Call: "c1", Host: session.HostWorkspace})
	emit(session.ToolOutput{Call: "c1", Text: "x"})
	emit(session.ToolOutput{Call: "c1", Text: "y"})
	emit(session.ToolEnded{Call: "c1", Output: "z"})

	var stream piview.Stream
	again := &session.State{}
	var got []string
	for _, r := range records {
		again.Apply(r)
		progress, _ := stream.Project([]session.Record{r}, again.Clone(), images)
		for _, p := range progress {
			got = append(got, tellProgress(p))
		}
	}
	want := []string{
		"started user",
		"started assistant streaming",
		`updated assistant streaming text""`,
		`delta 0 text "on"`,
		`delta 0 text "e"`,
		`updated assistant streaming text"one" callnull`,
		`delta 1 toolCall "{\"a\""`,
		`delta 1 toolCall ":1}"`,
		`updated assistant streaming text"one" call{"a":1}`,
		`finished assistant complete text"one" call{"a":1}`,
		"started tool running",
		`updated tool running "x"`,
		`updated tool running "xy"`,
		`finished tool complete "z"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Arguments that are half there are a string in a snapshot (trap 43).
func TestHalfAnArgumentInASnapshot(t *testing.T) {
	s := &session.State{Head: session.Head{ID: "s", Cwd: "/", Model: session.ModelRef{Provider: "p", ID: "m"}, Thinking: "off"}}
	s.Run = &session.Run{Live: &session.Assistant{ID: "a", Model: s.Model, Blocks: []session.Block{session.ToolCall{Call: "c", Name: "n", Input: `{"a`}}}}
	item := snapshot(t, s).Transcript[0].(*piwire.AssistantItem)
	if text, ok := item.Content[0].(*piwire.ToolCall).Input.Text(); !ok || text != `{"a` {
		t.Errorf("input %v", item.Content[0])
	}
}

// A full queue of large steers does not make a session unreachable.
func TestLargeQueueIsShortened(t *testing.T) {
	s := &session.State{Head: session.Head{ID: "s", Cwd: "/", Model: session.ModelRef{Provider: "p", ID: "m"}, Thinking: "off"}}
	for n := range session.MaxQueue {
		text := strings.Repeat("é", session.MaxPrompt/2)
		s.Queue = append(s.Queue, &session.User{ID: session.ItemID(fmt.Sprintf("u%d", n)), Blocks: []session.Block{session.Text{Text: text}}})
	}
	got := snapshot(t, s)
	if len(got.QueuedSteer) != session.MaxQueue || got.QueuedSteerCount != session.MaxQueue {
		t.Errorf("%d of %d steers", len(got.QueuedSteer), got.QueuedSteerCount)
	}
	if text := got.QueuedSteer[0].(*piwire.UserItem).Content[0].(*piwire.Text).Text; !strings.HasSuffix(text, "[shortened]") {
		t.Errorf("%d bytes", len(text))
	}
}

// Arguments whose encoding is larger than their text (each 1.5 has 4 bytes, and 9 on the
// wire) are shown as the beginning of their text.
func TestArgumentsThatGrowOnTheWire(t *testing.T) {
	input := "[" + strings.Repeat("1.5,", 990_000) + "1]"
	if !json.Valid([]byte(input)) {
		t.Fatal("not JSON")
	}
	call := session.ToolCall{Call: "c", Name: "n", Input: input, Complete: true}
	s := &session.State{Head: session.Head{ID: "s", Cwd: "/", Model: session.ModelRef{Provider: "p", ID: "m"}, Thinking: "off"}, Settled: []session.Item{
		&session.Assistant{ID: "a", Model: session.ModelRef{Provider: "p", ID: "m"}, Status: session.Complete, Blocks: []session.Block{call, call, call}},
		&session.Tool{ID: "t", Call: "c", Name: "n", Input: input, Status: session.Complete},
	}}
	if got := snapshot(t, s); len(got.Transcript) != 2 {
		t.Errorf("%d items", len(got.Transcript))
	}
}
