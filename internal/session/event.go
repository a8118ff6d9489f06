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

// ModeSet changes the mode. With an Offer, the tools of the run in progress change with it.
type ModeSet struct {
	Mode  Mode
	Offer string
}

// ItemsCopied puts settled items of another session, or of a file, into a new session.
type ItemsCopied struct {
	Items   []Item
	LastRun RunID  // the newest run in them
	Users   uint32 // user items ever made there
}

// Rewound takes the newest items away: the first Items of the transcript stay.
type Rewound struct{ Items int }

// NoteAdded tells the model something that no person said.
type NoteAdded struct {
	Item    ItemID
	Note    Note
	Text    string
	Context string // the hash of what the model knows of the project from now on; empty when that stays
}

// CompactionStarted is the intent to have the items before Through summarised.
type CompactionStarted struct{ Through int }

// CompactionEnded says what the model is told in place of old items from now on. The items
// themselves stay.
type CompactionEnded struct {
	Summarized int    // items before it are replaced by Summary
	Summary    string // empty when Summarized is 0
	Shortened  int    // tool outputs of items before it are shortened
	Usage      *Usage
	Error      string // why there is no new summary
}

// RunStarted is an accepted prompt. Its user item is in the transcript from now on. Without
// an Item it is a compaction that somebody asked for or, with Resume, another try at what the
// run before left unanswered.
type RunStarted struct {
	Run    RunID
	Item   ItemID
	Prompt string // the client's id of the prompt, or empty
	Blocks []Block
	Offer  string // hash of the blob with the tools that a client runs; empty for those of the workspace
	Resume bool
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
	Overflow bool   // the request did not fit the model's context window
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
	Fault         Fault
}

// ToolStarted is the intent of a tool run. With a Query it runs once the query is answered.
type ToolStarted struct {
	Call  CallID
	Host  Host
	Query *Query
	// Repeatable says that running it twice does no harm, so that it is run again after a crash.
	Repeatable bool
}

// ToolIssued is the intent to have a client run a call: from now on it may have taken effect.
// Calls that may be repeated have none.
type ToolIssued struct{ Call CallID }

// Query asks the person whether a call may run.
type Query struct {
	Reason string   // why it is asked
	Grants []string // what an answer beyond this once would allow
	Until  int64    // milliseconds since 1970, when the call is refused instead; 0 for never
}

// QueryAnswered is the one answer to a query.
type QueryAnswered struct {
	Call   CallID
	Allow  bool
	Reason string   // for the model, when it is not allowed
	Grants []string // what the rest of the session may do without asking
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
	Last    bool // the run ends with this result
}

// AbortRequested ends the run as soon as what is running has stopped. Queued steers are
// dropped.
type AbortRequested struct{}

// FrontSet is something that a front end has to remember beyond a connection. It means
// nothing to the session. An empty Value removes what was kept under the Key.
type FrontSet struct {
	Key   string
	Value []byte
}

// TakenUp says that the process, or the actor, that drove the run has ended without warning,
// and that another one goes on from here.
type TakenUp struct{}

// RunEnded makes the session idle.
type RunEnded struct {
	Outcome Outcome
	Error   string // for a person; set when Outcome is RunFailed
	Fault   Fault
}

// Fault says why a model could not answer, for those who decide whether to ask again. It is
// empty when there is no error, or when it is none of a model.
type Fault string

// The faults.
const (
	FaultNone        Fault = ""
	FaultUnavailable Fault = "unavailable" // it may answer later
	FaultKey         Fault = "key"         // the provider's key is missing or refused
	FaultContext     Fault = "context"     // the context does not fit, though it was made smaller
	FaultRequest     Fault = "request"     // the provider refuses the request
)

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

func (ModeSet) event()           {}
func (ItemsCopied) event()       {}
func (Rewound) event()           {}
func (NoteAdded) event()         {}
func (CompactionStarted) event() {}
func (CompactionEnded) event()   {}
func (QueryAnswered) event()     {}
func (ToolIssued) event()        {}
func (FrontSet) event()          {}
func (TakenUp) event()           {}
