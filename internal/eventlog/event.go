package eventlog

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/roost-dev/roost/internal/session"
	pb "github.com/roost-dev/roost/proto/eventlog/v1"
)

func encodeEvent(m *pb.Record, event session.Event) error {
	switch e := event.(type) {
	case session.Delta:
		m.Event = &pb.Record_Delta{Delta: &pb.Delta{Index: uint32(e.Index), Text: e.Text}}
	case session.Created:
		m.Event = &pb.Record_Created{Created: &pb.Created{
			Id: string(e.ID), Cwd: e.Cwd, Name: e.Name, Model: encodeModel(e.Model),
			Thinking: string(e.Thinking), Parent: string(e.Parent), Origin: e.Origin,
		}}
	case session.Renamed:
		m.Event = &pb.Record_Renamed{Renamed: &pb.Renamed{Name: e.Name}}
	case session.ModelSet:
		m.Event = &pb.Record_ModelSet{ModelSet: &pb.ModelSet{Model: encodeModel(e.Model), Thinking: string(e.Thinking)}}
	case session.ThinkingSet:
		m.Event = &pb.Record_ThinkingSet{ThinkingSet: &pb.ThinkingSet{Thinking: string(e.Thinking)}}
	case session.ModeSet:
		m.Event = &pb.Record_ModeSet{ModeSet: &pb.ModeSet{Mode: string(e.Mode), Offer: e.Offer}}
	case session.ItemsCopied, session.Rewound, session.NoteAdded, session.CompactionStarted, session.CompactionEnded:
		return encodeContextEvent(m, event)
	case session.RunStarted, session.SteerQueued, session.SteerDelivered, session.AbortRequested, session.RunEnded:
		return encodeRunEvent(m, event)
	case session.PassStarted, session.BlockStarted, session.BlockEnded,
		session.PassInterrupted, session.PassResumed, session.PassEnded:
		return encodePassEvent(m, event)
	case session.ToolStarted, session.ToolIssued, session.ToolOutput, session.ToolEnded, session.QueryAnswered:
		encodeToolEvent(m, event)
	case session.FrontSet:
		m.Event = &pb.Record_FrontSet{FrontSet: &pb.FrontSet{Key: e.Key, Value: e.Value}}
	case session.TakenUp:
		m.Event = &pb.Record_TakenUp{TakenUp: &pb.TakenUp{}}
	default:
		return fmt.Errorf("event log: event %T has no encoding", event)
	}
	return nil
}

func encodeContextEvent(m *pb.Record, event session.Event) error {
	switch e := event.(type) {
	case session.ItemsCopied:
		items, err := encodeItems(e.Items)
		if err != nil {
			return err
		}
		m.Event = &pb.Record_ItemsCopied{ItemsCopied: &pb.ItemsCopied{Items: items, LastRun: uint32(e.LastRun), Users: e.Users}}
	case session.Rewound:
		m.Event = &pb.Record_Rewound{Rewound: &pb.Rewound{Items: uint32(e.Items)}}
	case session.NoteAdded:
		m.Event = &pb.Record_NoteAdded{NoteAdded: &pb.NoteAdded{
			Item: string(e.Item), Note: string(e.Note), Text: e.Text, Context: e.Context,
		}}
	case session.CompactionStarted:
		m.Event = &pb.Record_CompactionStarted{CompactionStarted: &pb.CompactionStarted{Through: uint32(e.Through)}}
	case session.CompactionEnded:
		m.Event = &pb.Record_CompactionEnded{CompactionEnded: &pb.CompactionEnded{
			Summarized: uint32(e.Summarized), Summary: e.Summary, Shortened: uint32(e.Shortened),
			Usage: encodeUsage(e.Usage), Error: e.Error,
		}}
	}
	return nil
}

func encodeRunEvent(m *pb.Record, event session.Event) error {
	switch e := event.(type) {
	case session.RunStarted:
		blocks, err := encodeBlocks(e.Blocks)
		if err != nil {
			return err
		}
		m.Event = &pb.Record_RunStarted{RunStarted: &pb.RunStarted{
			Run: uint32(e.Run), Item: string(e.Item), Prompt: e.Prompt, Blocks: blocks,
			Offer: e.Offer, Resume: e.Resume,
		}}
	case session.SteerQueued:
		blocks, err := encodeBlocks(e.Blocks)
		if err != nil {
			return err
		}
		m.Event = &pb.Record_SteerQueued{SteerQueued: &pb.SteerQueued{Item: string(e.Item), Prompt: e.Prompt, Blocks: blocks}}
	case session.SteerDelivered:
		m.Event = &pb.Record_SteerDelivered{SteerDelivered: &pb.SteerDelivered{Item: string(e.Item)}}
	case session.AbortRequested:
		m.Event = &pb.Record_AbortRequested{AbortRequested: &pb.AbortRequested{}}
	case session.RunEnded:
		m.Event = &pb.Record_RunEnded{RunEnded: &pb.RunEnded{Outcome: encodeOutcome(e.Outcome), Error: e.Error, Fault: string(e.Fault)}}
	}
	return nil
}

func encodePassEvent(m *pb.Record, event session.Event) error {
	switch e := event.(type) {
	case session.PassStarted:
		m.Event = &pb.Record_PassStarted{PassStarted: &pb.PassStarted{
			Pass: uint32(e.Pass), Item: string(e.Item), Model: encodeModel(e.Model),
		}}
	case session.BlockStarted:
		block, err := encodeBlock(e.Block)
		if err != nil {
			return err
		}
		m.Event = &pb.Record_BlockStarted{BlockStarted: &pb.BlockStarted{Block: block}}
	case session.BlockEnded:
		m.Event = &pb.Record_BlockEnded{BlockEnded: &pb.BlockEnded{
			Index: uint32(e.Index), Signature: e.Signature, Redacted: e.Redacted,
		}}
	case session.PassInterrupted:
		m.Event = &pb.Record_PassInterrupted{PassInterrupted: &pb.PassInterrupted{
			Reason: e.Reason, ResumeAt: e.ResumeAt, Overflow: e.Overflow,
		}}
	case session.PassResumed:
		m.Event = &pb.Record_PassResumed{PassResumed: &pb.PassResumed{}}
	case session.PassEnded:
		m.Event = &pb.Record_PassEnded{PassEnded: &pb.PassEnded{
			Status: encodeStatus(e.Status), Stop: encodeStop(e.Stop), Error: e.Error,
			ResponseModel: e.ResponseModel, Usage: encodeUsage(e.Usage), Cut: e.Cut, Fault: string(e.Fault),
		}}
	}
	return nil
}

func encodeToolEvent(m *pb.Record, event session.Event) {
	switch e := event.(type) {
	case session.ToolStarted:
		m.Event = &pb.Record_ToolStarted{ToolStarted: &pb.ToolStarted{
			Call: string(e.Call), Host: encodeHost(e.Host), Query: encodeQuery(e.Query), Repeatable: e.Repeatable,
		}}
	case session.ToolIssued:
		m.Event = &pb.Record_ToolIssued{ToolIssued: &pb.ToolIssued{Call: string(e.Call)}}
	case session.QueryAnswered:
		m.Event = &pb.Record_QueryAnswered{QueryAnswered: &pb.QueryAnswered{
			Call: string(e.Call), Allow: e.Allow, Reason: e.Reason, Grants: e.Grants,
		}}
	case session.ToolOutput:
		m.Event = &pb.Record_ToolOutput{ToolOutput: &pb.ToolOutput{Call: string(e.Call), Text: e.Text, Replace: e.Replace}}
	case session.ToolEnded:
		m.Event = &pb.Record_ToolEnded{ToolEnded: &pb.ToolEnded{
			Call: string(e.Call), IsError: e.IsError, Output: e.Output,
			Images: encodeImages(e.Images), Details: e.Details, Last: e.Last,
		}}
	}
}

func (d *decoder) event(m *pb.Record) session.Event {
	switch e := m.GetEvent().(type) {
	case *pb.Record_Delta:
		return session.Delta{Index: int(e.Delta.GetIndex()), Text: e.Delta.GetText()}
	case *pb.Record_Created:
		c := e.Created
		return session.Created{
			ID: session.ID(c.GetId()), Cwd: c.GetCwd(), Name: c.GetName(), Model: decodeModel(c.GetModel()),
			Thinking: session.Thinking(c.GetThinking()), Parent: session.ID(c.GetParent()), Origin: c.GetOrigin(),
		}
	case *pb.Record_Renamed:
		return session.Renamed{Name: e.Renamed.GetName()}
	case *pb.Record_ModelSet:
		return session.ModelSet{Model: decodeModel(e.ModelSet.GetModel()), Thinking: session.Thinking(e.ModelSet.GetThinking())}
	case *pb.Record_ThinkingSet:
		return session.ThinkingSet{Thinking: session.Thinking(e.ThinkingSet.GetThinking())}
	case *pb.Record_ModeSet:
		return session.ModeSet{Mode: session.Mode(e.ModeSet.GetMode()), Offer: e.ModeSet.GetOffer()}
	case *pb.Record_ItemsCopied, *pb.Record_Rewound, *pb.Record_NoteAdded, *pb.Record_CompactionStarted, *pb.Record_CompactionEnded:
		return d.contextEvent(m)
	case *pb.Record_RunStarted, *pb.Record_SteerQueued, *pb.Record_SteerDelivered, *pb.Record_AbortRequested, *pb.Record_RunEnded:
		return d.runEvent(m)
	case *pb.Record_PassStarted, *pb.Record_BlockStarted, *pb.Record_BlockEnded,
		*pb.Record_PassInterrupted, *pb.Record_PassResumed, *pb.Record_PassEnded:
		return d.passEvent(m)
	case *pb.Record_FrontSet:
		return session.FrontSet{Key: e.FrontSet.GetKey(), Value: e.FrontSet.GetValue()}
	case *pb.Record_TakenUp:
		return session.TakenUp{}
	case *pb.Record_ToolStarted, *pb.Record_ToolIssued, *pb.Record_ToolOutput, *pb.Record_ToolEnded, *pb.Record_QueryAnswered:
		return d.toolEvent(m)
	}
	if n, _, size := protowire.ConsumeTag(m.ProtoReflect().GetUnknown()); size > 0 {
		d.fail("unknown kind of event (field %d): use a newer roost", n)
	}
	d.fail("record without event")
	return nil
}

func (d *decoder) contextEvent(m *pb.Record) session.Event {
	switch e := m.GetEvent().(type) {
	case *pb.Record_ItemsCopied:
		c := e.ItemsCopied
		return session.ItemsCopied{Items: d.items(c.GetItems()), LastRun: session.RunID(c.GetLastRun()), Users: c.GetUsers()}
	case *pb.Record_Rewound:
		return session.Rewound{Items: int(e.Rewound.GetItems())}
	case *pb.Record_NoteAdded:
		n := e.NoteAdded
		return session.NoteAdded{Item: session.ItemID(n.GetItem()), Note: session.Note(n.GetNote()), Text: n.GetText(), Context: n.GetContext()}
	case *pb.Record_CompactionStarted:
		return session.CompactionStarted{Through: int(e.CompactionStarted.GetThrough())}
	case *pb.Record_CompactionEnded:
		c := e.CompactionEnded
		return session.CompactionEnded{
			Summarized: int(c.GetSummarized()), Summary: c.GetSummary(), Shortened: int(c.GetShortened()),
			Usage: decodeUsage(c.GetUsage()), Error: c.GetError(),
		}
	}
	return nil
}

func (d *decoder) runEvent(m *pb.Record) session.Event {
	switch e := m.GetEvent().(type) {
	case *pb.Record_RunStarted:
		r := e.RunStarted
		return session.RunStarted{
			Run: session.RunID(r.GetRun()), Item: session.ItemID(r.GetItem()), Prompt: r.GetPrompt(), Blocks: d.blocks(r.GetBlocks()),
			Offer: r.GetOffer(), Resume: r.GetResume(),
		}
	case *pb.Record_SteerQueued:
		q := e.SteerQueued
		return session.SteerQueued{Item: session.ItemID(q.GetItem()), Prompt: q.GetPrompt(), Blocks: d.blocks(q.GetBlocks())}
	case *pb.Record_SteerDelivered:
		return session.SteerDelivered{Item: session.ItemID(e.SteerDelivered.GetItem())}
	case *pb.Record_AbortRequested:
		return session.AbortRequested{}
	case *pb.Record_RunEnded:
		return session.RunEnded{Outcome: d.outcome(e.RunEnded.GetOutcome()), Error: e.RunEnded.GetError(), Fault: session.Fault(e.RunEnded.GetFault())}
	}
	return nil
}

func (d *decoder) passEvent(m *pb.Record) session.Event {
	switch e := m.GetEvent().(type) {
	case *pb.Record_PassStarted:
		p := e.PassStarted
		return session.PassStarted{Pass: int(p.GetPass()), Item: session.ItemID(p.GetItem()), Model: decodeModel(p.GetModel())}
	case *pb.Record_BlockStarted:
		return session.BlockStarted{Block: d.block(e.BlockStarted.GetBlock())}
	case *pb.Record_BlockEnded:
		b := e.BlockEnded
		return session.BlockEnded{Index: int(b.GetIndex()), Signature: b.GetSignature(), Redacted: b.GetRedacted()}
	case *pb.Record_PassInterrupted:
		p := e.PassInterrupted
		return session.PassInterrupted{Reason: p.GetReason(), ResumeAt: p.GetResumeAt(), Overflow: p.GetOverflow()}
	case *pb.Record_PassResumed:
		return session.PassResumed{}
	case *pb.Record_PassEnded:
		p := e.PassEnded
		return session.PassEnded{
			Status: d.status(p.GetStatus()), Stop: d.stop(p.GetStop()), Error: p.GetError(),
			ResponseModel: p.GetResponseModel(), Usage: decodeUsage(p.GetUsage()), Cut: p.GetCut(), Fault: session.Fault(p.GetFault()),
		}
	}
	return nil
}

func (d *decoder) toolEvent(m *pb.Record) session.Event {
	switch e := m.GetEvent().(type) {
	case *pb.Record_ToolStarted:
		t := e.ToolStarted
		return session.ToolStarted{Call: session.CallID(t.GetCall()), Host: d.host(t.GetHost()), Query: decodeQuery(t.GetQuery()), Repeatable: t.GetRepeatable()}
	case *pb.Record_ToolIssued:
		return session.ToolIssued{Call: session.CallID(e.ToolIssued.GetCall())}
	case *pb.Record_QueryAnswered:
		q := e.QueryAnswered
		return session.QueryAnswered{Call: session.CallID(q.GetCall()), Allow: q.GetAllow(), Reason: q.GetReason(), Grants: q.GetGrants()}
	case *pb.Record_ToolOutput:
		o := e.ToolOutput
		return session.ToolOutput{Call: session.CallID(o.GetCall()), Text: o.GetText(), Replace: o.GetReplace()}
	case *pb.Record_ToolEnded:
		t := e.ToolEnded
		return session.ToolEnded{
			Call: session.CallID(t.GetCall()), IsError: t.GetIsError(), Output: t.GetOutput(),
			Images: decodeImages(t.GetImages()), Details: decodeDetails(t.GetDetails()), Last: t.GetLast(),
		}
	}
	return nil
}
