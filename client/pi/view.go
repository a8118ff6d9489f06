package pi

import (
	"encoding/json"
	"slices"

	"github.com/roost-dev/roost/internal/piwire"
)

// View is what a client shows of one session: the newest snapshot and the progress since
// (SPEC 7.2). It behaves like the published client's reducer, its oddities included. It is
// not safe for concurrent use.
type View struct {
	Snapshot *piwire.SessionSnapshot
	progress map[string]piwire.Item
	order    []string
	buffers  map[call]string // the JSON text of calls that stream in
}

type call struct {
	item  string
	index int64
}

// Reset forgets everything, as a new attachment does.
func (v *View) Reset() { *v = View{} }

// SetSnapshot takes a snapshot. One of a lower revision is ignored.
func (v *View) SetSnapshot(s *piwire.SessionSnapshot) {
	if v.Snapshot != nil && v.Snapshot.ID == s.ID && s.Revision < v.Snapshot.Revision {
		return
	}
	*v = View{Snapshot: s}
}

// Apply takes one step of progress.
func (v *View) Apply(p piwire.Progress) {
	switch p := p.(type) {
	case *piwire.ItemStarted:
		v.put(p.Item)
	case *piwire.ItemUpdated:
		v.put(p.Item)
	case *piwire.ItemFinished:
		v.put(p.Item)
		for c := range v.buffers {
			if c.item == ItemID(p.Item) {
				delete(v.buffers, c)
			}
		}
	case *piwire.AssistantDelta:
		v.delta(p)
	}
}

func (v *View) put(i piwire.Item) {
	if v.progress == nil {
		v.progress = make(map[string]piwire.Item)
	}
	id := ItemID(i)
	if _, ok := v.progress[id]; !ok {
		v.order = append(v.order, id)
	}
	v.progress[id] = i
}

// delta extends a block. A delta for an item or block that is not there is dropped.
func (v *View) delta(d *piwire.AssistantDelta) {
	item, ok := v.find(d.MessageID).(*piwire.AssistantItem)
	if !ok || d.ContentIndex >= int64(len(item.Content)) {
		return
	}
	var block piwire.Block
	switch b := item.Content[d.ContentIndex].(type) {
	case *piwire.Text:
		if d.Kind != piwire.DeltaText {
			return
		}
		block = &piwire.Text{Text: b.Text + d.Delta}
	case *piwire.Thinking:
		if d.Kind != piwire.DeltaThinking {
			return
		}
		block = &piwire.Thinking{Thinking: b.Thinking + d.Delta, Redacted: b.Redacted}
	case *piwire.ToolCall:
		if d.Kind != piwire.DeltaToolCall {
			return
		}
		block = &piwire.ToolCall{ToolCallID: b.ToolCallID, ToolName: b.ToolName, Input: v.input(call{d.MessageID, d.ContentIndex}, b.Input, d.Delta)}
	default:
		return
	}
	grown := *item
	grown.Content = slices.Clone(item.Content)
	grown.Content[d.ContentIndex] = block
	v.put(&grown)
}

// input is what a call's input looks like after a delta: parsed when it is complete, else the
// JSON text so far.
func (v *View) input(c call, shown piwire.Value, delta string) piwire.Value {
	if v.buffers == nil {
		v.buffers = make(map[call]string)
	}
	text, ok := v.buffers[c]
	if !ok {
		text, _ = shown.Text()
	}
	text += delta
	v.buffers[c] = text
	if json.Valid([]byte(text)) {
		if value, err := piwire.ValueFromJSON([]byte(text), piwire.ToolCallLevels); err == nil {
			return value
		}
	}
	return piwire.TextValue(text)
}

func (v *View) find(id string) piwire.Item {
	if i, ok := v.progress[id]; ok {
		return i
	}
	if v.Snapshot != nil {
		for _, v0 := range slices.Backward(v.Snapshot.Transcript) {
			if ItemID(v0) == id {
				return v0
			}
		}
	}
	return nil
}

// Transcript returns the items as they are to be shown, queued steers last.
func (v *View) Transcript() []piwire.Item {
	if v.Snapshot == nil {
		return nil
	}
	var items []piwire.Item
	shown := make(map[string]bool)
	add := func(i piwire.Item) {
		if id := ItemID(i); !shown[id] {
			shown[id] = true
			items = append(items, i)
		}
	}
	for _, i := range v.Snapshot.Transcript {
		if p, ok := v.progress[ItemID(i)]; ok {
			i = p
		}
		add(i)
	}
	for _, id := range v.order {
		add(v.progress[id])
	}
	for _, i := range v.Snapshot.QueuedSteer {
		add(i)
	}
	return items
}

// ItemID returns the id of an item that was decoded.
func ItemID(i piwire.Item) string {
	switch i := i.(type) {
	case *piwire.UserItem:
		return i.ID
	case *piwire.AssistantItem:
		return i.ID
	case *piwire.ToolItem:
		return i.ID
	}
	return ""
}
