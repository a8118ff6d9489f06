package cursorview

import (
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// A turn is a message of the person and all that follows until the next one (section 6.1). Notes are
// in no turn, and neither is what comes before the first message.

// beginsTurn reports whether an item is a message of the person.
func beginsTurn(item session.Item) bool {
	u, ok := item.(*session.User)
	return ok && u.Note == session.NoteNone
}

// Turns returns the number of turns in s.
func Turns(s *session.State) int { return len(turnStarts(s.Settled)) }

// ItemsOf returns how many items of the settled transcript make up the first turns turns: all of
// them when there are no more turns, else those before the message that begins the next.
func ItemsOf(s *session.State, turns int) int {
	if starts := turnStarts(s.Settled); turns < len(starts) {
		return starts[max(turns, 0)]
	}
	return len(s.Settled)
}

// turnItems returns the items of turn i.
func turnItems(items []session.Item, starts []int, i int) []session.Item {
	end := len(items)
	if i+1 < len(starts) {
		end = starts[i+1]
	}
	return items[starts[i]:end:end]
}

func turnStarts(items []session.Item) []int {
	var starts []int
	for i, item := range items {
		if beginsTurn(item) {
			starts = append(starts, i)
		}
	}
	return starts
}

// turn is a turn as clients keep it. It grows with the transcript: what is closed is encoded once.
type turn struct {
	items  []session.Item // the settled items that are encoded
	user   Blob
	images []cursorwire.BlobID
	steps  []Blob
}

// step adds a step.
func (t *turn) step(s *agentv1.ConversationStep) {
	id, data, err := cursorwire.EncodeBlob(s)
	if err != nil {
		return // a card that cannot be encoded cannot be shown either
	}
	t.steps = append(t.steps, Blob{ID: id, Data: data})
}

// grow adds everything of items, which begin with those of t, that is settled for good: messages, and
// answers with the results of all their calls. It changes t only by adding to it.
func (t *turn) grow(cards Cards, items []session.Item) {
	for i := len(t.items); i < len(items); {
		n, whole := passLen(items[i:])
		if !whole && i+n == len(items) {
			return
		}
		t.add(cards, items[i:i+n])
		i += n
		t.items = items[:i:i]
	}
}

// passLen returns the number of items that belong to the answer, or the single item, that items
// begins with, and whether no more can come.
func passLen(items []session.Item) (n int, whole bool) {
	a, ok := items[0].(*session.Assistant)
	if !ok {
		return 1, true
	}
	calls := len(a.Calls())
	n = 1
	for n < len(items) && n <= calls {
		if _, ok := items[n].(*session.Tool); !ok {
			break
		}
		n++
	}
	return n, n == calls+1
}

// add encodes an answer with the results of its calls, or another item.
func (t *turn) add(cards Cards, items []session.Item) {
	switch first := items[0].(type) {
	case *session.Assistant:
		t.answer(cards, first, items[1:])
	case *session.Tool:
		t.step(toolStep(cards, session.ToolCall{Call: first.Call, Name: first.Name, Input: first.Input}, first))
	case *session.User: // it begins the turn, or is a note
	}
}

// answer adds the steps of an answer: what was thought, said and called, in that order, each call
// with its result.
func (t *turn) answer(cards Cards, a *session.Assistant, results []session.Item) {
	for _, b := range a.Blocks {
		switch b := b.(type) {
		case session.Text:
			if b.Text != "" {
				t.step(textStep(b.Text))
			}
		case session.Reasoning:
			text := b.Text
			if text == "" && (b.Redacted || b.Signature != "") {
				text = hiddenThinking
			}
			if text != "" {
				t.step(thinkingStep(text))
			}
		case session.ToolCall:
			if a.Status == session.Streaming && !b.Complete {
				continue
			}
			t.step(toolStep(cards, b, resultOf(b.Call, results)))
		case session.Image: // not in an answer
		}
	}
	for _, item := range results {
		if r, ok := item.(*session.Tool); ok && !called(a, r.Call) {
			t.add(cards, []session.Item{r})
		}
	}
}

func resultOf(call session.CallID, results []session.Item) *session.Tool {
	for _, item := range results {
		if t, ok := item.(*session.Tool); ok && t.Call == call {
			return t
		}
	}
	return nil
}

func called(a *session.Assistant, call session.CallID) bool {
	return slices.ContainsFunc(a.Blocks, func(b session.Block) bool {
		c, ok := b.(session.ToolCall)
		return ok && c.Call == call
	})
}

func textStep(text string) *agentv1.ConversationStep {
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: text}}}
}

func thinkingStep(text string) *agentv1.ConversationStep {
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ThinkingMessage{ThinkingMessage: &agentv1.ThinkingMessage{Text: text}}}
}

// toolStep returns the one step of a call and its result. Without a result it has only started.
func toolStep(cards Cards, c session.ToolCall, result *session.Tool) *agentv1.ConversationStep {
	var card *agentv1.ToolCall
	switch {
	case result == nil:
		card = stamp(freshCard(cards, c.Name, c.Input), c.Call, 0, 0)
	case result.Status == session.Streaming:
		card = stamp(freshCard(cards, c.Name, c.Input), c.Call, result.At, 0)
	default:
		card = endedCard(cards, c.Name, c.Input, result.Output, result.Status == session.Failed, result.Details)
		stamp(card, c.Call, result.At, 0)
	}
	return &agentv1.ConversationStep{Message: &agentv1.ConversationStep_ToolCall{ToolCall: card}}
}

// seal returns the blob of the turn itself, which names its message and steps.
func (t *turn) seal() Blob {
	structure := &agentv1.AgentConversationTurnStructure{UserMessage: t.user.ID.Bytes(), Steps: make([][]byte, len(t.steps))}
	for i := range t.steps {
		structure.Steps[i] = t.steps[i].ID.Bytes()
	}
	return mustEncode(&agentv1.ConversationTurnStructure{
		Turn: &agentv1.ConversationTurnStructure_AgentConversationTurn{AgentConversationTurn: structure},
	})
}

// mustEncode encodes a message that consists of text and ids only, which cannot fail.
func mustEncode(m proto.Message) Blob {
	id, data, err := cursorwire.EncodeBlob(m)
	if err != nil {
		panic("cursorview: " + err.Error())
	}
	return Blob{ID: id, Data: data}
}
