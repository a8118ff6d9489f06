package cursorview

import (
	"encoding/json"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// pendingMessage is an answer whose calls have no results yet, as field 4 of a state has it.
type pendingMessage struct {
	ID      string        `json:"id"`
	Role    string        `json:"role"`
	Content []pendingPart `json:"content"`
}

type pendingPart struct {
	Type       string          `json:"type"`
	Text       string          `json:"text,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	ToolName   string          `json:"toolName,omitempty"`
	Args       json.RawMessage `json:"args,omitempty"`
}

// pendingCalls returns the calls in progress with the reasoning that led to them (section 6.9), or
// nothing when there are none.
func pendingCalls(s *session.State) []string {
	if s.Run == nil || len(s.Run.Calls) == 0 {
		return nil
	}
	m := pendingMessage{ID: "1", Role: "assistant"}
	if a, ok := lastAnswer(s.Settled); ok {
		for _, b := range a.Blocks {
			if r, ok := b.(session.Reasoning); ok && r.Text != "" {
				m.Content = append(m.Content, pendingPart{Type: "reasoning", Text: r.Text})
			}
		}
	}
	thoughts := len(m.Content)
	for _, c := range s.Run.Calls {
		if t := s.Tool(c.Call); t != nil && t.Status != session.Streaming {
			continue
		}
		args := json.RawMessage(c.Input)
		if !json.Valid(args) {
			args = json.RawMessage("{}")
		}
		m.Content = append(m.Content, pendingPart{Type: "tool-call", ToolCallID: string(c.Call), ToolName: c.Name, Args: args})
	}
	if len(m.Content) == thoughts {
		return nil
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return nil
	}
	return []string{string(raw)}
}

func lastAnswer(items []session.Item) (*session.Assistant, bool) {
	for _, item := range slices.Backward(items) {
		if a, ok := item.(*session.Assistant); ok {
			return a, true
		}
	}
	return nil, false
}

// patchTokens says how full the context is (R22, R52): what the last pass has read and written. After
// a compaction, until the next pass, it is a guess from the length of what is left.
func (in *Base) patchTokens(state *agentv1.ConversationStateStructure, s *session.State) {
	used := state.GetTokenDetails().GetUsedTokens()
	largest := state.GetTokenDetails().GetMaxTokens()
	for i, item := range slices.Backward(s.Settled) {
		if a, ok := item.(*session.Assistant); ok && a.Usage != nil {
			used = tokens(a.Usage.Total())
			if i < s.Compacted {
				used = min(used, guess(s))
			}
			break
		}
	}
	if in.Window > 0 {
		largest = tokens(int64(in.Window))
	}
	if used == 0 && largest == 0 {
		return
	}
	if d := state.TokenDetails; d == nil || d.UsedTokens != used || d.MaxTokens != largest {
		state.TokenDetails = &agentv1.ConversationTokenDetails{UsedTokens: used, MaxTokens: largest}
	}
}

func tokens(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

// guess estimates the tokens of what the model is told: four bytes of text are about one.
func guess(s *session.State) uint32 {
	n := len(s.Summary)
	for _, item := range s.Settled[s.Summarized:] {
		switch item := item.(type) {
		case *session.User:
			n += len(userText(item.Blocks))
		case *session.Assistant:
			n += len(userText(item.Blocks))
		case *session.Tool:
			n += len(item.Output)
		}
	}
	return tokens(int64(n / 4))
}

// patchSummary says what stands in place of old turns (R28): the summary, and one more archive when it
// is not the one that the client has already. The turns themselves stay listed.
func patchSummary(state *agentv1.ConversationStateStructure, s *session.State) {
	if s.Summary == "" {
		return
	}
	var old agentv1.ConversationSummary
	if proto.Unmarshal(state.GetSummary(), &old) == nil && old.GetSummary() == s.Summary {
		return
	}
	state.Summary = mustEncode(&agentv1.ConversationSummary{Summary: s.Summary}).Data
	state.SummaryArchives = append(state.SummaryArchives, mustEncode(&agentv1.ConversationSummaryArchive{Summary: s.Summary}).Data)
	state.SelfSummaryCount++
}
