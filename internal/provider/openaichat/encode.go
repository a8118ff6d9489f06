package openaichat

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

// How a reasoning block came, kept as its signature, so that it goes back the same way:
// servers refuse a field that is not theirs. A JSON list is reasoning_details.
const (
	viaContent   = "reasoning_content"
	viaReasoning = "reasoning"
	viaTag       = "think" // a tag in the text; never sent back
)

// encode returns the body of a request: the same request gives the same bytes.
func encode(req *provider.Request, q quirks) ([]byte, error) {
	r := request{
		Model: req.Model.ID, Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
		Messages: messages(req),
	}
	if len(r.Messages) == 0 {
		return nil, provider.Errorf(provider.FaultRequest, "there is nothing to send to the model")
	}
	if q.official || strings.Contains(req.Model.ID, "gpt") {
		r.PromptCacheKey = req.CacheKey
	}
	q.limit(&r, req.Model.ID, req.MaxOutput)
	think(&r, req.Model.ID, req.Thinking)
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, functionTool{Type: "function", Function: function{
			Name: t.Name, Description: t.Description, Parameters: provider.Schema(t.Schema),
		}})
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&r); err != nil {
		return nil, provider.Errorf(provider.FaultRequest, "the request cannot be written: %v", err)
	}
	return b.Bytes(), nil
}

// history builds the messages of a request.
type history struct {
	req      *provider.Request
	messages []message
	images   []part // of the tool results since the last assistant message
}

func messages(req *provider.Request) []message {
	h := history{req: req}
	items := provider.History(req)
	if len(items) == 0 {
		return nil
	}
	if req.System != "" {
		h.messages = append(h.messages, message{Role: "system", Content: req.System})
	}
	for _, it := range items {
		switch it := it.(type) {
		case *session.User:
			h.flushImages()
			h.user(it)
		case *session.Assistant:
			h.flushImages()
			h.assistant(it)
		case *session.Tool:
			h.tool(it)
		}
	}
	h.flushImages()
	return h.messages
}

func (h *history) user(u *session.User) {
	var parts []part
	var texts []string
	for _, b := range u.Blocks {
		switch b := b.(type) {
		case session.Text:
			parts = append(parts, part{Type: "text", Text: b.Text})
			texts = append(texts, b.Text)
		case session.Image:
			parts = append(parts, h.image(b))
		case session.Reasoning, session.ToolCall: // not in a user item
		}
	}
	switch {
	case len(parts) == 0:
	case len(texts) == len(parts):
		h.messages = append(h.messages, message{Role: "user", Content: strings.Join(texts, "\n")})
	default:
		h.messages = append(h.messages, message{Role: "user", Content: parts})
	}
}

// assistant adds one message with everything the item says. An answer that goes on after
// a cut is two items and becomes one message, as if it had never been cut.
func (h *history) assistant(a *session.Assistant) {
	m := message{Role: "assistant"}
	var text strings.Builder
	for _, b := range a.Blocks {
		switch b := b.(type) {
		case session.Text:
			text.WriteString(b.Text)
		case session.Reasoning:
			if a.Model == h.req.Model {
				m.addReasoning(b)
			}
		case session.ToolCall:
			m.ToolCalls = append(m.ToolCalls, toolCall{ID: string(b.Call), Type: "function", Function: calledByName{
				Name: provider.ToolName(b.Name), Arguments: string(provider.Input(b.Input)),
			}})
		case session.Image: // not in an assistant item
		}
	}
	last := len(h.messages) - 1
	goesOn := last >= 0 && h.messages[last].Role == "assistant"
	if len(m.ToolCalls) == 0 && (text.Len() == 0 || !goesOn && strings.TrimSpace(text.String()) == "") {
		return // servers refuse an empty message, and an answer cut before its first word is made again
	}
	if goesOn {
		first := h.messages[last]
		before, _ := first.Content.(string) // a message without calls has text
		m.ReasoningContent, m.Reasoning = first.ReasoningContent+m.ReasoningContent, first.Reasoning+m.Reasoning
		m.ReasoningDetails = joinLists(first.ReasoningDetails, m.ReasoningDetails)
		m.Content = before + text.String()
		h.messages[last] = m
		return
	}
	if text.Len() > 0 {
		m.Content = text.String()
	}
	h.messages = append(h.messages, m)
}

func (m *message) addReasoning(r session.Reasoning) {
	switch {
	case strings.HasPrefix(r.Signature, "[") && json.Valid([]byte(r.Signature)):
		m.ReasoningDetails = joinLists(m.ReasoningDetails, json.RawMessage(r.Signature))
	case r.Redacted: // of another dialect
	case r.Signature == viaReasoning:
		m.Reasoning += r.Text
	case r.Signature == viaContent:
		m.ReasoningContent += r.Text
	}
}

// joinLists returns one JSON list with the elements of two.
func joinLists(a, b json.RawMessage) json.RawMessage {
	var x, y []json.RawMessage
	if json.Unmarshal(b, &y) != nil || len(y) == 0 {
		return a
	}
	if json.Unmarshal(a, &x) != nil || len(x) == 0 {
		return b
	}
	joined, err := json.Marshal(append(x, y...))
	if err != nil { // both were valid
		return b
	}
	return joined
}

func (h *history) tool(t *session.Tool) {
	output := t.Output
	if output == "" {
		output = "(no output)"
	}
	h.messages = append(h.messages, message{Role: "tool", ToolCallID: string(t.Call), Content: output})
	if len(t.Images) == 0 {
		return
	}
	h.images = append(h.images, part{Type: "text", Text: fmt.Sprintf("Images from the result of %s (%s):", provider.ToolName(t.Name), t.Call)})
	for _, img := range t.Images {
		h.images = append(h.images, h.image(img))
	}
}

// flushImages adds the images of tool results as a user message, because this dialect has
// none in results. They must come after all results of a pass.
func (h *history) flushImages() {
	if len(h.images) > 0 {
		h.messages = append(h.messages, message{Role: "user", Content: h.images})
		h.images = nil
	}
}

func (h *history) image(img session.Image) part {
	data, err := h.req.ImageBytes(img)
	if err != nil {
		return part{Type: "text", Text: provider.MissingImage}
	}
	return part{Type: "image_url", ImageURL: &imageURL{URL: "data:" + img.MIME + ";base64," + base64.StdEncoding.EncodeToString(data)}}
}
