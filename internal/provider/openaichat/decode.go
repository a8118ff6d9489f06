package openaichat

import (
	"encoding/json"
	"errors"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/provider/httpcall"
	"github.com/roost-dev/roost/internal/provider/sse"
	"github.com/roost-dev/roost/internal/session"
)

// The kinds of string that a template may hold.
const (
	contentField = iota
	reasoningField
)

// decoder reads one answer. It implements [httpcall.Decoder].
type decoder struct {
	model    string // as asked
	answered string // as the provider calls it
	fast     httpcall.Template
	speech   speech
	calls    calls
	usage    *usage
	stop     session.StopReason
	heard    bool // some text, reasoning or call has come
}

func newDecoder(model string) *decoder { return &decoder{model: model} }

// Decode implements [httpcall.Decoder].
func (d *decoder) Decode(e sse.Event, parts []provider.Part) ([]provider.Part, httpcall.Progress, error) {
	if s, ok := d.fast.Match(e.Data); ok {
		if d.fast.Kind == contentField {
			return d.speech.content(s, parts), d.progress(), nil
		}
		return d.speech.reasoning(s, viaContent, parts), d.progress(), nil
	}
	if string(e.Data) == "[DONE]" {
		return parts, d.done(), nil
	}
	var c chunk
	if err := json.Unmarshal(e.Data, &c); err != nil {
		// A field of an unexpected type is skipped, and the rest of the chunk counts.
		if _, odd := errors.AsType[*json.UnmarshalTypeError](err); !odd {
			return parts, d.progress(), provider.Errorf(provider.FaultProtocol, "it sent malformed JSON in its event stream")
		}
	}
	if fault := refused(e, c); fault != nil {
		return parts, d.progress(), fault
	}
	if c.Model != "" {
		d.answered = c.Model
	}
	d.count(c.Usage)
	for _, ch := range c.Choices {
		if ch.Index != 0 {
			continue // one answer was asked for
		}
		parts = d.choice(ch, parts)
		d.learn(e.Data, c, ch)
	}
	return parts, d.progress(), nil
}

// refused returns the error that a chunk carries instead of an answer, or nil.
func refused(e sse.Event, c chunk) *provider.Error {
	raw := c.Error
	for _, ch := range c.Choices {
		if present(ch.Error) {
			raw = ch.Error
		}
	}
	if e.Type == "error" && !present(raw) {
		raw = e.Data
	}
	if !present(raw) {
		for _, ch := range c.Choices {
			if ch.FinishReason == "error" {
				return provider.Errorf(provider.FaultOverload, "it ended the answer with an error")
			}
		}
		return nil
	}
	return httpcall.Failure(raw)
}

func present(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", `""`, "{}", "false":
		return false
	}
	return true
}

func (d *decoder) choice(c choice, parts []provider.Part) []provider.Part {
	if r := c.Delta; r.ReasoningContent != "" {
		parts = d.speech.reasoning(r.ReasoningContent, viaContent, parts)
	} else {
		parts = d.speech.detailed(r, parts)
	}
	text := plainText(c.Delta.Content) + c.Delta.Refusal
	parts = d.speech.content(text, parts)
	if len(c.Delta.ToolCalls) > 0 {
		parts = d.speech.end(parts)
	}
	for _, t := range c.Delta.ToolCalls {
		parts = d.calls.delta(t, parts)
	}
	d.heard = d.heard || len(parts) > 0
	d.count(c.Usage)
	if r := stopReason(c.FinishReason); r != session.StopNone {
		d.stop = r
	}
	return parts
}

// learn makes a template of a chunk that is nothing but a piece of text or of reasoning.
func (d *decoder) learn(data []byte, c chunk, ch choice) {
	r := ch.Delta
	if len(c.Choices) != 1 || c.Usage != nil || ch.Usage != nil || ch.FinishReason != "" ||
		len(r.ToolCalls) != 0 || len(r.ReasoningDetails) != 0 || r.Reasoning != "" || r.Refusal != "" {
		return
	}
	content := plainText(r.Content)
	switch {
	case r.ReasoningContent == "" && content != "":
		d.fast.Learn(data, `"content":"`, content, contentField)
	case content == "" && r.ReasoningContent != "":
		d.fast.Learn(data, `"reasoning_content":"`, r.ReasoningContent, reasoningField)
	}
}

func (d *decoder) count(u *usage) {
	if u != nil && (u.Prompt > 0 || u.Completion > 0) { // some servers send zeros until the end
		d.usage = u
	}
}

func (d *decoder) progress() httpcall.Progress {
	if d.stop != session.StopNone {
		return httpcall.Stopped
	}
	return httpcall.Open
}

// done takes "[DONE]", which stands for a stop reason when none was given. Without any
// answer before it, it is not believed.
func (d *decoder) done() httpcall.Progress {
	if d.stop == session.StopNone && !d.heard {
		return httpcall.Open
	}
	if d.stop == session.StopNone {
		d.stop = session.StopEnd
	}
	return httpcall.Over
}

// End implements [httpcall.Decoder].
func (d *decoder) End(parts []provider.Part) []provider.Part {
	parts = d.speech.end(parts)
	parts = d.calls.end(d.stop == session.StopLength, parts)
	if d.usage != nil {
		parts = append(parts, provider.Part{Kind: provider.UsageReport, Usage: d.usage.count()})
	}
	finish := provider.Part{Kind: provider.Finish, Stop: d.stop}
	if len(d.calls.list) > 0 && d.stop == session.StopEnd {
		finish.Stop = session.StopToolUse // many servers say "stop" after calls too
	}
	if len(d.calls.list) == 0 && d.stop == session.StopToolUse {
		finish.Stop = session.StopEnd // and some "tool_calls" without any
	}
	if d.answered != d.model {
		finish.ResponseModel = d.answered
	}
	return append(parts, finish)
}

// stopReason maps a finish_reason; null and "" are no reason.
func stopReason(s string) session.StopReason {
	switch s {
	case "":
		return session.StopNone
	case "length", "max_tokens", "model_length":
		return session.StopLength
	case "tool_calls", "function_call":
		return session.StopToolUse
	case "content_filter":
		return session.StopRefusal
	}
	return session.StopEnd
}

func (u *usage) count() session.Usage {
	cached := max(u.PromptDetails.Cached, u.CacheHit)
	return session.Usage{
		Input:      tokens(u.Prompt - cached - u.PromptDetails.CacheWrite),
		Output:     tokens(u.Completion),
		CacheRead:  tokens(cached),
		CacheWrite: tokens(u.PromptDetails.CacheWrite),
		Reasoning:  tokens(u.CompletionDetails.Reasoning),
	}
}

// tokens turns a number of the wire into a count that can be added up.
func tokens(n float64) int64 { return int64(min(max(n, 0), 1<<40)) }

// plainText returns the text of a content field: a string, or a list of parts that have one.
func plainText(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	var s string
	if raw[0] == '"' {
		_ = json.Unmarshal(raw, &s) // valid, because the chunk was
		return s
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts) // what is no list of parts has no text
	for _, p := range parts {
		if p.Type == "text" {
			s += p.Text
		}
	}
	return s
}
