package transcript

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/internal/session"
)

// maxImportDetails bounds the details of one tool result, in bytes.
const maxImportDetails = 64 << 10

// user adds a message. Items are called as package session calls them.
func (b *importer) user(blocks []session.Block, at int64) {
	u := &session.User{At: at, Steer: b.open}
	for _, block := range blocks {
		switch block.(type) {
		case session.Text, session.Image:
			u.Blocks = append(u.Blocks, block)
		case session.Reasoning, session.ToolCall:
			b.lose("block where it cannot be", 1)
		}
	}
	if !b.open {
		b.begin()
	}
	b.users++
	u.ID, u.Run = session.ItemID(fmt.Sprintf("u%d", b.users)), b.run
	b.out.Items = append(b.out.Items, u)
}

// begin begins a run.
func (b *importer) begin() {
	b.run++
	b.pass = 0
}

func (b *importer) assistant(m piMessage, at int64) {
	if b.run == 0 {
		b.begin()
	}
	b.pass++
	a := &session.Assistant{
		ID: session.ItemID(fmt.Sprintf("a%d-%d", b.run, b.pass)), Run: b.run, Pass: b.pass, At: at,
		Model: session.ModelRef{Provider: clean(m.Provider), ID: clean(m.Model)}, ResponseModel: clean(m.ResponseModel),
		Usage: m.Usage.usage(), Error: clean(m.ErrorMessage),
	}
	a.Status, a.Stop = stopOf(m.StopReason)
	b.ids, b.done = map[string]session.CallID{}, map[session.CallID]*session.Tool{}
	for _, block := range b.content(m.Content) {
		switch block := block.(type) {
		case session.ToolCall:
			id := session.NewCallID(b.run, b.pass, len(b.calls))
			b.ids[string(block.Call)] = id
			block.Call = id
			b.calls = append(b.calls, block)
			a.Blocks = append(a.Blocks, block)
		case session.Text, session.Reasoning:
			a.Blocks = append(a.Blocks, block)
		case session.Image:
			b.lose("block where it cannot be", 1)
		}
	}
	b.open = len(b.calls) > 0
	if a.Usage != nil {
		b.out.Head.Usage = b.out.Head.Usage.Add(*a.Usage)
	}
	b.out.Items = append(b.out.Items, a)
}

func stopOf(reason string) (session.Status, session.StopReason) {
	switch reason {
	case "error":
		return session.Failed, session.StopNone
	case "aborted":
		return session.Aborted, session.StopNone
	case "length":
		return session.Complete, session.StopLength
	case "toolUse":
		return session.Complete, session.StopToolUse
	}
	return session.Complete, session.StopEnd
}

// usage is nil when nothing was counted. Numbers that make no sense count as 0.
func (u *usageLine) usage() *session.Usage {
	if u == nil {
		return nil
	}
	n := func(v int64) int64 { return min(max(v, 0), 1<<40) }
	c := func(v float64) float64 { return min(max(v, 0), 1e9) }
	got := session.Usage{
		Input: n(u.Input), Output: n(u.Output), CacheRead: n(u.CacheRead), CacheWrite: n(u.CacheWrite), Reasoning: n(u.Reasoning),
		Cost: session.Cost{Input: c(u.Cost.Input), Output: c(u.Cost.Output), CacheRead: c(u.Cost.CacheRead), CacheWrite: c(u.Cost.CacheWrite)},
	}
	if got == (session.Usage{}) {
		return nil
	}
	return &got
}

// result keeps the result of a call until all are in. One without its call is lost.
func (b *importer) result(m piMessage, at int64) {
	id, ok := b.ids[m.ToolCallID]
	if !ok || b.done[id] != nil {
		b.lose("result without a call", 1)
		return
	}
	t := &session.Tool{Call: id, Status: session.Complete, At: at}
	if m.IsError != nil && *m.IsError {
		t.Status = session.Failed
	}
	var texts []string
	for _, block := range b.content(m.Content) {
		switch block := block.(type) {
		case session.Text:
			texts = append(texts, block.Text)
		case session.Image:
			t.Images = append(t.Images, block)
		case session.Reasoning, session.ToolCall:
			b.lose("block where it cannot be", 1)
		}
	}
	t.Output = strings.Join(texts, "\n")
	if s := input(m.Details); len(m.Details) > 0 && s != "null" {
		if len(s) <= maxImportDetails {
			t.Details = json.RawMessage(s)
		} else {
			b.lose("details of a result", 1)
		}
	}
	b.done[id] = t
}

// flush adds the results of the last answer in the order of its calls.
func (b *importer) flush() {
	for _, c := range b.calls {
		t := b.done[c.Call]
		if t == nil {
			t = &session.Tool{Call: c.Call, Status: session.Failed, Output: "The file has no result of this call."}
			b.lose("call without a result", 1)
		}
		t.ID, t.Run, t.Name, t.Input = session.ItemID("t"+strings.TrimPrefix(string(c.Call), "call")), b.run, c.Name, c.Input
		b.out.Items = append(b.out.Items, t)
	}
	b.calls, b.ids, b.done = nil, nil, nil
}
