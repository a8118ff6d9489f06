package session

import "encoding/json"

// Block is a piece of an item: [Text], [Reasoning], [Image] or [ToolCall].
type Block interface{ block() }

// Text is plain text.
type Text struct{ Text string }

// Reasoning is a model's thinking. Signature is the provider's proof of it: opaque, kept
// byte for byte, and valid only for the model that made it. When Redacted is set, Text is
// empty and Signature holds the provider's encrypted reasoning.
type Reasoning struct {
	Text      string
	Signature string
	Redacted  bool
}

// Image is a picture whose bytes are in the blob store.
type Image struct {
	MIME string
	Blob string // hex SHA-256 of the bytes
	Size int64  // bytes
}

// ToolCall is a tool use asked by the model. Input is the JSON text as it was streamed:
// while Complete is false it is a prefix, and even when complete it may be malformed.
type ToolCall struct {
	Call     CallID
	Name     string
	Input    string
	Complete bool
}

func (Text) block()      {}
func (Reasoning) block() {}
func (Image) block()     {}
func (ToolCall) block()  {}

// BlockText returns the text of a block: what is said, thought, or the JSON of a call's
// input. An image has none.
func BlockText(b Block) string {
	switch b := b.(type) {
	case Text:
		return b.Text
	case Reasoning:
		return b.Text
	case ToolCall:
		return b.Input
	case Image:
	}
	return ""
}

// Item is one entry of the transcript: [*User], [*Assistant] or [*Tool]. A settled item
// never changes again, so it may be shared between goroutines.
type Item interface {
	ItemID() ItemID
	item()
}

// User is a message of the person: the prompt that began a run, or a steer.
type User struct {
	ID     ItemID
	Run    RunID  // the run it began or steered
	Prompt string // the client's id of the prompt; empty when the client gave none
	Steer  bool
	Note   Note    // who speaks when it is not the person; people need not be shown it
	Blocks []Block // Text and Image
	At     int64   // milliseconds since 1970
}

// Note says what a message that no person wrote is about.
type Note string

// The kinds of Note.
const (
	NoteNone    Note = ""
	NoteContext Note = "context" // the environment, the project's rules and skills
	NoteMode    Note = "mode"    // the mode has changed
	NoteHook    Note = "hook"    // what a hook had to add
	NoteClient  Note = "client"  // what a client did by itself
)

// Assistant is what a model said in one pass.
type Assistant struct {
	ID            ItemID
	Run           RunID
	Pass          int // from 1 within the run
	Model         ModelRef
	ResponseModel string  // the name the provider answered with, when it differs
	Blocks        []Block // Text, Reasoning and ToolCall
	Status        Status
	Stop          StopReason // meaningful when Status is Complete
	Error         string     // for a person; set when Status is Failed, and perhaps when Aborted
	Usage         *Usage     // nil while unknown
	At            int64      // milliseconds since 1970
}

// Calls returns the tool calls of the item in order.
func (a *Assistant) Calls() []ToolCall {
	var calls []ToolCall
	for _, b := range a.Blocks {
		if c, ok := b.(ToolCall); ok {
			calls = append(calls, c)
		}
	}
	return calls
}

// Tool is a tool call with its one result.
type Tool struct {
	ID      ItemID
	Run     RunID
	Call    CallID
	Name    string
	Input   string // the call's JSON text
	Host    Host
	Status  Status          // Streaming while it runs, then Complete or Failed
	Query   *Query          // what is asked before it runs; nil when nothing is, or it was answered
	Output  string          // what the model reads
	Images  []Image         // after Output
	Details json.RawMessage // for people and programs, not for the model; nil when there are none
	At      int64           // milliseconds since 1970
}

// ItemID returns the item's id.
func (u *User) ItemID() ItemID { return u.ID }

// ItemID returns the item's id.
func (a *Assistant) ItemID() ItemID { return a.ID }

// ItemID returns the item's id.
func (t *Tool) ItemID() ItemID { return t.ID }

func (*User) item()      {}
func (*Assistant) item() {}
func (*Tool) item()      {}

// Status is how far an assistant or tool item has come.
type Status uint8

// The statuses. An item is settled in all but Streaming.
const (
	Streaming Status = iota // an answer that streams in, a tool that runs
	Complete
	Failed
	Aborted // assistant items only: an aborted tool is Failed
)

// StopReason is why a model ended its answer.
type StopReason uint8

// The stop reasons.
const (
	StopNone    StopReason = iota
	StopEnd                // it had said all it wanted
	StopLength             // it reached the limit of its output
	StopToolUse            // it waits for tool results
	StopRefusal            // it, or a filter of its provider, declined
)

// Host is who runs a tool call.
type Host uint8

// The hosts.
const (
	HostWorkspace Host = iota // this server, in the session's working directory
	HostClient                // a connected client
)
