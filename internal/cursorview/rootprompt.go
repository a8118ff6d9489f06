package cursorview

import (
	"encoding/json"
	"strings"

	"github.com/roost-dev/roost/internal/cursortool"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// rootMessage is an entry of root_prompt_messages_json.
type rootMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"` // a string or parts
}

type rootPart struct {
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	ToolCallID string          `json:"toolCallId"`
	ToolName   string          `json:"toolName"`
	Args       json.RawMessage `json:"args"`
	Input      json.RawMessage `json:"input"`
	Result     json.RawMessage `json:"result"`
	Output     json.RawMessage `json:"output"`
	IsError    bool            `json:"isError"`
}

// leading is how many entries are looked at at once when only the system's are of interest, which
// come first.
const leading = 4

// rootMessages reads the entries that are messages: all of them, or those up to the first that is not
// the system's.
func (r *reader) rootMessages(state *agentv1.ConversationStateStructure, all bool) []rootMessage {
	var out []rootMessage
	for i, entry := range state.GetRootPromptMessagesJson() {
		data, f := r.read(entry)
		if f == wanted {
			if !all && i%leading == leading-1 {
				return out
			}
			continue
		}
		var m rootMessage
		if f != here || json.Unmarshal(data, &m) != nil {
			continue
		}
		if !all && m.Role != "system" {
			return out
		}
		out = append(out, m)
	}
	return out
}

// instructions joins the system's messages.
func instructions(messages []rootMessage) string {
	var texts []string
	for _, m := range messages {
		if m.Role == "system" {
			if text := clean(partsText(m.parts())); text != "" {
				texts = append(texts, text)
			}
		}
	}
	return strings.Join(texts, "\n\n")
}

func (m rootMessage) parts() []rootPart {
	var text string
	if json.Unmarshal(m.Content, &text) == nil {
		return []rootPart{{Type: "text", Text: text}}
	}
	var raw []json.RawMessage
	_ = json.Unmarshal(m.Content, &raw) // anything else has no parts
	var parts []rootPart
	for _, one := range raw {
		var p rootPart
		if json.Unmarshal(one, &p) == nil {
			parts = append(parts, p)
		}
	}
	return parts
}

func partsText(parts []rootPart) string {
	var texts []string
	for _, p := range parts {
		if p.Type == "text" {
			texts = append(texts, p.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// rootTurns makes turns of the messages. What comes before the first of the user has no turn.
func rootTurns(messages []rootMessage, cards Cards) []theirTurn {
	var turns []theirTurn
	tools := map[string]*theirTool{}
	for _, m := range messages {
		parts := m.parts()
		switch {
		case m.Role == "user":
			turns = append(turns, theirTurn{user: here, text: clean(partsText(parts)), whole: true})
		case len(turns) == 0:
		case m.Role == "assistant" || m.Role == "tool":
			t := &turns[len(turns)-1]
			for _, p := range parts {
				t.addPart(p, tools)
			}
		}
	}
	for i := range turns {
		for _, s := range turns[i].steps {
			if s.tool != nil {
				s.tool.card = plainCard(cards, s.tool.name, s.tool.input, s.tool.output, s.tool.failed)
				cursortool.Fit(s.tool.card, cursortool.MaxCard)
			}
		}
	}
	return turns
}

func (t *theirTurn) addPart(p rootPart, tools map[string]*theirTool) {
	switch p.Type {
	case "text":
		t.steps = append(t.steps, step{text: clean(p.Text)})
	case "reasoning":
		t.steps = append(t.steps, step{text: clean(p.Text), thought: true})
	case "tool-call":
		tool := &theirTool{name: clean(p.ToolName), input: "{}", output: unknownOutcome, failed: true}
		if tool.name == "" {
			tool.name = "tool"
		}
		for _, args := range []json.RawMessage{p.Args, p.Input} {
			var object map[string]json.RawMessage
			if json.Unmarshal(args, &object) == nil && object != nil {
				tool.input = bounded(object)
				break
			}
		}
		tools[p.ToolCallID] = tool
		t.steps = append(t.steps, step{tool: tool})
	case "tool-result":
		tool := tools[p.ToolCallID]
		if tool == nil {
			return
		}
		delete(tools, p.ToolCallID) // the first result counts
		tool.failed, tool.output = p.IsError, shortened(valueText(p.Result))
		if len(p.Result) == 0 {
			tool.output = shortened(valueText(p.Output))
		}
		if tool.output == "" {
			tool.output = "(no output)"
		}
	}
}

// valueText returns the text of a result: a string, {type, value}, parts with text, or any JSON.
func valueText(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var typed struct {
		Type  string          `json:"type"`
		Value json.RawMessage `json:"value"`
	}
	if json.Unmarshal(raw, &typed) == nil && typed.Type != "" && len(typed.Value) > 0 {
		if json.Unmarshal(typed.Value, &text) == nil {
			return text
		}
		raw = typed.Value
	}
	if text = partsText(rootMessage{Content: raw}.parts()); text != "" {
		return text
	}
	return string(raw)
}
