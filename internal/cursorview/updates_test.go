package cursorview_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/cursorview"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/testkit"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// in says an update in a few words.
func in(m *agentv1.AgentServerMessage) string {
	card := func(c *agentv1.ToolCall) string {
		text := "no card"
		if c != nil && c.GetTool() != nil {
			text = strings.TrimPrefix(fmt.Sprintf("%T", c.GetTool()), "*agentv1.ToolCall_")
		}
		return fmt.Sprintf("%s %d-%d", text, c.GetStartedAtMs(), c.GetCompletedAtMs())
	}
	switch u := m.GetInteractionUpdate().GetMessage().(type) {
	case *agentv1.InteractionUpdate_TextDelta:
		return fmt.Sprintf("text %q", u.TextDelta.GetText())
	case *agentv1.InteractionUpdate_ThinkingDelta:
		return fmt.Sprintf("thinking %q", u.ThinkingDelta.GetText())
	case *agentv1.InteractionUpdate_ThinkingCompleted:
		return fmt.Sprintf("thought %d", u.ThinkingCompleted.GetThinkingDurationMs())
	case *agentv1.InteractionUpdate_PartialToolCall:
		return fmt.Sprintf("partial %s %q", u.PartialToolCall.GetCallId(), u.PartialToolCall.GetArgsTextDelta())
	case *agentv1.InteractionUpdate_ToolCallStarted:
		return fmt.Sprintf("started %s %s %s", u.ToolCallStarted.GetCallId(), u.ToolCallStarted.GetModelCallId(), card(u.ToolCallStarted.GetToolCall()))
	case *agentv1.InteractionUpdate_ToolCallCompleted:
		return fmt.Sprintf("completed %s %s %s", u.ToolCallCompleted.GetCallId(), u.ToolCallCompleted.GetModelCallId(), card(u.ToolCallCompleted.GetToolCall()))
	case *agentv1.InteractionUpdate_UserMessageAppended:
		return fmt.Sprintf("user %s %q", u.UserMessageAppended.GetUserMessage().GetMessageId(), u.UserMessageAppended.GetUserMessage().GetText())
	case *agentv1.InteractionUpdate_StepStarted:
		return fmt.Sprintf("step %d", u.StepStarted.GetStepId())
	case *agentv1.InteractionUpdate_StepCompleted:
		return fmt.Sprintf("step %d done %d", u.StepCompleted.GetStepId(), u.StepCompleted.GetStepDurationMs())
	case *agentv1.InteractionUpdate_SummaryStarted:
		return "summary started"
	case *agentv1.InteractionUpdate_Summary:
		return fmt.Sprintf("summary %q", u.Summary.GetSummary())
	case *agentv1.InteractionUpdate_SummaryCompleted:
		if u.SummaryCompleted.HookMessage != nil {
			return "summary with a hook message"
		}
		return fmt.Sprintf("summary completed %v", u.SummaryCompleted.GetFailed())
	case *agentv1.InteractionUpdate_TurnEnded:
		e := u.TurnEnded
		return fmt.Sprintf("turn ended %d %d %d %d %d", e.GetInputTokens(), e.GetOutputTokens(), e.GetCacheReadTokens(), e.GetCacheWriteTokens(), e.GetReasoningTokens())
	}
	return fmt.Sprintf("%T", m.GetInteractionUpdate().GetMessage())
}

func follow(u *cursorview.Updates, records []session.Record) []string {
	var got []string
	for _, r := range records {
		for _, m := range u.Apply(r) {
			got = append(got, in(m))
		}
	}
	return got
}

func check(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// A turn in the order of the grammar: what was thought is completed before anything else, a call is
// started before it is completed, a step ends with its last call.
func TestUpdatesOfATurn(t *testing.T) {
	h := newTeller()
	h.prompt("m1", "hi")
	h.pass() // at 1030
	i := h.block(session.Reasoning{}, "hm", "m")
	h.tell(session.BlockEnded{Index: i})
	h.say("text")
	h.tell(session.Delta{Index: 1, Text: ""})
	read := h.call("Read", `{"path"`, `:"/a"}`)
	write := h.call("Write", `{"path":"/b","contents":"x`, `y"}`)
	h.endPass(session.StopToolUse)
	h.tell(session.ToolStarted{Call: read, Host: session.HostClient}, session.ToolStarted{Call: write, Host: session.HostClient})
	h.tell(session.ToolOutput{Call: read, Text: "live"})
	h.tell(session.ToolEnded{Call: write, Output: "done"}, session.ToolEnded{Call: read, Output: "no such file", IsError: true})
	h.tell(session.SteerQueued{Item: "u2", Prompt: "m2", Blocks: []session.Block{session.Text{Text: "also"}}})
	h.tell(session.SteerDelivered{Item: "u2"})
	h.pass()
	i = h.block(session.Reasoning{})
	h.tell(session.BlockEnded{Index: i, Signature: "secret", Redacted: true})
	h.say("bye")
	h.endPass(session.StopEnd)
	h.tell(session.RunEnded{})

	u := cursorview.NewUpdates(nil)
	got := follow(u, h.records)
	got = append(got, in(u.TurnEnded()))
	check(t, got, []string{
		"step 1",
		`thinking "hm"`, `thinking "m"`, "thought 20",
		`text "text"`,
		`partial call1-1-0 "{\"path\""`, `partial call1-1-0 ":\"/a\"}"`,
		`partial call1-1-1 "{\"path\":\"/b\",\"contents\":\"x"`, `partial call1-1-1 "y\"}"`,
		"started call1-1-0 1-1 ReadToolCall 1200-0", "started call1-1-1 1-1 EditToolCall 1210-0",
		"completed call1-1-1 1-1 McpToolCall 1210-1230", "completed call1-1-0 1-1 ReadToolCall 1200-1240",
		"step 1 done 210",
		`user m2 "also"`,
		"step 2",
		`thinking "The model's reasoning is encrypted."`, "thought 0",
		`text "bye"`,
		"step 2 done 50",
		"turn ended 34 6 10 4 2",
	})
	if u.TurnEnded() != nil {
		t.Error("a second turn_ended")
	}
	if late := follow(u, []session.Record{{At: 9, Event: session.CompactionStarted{}}}); late != nil {
		t.Errorf("after turn_ended: %v", late)
	}
}

func TestUpdatesOfACompaction(t *testing.T) {
	for _, c := range []struct {
		name string
		end  session.CompactionEnded
		want []string
	}{
		{"summary", session.CompactionEnded{Summarized: 1, Summary: "so far"}, []string{"summary started", `summary "so far"`, "summary completed false"}},
		{"failure", session.CompactionEnded{Error: "no answer"}, []string{"summary started", "summary completed true"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newTeller()
			h.turn("one")
			n := len(h.records)
			h.tell(session.RunStarted{Run: 2}, session.CompactionStarted{Through: 1}, c.end, session.RunEnded{})
			check(t, follow(cursorview.NewUpdates(nil), h.records[n:]), c.want)
		})
	}
	t.Run("only shortened", func(t *testing.T) {
		h := newTeller()
		h.prompt("", "one")
		n := len(h.records)
		h.tell(session.CompactionEnded{Shortened: 1})
		check(t, follow(cursorview.NewUpdates(nil), h.records[n:]), nil)
	})
}

// What a tool's result says of its card is what the client is shown; the ids and times are ours.
func TestCardOfTheDetails(t *testing.T) {
	h := newTeller()
	h.turn("one")
	var card *agentv1.ToolCall
	u := cursorview.NewUpdates(nil)
	for _, r := range h.records {
		for _, m := range u.Apply(r) {
			if c := m.GetInteractionUpdate().GetToolCallCompleted(); c != nil {
				card = c.GetToolCall()
			}
		}
	}
	if card.GetReadToolCall().GetResult().GetSuccess() == nil || card.GetToolCallId() != "call1-1-0" || card.GetCompletedAtMs() == 0 {
		t.Errorf("card %v", card)
	}
}

// A long file does not go to the client again with every token.
func TestLongArgumentsAreShownNowAndThen(t *testing.T) {
	h := newTeller()
	h.prompt("", "write")
	h.pass()
	deltas := []string{`{"path":"/a","contents":"`}
	for range 20_000 {
		deltas = append(deltas, "words ")
	}
	call := h.call("Write", append(deltas, `"}`)...)
	u := cursorview.NewUpdates(nil)
	sent, args := 0, ""
	for _, r := range h.records {
		for _, m := range u.Apply(r) {
			sent += proto.Size(m)
			if p := m.GetInteractionUpdate().GetPartialToolCall(); p != nil {
				args += p.GetArgsTextDelta()
			}
		}
	}
	if want := h.state.Run.Live.Calls()[0]; args != want.Input || want.Call != call {
		t.Errorf("%d bytes of %d arguments", len(args), len(want.Input))
	}
	if sent > 50*len(args) {
		t.Errorf("%d bytes sent for %d", sent, len(args))
	}
}

func TestMerge(t *testing.T) {
	h := newTeller()
	h.prompt("", "x")
	h.pass()
	h.block(session.Reasoning{}, "a", "b")
	h.block(session.Text{}, "c", "d", "e")
	h.call("Read", "{}")
	h.block(session.Text{}, strings.Repeat("x", 10<<10), strings.Repeat("y", 10<<10), "z")
	u := cursorview.NewUpdates(nil)
	var msgs []*agentv1.AgentServerMessage
	for _, r := range h.records {
		msgs = append(msgs, u.Apply(r)...)
	}
	before := proto.CloneOf(msgs[1])
	var got []string
	for _, m := range cursorview.Merge(msgs) {
		if text := m.GetInteractionUpdate().GetTextDelta().GetText(); len(text) > 100 {
			got = append(got, fmt.Sprintf("text of %d", len(text)))
			continue
		}
		got = append(got, in(m))
	}
	check(t, got, []string{"step 1", `thinking "ab"`, "thought 20", `text "cde"`, `partial call1-1-0 "{}"`, "text of 10240", "text of 10241"})
	if !proto.Equal(before, msgs[1]) {
		t.Error("Merge changed what it was given")
	}
	notice := proto.CloneOf(msgs[4])
	notice.GetInteractionUpdate().GetTextDelta().IsServerNotice = true
	if got := cursorview.Merge([]*agentv1.AgentServerMessage{msgs[4], notice, msgs[1]}); len(got) != 3 {
		t.Errorf("%d messages of a text, a notice and a thought", len(got))
	}
}

// A provider that goes back to its reasoning opens a thinking block again, which is completed before
// the next thing as well.
func TestReasoningThatComesLate(t *testing.T) {
	h := newTeller()
	h.prompt("", "x")
	h.pass()
	h.block(session.Reasoning{}, "a")
	h.say("b")
	h.tell(session.Delta{Index: 0, Text: "c"}, session.Delta{Index: 1, Text: "d"})
	check(t, follow(cursorview.NewUpdates(nil), h.records), []string{
		"step 1", `thinking "a"`, "thought 10", `text "b"`, `thinking "c"`, "thought 10", `text "d"`,
	})
}

// grammar checks the rules of section 4.2 over a whole history.
type grammar struct {
	t        *rapid.T
	running  map[string]bool
	ever     map[string]bool
	thinking bool
	step     bool
	text     strings.Builder
}

func (g *grammar) take(m *agentv1.AgentServerMessage) {
	if d := m.GetInteractionUpdate().GetThinkingDelta(); d != nil {
		g.thinking = true
		return
	}
	if m.GetInteractionUpdate().GetThinkingCompleted() != nil {
		if !g.thinking {
			g.t.Fatal("thinking completed twice")
		}
		g.thinking = false
		return
	}
	if g.thinking {
		g.t.Fatalf("%s before thinking was completed", in(m))
	}
	switch u := m.GetInteractionUpdate().GetMessage().(type) {
	case *agentv1.InteractionUpdate_TextDelta:
		if u.TextDelta.GetText() == "" {
			g.t.Fatal("an empty delta")
		}
		g.text.WriteString(u.TextDelta.GetText())
	case *agentv1.InteractionUpdate_ToolCallStarted:
		id := u.ToolCallStarted.GetCallId()
		if g.ever[id] {
			g.t.Fatalf("%s started twice", id)
		}
		g.ever[id], g.running[id] = true, true
	case *agentv1.InteractionUpdate_ToolCallCompleted:
		id := u.ToolCallCompleted.GetCallId()
		if !g.running[id] || u.ToolCallCompleted.GetToolCall().GetTool() == nil {
			g.t.Fatalf("%s completed, running %v", in(m), g.running)
		}
		delete(g.running, id)
	case *agentv1.InteractionUpdate_StepStarted:
		if g.step {
			g.t.Fatal("a step in a step")
		}
		g.step = true
	case *agentv1.InteractionUpdate_StepCompleted:
		if !g.step || len(g.running) > 0 {
			g.t.Fatalf("step completed, running %v", g.running)
		}
		g.step = false
	}
}

func TestUpdatesKeepTheGrammar(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := testkit.History(t)
		u := cursorview.NewUpdates(nil)
		g := &grammar{t: t, running: map[string]bool{}, ever: map[string]bool{}}
		var said strings.Builder
		state := &session.State{}
		for _, r := range records {
			if d, ok := r.Event.(session.Delta); ok {
				if _, ok := state.Run.Live.Blocks[d.Index].(session.Text); ok {
					said.WriteString(d.Text)
				}
			}
			state.Apply(r)
			for _, m := range u.Apply(r) {
				g.take(m)
			}
			if _, ok := r.Event.(session.RunEnded); ok && (len(g.running) > 0 || g.thinking || g.step) {
				t.Fatalf("open after the run: %v, thinking %v, step %v", g.running, g.thinking, g.step)
			}
		}
		if g.text.String() != said.String() {
			t.Fatalf("told %q of %q", g.text.String(), said.String())
		}
	})
}

// Who begins in the middle is sent from there on what one is sent who has seen it all.
func TestBeginInTheMiddle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := testkit.History(t)
		k := rapid.IntRange(0, len(records)).Draw(t, "k")
		whole, late := cursorview.NewUpdates(nil), cursorview.NewUpdates(nil)
		follow(whole, records[:k])
		s := testkit.Fold(records[:k])
		running := 0
		if s.Run != nil {
			for _, tool := range s.Run.Batch {
				if tool.Status == session.Streaming {
					running++
				}
			}
		}
		late.Begin(s)
		if n := len(late.Running()); n != running || n != len(whole.Running()) {
			t.Fatalf("%d of %d tools are running", n, running)
		}
		told := func(u *cursorview.Updates) []string {
			got := follow(u, records[k:])
			if !slices.ContainsFunc(records, func(r session.Record) bool { _, ok := r.Event.(session.Rewound); return ok }) {
				got = append(got, in(u.TurnEnded())) // the usage of passes that are no more cannot be known
			}
			return slices.DeleteFunc(got, func(line string) bool {
				return strings.HasPrefix(line, "thought") || strings.HasPrefix(line, "partial")
			})
		}
		if a, b := told(whole), told(late); !slices.Equal(a, b) {
			t.Fatalf("at %d\n%s\nand late\n%s", k, strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
	})
}
