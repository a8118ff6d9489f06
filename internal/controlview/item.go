package controlview

import (
	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// Item projects an item as it is. The proofs that providers attach to reasoning stay here,
// and a tool item goes by the id of its call, so that events about it need no look-up.
func Item(i session.Item) *roostv1.Item {
	switch i := i.(type) {
	case *session.User:
		return &roostv1.Item{Id: string(i.ID), At: stamp(i.At), Run: uint32(i.Run), Kind: &roostv1.Item_User{User: &roostv1.User{
			PromptId: text(i.Prompt), Steer: i.Steer, Blocks: blocks(i.Blocks), Note: string(i.Note),
		}}}
	case *session.Assistant:
		return &roostv1.Item{Id: string(i.ID), At: stamp(i.At), Run: uint32(i.Run), Kind: &roostv1.Item_Assistant{Assistant: &roostv1.Assistant{
			Pass: uint32(i.Pass), Model: model(i.Model), ResponseModel: text(i.ResponseModel), Blocks: blocks(i.Blocks),
			Status: status(i.Status), Stop: stopReason(i.Stop), Error: text(i.Error), Usage: usage(i.Usage),
		}}}
	case *session.Tool:
		return &roostv1.Item{Id: string(i.Call), At: stamp(i.At), Run: uint32(i.Run), Kind: &roostv1.Item_Tool{Tool: &roostv1.Tool{
			Name: text(i.Name), Input: text(i.Input), Host: host(i.Host), Status: status(i.Status),
			Output: text(i.Output), Images: images(i.Images), Details: text(string(i.Details)),
			Query: query(i.Query),
		}}}
	}
	return nil
}

func query(q *session.Query) *roostv1.Query {
	if q == nil {
		return nil
	}
	w := &roostv1.Query{Reason: text(q.Reason)}
	if q.Until > 0 {
		w.Until = stamp(q.Until)
	}
	for _, g := range q.Grants {
		w.Grants = append(w.Grants, text(g))
	}
	return w
}

func blocks(list []session.Block) []*roostv1.Block {
	out := make([]*roostv1.Block, len(list))
	for i, b := range list {
		out[i] = block(b)
	}
	return out
}

func block(b session.Block) *roostv1.Block {
	switch b := b.(type) {
	case session.Text:
		return &roostv1.Block{Kind: &roostv1.Block_Text{Text: &roostv1.Text{Text: text(b.Text)}}}
	case session.Reasoning:
		return &roostv1.Block{Kind: &roostv1.Block_Reasoning{Reasoning: &roostv1.Reasoning{Text: text(b.Text), Redacted: b.Redacted}}}
	case session.Image:
		return &roostv1.Block{Kind: &roostv1.Block_Image{Image: image(b)}}
	case session.ToolCall:
		return &roostv1.Block{Kind: &roostv1.Block_ToolCall{ToolCall: &roostv1.ToolCall{
			Id: string(b.Call), Name: text(b.Name), Input: text(b.Input), Complete: b.Complete,
		}}}
	}
	return &roostv1.Block{}
}

func images(list []session.Image) []*roostv1.Image {
	var out []*roostv1.Image
	for _, i := range list {
		out = append(out, image(i))
	}
	return out
}

func image(i session.Image) *roostv1.Image {
	return &roostv1.Image{Mime: text(i.MIME), Blob: text(i.Blob), Size: i.Size}
}

func usage(u *session.Usage) *roostv1.Usage {
	if u == nil {
		return nil
	}
	return &roostv1.Usage{
		Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite,
		Reasoning: u.Reasoning, Cost: u.Cost.Total(),
	}
}

func status(s session.Status) roostv1.Status {
	switch s {
	case session.Streaming:
		return roostv1.Status_STATUS_STREAMING
	case session.Complete:
		return roostv1.Status_STATUS_COMPLETE
	case session.Failed:
		return roostv1.Status_STATUS_FAILED
	case session.Aborted:
		return roostv1.Status_STATUS_ABORTED
	}
	return roostv1.Status_STATUS_UNSPECIFIED
}

func stopReason(s session.StopReason) roostv1.StopReason {
	switch s {
	case session.StopNone:
		return roostv1.StopReason_STOP_REASON_UNSPECIFIED
	case session.StopEnd:
		return roostv1.StopReason_STOP_REASON_END
	case session.StopLength:
		return roostv1.StopReason_STOP_REASON_LENGTH
	case session.StopToolUse:
		return roostv1.StopReason_STOP_REASON_TOOL_USE
	case session.StopRefusal:
		return roostv1.StopReason_STOP_REASON_REFUSAL
	}
	return roostv1.StopReason_STOP_REASON_UNSPECIFIED
}

func host(h session.Host) roostv1.Host {
	switch h {
	case session.HostWorkspace:
		return roostv1.Host_HOST_WORKSPACE
	case session.HostClient:
		return roostv1.Host_HOST_CLIENT
	}
	return roostv1.Host_HOST_UNSPECIFIED
}

func outcome(o session.Outcome) roostv1.Outcome {
	switch o {
	case session.RunCompleted:
		return roostv1.Outcome_OUTCOME_COMPLETED
	case session.RunAborted:
		return roostv1.Outcome_OUTCOME_ABORTED
	case session.RunFailed:
		return roostv1.Outcome_OUTCOME_FAILED
	}
	return roostv1.Outcome_OUTCOME_UNSPECIFIED
}
