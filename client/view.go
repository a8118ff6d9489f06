package client

import (
	"slices"
	"strings"

	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// View is what a watcher knows of a session: the fold of the frames it has got. Frames given
// to Apply become part of the view and change with it. A View belongs to one goroutine. The
// zero View knows nothing.
type View struct {
	// Session is nil until the first Reset or SessionCreated.
	Session *roostv1.Session
	// Items are the newest items of the transcript, those in progress last. A user item with
	// a Note was written by the server for the model, not by a person.
	Items []*roostv1.Item
	// First is the index of the first of Items in the transcript.
	First int
	// Position is where the view is.
	Position *roostv1.Position
	// Gone is set once the session has been deleted.
	Gone bool

	texts  []*strings.Builder          // of the blocks of the answer in progress
	output map[string]*strings.Builder // of the tools in progress
}

// Apply moves the view past a frame. Events that do not fit what the view knows are ignored,
// as are those of a newer server that it does not know.
func (v *View) Apply(frame *roostv1.WatchResponse) {
	switch f := frame.Frame.(type) {
	case *roostv1.WatchResponse_Reset_:
		r := f.Reset_
		*v = View{Session: r.Session, Items: r.Items, First: int(r.FirstIndex), Position: r.Position}
	case *roostv1.WatchResponse_Events:
		for _, e := range f.Events.Events {
			v.ApplyEvent(e)
		}
		v.Position = f.Events.Position
	case *roostv1.WatchResponse_Heartbeat:
		v.Position = f.Heartbeat.Position
	case *roostv1.WatchResponse_Ended:
		v.Gone = true
	}
}

// ApplyEvent moves the view past one event.
func (v *View) ApplyEvent(e *roostv1.Event) {
	if created, ok := e.Kind.(*roostv1.Event_Created); ok {
		*v = View{Session: created.Created.Session, Position: v.Position}
	}
	s := v.Session
	if s == nil {
		return
	}
	s.UpdatedAt = e.At
	switch k := e.Kind.(type) {
	case *roostv1.Event_Renamed:
		s.Name = k.Renamed.Name
	case *roostv1.Event_SettingsChanged:
		s.Thinking = k.SettingsChanged.Thinking
		if k.SettingsChanged.Model != "" {
			s.Model = k.SettingsChanged.Model
		}
	case *roostv1.Event_RunStarted:
		s.Run = &roostv1.Run{Id: k.RunStarted.Run, PromptId: k.RunStarted.Item.GetUser().GetPromptId(), StartedAt: e.At}
		v.add(k.RunStarted.Item)
	case *roostv1.Event_ModeChanged:
		s.Mode = k.ModeChanged.Mode
	case *roostv1.Event_ItemsCopied:
		for _, i := range k.ItemsCopied.Items {
			v.add(i)
		}
		if n := k.ItemsCopied.LastRun; n > 0 {
			s.LastRun = &roostv1.RunResult{Id: n, Outcome: roostv1.Outcome_OUTCOME_COMPLETED}
		}
	case *roostv1.Event_Rewound:
		v.rewind(int(k.Rewound.ItemCount))
	case *roostv1.Event_NoteAdded:
		k.NoteAdded.Item.Run = max(s.GetLastRun().GetId(), s.GetRun().GetId())
		v.add(k.NoteAdded.Item)
	case *roostv1.Event_RunEnded:
		s.LastRun = &roostv1.RunResult{Id: s.GetRun().GetId(), Outcome: k.RunEnded.Outcome, Error: k.RunEnded.Error}
		s.Run, s.Queue = nil, nil
	default:
		if s.Run != nil {
			v.duringRun(e)
		}
	}
}

// rewind leaves n items of the transcript.
func (v *View) rewind(n int) {
	v.Items = v.Items[:max(0, min(n-v.First, len(v.Items)))]
	v.First = min(v.First, n)
	v.Session.ItemCount = uint32(n)
}

// add puts an item, if there is one, at the end of the transcript.
func (v *View) add(i *roostv1.Item) {
	if i == nil {
		return
	}
	if i.Run == 0 {
		i.Run = v.Session.GetRun().GetId()
	}
	v.Items = append(v.Items, i)
	v.Session.ItemCount++
}

func (v *View) duringRun(e *roostv1.Event) {
	run := v.Session.Run
	switch k := e.Kind.(type) {
	case *roostv1.Event_SteerQueued:
		k.SteerQueued.Item.Run = run.Id
		v.Session.Queue = append(v.Session.Queue, k.SteerQueued.Item)
	case *roostv1.Event_SteerDelivered:
		v.deliver(k.SteerDelivered.ItemId)
	case *roostv1.Event_AbortRequested:
		run.Aborting, v.Session.Queue = true, nil
	case *roostv1.Event_PassStarted:
		run.Pass = k.PassStarted.Item.GetAssistant().GetPass()
		v.add(k.PassStarted.Item)
		v.texts, v.output = nil, nil
	case *roostv1.Event_Retrying:
		run.Retry = k.Retrying.Retry
	case *roostv1.Event_Resumed:
		run.Retry = nil
	case *roostv1.Event_CompactionStarted:
		run.Compacting = true
	case *roostv1.Event_CompactionEnded:
		run.Compacting = false
		v.Session.Usage = sum(v.Session.Usage, k.CompactionEnded.Usage)
	case *roostv1.Event_QueryAnswered:
		if t := v.Item(k.QueryAnswered.ItemId).GetTool(); t != nil {
			t.Query = nil
		}
	case *roostv1.Event_ToolStarted:
		v.startTool(k.ToolStarted, e)
	case *roostv1.Event_ToolOutput:
		v.toolOutput(k.ToolOutput)
	case *roostv1.Event_ToolEnded:
		if t := v.Item(k.ToolEnded.ItemId).GetTool(); t != nil {
			t.Status, t.Output, t.Images, t.Details = k.ToolEnded.Status, k.ToolEnded.Output, k.ToolEnded.Images, k.ToolEnded.Details
			t.Query = nil
			delete(v.output, k.ToolEnded.ItemId)
		}
	default:
		v.answer(e)
	}
}

func (v *View) deliver(id string) {
	queue := v.Session.Queue
	for i, item := range queue {
		if item.Id == id {
			v.Session.Queue = slices.Concat(queue[:i], queue[i+1:])
			v.add(item)
			return
		}
	}
}

// Answer returns the item of the answer in progress, or nil.
func (v *View) Answer() *roostv1.Item {
	if len(v.Items) == 0 {
		return nil
	}
	last := v.Items[len(v.Items)-1]
	if last.GetAssistant().GetStatus() != roostv1.Status_STATUS_STREAMING {
		return nil
	}
	return last
}

// Item returns the item with an id among those in the view, or nil. It looks from the end.
func (v *View) Item(id string) *roostv1.Item {
	for _, i := range slices.Backward(v.Items) {
		if i.Id == id {
			return i
		}
	}
	return nil
}

// Queries returns the tool items that wait for an answer, in transcript order.
func (v *View) Queries() []*roostv1.Item {
	if v.Session.GetRun() == nil {
		return nil
	}
	var open []*roostv1.Item
	for _, i := range slices.Backward(v.Items) {
		if i.GetTool() == nil {
			break // the tools of the last answer are the last items
		}
		if i.GetTool().Query != nil {
			open = append(open, i)
		}
	}
	slices.Reverse(open)
	return open
}
