package cursor

import (
	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// link is one client's two-way connection for one attempt of a run, whatever carries it: RunSSE with
// BidiAppend, Run, or RunPoll. The transport makes it when the first message that starts something
// (a run_request or a prewarm_request) is there, and hands it to a driver in a goroutine of its own.
// Its methods are safe for concurrent use.
type link interface {
	// RequestID is the id of the attempt. The same id may come again, as another link.
	RequestID() string
	// Headers are those of the request that carried the first message.
	Headers() cursorwire.Headers
	// Received yields what the client sends, in the order in which it may be applied; the message
	// that started the link is the first. It is closed when no more can come.
	Received() <-chan received
	// Connected is closed once the client reads what is sent.
	Connected() <-chan struct{}
	// Gone is closed once nobody will read any more: the client has left, or never came within the
	// time that the transport waits for it.
	Gone() <-chan struct{}
	// Send queues m for the client and never blocks; a client that does not read loses the link.
	// Mark is how far m brings the client, or 0.
	Send(m *agentv1.AgentServerMessage, mark uint64)
	// Room returns nil while there is room for what can wait, and otherwise a channel that is signalled
	// when there is: whoever sends what happens as fast as it happens asks first.
	Room() <-chan struct{}
	// Written returns the greatest mark of what was written to the client's socket.
	Written() uint64
	// SetJournal says how to keep a message that arrived before its predecessors, so that it can
	// be acknowledged at once. Until it is set such a message is acknowledged when it is applied.
	SetJournal(func(seq int64, data []byte) error)
	// End ends the stream after what is queued, cleanly if err is nil. Later calls do nothing.
	End(err *cursorwire.Error)
}

// received is a message of the client. Done is called exactly once: with nil when what follows from
// the message is in the event log, so that it may be acknowledged; an error ends the client's run.
type received struct {
	Message *agentv1.AgentClientMessage
	Seq     int64
	Done    func(error)
}
