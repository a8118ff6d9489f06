package piwire

import "slices"

// ThinkingLevel is how much a model is asked to think (section 2.2).
type ThinkingLevel string

// The thinking levels, from none to most.
const (
	ThinkingOff     ThinkingLevel = "off"
	ThinkingMinimal ThinkingLevel = "minimal"
	ThinkingLow     ThinkingLevel = "low"
	ThinkingMedium  ThinkingLevel = "medium"
	ThinkingHigh    ThinkingLevel = "high"
	ThinkingXHigh   ThinkingLevel = "xhigh"
	ThinkingMax     ThinkingLevel = "max"
)

var thinkingLevels = []ThinkingLevel{
	ThinkingOff, ThinkingMinimal, ThinkingLow, ThinkingMedium, ThinkingHigh, ThinkingXHigh, ThinkingMax,
}

// Phase is what a session is doing (section 2.2).
type Phase string

// The phases of a session.
const (
	PhaseIdle          Phase = "idle"
	PhaseTurn          Phase = "turn"
	PhaseCompaction    Phase = "compaction"
	PhaseBranchSummary Phase = "branch_summary"
	PhaseRetry         Phase = "retry"
)

var phases = []Phase{PhaseIdle, PhaseTurn, PhaseCompaction, PhaseBranchSummary, PhaseRetry}

// ErrorCode is the kind of a [ProtocolError] (section 2.2).
type ErrorCode string

// The error codes.
const (
	CodeVersion        ErrorCode = "version"
	CodeBusy           ErrorCode = "busy"
	CodeSessionLocked  ErrorCode = "session_locked"
	CodeNotFound       ErrorCode = "not_found"
	CodeInvalidRequest ErrorCode = "invalid_request"
	CodeNotImplemented ErrorCode = "not_implemented"
	CodeInternal       ErrorCode = "internal_error"
)

var errorCodes = []ErrorCode{
	CodeVersion, CodeBusy, CodeSessionLocked, CodeNotFound, CodeInvalidRequest, CodeNotImplemented, CodeInternal,
}

// InputKind is what a model can be given (section 2.2).
type InputKind string

// The input kinds.
const (
	InputText  InputKind = "text"
	InputImage InputKind = "image"
)

var inputKinds = []InputKind{InputText, InputImage}

// AssistantStatus is the state of an assistant item (section 2.4).
type AssistantStatus string

// The states of an assistant item.
const (
	AssistantStreaming AssistantStatus = "streaming"
	AssistantComplete  AssistantStatus = "complete"
	AssistantError     AssistantStatus = "error"
	AssistantAborted   AssistantStatus = "aborted"
)

var assistantStatuses = []AssistantStatus{AssistantStreaming, AssistantComplete, AssistantError, AssistantAborted}

// StopReason is why an assistant item ended (section 2.4); "" while streaming.
type StopReason string

// The stop reasons. The first three belong to a complete item.
const (
	StopStop    StopReason = "stop"
	StopLength  StopReason = "length"
	StopToolUse StopReason = "toolUse"
	StopError   StopReason = "error"
	StopAborted StopReason = "aborted"
)

var stopReasons = []StopReason{StopStop, StopLength, StopToolUse, StopError, StopAborted}

// ToolStatus is the state of a tool item (section 2.4).
type ToolStatus string

// The states of a tool item. There is no aborted one: such a tool is in error.
const (
	ToolRunning  ToolStatus = "running"
	ToolComplete ToolStatus = "complete"
	ToolError    ToolStatus = "error"
)

var toolStatuses = []ToolStatus{ToolRunning, ToolComplete, ToolError}

// DeltaKind is the kind of content block that an [AssistantDelta] extends.
type DeltaKind string

// The kinds of delta.
const (
	DeltaText     DeltaKind = "text"
	DeltaThinking DeltaKind = "thinking"
	DeltaToolCall DeltaKind = "toolCall"
)

var deltaKinds = []DeltaKind{DeltaText, DeltaThinking, DeltaToolCall}

// CommandName names a command, in a request and in the response to it.
type CommandName string

// The nine commands (section 2.7).
const (
	CommandList        CommandName = "list"
	CommandCreate      CommandName = "create"
	CommandAttach      CommandName = "attach"
	CommandDetach      CommandName = "detach"
	CommandPrompt      CommandName = "prompt"
	CommandSteer       CommandName = "steer"
	CommandAbort       CommandName = "abort"
	CommandSetModel    CommandName = "set_model"
	CommandSetThinking CommandName = "set_thinking"
)

// snapshotCommands are the commands answered with a session snapshot.
var snapshotCommands = []CommandName{
	CommandCreate, CommandAttach, CommandPrompt, CommandSteer, CommandAbort, CommandSetModel, CommandSetThinking,
}

// lookup returns the member of list that text spells, without copying text.
func lookup[T ~string](list []T, text []byte) (T, bool) {
	for _, v := range list {
		if string(v) == string(text) {
			return v, true
		}
	}
	return "", false
}

func oneOf[T ~string](list []T, v T) bool { return slices.Contains(list, v) }
