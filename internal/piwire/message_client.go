package piwire

// ProtocolVersion is the version this package speaks.
const ProtocolVersion = 1

// ClientMessage is what a client sends: [*Hello] or [*Request] (section 2.7).
type ClientMessage interface{ clientMessage() }

// Hello is the first message of a client. Any Version from 0 to [MaxCount]
// decodes, so that the server can answer with a typed error.
type Hello struct{ Version int64 }

// Request asks for one command. ID is chosen by the client and not empty.
type Request struct {
	ID      string
	Command Command
}

func (*Hello) clientMessage()   {}
func (*Request) clientMessage() {}

// Command is one of the nine commands: [*List], [*Create], [*Attach], [*Detach],
// [*Prompt], [*Steer], [*Abort], [*SetModel], [*SetThinking].
type Command interface {
	// CommandName returns the name that the response has to repeat.
	CommandName() CommandName
	command()
}

// List asks for all sessions.
type List struct{}

// Create makes a session and attaches to it.
type Create struct {
	Cwd           string        // optional, "" is absent
	Name          *string       // optional, may be empty
	Model         *ModelRef     // optional
	ThinkingLevel ThinkingLevel // optional, "" is absent
}

// Attach subscribes the connection to a session.
type Attach struct{ SessionID string }

// Detach ends a subscription.
type Detach struct{ SessionID string }

// Prompt starts a turn. Text may be empty.
type Prompt struct{ SessionID, Text string }

// Steer adds a message to a running turn. Text may be empty.
type Steer struct{ SessionID, Text string }

// Abort stops a running turn.
type Abort struct{ SessionID string }

// SetModel changes the model of a session.
type SetModel struct {
	SessionID string
	Model     ModelRef
}

// SetThinking changes the thinking level of a session.
type SetThinking struct {
	SessionID     string
	ThinkingLevel ThinkingLevel
}

// CommandName implements [Command].
func (*List) CommandName() CommandName { return CommandList }

// CommandName implements [Command].
func (*Create) CommandName() CommandName { return CommandCreate }

// CommandName implements [Command].
func (*Attach) CommandName() CommandName { return CommandAttach }

// CommandName implements [Command].
func (*Detach) CommandName() CommandName { return CommandDetach }

// CommandName implements [Command].
func (*Prompt) CommandName() CommandName { return CommandPrompt }

// CommandName implements [Command].
func (*Steer) CommandName() CommandName { return CommandSteer }

// CommandName implements [Command].
func (*Abort) CommandName() CommandName { return CommandAbort }

// CommandName implements [Command].
func (*SetModel) CommandName() CommandName { return CommandSetModel }

// CommandName implements [Command].
func (*SetThinking) CommandName() CommandName { return CommandSetThinking }

func (*List) command()        {}
func (*Create) command()      {}
func (*Attach) command()      {}
func (*Detach) command()      {}
func (*Prompt) command()      {}
func (*Steer) command()       {}
func (*Abort) command()       {}
func (*SetModel) command()    {}
func (*SetThinking) command() {}
