package cursorview_test

import (
	"github.com/roost-dev/roost/internal/cursorview"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

var model = session.ModelRef{Provider: "p", ID: "m"}

// teller makes records, ten milliseconds apart.
type teller struct {
	state   *session.State
	records []session.Record
}

func newTeller() *teller {
	t := &teller{state: &session.State{}}
	t.tell(session.Created{ID: "s", Cwd: "/work", Model: model, Thinking: session.ThinkingOff})
	return t
}

func (t *teller) tell(events ...session.Event) {
	for _, e := range events {
		seq := t.state.Seq + 1
		r := session.Record{Seq: seq, At: 1_000 + 10*int64(seq), Event: e}
		t.state.Apply(r)
		t.records = append(t.records, r)
	}
}

// prompt begins a run.
func (t *teller) prompt(id, text string) {
	s := t.state
	t.tell(session.RunStarted{Run: s.LastRun + 1, Item: session.NoteItemID(s), Prompt: id, Blocks: []session.Block{session.Text{Text: text}}})
}

// pass begins a pass of the run.
func (t *teller) pass() {
	run := t.state.Run
	id := session.ItemID("a" + string(session.NewCallID(run.ID, run.Pass+1, 0))[4:])
	t.tell(session.PassStarted{Pass: run.Pass + 1, Item: id, Model: model})
}

func (t *teller) block(b session.Block, deltas ...string) int {
	i := len(t.state.Run.Live.Blocks)
	t.tell(session.BlockStarted{Block: b})
	for _, d := range deltas {
		t.tell(session.Delta{Index: i, Text: d})
	}
	return i
}

func (t *teller) say(text string) { t.block(session.Text{}, text) }

func (t *teller) call(name string, deltas ...string) session.CallID {
	run := t.state.Run
	id := session.NewCallID(run.ID, run.Pass, len(run.Live.Calls()))
	i := t.block(session.ToolCall{Call: id, Name: name}, deltas...)
	t.tell(session.BlockEnded{Index: i})
	return id
}

func (t *teller) endPass(stop session.StopReason) {
	t.tell(session.PassEnded{Status: session.Complete, Stop: stop, Usage: &session.Usage{Input: 10, CacheRead: 5, CacheWrite: 2, Output: 3, Reasoning: 1}})
}

// turn is a whole run: a message, a tool and an answer.
func (t *teller) turn(text string) {
	t.prompt("", text)
	t.pass()
	t.say("Let me look.")
	call := t.call("Read", `{"path":"/a"}`)
	t.endPass(session.StopToolUse)
	t.tell(session.ToolStarted{Call: call, Host: session.HostClient})
	card := &agentv1.ToolCall{Tool: &agentv1.ToolCall_ReadToolCall{ReadToolCall: &agentv1.ReadToolCall{
		Args: &agentv1.ReadToolArgs{Path: "/a"},
		Result: &agentv1.ReadToolResult{Result: &agentv1.ReadToolResult_Success{
			Success: &agentv1.ReadToolSuccess{Output: &agentv1.ReadToolSuccess_Content{Content: "alpha"}},
		}},
	}}}
	t.tell(session.ToolEnded{Call: call, Output: "alpha", Details: cursorview.EncodeCard(card)})
	t.pass()
	t.say("It says alpha to " + text)
	t.endPass(session.StopEnd)
	t.tell(session.RunEnded{})
}

// mcpCards makes the same card of every call.
type mcpCards struct{}

func (mcpCards) Card(name, _ string) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_McpToolCall{McpToolCall: &agentv1.McpToolCall{Args: &agentv1.McpArgs{Name: name}}}}
}
