package cursor

import (
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// outgoing is one message for the client, in protobuf.
type outgoing struct {
	data []byte
	mark uint64
}

// batch is what is written at once. Last is true when the end follows it.
type batch struct {
	messages []outgoing
	last     bool
	end      *cursorwire.Error
}

// outbox is what is queued for a client. It is safe for concurrent use.
type outbox struct {
	news chan struct{} // has room for one signal
	room chan struct{} // as well: there is room again

	mu      sync.Mutex
	queue   []outgoing
	bytes   int    // of queue
	written uint64 // the greatest mark that was written
	ended   bool
	end     *cursorwire.Error
	told    bool // all of it was written, the end as well
}

// add queues m, and reports false when the client lets too much wait: m is dropped then. A message
// that nothing waits before is never too much.
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
	if len(o.queue) > 0 && (o.bytes+len(data) > maxQueuedBytes || len(o.queue) >= maxQueuedMessages) {
		return false
	}
	o.queue = append(o.queue, outgoing{data, mark})
	o.bytes += len(data)
	o.signal()
	return true
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

// take returns what is to be written next, to be given to wrote or back to restore, and after all else
// the end. It reports false when nothing is.
func (o *outbox) take() (batch, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	n, size := 0, 0
	for n < len(o.queue) && (n == 0 || size+len(o.queue[n].data) <= maxWrite) {
		size += len(o.queue[n].data)
		n++
	}
	b := batch{messages: o.queue[:n:n], last: o.ended && n == len(o.queue), end: o.end}
	if o.queue = o.queue[n:]; len(o.queue) == 0 {
		o.queue = nil // frees what was written
	}
	o.bytes -= size
	if !o.fullLocked() {
		select {
		case o.room <- struct{}{}:
		default:
		}
	}
	return b, n > 0 || b.last
}

// waitForRoom returns nil while there is room for what can wait, and otherwise a channel that is
// signalled when there is.
func (o *outbox) waitForRoom() <-chan struct{} {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fullLocked() {
		return o.room
	}
	return nil
}

func (o *outbox) fullLocked() bool { return o.bytes+queuedCost*len(o.queue) > maxBacklog }

// wrote notes that what was taken has reached the socket.
func (o *outbox) wrote(b batch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range b.messages {
		o.written = max(o.written, m.mark)
	}
	o.told = o.told || b.last
}

// restore puts back what was taken and could not be written, for another reader.
func (o *outbox) restore(b batch) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, m := range b.messages {
		o.bytes += len(m.data)
	}
	o.queue = append(b.messages, o.queue...)
	o.signal()
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
