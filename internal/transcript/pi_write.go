package transcript

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/roost-dev/roost/internal/session"
)

// PiOptions are what WritePi needs besides the state. Both may be nil.
type PiOptions struct {
	Load Load
	API  func(session.ModelRef) string // pi's name of a model's dialect, "anthropic-messages"
}

// WritePi writes the settled items of a session as pi's session file, version 3: one branch,
// with the model, the thinking level and the name in front. Entries get ids made from those
// of the items, so the same session gives the same file.
//
// The file has no place for runs, passes, clients' ids, whether a message was a steer or a note,
// for a refusal as the reason of an end, and for calls whose input is not a JSON object: such
// an input becomes {"malformed_input": its text}. An image without bytes becomes a text.
func WritePi(w io.Writer, s *session.State, o PiOptions) error {
	p := &piWriter{enc: json.NewEncoder(w), o: o, ids: map[string]bool{}}
	p.enc.SetEscapeHTML(false)
	err := p.enc.Encode(piHeader{Type: "session", Version: piVersion, ID: string(s.ID), Timestamp: clock(s.CreatedAt), Cwd: s.Cwd})
	if err != nil {
		return err
	}
	if !s.Model.IsZero() {
		p.entry("model", s.CreatedAt, piEntry{Type: "model_change", Provider: s.Model.Provider, ModelID: s.Model.ID})
	}
	if s.Thinking != "" {
		p.entry("thinking", s.CreatedAt, piEntry{Type: "thinking_level_change", ThinkingLevel: string(s.Thinking)})
	}
	if s.Name != "" {
		p.entry("name", s.CreatedAt, piEntry{Type: "session_info", Name: s.Name})
	}
	var ids []string
	for i, it := range s.Settled {
		if i == s.Compacted {
			p.compaction(s, ids)
		}
		p.item(it)
		ids = append(ids, *p.parent)
	}
	if s.Compacted >= len(s.Settled) {
		p.compaction(s, ids)
	}
	return p.err
}

type piWriter struct {
	enc    *json.Encoder
	o      PiOptions
	ids    map[string]bool
	parent *string
	err    error // the first; after it nothing is written
}

// entry writes an entry below the last one.
func (p *piWriter) entry(key string, at int64, e piEntry) {
	if p.err != nil {
		return
	}
	for n := 0; e.ID == "" || p.ids[e.ID]; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", key, n))
		e.ID = hex.EncodeToString(sum[:4])
	}
	p.ids[e.ID] = true
	e.ParentID, e.Timestamp = p.parent, clock(at)
	p.parent = &e.ID
	p.err = p.enc.Encode(e)
}

func (p *piWriter) item(it session.Item) {
	switch it := it.(type) {
	case *session.User:
		p.message(it.ID, piMessage{Role: "user", Content: p.blocks(it.Blocks), Timestamp: it.At})
	case *session.Assistant:
		m := piMessage{
			Role: "assistant", Content: p.blocks(it.Blocks), Timestamp: it.At, Provider: it.Model.Provider, Model: it.Model.ID,
			ResponseModel: it.ResponseModel, Usage: usageOf(it.Usage), StopReason: piStop(it), ErrorMessage: it.Error,
		}
		if m.Usage == nil {
			m.Usage = &usageLine{} // pi counts on it
		}
		if p.o.API != nil {
			m.API = p.o.API(it.Model)
		}
		p.message(it.ID, m)
	case *session.Tool:
		blocks := []session.Block{session.Text{Text: it.Output}}
		for _, img := range it.Images {
			blocks = append(blocks, img)
		}
		failed := it.Status == session.Failed
		p.message(it.ID, piMessage{
			Role: "toolResult", Content: p.blocks(blocks), Timestamp: it.At, ToolCallID: string(it.Call), ToolName: it.Name,
			Details: it.Details, IsError: &failed,
		})
	}
}

// compaction writes that the items before s.Summarized were summed up. ids are those of the
// entries so far.
func (p *piWriter) compaction(s *session.State, ids []string) {
	if s.Summary == "" || s.Summarized >= len(ids) {
		return
	}
	at := s.Settled[len(ids)-1]
	p.entry("compaction "+string(at.ItemID()), s.UpdatedAt, piEntry{
		Type: "compaction", Summary: s.Summary, FirstKept: ids[s.Summarized], TokensBefore: new(int64),
	})
}

func (p *piWriter) message(id session.ItemID, m piMessage) {
	p.entry("item "+string(id), m.Timestamp, piEntry{Type: "message", Message: p.json(m)})
}

func (p *piWriter) json(v any) json.RawMessage {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil && p.err == nil {
		p.err = err
	}
	return b.Bytes()
}

func (p *piWriter) blocks(blocks []session.Block) json.RawMessage {
	list := []piBlock{}
	for _, b := range blocks {
		switch b := b.(type) {
		case session.Text:
			list = append(list, piBlock{Type: "text", Text: &b.Text})
		case session.Reasoning:
			list = append(list, piBlock{Type: "thinking", Thinking: &b.Text, ThinkingSignature: b.Signature, Redacted: b.Redacted})
		case session.ToolCall:
			list = append(list, piBlock{Type: "toolCall", ID: string(b.Call), Name: b.Name, Arguments: p.arguments(b.Input)})
		case session.Image:
			if data, ok := p.o.Load.load(b); ok {
				list = append(list, piBlock{Type: "image", Data: data, MIMEType: b.MIME})
				continue
			}
			gone := fmt.Sprintf("[image: %s, %d bytes]", b.MIME, b.Size)
			list = append(list, piBlock{Type: "text", Text: &gone})
		}
	}
	return p.json(list)
}

// arguments returns a call's input as an object, which pi demands.
func (p *piWriter) arguments(input string) json.RawMessage {
	input = strings.TrimSpace(input)
	switch {
	case input == "":
		return json.RawMessage("{}")
	case input[0] == '{' && json.Valid([]byte(input)):
		return json.RawMessage(input)
	}
	return p.json(map[string]string{"malformed_input": input})
}

func piStop(a *session.Assistant) string {
	switch a.Status {
	case session.Failed:
		return "error"
	case session.Aborted:
		return "aborted"
	case session.Complete, session.Streaming:
	}
	switch a.Stop {
	case session.StopLength:
		return "length"
	case session.StopToolUse:
		return "toolUse"
	case session.StopNone, session.StopEnd, session.StopRefusal:
	}
	return "stop"
}
