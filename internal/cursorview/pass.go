package cursorview

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// block is a block of the answer that streams in.
type block struct {
	reasoning bool
	shown     bool           // some of the reasoning was sent
	call      session.CallID // empty unless it is a call
}

// call is a tool call of the pass.
type call struct {
	name      string
	input     strings.Builder
	pending   int               // bytes of input that no partial_tool_call has carried
	card      *agentv1.ToolCall // of the last partial_tool_call
	started   bool
	startedAt int64
	completed bool
}

// Arguments are shown again once they have grown by this part of them, and at least every so many
// bytes while they are short. A card repeats them from their beginning, so this bounds what a long
// file costs: its length times growth.
const (
	growth   = 32
	eachByte = 1 << 10
)

func (u *Updates) call(id session.CallID) *call {
	c := u.calls[id]
	if c == nil {
		c = &call{}
		u.calls[id] = c
		u.order = append(u.order, id)
	}
	return c
}

// takeBlock knows of a block of a state without telling of it.
func (u *Updates) takeBlock(b session.Block) {
	switch b := b.(type) {
	case session.ToolCall:
		u.blocks = append(u.blocks, block{call: b.Call})
		c := u.call(b.Call)
		c.name = b.Name
		c.input.WriteString(b.Input)
	case session.Reasoning:
		u.blocks = append(u.blocks, block{reasoning: true, shown: b.Text != "" || b.Signature != ""})
	case session.Text, session.Image:
		u.blocks = append(u.blocks, block{})
	}
}

func (u *Updates) applyPass(r session.Record) {
	switch e := r.Event.(type) {
	case session.PassStarted:
		u.startPass(e.Pass, r.At)
	case session.BlockStarted:
		u.endThinking(r.At)
		u.takeBlock(e.Block)
	case session.Delta:
		if e.Index < len(u.blocks) {
			u.delta(&u.blocks[e.Index], e.Text, r.At)
		}
	case session.BlockEnded:
		if e.Index < len(u.blocks) {
			u.endBlock(&u.blocks[e.Index], e, r.At)
		}
	case session.PassEnded:
		u.endThinking(r.At)
		u.spend(e.Usage)
		u.ended = true
		u.endStepIfDone(r.At)
	}
}

func (u *Updates) startPass(pass int, at int64) {
	u.pass, u.passAt, u.ended, u.stepOpen = pass, at, false, true
	u.blocks, u.order = nil, nil
	clear(u.calls)
	u.send(at, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_StepStarted{
		StepStarted: &agentv1.StepStartedUpdate{StepId: uint64(pass)},
	}})
}

func (u *Updates) delta(b *block, text string, at int64) {
	switch {
	case text == "":
	case b.call != "":
		u.argsDelta(b.call, text, at)
	case b.reasoning:
		b.shown = true
		u.think(text, at)
	default:
		u.send(at, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: text}}})
	}
}

func (u *Updates) think(text string, at int64) {
	if !u.thinking {
		u.thinking, u.since = true, at
	}
	u.send(at, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ThinkingDelta{ThinkingDelta: &agentv1.ThinkingDeltaUpdate{Text: text}}})
}

// argsDelta shows the arguments of a call as they stream in. Those of tools whose text a client
// shows while it is written always; of the others only what changes their card.
func (u *Updates) argsDelta(id session.CallID, text string, at int64) {
	c := u.call(id)
	c.input.WriteString(text)
	c.pending += len(text)
	if n := c.input.Len(); n > eachByte && c.pending*growth < n {
		return
	}
	u.partial(id, c, at)
}

func (u *Updates) partial(id session.CallID, c *call, at int64) {
	input := c.input.String()
	card := stamp(freshCard(u.cards, c.name, input), id, 0, 0)
	if !showsText(c.name) && c.card != nil && proto.Equal(card, c.card) {
		return
	}
	c.card = card
	u.send(at, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_PartialToolCall{PartialToolCall: &agentv1.PartialToolCallUpdate{
		CallId: string(id), ToolCall: proto.CloneOf(card), ArgsTextDelta: input[len(input)-c.pending:], ModelCallId: u.modelCallID(),
	}}})
	c.pending = 0
}

// showsText reports whether clients show a tool's main argument while it is written.
func showsText(name string) bool {
	return name == "Write" || name == "PatchEdit" || name == "CreatePlan"
}

func (u *Updates) endBlock(b *block, e session.BlockEnded, at int64) {
	switch {
	case b.call != "":
		if c := u.call(b.call); c.pending > 0 && showsText(c.name) {
			u.partial(b.call, c, at)
		}
	case b.reasoning:
		if !b.shown && (e.Redacted || e.Signature != "") {
			b.shown = true
			u.think(hiddenThinking, at)
		}
		u.endThinking(at)
	}
}

// endStepIfDone ends the step once the pass and all its calls have ended.
func (u *Updates) endStepIfDone(at int64) {
	for _, id := range u.order {
		if !u.calls[id].completed {
			return
		}
	}
	if u.ended {
		u.endStep(at)
	}
}

func (u *Updates) endStep(at int64) {
	if !u.stepOpen {
		return
	}
	u.stepOpen = false
	u.send(at, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_StepCompleted{
		StepCompleted: &agentv1.StepCompletedUpdate{StepId: uint64(u.pass), StepDurationMs: max(at-u.passAt, 0)},
	}})
}

func (u *Updates) startTool(id session.CallID, at int64) {
	c := u.call(id)
	if c.started {
		return
	}
	c.started, c.startedAt = true, at
	u.send(at, u.startedUpdate(id, c))
}

func (u *Updates) startedUpdate(id session.CallID, c *call) *agentv1.InteractionUpdate {
	return &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ToolCallStarted{ToolCallStarted: &agentv1.ToolCallStartedUpdate{
		CallId: string(id), ToolCall: stamp(freshCard(u.cards, c.name, c.input.String()), id, c.startedAt, 0), ModelCallId: u.modelCallID(),
	}}}
}

// Running returns a tool_call_started for each call that has started and not ended, for a client that
// comes back in the middle of a run with a stream of its own (section 4.2, rule 2).
func (u *Updates) Running() []*agentv1.AgentServerMessage {
	u.thinking = false // it has not seen the beginning of that
	var out []*agentv1.AgentServerMessage
	for _, id := range u.order {
		if c := u.calls[id]; c.started && !c.completed {
			out = append(out, update(u.startedUpdate(id, c)))
		}
	}
	return out
}

// Interrupt closes what is open at a client whose stream ends before the run does, so that it is not
// left with a spinner (section 4.2, rule 2). The client is told the results when it is back. Nothing
// may be applied afterwards.
func (u *Updates) Interrupt(at int64) []*agentv1.AgentServerMessage {
	u.out = nil
	u.endThinking(at)
	for _, id := range u.order {
		if c := u.calls[id]; c.started && !c.completed {
			u.endTool(session.ToolEnded{Call: id, IsError: true, Output: "The stream was interrupted before the result was known."}, at)
		}
	}
	return u.out
}

func (u *Updates) endTool(e session.ToolEnded, at int64) {
	c := u.call(e.Call)
	if !c.started || c.completed {
		return
	}
	c.completed = true
	card := endedCard(u.cards, c.name, c.input.String(), e.Output, e.IsError, e.Details)
	u.send(at, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ToolCallCompleted{ToolCallCompleted: &agentv1.ToolCallCompletedUpdate{
		CallId: string(e.Call), ToolCall: stamp(card, e.Call, c.startedAt, at), ModelCallId: u.modelCallID(),
	}}})
	u.endStepIfDone(at)
}
