package cursor

import (
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Limits of what waits for a client to read it. A client beyond them loses its link and comes back.
const (
	maxQueuedBytes    = 64 << 20
	maxQueuedMessages = 20_000
)

// outgoing is one message for the client, in protobuf.
type outgoing struct {
	data []byte
	mark uint64
}

// outbox is what is queued for a client. It is safe for concurrent use.
type outbox struct {
	news chan struct{} // has room for one signal

	mu      sync.Mutex
	queue   []outgoing
	bytes   int
	written uint64 // the greatest mark that was written
	ended   bool
	end     *cursorwire.Error
	told    bool // all of it was written, the end as well
}

// add queues m, and reports false when the client lets too much wait.
func (o *outbox) add(m *agentv1.AgentServerMessage, mark uint64) bool {
	data, err := proto.Marshal(m)
	if err != nil { // never: no required fields, and strings are not checked
		return true
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return true
	}
	o.queue = append(o.queue, outgoing{data, mark})
	o.bytes += len(data)
	o.signal()
	return o.bytes <= maxQueuedBytes && len(o.queue) <= maxQueuedMessages
}

// finish makes end the last thing that is written. Only the first one counts.
func (o *outbox) finish(end *cursorwire.Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.ended {
		o.ended, o.end = true, end
	}
	o.signal()
}

// take returns what is queued, to be given to wrote or back to restore.
func (o *outbox) take() (queue []outgoing, ended bool, end *cursorwire.Error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	queue = o.queue
	o.queue, o.bytes = nil, 0
	return queue, o.ended, o.end
}

// wrote notes that what was taken has reached the socket.
func (o *outbox) wrote(queue []outgoing, all bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range queue {
		o.written = max(o.written, m.mark)
	}
	o.told = o.told || all
}

// restore puts back what was taken and could not be written, for another reader.
func (o *outbox) restore(queue []outgoing) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range queue {
		o.bytes += len(m.data)
	}
	o.queue = append(queue, o.queue...)
}

// delivered reports whether the client has all of it and the end.
func (o *outbox) delivered() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.told
}

func (o *outbox) mark() uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.written
}

func (o *outbox) signal() {
	select {
	case o.news <- struct{}{}:
	default:
	}
}
