package cursor

import (
	"context"
	"sync"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// wire is the link of one epoch of a request id. It is a placeholder until its first message is
// there, which starts its driver.
type wire struct {
	id  string
	out outbox
	in  inbox

	connected, gone, over chan struct{}
	once                  struct{ connected, gone, over sync.Once }

	mu       sync.Mutex
	headers  cursorwire.Headers
	started  bool
	journal  func(seq int64, data []byte) error
	replaced chan struct{} // closed when another reader takes over
}

var _ link = (*wire)(nil)

func newWire(id string) *wire {
	w := &wire{id: id, connected: make(chan struct{}), gone: make(chan struct{}), over: make(chan struct{})}
	w.out.news = make(chan struct{}, 1)
	w.in.room = sync.NewCond(&w.in.mu)
	return w
}

// RequestID implements link.
func (w *wire) RequestID() string { return w.id }

// Headers implements link.
func (w *wire) Headers() cursorwire.Headers {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.headers
}

// Received implements link.
func (w *wire) Received() <-chan received { return w.in.out }

// Connected implements link.
func (w *wire) Connected() <-chan struct{} { return w.connected }

// Gone implements link.
func (w *wire) Gone() <-chan struct{} { return w.gone }

// Send implements link.
func (w *wire) Send(m *agentv1.AgentServerMessage, mark uint64) {
	if !w.out.add(m, mark) {
		w.out.finish(cursorwire.Interrupted("the client does not read"))
		w.leave()
	}
}

// Written implements link.
func (w *wire) Written() uint64 { return w.out.mark() }

// SetJournal implements link.
func (w *wire) SetJournal(f func(seq int64, data []byte) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.journal = f
}

// End implements link.
func (w *wire) End(err *cursorwire.Error) { w.out.finish(err) }

func (w *wire) leave() { w.once.gone.Do(func() { close(w.gone) }) }

// keep journals a message that has overtaken others, and reports whether that was possible.
func (w *wire) keep(seq int64, data []byte) bool {
	w.mu.Lock()
	journal := w.journal
	w.mu.Unlock()
	return journal != nil && journal(seq, data) == nil
}

// start makes the wire a link with a driver, once.
func (w *wire) start(h cursorwire.Headers) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started {
		return false
	}
	w.started, w.headers = true, h
	return true
}

func (w *wire) isStarted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.started
}

// read makes the caller the reader. The one before, if any, is told by its channel.
func (w *wire) read() (replaced <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.replaced != nil {
		close(w.replaced)
	}
	w.replaced = make(chan struct{})
	w.once.connected.Do(func() { close(w.connected) })
	return w.replaced
}

// maxInbox is how many messages wait for a driver before the transport does.
const maxInbox = 1024

// inbox hands messages to a driver in order, from many senders that do not wait for it.
type inbox struct {
	out chan received

	mu     sync.Mutex
	room   *sync.Cond
	queue  []received
	news   chan struct{}
	closed bool // no more come
	over   bool // nobody takes any
}

// open readies the inbox for its driver, until ctx ends.
func (b *inbox) open(ctx context.Context, work *sync.WaitGroup) {
	b.mu.Lock()
	b.out, b.news = make(chan received), make(chan struct{}, 1)
	b.mu.Unlock()
	work.Go(func() {
		defer close(b.out)
		for {
			b.mu.Lock()
			queue, closed := b.queue, b.closed
			b.queue = nil
			b.room.Broadcast()
			b.mu.Unlock()
			for i, r := range queue {
				select {
				case b.out <- r:
				case <-ctx.Done():
					b.end(queue[i:])
					return
				}
			}
			if closed && len(queue) == 0 {
				return
			}
			if len(queue) > 0 {
				continue
			}
			select {
			case <-b.news:
			case <-ctx.Done():
				b.end(nil)
				return
			}
		}
	})
}

// end acknowledges what nobody takes any more.
func (b *inbox) end(rest []received) {
	b.mu.Lock()
	rest = append(rest, b.queue...)
	b.queue, b.over = nil, true
	b.room.Broadcast()
	b.mu.Unlock()
	for _, r := range rest {
		r.Done(nil)
	}
}

// put queues messages. It never waits.
func (b *inbox) put(list ...received) {
	b.mu.Lock()
	over := b.over
	if !over {
		b.queue = append(b.queue, list...)
	}
	b.mu.Unlock()
	if over {
		for _, r := range list {
			go r.Done(nil) // it takes the lock of the line, which the caller may hold
		}
		return
	}
	b.wake()
}

// wait returns when there is room for more.
func (b *inbox) wait() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.queue) > maxInbox && !b.over {
		b.room.Wait()
	}
}

// close says that no more come.
func (b *inbox) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.wake()
}

func (b *inbox) wake() {
	select {
	case b.news <- struct{}{}:
	default:
	}
}
