package anthropic

import (
	"encoding/json"
	"errors"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/provider/httpcall"
	"github.com/roost-dev/roost/internal/provider/sse"
	"github.com/roost-dev/roost/internal/session"
)

// decoder reads one answer. It implements [httpcall.Decoder].
type decoder struct {
	model    string // as asked
	answered string // as the provider calls it
	fast     httpcall.Template
	learnt   *open // the block that the template's text belongs to
	blocks   blocks
	usage    session.Usage
	stop     session.StopReason
}

func newDecoder(model string) *decoder { return &decoder{model: model} }

// Decode implements [httpcall.Decoder].
func (d *decoder) Decode(e sse.Event, parts []provider.Part) ([]provider.Part, httpcall.Progress, error) {
	if s, ok := d.fast.Match(e.Data); ok && d.learnt != nil {
		return d.learnt.delta(s, parts), d.progress(), nil
	}
	var ev event
	if err := json.Unmarshal(e.Data, &ev); err != nil {
		// A field of an unexpected type is skipped, and the rest of the event counts.
		if _, odd := errors.AsType[*json.UnmarshalTypeError](err); !odd {
			return parts, d.progress(), provider.Errorf(provider.FaultProtocol, "it sent malformed JSON in its event stream")
		}
	}
	switch ev.Type {
	case "message_start":
		d.answered = ev.Message.Model
		parts = d.count(ev.Message.Usage, parts)
	case "content_block_start":
		d.learnt = nil // the same index may mean another block from here on
		parts = d.blocks.start(int(ev.Index), ev.ContentBlock, parts)
	case "content_block_delta":
		parts = d.delta(e.Data, ev, parts)
	case "content_block_stop":
		d.learnt = nil
		parts = d.blocks.stop(int(ev.Index), parts)
	case "message_delta":
		if r := stopReason(ev.Delta.StopReason); r != session.StopNone {
			d.stop = r
		}
		parts = d.count(ev.Usage, parts)
	case "message_stop":
		if d.stop != session.StopNone {
			return parts, httpcall.Over, nil
		}
		return parts, d.progress(), provider.Errorf(provider.FaultProtocol, "it ended the answer without saying why")
	case "error":
		return parts, d.progress(), httpcall.Failure(e.Data)
	}
	return parts, d.progress(), nil
}

// delta takes a piece of a block, and learns the form of its event.
func (d *decoder) delta(data []byte, ev event, parts []provider.Part) []provider.Part {
	b := d.blocks.at(int(ev.Index), ev.Delta.Type)
	if b == nil {
		return parts
	}
	field, piece := `"text":"`, ev.Delta.Text
	switch ev.Delta.Type {
	case "text_delta":
	case "thinking_delta":
		field, piece = `"thinking":"`, ev.Delta.Thinking
	case "input_json_delta":
		field, piece = `"partial_json":"`, ev.Delta.PartialJSON
	case "signature_delta":
		b.signature += ev.Delta.Signature
		return parts
	default: // citations and what may come: not part of the text
		return parts
	}
	d.learnt = b
	d.fast.Learn(data, field, piece, 0)
	return b.delta(piece, parts)
}

func (d *decoder) count(u *usage, parts []provider.Part) []provider.Part {
	if u == nil {
		return parts
	}
	set := func(to *int64, n *float64) {
		if n != nil && *n > 0 {
			*to = int64(min(*n, 1<<40))
		}
	}
	before := d.usage
	set(&d.usage.Input, u.Input)
	set(&d.usage.Output, u.Output)
	set(&d.usage.CacheRead, u.CacheRead)
	set(&d.usage.CacheWrite, u.CacheWrite)
	if d.usage == before {
		return parts
	}
	return append(parts, provider.Part{Kind: provider.UsageReport, Usage: d.usage})
}

func (d *decoder) progress() httpcall.Progress {
	if d.stop != session.StopNone {
		return httpcall.Stopped
	}
	return httpcall.Open
}

// End implements [httpcall.Decoder].
func (d *decoder) End(parts []provider.Part) []provider.Part {
	parts = d.blocks.end(d.stop == session.StopLength, parts)
	finish := provider.Part{Kind: provider.Finish, Stop: d.stop}
	if d.answered != d.model {
		finish.ResponseModel = d.answered
	}
	return append(parts, finish)
}

// stopReason maps a stop_reason; null and "" are no reason.
func stopReason(s string) session.StopReason {
	switch s {
	case "":
		return session.StopNone
	case "max_tokens", "model_context_window_exceeded":
		return session.StopLength
	case "tool_use":
		return session.StopToolUse
	case "refusal":
		return session.StopRefusal
	}
	return session.StopEnd // end_turn, stop_sequence; pause_turn needs tools that are never offered
}
