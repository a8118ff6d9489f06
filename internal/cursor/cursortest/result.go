package cursortest

import (
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Result is what came of one turn, over all its attempts.
type Result struct {
	// Text and Thinking are what the attempts streamed, one after the other, as the SDK joins them;
	// notices of the server are left out.
	Text, Thinking string
	// Updates are all updates in order, without heartbeats.
	Updates  []*agentv1.InteractionUpdate
	Attempts []*Attempt
	// Cards are the tool calls in the order of their first update.
	Cards []*Card
	// Usage is the last turn_ended, or nil.
	Usage *agentv1.TurnEndedUpdate
	// Checkpoint is the last one, or nil.
	Checkpoint *agentv1.ConversationStateStructure
	// Violations are the rules of the protocol that the server broke, in this turn, in those of
	// Queued and in those of subagents.
	Violations []string
	// Queued are the turns of the messages that were queued while this one ran, each in a stream of
	// its own.
	Queued []*Result
}

// Attempt is one stream of a turn.
type Attempt struct {
	RequestID string
	// Action is the name of the arm of the run_request's action, like "resume_action".
	Action string
	// State is the conversation's state as it was sent.
	State *agentv1.ConversationStateStructure
	// Updates are those of this attempt, without heartbeats.
	Updates []*agentv1.InteractionUpdate
	// Messages counts the messages of the server, Heartbeats those of them that are heartbeats,
	// Checkpoints the checkpoints.
	Messages, Heartbeats, Checkpoints int
	// Text is the text of this attempt.
	Text string
	// TurnEnded tells whether turn_ended came.
	TurnEnded bool
	// Err is what the stream ended with; nil if it ended cleanly, with or without turn_ended.
	Err error
}

// Card is a tool call as the client shows it.
type Card struct {
	CallID, ModelCallID string
	// Started and Completed are nil until the update came.
	Started, Completed *agentv1.ToolCall
}

// Card returns the card of a call, or nil.
func (r *Result) Card(callID string) *Card {
	for _, card := range r.Cards {
		if card.CallID == callID {
			return card
		}
	}
	return nil
}

func (r *Result) card(callID, modelCallID string) *Card {
	card := r.Card(callID)
	if card == nil {
		card = &Card{CallID: callID, ModelCallID: modelCallID}
		r.Cards = append(r.Cards, card)
	}
	return card
}

// add takes an update into the record.
func (r *Result) add(a *Attempt, u *agentv1.InteractionUpdate) {
	if u.GetHeartbeat() != nil {
		a.Heartbeats++
		return
	}
	a.Updates, r.Updates = append(a.Updates, u), append(r.Updates, u)
	switch m := u.GetMessage().(type) {
	case *agentv1.InteractionUpdate_TextDelta:
		if !m.TextDelta.GetIsServerNotice() {
			a.Text += m.TextDelta.GetText()
			r.Text += m.TextDelta.GetText()
		}
	case *agentv1.InteractionUpdate_ThinkingDelta:
		r.Thinking += m.ThinkingDelta.GetText()
	case *agentv1.InteractionUpdate_ToolCallStarted:
		r.card(m.ToolCallStarted.GetCallId(), m.ToolCallStarted.GetModelCallId()).Started = m.ToolCallStarted.GetToolCall()
	case *agentv1.InteractionUpdate_ToolCallCompleted:
		r.card(m.ToolCallCompleted.GetCallId(), m.ToolCallCompleted.GetModelCallId()).Completed = m.ToolCallCompleted.GetToolCall()
	case *agentv1.InteractionUpdate_TurnEnded:
		a.TurnEnded, r.Usage = true, m.TurnEnded
	}
}
