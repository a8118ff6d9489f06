package client

import (
	"slices"
	"strings"

	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// answer moves the answer in progress past an event.
func (v *View) answer(e *roostv1.Event) {
	a := v.Answer().GetAssistant()
	if a == nil {
		return
	}
	switch k := e.Kind.(type) {
	case *roostv1.Event_BlockStarted:
		a.Blocks = append(a.Blocks, k.BlockStarted.Block)
	case *roostv1.Event_Delta:
		v.grow(a, int(k.Delta.Index), k.Delta.Text)
	case *roostv1.Event_BlockEnded:
		if i := int(k.BlockEnded.Index); i < len(a.Blocks) {
			if r := a.Blocks[i].GetReasoning(); r != nil {
				r.Redacted = k.BlockEnded.Redacted
			}
			if c := a.Blocks[i].GetToolCall(); c != nil {
				c.Complete = true
			}
		}
	case *roostv1.Event_PassEnded:
		p := k.PassEnded
		a.Status, a.Stop, a.Error, a.ResponseModel, a.Usage = p.Status, p.Stop, p.Error, p.ResponseModel, p.Usage
		v.Session.Run.Retry = nil
		v.Session.Usage = sum(v.Session.Usage, p.Usage)
	}
}

// grow adds text to block i. A builder's string shares its memory, so a long answer is not
// copied with each delta.
func (v *View) grow(a *roostv1.Assistant, i int, text string) {
	if i >= len(a.Blocks) {
		return
	}
	for len(v.texts) < len(a.Blocks) {
		v.texts = append(v.texts, nil)
	}
	b := v.texts[i]
	if b == nil {
		b = new(strings.Builder)
		b.WriteString(BlockText(a.Blocks[i]))
		v.texts[i] = b
	}
	b.WriteString(text)
	switch k := a.Blocks[i].Kind.(type) {
	case *roostv1.Block_Text:
		k.Text.Text = b.String()
	case *roostv1.Block_Reasoning:
		k.Reasoning.Text = b.String()
	case *roostv1.Block_ToolCall:
		k.ToolCall.Input = b.String()
	}
}

// BlockText returns what a block says: its text, reasoning, or the JSON of a call's input.
func BlockText(b *roostv1.Block) string {
	switch k := b.GetKind().(type) {
	case *roostv1.Block_Text:
		return k.Text.GetText()
	case *roostv1.Block_Reasoning:
		return k.Reasoning.GetText()
	case *roostv1.Block_ToolCall:
		return k.ToolCall.GetInput()
	}
	return ""
}

func sum(a, b *roostv1.Usage) *roostv1.Usage {
	if b == nil {
		return a
	}
	return &roostv1.Usage{
		Input: a.GetInput() + b.Input, Output: a.GetOutput() + b.Output,
		CacheRead: a.GetCacheRead() + b.CacheRead, CacheWrite: a.GetCacheWrite() + b.CacheWrite,
		Reasoning: a.GetReasoning() + b.Reasoning, Cost: a.GetCost() + b.Cost,
	}
}

// startTool adds the item of a call of the last answer.
func (v *View) startTool(started *roostv1.ToolStarted, e *roostv1.Event) {
	t := &roostv1.Tool{Host: started.Host, Status: roostv1.Status_STATUS_STREAMING, Query: started.Query}
	if c := v.call(started.ItemId); c != nil {
		t.Name, t.Input = c.Name, c.Input
	}
	v.add(&roostv1.Item{Id: started.ItemId, At: e.At, Kind: &roostv1.Item_Tool{Tool: t}})
}

func (v *View) call(id string) *roostv1.ToolCall {
	for _, i := range slices.Backward(v.Items) {
		a := i.GetAssistant()
		if a == nil {
			continue
		}
		for _, b := range a.Blocks {
			if c := b.GetToolCall(); c != nil && c.Id == id {
				return c
			}
		}
		return nil
	}
	return nil
}

// maxOutput bounds the output of a running tool, in bytes. Past it the last half is kept,
// from the beginning of a line: the server does the same, so a view equals a Reset.
const maxOutput = 100 << 10

func (v *View) toolOutput(e *roostv1.ToolOutput) {
	t := v.Item(e.ItemId).GetTool()
	if t == nil || t.Status != roostv1.Status_STATUS_STREAMING {
		return
	}
	if v.output == nil {
		v.output = make(map[string]*strings.Builder)
	}
	b := v.output[e.ItemId]
	if b == nil || e.Replace || b.Len()+len(e.Text) > maxOutput {
		b = new(strings.Builder)
		if !e.Replace {
			b.WriteString(tail(t.Output, maxOutput/2))
		}
		v.output[e.ItemId] = b
	}
	b.WriteString(e.Text)
	t.Output = b.String()
}

// tail returns the last whole lines of s within limit bytes, or the end of its last line.
func tail(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	s = strings.ToValidUTF8(s[len(s)-limit:], "")
	if _, rest, ok := strings.Cut(s, "\n"); ok {
		return rest
	}
	return s
}
