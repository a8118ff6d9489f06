package eventlog

import (
	"fmt"

	"github.com/roost-dev/roost/internal/session"
)

// Kind returns the name of an event's kind, such as "run_started": the name of its field in
// the protobuf record. It is for people who look into a log and for logs of the server.
func Kind(event session.Event) string {
	switch event.(type) {
	case session.Created:
		return "created"
	case session.Renamed:
		return "renamed"
	case session.ModelSet:
		return "model_set"
	case session.ThinkingSet:
		return "thinking_set"
	case session.ToolIssued:
		return "tool_issued"
	case session.FrontSet:
		return "front_set"
	case session.TakenUp:
		return "taken_up"
	case session.ModeSet:
		return "mode_set"
	case session.ItemsCopied:
		return "items_copied"
	case session.Rewound:
		return "rewound"
	case session.NoteAdded:
		return "note_added"
	case session.CompactionStarted:
		return "compaction_started"
	case session.CompactionEnded:
		return "compaction_ended"
	case session.QueryAnswered:
		return "query_answered"
	case session.RunStarted:
		return "run_started"
	case session.SteerQueued:
		return "steer_queued"
	case session.SteerDelivered:
		return "steer_delivered"
	case session.PassStarted:
		return "pass_started"
	case session.BlockStarted:
		return "block_started"
	case session.Delta:
		return "delta"
	case session.BlockEnded:
		return "block_ended"
	case session.PassInterrupted:
		return "pass_interrupted"
	case session.PassResumed:
		return "pass_resumed"
	case session.PassEnded:
		return "pass_ended"
	case session.ToolStarted:
		return "tool_started"
	case session.ToolOutput:
		return "tool_output"
	case session.ToolEnded:
		return "tool_ended"
	case session.AbortRequested:
		return "abort_requested"
	case session.RunEnded:
		return "run_ended"
	}
	return fmt.Sprintf("%T", event)
}
