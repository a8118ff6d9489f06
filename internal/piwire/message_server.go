package piwire

// ServerMessage is what a server sends: [*ServerHello], [*HelloError],
// [*Response], or an [Event] (section 2.8).
type ServerMessage interface{ serverMessage() }

// ServerHello accepts a client's hello. It always says version 1.
type ServerHello struct {
	ConnectionID string // not empty
	Snapshot     *ServerSnapshot
}

// HelloError is the last message of a connection that the server gives up, at
// whatever time.
type HelloError struct{ Error ProtocolError }

// Response answers the request with the same ID. Exactly one of Result and Error
// is set.
type Response struct {
	ID     string
	Result Result
	Error  *ProtocolError
}

func (*ServerHello) serverMessage() {}
func (*HelloError) serverMessage()  {}
func (*Response) serverMessage()    {}

// ProtocolError is an error as clients see it. Message may be empty; Details is
// optional.
type ProtocolError struct {
	Code    ErrorCode
	Message string
	Details Value
}

// Result is what a command returned: [*ListResult], [*DetachResult], or
// [*SessionResult] for the other seven.
type Result interface {
	// CommandName returns the command that is answered.
	CommandName() CommandName
	result()
}

// ListResult answers list.
type ListResult struct{ Sessions []SessionMetadata }

// DetachResult answers detach.
type DetachResult struct{ SessionID string }

// SessionResult answers every command but list and detach with a snapshot.
type SessionResult struct {
	Command CommandName
	Session *SessionSnapshot
}

// CommandName implements [Result].
func (*ListResult) CommandName() CommandName { return CommandList }

// CommandName implements [Result].
func (*DetachResult) CommandName() CommandName { return CommandDetach }

// CommandName implements [Result].
func (r *SessionResult) CommandName() CommandName { return r.Command }

func (*ListResult) result()    {}
func (*DetachResult) result()  {}
func (*SessionResult) result() {}

// Event is an unasked message of a server: [*ServerSnapshotEvent],
// [*SessionSnapshotEvent], [*SessionProgressEvent], [*SessionRemovedEvent].
type Event interface {
	ServerMessage
	event()
}

// ServerSnapshotEvent says that sessions or models have changed.
type ServerSnapshotEvent struct{ Snapshot *ServerSnapshot }

// SessionSnapshotEvent is the whole state of an attached session.
type SessionSnapshotEvent struct{ Snapshot *SessionSnapshot }

// SessionProgressEvent is a small change of an attached session's transcript.
type SessionProgressEvent struct {
	SessionID string // not empty
	Progress  Progress
}

// SessionRemovedEvent says that a session is gone.
type SessionRemovedEvent struct{ SessionID string }

func (*ServerSnapshotEvent) serverMessage()  {}
func (*SessionSnapshotEvent) serverMessage() {}
func (*SessionProgressEvent) serverMessage() {}
func (*SessionRemovedEvent) serverMessage()  {}

func (*ServerSnapshotEvent) event()  {}
func (*SessionSnapshotEvent) event() {}
func (*SessionProgressEvent) event() {}
func (*SessionRemovedEvent) event()  {}

// Progress is one step of a transcript (section 2.5): [*ItemStarted],
// [*AssistantDelta], [*ItemUpdated], [*ItemFinished].
type Progress interface{ progress() }

// ItemStarted introduces an item in any state.
type ItemStarted struct{ Item Item }

// AssistantDelta extends one content block of an assistant item.
type AssistantDelta struct {
	MessageID    string // not empty
	ContentIndex int64  // 0 to MaxCount
	Kind         DeltaKind
	Delta        string // may be empty
}

// ItemUpdated replaces an assistant or tool item, in any state.
type ItemUpdated struct{ Item Item }

// ItemFinished replaces an assistant or tool item by its settled form.
type ItemFinished struct{ Item Item }

func (*ItemStarted) progress()    {}
func (*AssistantDelta) progress() {}
func (*ItemUpdated) progress()    {}
func (*ItemFinished) progress()   {}
