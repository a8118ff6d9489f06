// Package controlview projects sessions into the messages of roost's own API. It consists of
// pure functions: [Event] needs the record alone, and a client that folds events into what
// [Session] and [Items] showed it has what they show at any later point.
//
//	State ──Session, Items──▶ Reset
//	Record ─────Events──────▶ Events
package controlview

import (
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// maxDelta is up to which size, in bytes, adjacent deltas are merged.
const maxDelta = 64 << 10

// Events projects records, in order. Adjacent deltas of a block become one, so the result may
// be shorter.
func Events(records []session.Record) []*roostv1.Event {
	out := make([]*roostv1.Event, 0, len(records))
	for i := 0; i < len(records); {
		n := adjacent(records[i:])
		if n < 2 {
			out = append(out, Event(records[i]))
			i++
			continue
		}
		out = append(out, merge(records[i:i+n]))
		i += n
	}
	return out
}

// adjacent returns how many of the first records are deltas that fit into one.
func adjacent(records []session.Record) int {
	first, ok := records[0].Event.(session.Delta)
	if !ok {
		return 0
	}
	n, size := 1, len(first.Text)
	for _, r := range records[1:] {
		next, ok := r.Event.(session.Delta)
		if !ok || next.Index != first.Index || size+len(next.Text) > maxDelta {
			break
		}
		size += len(next.Text)
		n++
	}
	return n
}

func merge(records []session.Record) *roostv1.Event {
	var b strings.Builder
	last := records[len(records)-1]
	index := 0
	for _, r := range records {
		if d, ok := r.Event.(session.Delta); ok {
			index = d.Index
			b.WriteString(d.Text)
		}
	}
	return Event(session.Record{Seq: last.Seq, At: last.At, Event: session.Delta{Index: index, Text: b.String()}})
}

// Event projects one record. It panics on an event it does not know, which a test excludes;
// one
// that concerns nobody outside has no kind, and only moves the position.
func Event(r session.Record) *roostv1.Event {
	w := &roostv1.Event{Seq: uint64(r.Seq), At: stamp(r.At)}
	switch e := r.Event.(type) {
	case session.Delta:
		w.Kind = &roostv1.Event_Delta{Delta: &roostv1.Delta{Index: uint32(e.Index), Text: text(e.Text)}}
	case session.Created:
		var s session.State
		s.Apply(session.Record{Seq: 1, At: r.At, Event: e})
		w.Kind = &roostv1.Event_Created{Created: &roostv1.SessionCreated{Session: Session(&s)}}
	case session.Renamed:
		w.Kind = &roostv1.Event_Renamed{Renamed: &roostv1.Renamed{Name: text(e.Name)}}
	case session.ModelSet:
		w.Kind = &roostv1.Event_SettingsChanged{SettingsChanged: &roostv1.SettingsChanged{
			Model: model(e.Model), Thinking: string(e.Thinking),
		}}
	case session.ThinkingSet:
		w.Kind = &roostv1.Event_SettingsChanged{SettingsChanged: &roostv1.SettingsChanged{Thinking: string(e.Thinking)}}
	case session.ModeSet:
		w.Kind = &roostv1.Event_ModeChanged{ModeChanged: &roostv1.ModeChanged{Mode: mode(e.Mode)}}
	case session.ItemsCopied, session.Rewound, session.NoteAdded, session.CompactionStarted, session.CompactionEnded:
		contextEvent(w, r)
	case session.RunStarted, session.SteerQueued, session.SteerDelivered, session.AbortRequested, session.RunEnded:
		runEvent(w, r)
	case session.PassStarted, session.BlockStarted, session.BlockEnded,
		session.PassInterrupted, session.PassResumed, session.PassEnded:
		passEvent(w, r)
	case session.ToolStarted, session.ToolOutput, session.ToolEnded, session.QueryAnswered:
		toolEvent(w, r.Event)
	case session.ToolIssued, session.FrontSet, session.TakenUp:
	default:
		panic(fmt.Sprintf("controlview: unknown event %T", e))
	}
	return w
}

func contextEvent(w *roostv1.Event, r session.Record) {
	switch e := r.Event.(type) {
	case session.ItemsCopied:
		copied := &roostv1.ItemsCopied{LastRun: uint32(e.LastRun)}
		for _, i := range e.Items {
			copied.Items = append(copied.Items, Item(i))
		}
		w.Kind = &roostv1.Event_ItemsCopied{ItemsCopied: copied}
	case session.Rewound:
		w.Kind = &roostv1.Event_Rewound{Rewound: &roostv1.Rewound{ItemCount: uint32(e.Items)}}
	case session.NoteAdded:
		w.Kind = &roostv1.Event_NoteAdded{NoteAdded: &roostv1.NoteAdded{
			Item: Item(&session.User{ID: e.Item, Note: e.Note, Blocks: []session.Block{session.Text{Text: e.Text}}, At: r.At}),
		}}
	case session.CompactionStarted:
		w.Kind = &roostv1.Event_CompactionStarted{CompactionStarted: &roostv1.CompactionStarted{}}
	case session.CompactionEnded:
		w.Kind = &roostv1.Event_CompactionEnded{CompactionEnded: &roostv1.CompactionEnded{
			Summary: text(e.Summary), Error: text(e.Error), Usage: usage(e.Usage),
		}}
	}
}

func runEvent(w *roostv1.Event, r session.Record) {
	switch e := r.Event.(type) {
	case session.RunStarted:
		started := &roostv1.RunStarted{Run: uint32(e.Run)}
		if e.Item != "" {
			started.Item = Item(&session.User{ID: e.Item, Run: e.Run, Prompt: e.Prompt, Blocks: e.Blocks, At: r.At})
		}
		w.Kind = &roostv1.Event_RunStarted{RunStarted: started}
	case session.SteerQueued:
		w.Kind = &roostv1.Event_SteerQueued{SteerQueued: &roostv1.SteerQueued{
			Item: Item(&session.User{ID: e.Item, Prompt: e.Prompt, Steer: true, Blocks: e.Blocks, At: r.At}),
		}}
	case session.SteerDelivered:
		w.Kind = &roostv1.Event_SteerDelivered{SteerDelivered: &roostv1.SteerDelivered{ItemId: string(e.Item)}}
	case session.AbortRequested:
		w.Kind = &roostv1.Event_AbortRequested{AbortRequested: &roostv1.AbortRequested{}}
	case session.RunEnded:
		w.Kind = &roostv1.Event_RunEnded{RunEnded: &roostv1.RunEnded{Outcome: outcome(e.Outcome), Error: text(e.Error)}}
	}
}

func passEvent(w *roostv1.Event, r session.Record) {
	switch e := r.Event.(type) {
	case session.PassStarted:
		w.Kind = &roostv1.Event_PassStarted{PassStarted: &roostv1.PassStarted{
			Item: Item(&session.Assistant{ID: e.Item, Pass: e.Pass, Model: e.Model, At: r.At}),
		}}
	case session.BlockStarted:
		w.Kind = &roostv1.Event_BlockStarted{BlockStarted: &roostv1.BlockStarted{Block: block(e.Block)}}
	case session.BlockEnded:
		w.Kind = &roostv1.Event_BlockEnded{BlockEnded: &roostv1.BlockEnded{Index: uint32(e.Index), Redacted: e.Redacted}}
	case session.PassInterrupted:
		w.Kind = &roostv1.Event_Retrying{Retrying: &roostv1.Retrying{
			Retry: &roostv1.Retry{Reason: text(e.Reason), ResumeAt: stamp(e.ResumeAt)},
		}}
	case session.PassResumed:
		w.Kind = &roostv1.Event_Resumed{Resumed: &roostv1.Resumed{}}
	case session.PassEnded:
		w.Kind = &roostv1.Event_PassEnded{PassEnded: &roostv1.PassEnded{
			Status: status(e.Status), Stop: stopReason(e.Stop), Error: text(e.Error),
			ResponseModel: text(e.ResponseModel), Usage: usage(e.Usage),
		}}
	}
}

func toolEvent(w *roostv1.Event, event session.Event) {
	switch e := event.(type) {
	case session.ToolStarted:
		w.Kind = &roostv1.Event_ToolStarted{ToolStarted: &roostv1.ToolStarted{
			ItemId: string(e.Call), Host: host(e.Host), Query: query(e.Query),
		}}
	case session.QueryAnswered:
		w.Kind = &roostv1.Event_QueryAnswered{QueryAnswered: &roostv1.QueryAnswered{ItemId: string(e.Call), Allow: e.Allow}}
	case session.ToolOutput:
		w.Kind = &roostv1.Event_ToolOutput{ToolOutput: &roostv1.ToolOutput{
			ItemId: string(e.Call), Text: text(e.Text), Replace: e.Replace,
		}}
	case session.ToolEnded:
		ended := session.Complete
		if e.IsError {
			ended = session.Failed
		}
		w.Kind = &roostv1.Event_ToolEnded{ToolEnded: &roostv1.ToolEnded{
			ItemId: string(e.Call), Status: status(ended), Output: text(e.Output),
			Images: images(e.Images), Details: text(string(e.Details)),
		}}
	}
}

// text makes s fit a protobuf string. Every source of text is valid UTF-8 already, except a
// history that was written by something else.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func stamp(ms int64) *timestamppb.Timestamp { return timestamppb.New(time.UnixMilli(ms)) }
