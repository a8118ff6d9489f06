package session

import "encoding/json"

// Record is an event with its place in the session's history.
type Record struct {
	Seq   Seq
	At    int64 // milliseconds since 1970
	Event Event
}

// Event is something that has happened to a session. The set is closed: [State.Apply] and
// the event log's codec know every one.
type Event interface{ event() }

// Created is the first event of every session.
type Created struct {
	ID       ID
	Cwd      string // absolute
	Name     string
	Model    ModelRef
	Thinking Thinking
	Parent   ID     // the session it was forked from or started by; may be empty
	Origin   string // the protocol it was born in, for people
}

// Renamed gives the session another name.
type Renamed struct{ Name string }

// ModelSet changes the model, and the thinking level to one that the model has.
type ModelSet struct {
	Model    ModelRef
	Thinking Thinking
}

// ThinkingSet changes the thinking level.
type ThinkingSet struct{ Thinking Thinking }

// RunStarted is an accepted prompt. Its user item is in the transcript from now on.
type RunStarted struct {
	Run    RunID
	Item   ItemID
	Prompt string // the client's id of the prompt, or empty
	Blocks []Block
}

// SteerQueued puts a user message into the queue of the run.
type SteerQueued struct {
	Item   ItemID
	Prompt string
	Blocks []Block
}

// SteerDelivered moves a queued message into the transcript.
type SteerDelivered struct{ Item ItemID }

// PassStarted is the intent of a model request. The assistant item exists from now on.
type PassStarted struct {
	Pass  int
	Item  ItemID
	Model ModelRef
}

// BlockStarted opens the next block of the answer. Block is a Text, Reasoning or ToolCall
// without content.
type BlockStarted struct{ Block Block }

// Delta adds text to an open block: text, reasoning, or the JSON text of a call's input.
type Delta struct {
	Index int
	Text  string
}

// BlockEnded closes a block. Signature and Redacted concern reasoning only.
type BlockEnded struct {
	Index     int
	Signature string
	Redacted  bool
}

// PassInterrupted says that the stream of a pass broke and will be taken up again. What was
// streamed stays.
type PassInterrupted struct {
	Reason   string // for a person
	ResumeAt int64  // milliseconds since 1970
}

// PassResumed is the intent of another request for the same pass.
type PassResumed struct{}

// PassEnded settles the assistant item.
type PassEnded struct {
	Status        Status // Complete, Failed or Aborted
	Stop          StopReason
	Error         string
	ResponseModel string
	Usage         *Usage
	Cut           bool // the stream broke after a call had begun, so the calls are answered instead of resuming
}

// ToolStarted is the intent of a tool run.
type ToolStarted struct {
	Call CallID
	Host Host
}

// ToolOutput is output of a running tool: added to what there is, or instead of it.
type ToolOutput struct {
	Call    CallID
	Text    string
	Replace bool
}

// ToolEnded is the outcome of a tool run, the one result of its call.
type ToolEnded struct {
	Call    CallID
	IsError bool
	Output  string
	Images  []Image
	Details json.RawMessage
}

// AbortRequested ends the run as soon as what is running has stopped. Queued steers are
// dropped.
type AbortRequested struct{}

// RunEnded makes the session idle.
type RunEnded struct {
	Outcome Outcome
	Error   string // for a person; set when Outcome is RunFailed
}

// Outcome is how a run ended.
type Outcome uint8

// The outcomes.
const (
	RunCompleted Outcome = iota
	RunAborted
	RunFailed
)

func (Created) event()         {}
func (Renamed) event()         {}
func (ModelSet) event()        {}
func (ThinkingSet) event()     {}
func (RunStarted) event()      {}
func (SteerQueued) event()     {}
func (SteerDelivered) event()  {}
func (PassStarted) event()     {}
func (BlockStarted) event()    {}
func (Delta) event()           {}
func (BlockEnded) event()      {}
func (PassInterrupted) event() {}
func (PassResumed) event()     {}
func (PassEnded) event()       {}
func (ToolStarted) event()     {}
func (ToolOutput) event()      {}
func (ToolEnded) event()       {}
func (AbortRequested) event()  {}
func (RunEnded) event()        {}
