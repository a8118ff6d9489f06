// Package piview projects sessions into the words of pi's protocol version 1. It is pure:
// what a client sees is a function of the events, so a reconnect, a second client and a
// restart all show the same. A snapshot taken at one event, with the progress of the events
// after it, equals the snapshot taken after them (SPEC 7.2 says how a client adds them up).
package piview

import (
	"encoding/base64"

	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
)

// Images returns the bytes of an image, or false when it is not to be shown. It is safe for
// concurrent use.
type Images func(session.Image) ([]byte, bool)

// Item projects one item of the transcript (SPEC 2.4).
func Item(item session.Item, images Images) piwire.Item {
	switch i := item.(type) {
	case *session.User:
		return &piwire.UserItem{ID: string(i.ID), Content: content(i.Blocks, images), Timestamp: piwire.ClampCount(i.At)}
	case *session.Assistant:
		return assistant(i)
	case *session.Tool:
		return tool(i, images)
	}
	return nil
}

func assistant(a *session.Assistant) *piwire.AssistantItem {
	item := &piwire.AssistantItem{
		ID: string(a.ID), Content: make([]piwire.Block, 0, len(a.Blocks)), Model: Model(a.Model),
		ResponseModel: a.ResponseModel, Usage: usage(a.Usage), Timestamp: piwire.ClampCount(a.At),
	}
	for _, b := range a.Blocks {
		item.Content = append(item.Content, assistantBlock(b))
	}
	switch a.Status {
	case session.Streaming:
		item.Status = piwire.AssistantStreaming
	case session.Complete:
		item.Status, item.StopReason = piwire.AssistantComplete, stopReason(a.Stop)
	case session.Failed:
		item.Status, item.StopReason = piwire.AssistantError, piwire.StopError
	case session.Aborted:
		item.Status, item.StopReason = piwire.AssistantAborted, piwire.StopAborted
	}
	if a.Error != "" && (a.Status == session.Failed || a.Status == session.Aborted) {
		item.ErrorMessage = &a.Error
	}
	return item
}

func assistantBlock(b session.Block) piwire.Block {
	switch b := b.(type) {
	case session.Text:
		return &piwire.Text{Text: b.Text}
	case session.Reasoning:
		t := &piwire.Thinking{Thinking: b.Text}
		if b.Redacted {
			t.Redacted = &b.Redacted
		}
		return t
	case session.ToolCall:
		return &piwire.ToolCall{
			ToolCallID: string(b.Call), ToolName: named(b.Name),
			Input: input(b.Input, b.Complete, piwire.ToolCallLevels),
		}
	case session.Image:
	}
	return &piwire.Text{} // an answer has no images
}

// maxParsed is how many bytes of arguments are shown as the value that they are. Larger ones
// are shown as their text: as a value they could take more room on the wire than here.
const maxParsed = 1 << 20

// input is a call's arguments. While they stream in they are the JSON text so far, as a
// string, so that a client can go on appending to it (trap 43).
func input(text string, complete bool, levels int) piwire.Value {
	switch {
	case text == "" && complete:
		text = "{}"
	case text == "":
		return piwire.Null()
	case !complete || len(text) > maxParsed:
		return piwire.TextValue(text)
	}
	v, err := piwire.ValueFromJSON([]byte(text), levels)
	if err != nil {
		return piwire.TextValue(text)
	}
	return v
}

func tool(t *session.Tool, images Images) *piwire.ToolItem {
	item := &piwire.ToolItem{
		ID: string(t.ID), ToolCallID: string(t.Call), ToolName: named(t.Name),
		Input: input(t.Input, true, piwire.ToolItemLevels), Timestamp: piwire.ClampCount(t.At),
	}
	if t.Output != "" {
		item.Content = append(item.Content, &piwire.Text{Text: t.Output})
	}
	for _, i := range t.Images {
		item.Content = append(item.Content, image(i, images))
	}
	if t.Details != nil {
		if v, err := piwire.ValueFromJSON(t.Details, piwire.ToolItemLevels); err == nil {
			item.Details = v
		}
	}
	switch t.Status {
	case session.Streaming:
		item.Status = piwire.ToolRunning
	case session.Complete:
		item.Status = piwire.ToolComplete
	case session.Failed, session.Aborted:
		item.Status = piwire.ToolError
	}
	return item
}

func content(blocks []session.Block, images Images) []piwire.Block {
	out := make([]piwire.Block, 0, len(blocks))
	for _, b := range blocks {
		switch b := b.(type) {
		case session.Text:
			out = append(out, &piwire.Text{Text: b.Text})
		case session.Image:
			out = append(out, image(b, images))
		case session.Reasoning, session.ToolCall: // not in a user item
		}
	}
	return out
}

func image(i session.Image, images Images) piwire.Block {
	data, ok := images(i)
	if !ok {
		return &piwire.Text{Text: "[image left out: " + i.MIME + "]"}
	}
	return &piwire.Image{Data: base64.StdEncoding.EncodeToString(data), MimeType: i.MIME}
}

// named gives what a provider called nothing a name, since the wire demands one.
func named(name string) string {
	if name == "" {
		return "unknown"
	}
	return name
}

func stopReason(s session.StopReason) piwire.StopReason {
	switch s {
	case session.StopLength:
		return piwire.StopLength
	case session.StopToolUse:
		return piwire.StopToolUse
	case session.StopNone, session.StopEnd, session.StopRefusal:
	}
	return piwire.StopStop
}

func usage(u *session.Usage) *piwire.Usage {
	if u == nil {
		return nil
	}
	w := &piwire.Usage{
		Input: piwire.ClampCount(u.Input), Output: piwire.ClampCount(u.Output),
		CacheRead: piwire.ClampCount(u.CacheRead), CacheWrite: piwire.ClampCount(u.CacheWrite),
		TotalTokens: piwire.ClampCount(u.Total()),
		Cost: piwire.UsageCost{
			Input: money(u.Cost.Input), Output: money(u.Cost.Output),
			CacheRead: money(u.Cost.CacheRead), CacheWrite: money(u.Cost.CacheWrite), Total: money(u.Cost.Total()),
		},
	}
	if u.Reasoning > 0 {
		n := piwire.ClampCount(u.Reasoning)
		w.Reasoning = &n
	}
	return w
}

// money keeps a sum of money within what the wire can carry: finite and not negative.
func money(v float64) float64 {
	if !(v >= 0 && v <= piwire.MaxCount) {
		return 0
	}
	return v
}
