package anthropic

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

// encode returns the body of a request: the same request gives the same bytes.
func encode(req *provider.Request) ([]byte, error) {
	r := request{Model: req.Model.ID, MaxTokens: req.MaxOutput, Stream: true, Messages: messages(req)}
	if len(r.Messages) == 0 {
		return nil, provider.Errorf(provider.FaultRequest, "there is nothing to send to the model")
	}
	if r.MaxTokens <= 0 {
		r.MaxTokens = defaultMaxTokens
	}
	if req.System != "" {
		r.System = []block{{Type: "text", Text: req.System}}
	}
	for _, t := range req.Tools {
		r.Tools = append(r.Tools, tool{Name: t.Name, Description: t.Description, InputSchema: provider.Schema(t.Schema)})
	}
	r.think(req.Thinking)
	r.mark()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&r); err != nil {
		return nil, provider.Errorf(provider.FaultRequest, "the request cannot be written: %v", err)
	}
	return b.Bytes(), nil
}

// mark sets the cache marks, of which four are allowed: behind the tools, behind the
// system prompt, and behind the last two user messages. The second to last is where the
// request before ended, so it is found again however many blocks have come since.
func (r *request) mark() {
	ephemeral := &cacheControl{Type: "ephemeral"}
	if n := len(r.Tools); n > 0 {
		r.Tools[n-1].CacheControl = ephemeral
	}
	if n := len(r.System); n > 0 {
		r.System[n-1].CacheControl = ephemeral
	}
	marks := 2
	for i := len(r.Messages) - 1; i >= 0 && marks > 0; i-- {
		if m := r.Messages[i]; m.Role == "user" {
			m.Content[len(m.Content)-1].CacheControl = ephemeral
			marks--
		}
	}
}

// beginning opens a history that would begin with the model's words, which is refused.
const beginning = "(The beginning of the conversation is not shown.)"

// history builds the messages of a request: user and assistant in turns.
type history struct {
	req      *provider.Request
	messages []message
}

func messages(req *provider.Request) []message {
	h := history{req: req}
	for _, it := range provider.History(req) {
		switch it := it.(type) {
		case *session.User:
			h.add("user", h.user(it))
		case *session.Assistant:
			h.add("assistant", h.assistant(it))
		case *session.Tool:
			h.add("user", []block{h.result(it)})
		}
	}
	return h.messages
}

// add appends blocks to the last message, or as a new one when the role changes.
func (h *history) add(role string, blocks []block) {
	if len(blocks) == 0 {
		return
	}
	if len(h.messages) == 0 && role == "assistant" {
		h.messages = []message{{Role: "user", Content: []block{{Type: "text", Text: beginning}}}}
	}
	if n := len(h.messages) - 1; n >= 0 && h.messages[n].Role == role {
		h.messages[n].Content = append(h.messages[n].Content, blocks...)
		return
	}
	h.messages = append(h.messages, message{Role: role, Content: blocks})
}

func (h *history) user(u *session.User) []block {
	var blocks []block
	for _, b := range u.Blocks {
		switch b := b.(type) {
		case session.Text:
			blocks = appendText(blocks, b.Text)
		case session.Image:
			blocks = append(blocks, h.image(b))
		case session.Reasoning, session.ToolCall: // not in a user item
		}
	}
	return blocks
}

// appendText adds a text block. Blank ones are refused.
func appendText(blocks []block, text string) []block {
	if strings.TrimSpace(text) == "" {
		return blocks
	}
	return append(blocks, block{Type: "text", Text: text})
}

func (h *history) assistant(a *session.Assistant) []block {
	var blocks []block
	visible := 0 // up to the last block that is not thinking: a message must not end in it
	for _, b := range a.Blocks {
		switch b := b.(type) {
		case session.Text:
			blocks = appendText(blocks, b.Text)
		case session.Reasoning:
			if a.Model == h.req.Model {
				blocks = appendThinking(blocks, b)
			}
			continue
		case session.ToolCall:
			blocks = append(blocks, block{
				Type: "tool_use", ID: string(b.Call), Name: provider.ToolName(b.Name), Input: provider.Input(b.Input),
			})
		case session.Image: // not in an assistant item
		}
		visible = len(blocks)
	}
	return blocks[:visible]
}

// appendThinking adds a thinking block as it came. Without its signature it was cut, or is
// of another dialect, and would be refused.
func appendThinking(blocks []block, r session.Reasoning) []block {
	switch {
	case r.Signature == "":
		return blocks
	case r.Redacted:
		return append(blocks, block{Type: "redacted_thinking", Data: r.Signature})
	}
	return append(blocks, block{Type: "thinking", Thinking: &r.Text, Signature: r.Signature})
}

func (h *history) result(t *session.Tool) block {
	b := block{Type: "tool_result", ToolUseID: string(t.Call), IsError: t.Status == session.Failed}
	b.Content = appendText(b.Content, t.Output)
	for _, img := range t.Images {
		b.Content = append(b.Content, h.image(img))
	}
	if len(b.Content) == 0 {
		b.Content = []block{{Type: "text", Text: "(no output)"}}
	}
	return b
}

func (h *history) image(img session.Image) block {
	data, err := h.req.ImageBytes(img)
	if err != nil {
		return block{Type: "text", Text: provider.MissingImage}
	}
	return block{Type: "image", Source: &source{Type: "base64", MediaType: img.MIME, Data: data}}
}
