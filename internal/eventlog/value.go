package eventlog

import (
	"maps"
	"slices"

	"github.com/roost-dev/roost/internal/session"
	pb "github.com/roost-dev/roost/proto/eventlog/v1"
)

func encodeModel(m session.ModelRef) *pb.ModelRef {
	return &pb.ModelRef{Provider: m.Provider, Id: m.ID}
}

func decodeModel(m *pb.ModelRef) session.ModelRef {
	return session.ModelRef{Provider: m.GetProvider(), ID: m.GetId()}
}

func encodeUsage(u *session.Usage) *pb.Usage {
	if u == nil {
		return nil
	}
	return &pb.Usage{
		Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Reasoning: u.Reasoning,
		CostInput: u.Cost.Input, CostOutput: u.Cost.Output, CostCacheRead: u.Cost.CacheRead, CostCacheWrite: u.Cost.CacheWrite,
	}
}

func decodeUsage(m *pb.Usage) *session.Usage {
	if m == nil {
		return nil
	}
	return &session.Usage{
		Input: m.GetInput(), Output: m.GetOutput(), CacheRead: m.GetCacheRead(), CacheWrite: m.GetCacheWrite(), Reasoning: m.GetReasoning(),
		Cost: session.Cost{
			Input: m.GetCostInput(), Output: m.GetCostOutput(), CacheRead: m.GetCostCacheRead(), CacheWrite: m.GetCostCacheWrite(),
		},
	}
}

// The numbers on disk are fixed by the tables below and not by the order of the constants in
// package session, so that a constant may be added there in any place.

func encodeStatus(s session.Status) pb.Status {
	switch s {
	case session.Streaming:
		return pb.Status_STATUS_STREAMING
	case session.Complete:
		return pb.Status_STATUS_COMPLETE
	case session.Failed:
		return pb.Status_STATUS_FAILED
	case session.Aborted:
		return pb.Status_STATUS_ABORTED
	}
	return pb.Status_STATUS_UNSPECIFIED
}

func (d *decoder) status(s pb.Status) session.Status {
	switch s {
	case pb.Status_STATUS_STREAMING:
		return session.Streaming
	case pb.Status_STATUS_COMPLETE:
		return session.Complete
	case pb.Status_STATUS_FAILED:
		return session.Failed
	case pb.Status_STATUS_ABORTED:
		return session.Aborted
	case pb.Status_STATUS_UNSPECIFIED:
	}
	d.fail("unknown status %d", s)
	return 0
}

func encodeStop(s session.StopReason) pb.StopReason {
	switch s {
	case session.StopNone:
		return pb.StopReason_STOP_REASON_UNSPECIFIED
	case session.StopEnd:
		return pb.StopReason_STOP_REASON_END
	case session.StopLength:
		return pb.StopReason_STOP_REASON_LENGTH
	case session.StopToolUse:
		return pb.StopReason_STOP_REASON_TOOL_USE
	case session.StopRefusal:
		return pb.StopReason_STOP_REASON_REFUSAL
	}
	return pb.StopReason_STOP_REASON_UNSPECIFIED
}

func (d *decoder) stop(s pb.StopReason) session.StopReason {
	switch s {
	case pb.StopReason_STOP_REASON_UNSPECIFIED:
		return session.StopNone
	case pb.StopReason_STOP_REASON_END:
		return session.StopEnd
	case pb.StopReason_STOP_REASON_LENGTH:
		return session.StopLength
	case pb.StopReason_STOP_REASON_TOOL_USE:
		return session.StopToolUse
	case pb.StopReason_STOP_REASON_REFUSAL:
		return session.StopRefusal
	}
	d.fail("unknown stop reason %d", s)
	return 0
}

func encodeHost(h session.Host) pb.Host {
	switch h {
	case session.HostWorkspace:
		return pb.Host_HOST_WORKSPACE
	case session.HostClient:
		return pb.Host_HOST_CLIENT
	}
	return pb.Host_HOST_UNSPECIFIED
}

func (d *decoder) host(h pb.Host) session.Host {
	switch h {
	case pb.Host_HOST_WORKSPACE:
		return session.HostWorkspace
	case pb.Host_HOST_CLIENT:
		return session.HostClient
	case pb.Host_HOST_UNSPECIFIED:
	}
	d.fail("unknown host %d", h)
	return 0
}

func encodeOutcome(o session.Outcome) pb.Outcome {
	switch o {
	case session.RunCompleted:
		return pb.Outcome_OUTCOME_COMPLETED
	case session.RunAborted:
		return pb.Outcome_OUTCOME_ABORTED
	case session.RunFailed:
		return pb.Outcome_OUTCOME_FAILED
	}
	return pb.Outcome_OUTCOME_UNSPECIFIED
}

func (d *decoder) outcome(o pb.Outcome) session.Outcome {
	switch o {
	case pb.Outcome_OUTCOME_COMPLETED:
		return session.RunCompleted
	case pb.Outcome_OUTCOME_ABORTED:
		return session.RunAborted
	case pb.Outcome_OUTCOME_FAILED:
		return session.RunFailed
	case pb.Outcome_OUTCOME_UNSPECIFIED:
	}
	d.fail("unknown outcome %d", o)
	return 0
}

func encodeFront(front map[string][]byte) []*pb.FrontSet {
	var out []*pb.FrontSet
	for _, key := range slices.Sorted(maps.Keys(front)) {
		out = append(out, &pb.FrontSet{Key: key, Value: front[key]})
	}
	return out
}

func decodeFront(sets []*pb.FrontSet) map[string][]byte {
	if len(sets) == 0 {
		return nil
	}
	front := make(map[string][]byte, len(sets))
	for _, s := range sets {
		front[s.GetKey()] = s.GetValue()
	}
	return front
}
