package anthropic

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/provider"
)

// maxBlocks bounds the blocks of one answer; further ones are dropped.
const maxBlocks = 1024

// blocks are the content blocks of an answer, in order.
type blocks struct {
	list  []*open
	calls int
}

// open is a block that streams in, or one that is done.
type open struct {
	index     int
	kind      provider.PartKind // of its deltas: text, reasoning or call
	key       int               // of a call
	signature string
	args      strings.Builder
	initial   string // a call's whole input, when it came at the start
	done      bool
}

// start begins a block. Blocks of unknown types are left out.
func (bs *blocks) start(index int, b startBlock, parts []provider.Part) []provider.Part {
	switch b.Type {
	case "text":
		return bs.open(index, provider.TextDelta).delta(b.Text, parts)
	case "thinking":
		o := bs.open(index, provider.ReasoningDelta)
		o.signature = b.Signature
		return o.delta(b.Thinking, parts)
	case "redacted_thinking":
		return append(parts, provider.Part{Kind: provider.ReasoningEnd, Signature: b.Data, Redacted: true})
	case "tool_use":
		o := bs.open(index, provider.CallDelta)
		o.key = bs.calls
		bs.calls++
		if input := string(b.Input); input != "{}" && input != "null" {
			o.initial = strings.ToValidUTF8(input, "\uFFFD")
		}
		return append(parts, provider.Part{Kind: provider.CallStart, Key: o.key, Name: provider.ToolName(b.Name)})
	}
	return parts
}

func (bs *blocks) open(index int, kind provider.PartKind) *open {
	o := &open{index: index, kind: kind}
	if len(bs.list) < maxBlocks {
		bs.list = append(bs.list, o)
	}
	return o
}

// at returns the open block with an index. One that never began is begun when the delta's
// type says what it is, since some servers leave the start out.
func (bs *blocks) at(index int, deltaType string) *open {
	for _, v := range slices.Backward(bs.list) {
		if o := v; o.index == index && !o.done {
			return o
		}
	}
	switch deltaType {
	case "text_delta":
		return bs.open(index, provider.TextDelta)
	case "thinking_delta", "signature_delta":
		return bs.open(index, provider.ReasoningDelta)
	}
	return nil
}

// delta gives a piece of the block.
func (o *open) delta(piece string, parts []provider.Part) []provider.Part {
	if piece == "" || o.done {
		return parts
	}
	if o.kind == provider.CallDelta {
		o.args.WriteString(piece)
	}
	return append(parts, provider.Part{Kind: o.kind, Key: o.key, Text: piece})
}

// stop ends a block. A call whose input is not whole stays open until it is known whether
// the answer was cut: the API ends blocks that it cut, too.
func (bs *blocks) stop(index int, parts []provider.Part) []provider.Part {
	for _, o := range bs.list {
		if o.index != index || o.done {
			continue
		}
		if o.kind == provider.CallDelta && !o.whole() {
			continue
		}
		parts = o.close(parts)
	}
	return parts
}

// whole reports whether a call's input is complete JSON. No input at all is whole unless
// the answer is cut, which is not known yet.
func (o *open) whole() bool {
	if o.args.Len() == 0 {
		return o.initial != ""
	}
	return json.Valid([]byte(o.args.String()))
}

func (o *open) close(parts []provider.Part) []provider.Part {
	switch o.kind {
	case provider.ReasoningDelta:
		parts = append(parts, provider.Part{Kind: provider.ReasoningEnd, Signature: o.signature})
	case provider.CallDelta:
		if strings.TrimSpace(o.args.String()) == "" {
			parts = o.delta(cmp.Or(o.initial, "{}"), parts)
		}
		parts = append(parts, provider.Part{Kind: provider.CallEnd, Key: o.key})
	case provider.TextDelta, provider.ReasoningEnd, provider.CallStart, provider.CallEnd, provider.UsageReport, provider.Finish:
	}
	o.done = true
	return parts
}

// end closes what is open. When the answer was cut for its length, a call that is not
// whole gets no CallEnd, so that nobody runs it.
func (bs *blocks) end(cut bool, parts []provider.Part) []provider.Part {
	for _, o := range bs.list {
		if o.done || cut && o.kind == provider.CallDelta && !o.whole() {
			continue
		}
		parts = o.close(parts)
	}
	return parts
}
