package piview

import (
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
)

// Stream projects the events of one session into progress, for one client that attached at
// some event. It remembers only how much of the streaming item the client has been told,
// because an item as of any event is a prefix of the item as it is now. The zero Stream
// belongs to an idle session. It is not safe for concurrent use.
type Stream struct {
	live  session.ItemID // the assistant item that streams in
	kinds []piwire.DeltaKind
	told  []int  // bytes of each block that the client has
	ended []bool // calls whose input is complete
}

// Reset tells the stream that the client has got a snapshot of s.
func (v *Stream) Reset(s *session.State) {
	*v = Stream{}
	if s.Run == nil || s.Run.Live == nil {
		return
	}
	v.live = s.Run.Live.ID
	for _, b := range s.Run.Live.Blocks {
		call, _ := b.(session.ToolCall)
		v.add(b, len(session.BlockText(b)), call.Complete)
	}
}

func (v *Stream) add(b session.Block, told int, ended bool) {
	kind := piwire.DeltaText
	switch b.(type) {
	case session.Reasoning:
		kind = piwire.DeltaThinking
	case session.ToolCall:
		kind = piwire.DeltaToolCall
	case session.Text, session.Image:
	}
	v.kinds, v.told, v.ended = append(v.kinds, kind), append(v.told, told), append(v.ended, ended)
}

// Due says whether a client needs a snapshot.
type Due uint8

// The values of Due, ascending.
const (
	NotDue Due = iota // progress has said it all
	Useful            // an item has ended, for clients that only look at snapshots
	Needed            // something changed that progress has no words for
)

// Project returns the progress of records, of which after is the state at the end, and
// whether a snapshot should follow. Adjacent deltas of a block are merged.
func (v *Stream) Project(records []session.Record, after *session.State, images Images) ([]piwire.Progress, Due) {
	p := projection{stream: v, records: records, after: after, images: images}
	for i, r := range records {
		p.record(i, r)
	}
	p.flush()
	return p.out, p.due
}

// projection is one call of Project.
type projection struct {
	stream  *Stream
	records []session.Record
	after   *session.State
	images  Images
	out     []piwire.Progress
	due     Due

	delta strings.Builder // a delta that may still grow
	block int             // its block
}

func (p *projection) record(i int, r session.Record) {
	if d, ok := r.Event.(session.Delta); ok {
		p.addDelta(d)
		return
	}
	p.flush()
	v := p.stream
	switch e := r.Event.(type) {
	case session.RunStarted:
		p.started(e.Item)
	case session.SteerDelivered:
		p.started(e.Item)
	case session.PassStarted:
		*v = Stream{live: e.Item}
		p.out = append(p.out, &piwire.ItemStarted{Item: Item(p.asTold(), p.images)})
	case session.BlockStarted:
		v.add(e.Block, 0, false)
		p.updated()
	case session.BlockEnded:
		v.ended[e.Index] = true
		p.updated()
	case session.PassEnded:
		p.finished(v.live)
		*v = Stream{}
	case session.ToolStarted:
		p.toolStarted(e.Call)
	case session.ToolOutput:
		p.toolOutput(i, e.Call)
	case session.ToolEnded:
		if item := p.find(func(i session.Item) bool { t, ok := i.(*session.Tool); return ok && t.Call == e.Call }); item != nil {
			p.out = append(p.out, &piwire.ItemFinished{Item: Item(item, p.images)})
		}
	case session.ItemsCopied, session.Rewound, session.NoteAdded, session.CompactionStarted, session.CompactionEnded,
		session.ModeSet, session.QueryAnswered, session.ToolIssued, session.FrontSet, session.TakenUp,
		session.Created, session.Renamed, session.ModelSet, session.ThinkingSet, session.SteerQueued,
		session.PassInterrupted, session.PassResumed, session.AbortRequested, session.RunEnded, session.Delta:
	}
	p.due = max(p.due, due(r.Event))
}

// Rewritten reports whether records change the transcript otherwise than by additions. Progress has no
// words for that, and what follows in the same records would stand behind items that are gone, so a
// client is told with a snapshot only.
func Rewritten(records []session.Record) bool {
	return slices.ContainsFunc(records, func(r session.Record) bool {
		switch r.Event.(type) {
		case session.ItemsCopied, session.Rewound:
			return true
		}
		return false
	})
}

// due says what an event changes that progress has no words for: the phase, the queue, the
// settings.
func due(e session.Event) Due {
	switch e.(type) {
	case session.ItemsCopied, session.Rewound, session.CompactionStarted, session.CompactionEnded,
		session.Created, session.Renamed, session.ModelSet, session.ThinkingSet, session.RunStarted,
		session.SteerQueued, session.SteerDelivered, session.PassInterrupted, session.PassResumed,
		session.AbortRequested, session.RunEnded:
		return Needed
	case session.PassEnded, session.ToolEnded:
		return Useful
	}
	return NotDue
}

func (p *projection) addDelta(d session.Delta) {
	if p.delta.Len() > 0 && p.block != d.Index {
		p.flush()
	}
	p.block = d.Index
	p.delta.WriteString(d.Text)
}

func (p *projection) flush() {
	if p.delta.Len() == 0 {
		return
	}
	v := p.stream
	p.out = append(p.out, &piwire.AssistantDelta{
		MessageID: string(v.live), ContentIndex: int64(p.block), Kind: v.kinds[p.block], Delta: p.delta.String(),
	})
	v.told[p.block] += p.delta.Len()
	p.delta.Reset()
}

func (p *projection) started(id session.ItemID) {
	if item := p.byID(id); item != nil {
		p.out = append(p.out, &piwire.ItemStarted{Item: Item(item, p.images)})
	}
}

func (p *projection) finished(id session.ItemID) {
	if item := p.byID(id); item != nil {
		p.out = append(p.out, &piwire.ItemFinished{Item: Item(item, p.images)})
	}
}

func (p *projection) updated() {
	p.out = append(p.out, &piwire.ItemUpdated{Item: Item(p.asTold(), p.images)})
}

// asTold returns the streaming item as far as the client has been told.
func (p *projection) asTold() *session.Assistant {
	v := p.stream
	now, _ := p.byID(v.live).(*session.Assistant)
	if now == nil {
		return &session.Assistant{ID: v.live, Model: p.after.Model}
	}
	item := *now
	item.Status, item.Stop, item.Error, item.Usage, item.ResponseModel = session.Streaming, session.StopNone, "", nil, ""
	item.Blocks = make([]session.Block, len(v.kinds))
	for i := range item.Blocks {
		switch b := now.Blocks[i].(type) {
		case session.Text:
			item.Blocks[i] = session.Text{Text: b.Text[:v.told[i]]}
		case session.Reasoning:
			item.Blocks[i] = session.Reasoning{Text: b.Text[:v.told[i]], Redacted: b.Redacted}
		case session.ToolCall:
			b.Input, b.Complete = b.Input[:v.told[i]], v.ended[i]
			item.Blocks[i] = b
		case session.Image:
		}
	}
	return &item
}

// toolStarted shows a tool as it was before any output.
func (p *projection) toolStarted(call session.CallID) {
	item := p.tool(call)
	if item == nil {
		return
	}
	fresh := *item
	fresh.Status, fresh.Output, fresh.Images, fresh.Details = session.Streaming, "", nil, nil
	p.out = append(p.out, &piwire.ItemStarted{Item: Item(&fresh, p.images)})
}

// toolOutput shows the output of a running tool, once for all the output in the records: it
// replaces what was shown (trap 45), and what has ended is shown by its result.
func (p *projection) toolOutput(i int, call session.CallID) {
	for _, later := range p.records[i+1:] {
		switch e := later.Event.(type) {
		case session.ToolOutput:
			if e.Call == call {
				return
			}
		case session.ToolEnded:
			if e.Call == call {
				return
			}
		}
	}
	if item := p.tool(call); item != nil {
		p.out = append(p.out, &piwire.ItemUpdated{Item: Item(item, p.images)})
	}
}

func (p *projection) tool(call session.CallID) *session.Tool {
	t, _ := p.find(func(i session.Item) bool { t, ok := i.(*session.Tool); return ok && t.Call == call }).(*session.Tool)
	return t
}

func (p *projection) byID(id session.ItemID) session.Item {
	return p.find(func(i session.Item) bool { return i.ItemID() == id })
}

// find looks for an item from the end, where the items of recent events are.
func (p *projection) find(match func(session.Item) bool) session.Item {
	for _, i := range p.after.Unsettled() {
		if match(i) {
			return i
		}
	}
	for _, v := range slices.Backward(p.after.Settled) {
		if match(v) {
			return v
		}
	}
	return nil
}
