package cursor

import (
	"context"
	"net/http"
	"sync"
	"time"

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
	turn                  chan struct{} // holds a value while somebody writes

	mu      sync.Mutex
	headers cursorwire.Headers
	started bool
	expired bool // it may not start any more
	journal func(seq int64, data []byte) error
	newest  *reading
	writer  *reading // the one whose turn it is; nil for none
}

var _ link = (*wire)(nil)

func newWire(id string) *wire {
	w := &wire{id: id, connected: make(chan struct{}), gone: make(chan struct{}), over: make(chan struct{}), turn: make(chan struct{}, 1)}
	w.out.news, w.out.room = make(chan struct{}, 1), make(chan struct{}, 1)
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

// Room implements link.
func (w *wire) Room() <-chan struct{} { return w.out.waitForRoom() }

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

// keeper returns how a message that has overtaken others is kept, or nil.
func (w *wire) keeper() func(seq int64, data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.journal
}

// start makes the wire a link with a driver. It reports false if it is one already, or has expired.
func (w *wire) start(h cursorwire.Headers) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started || w.expired {
		return false
	}
	w.started, w.headers = true, h
	return true
}

// expire has the wire never start, once. It reports false if it has started or expired.
func (w *wire) expire() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.started || w.expired {
		return false
	}
	w.expired = true
	return true
}

func (w *wire) isStarted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.started
}

// isPlaceholder reports whether the wire may yet start.
func (w *wire) isPlaceholder() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.started && !w.expired
}

// reading is one client's hold on what is sent over a wire.
type reading struct {
	control *http.ResponseController
	stop    chan struct{} // closed when another one takes over
}

// read makes the caller the reader, as soon as the one before has stepped back: what that was writing
// has then been written, or is written again. It reports false when ctx has ended, or yet another
// reader has come, before.
func (w *wire) read(ctx context.Context, control *http.ResponseController) (*reading, bool) {
	r := &reading{control: control, stop: make(chan struct{})}
	w.mu.Lock()
	if w.newest != nil {
		close(w.newest.stop)
	}
	w.newest = r
	w.mu.Unlock()
	patience := time.NewTicker(yieldTime)
	defer patience.Stop()
	for {
		select {
		case w.turn <- struct{}{}:
			w.mu.Lock()
			defer w.mu.Unlock()
			w.writer = r
			w.once.connected.Do(func() { close(w.connected) })
			return r, true
		case <-patience.C:
			w.hurry()
		case <-r.stop:
			return r, false
		case <-ctx.Done():
			w.part(r)
			return r, false
		}
	}
}

// hurry ends a write to a peer that takes nothing.
func (w *wire) hurry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.writer != nil {
		_ = w.writer.control.SetWriteDeadline(time.Now()) // a writer in memory has none, and does not wait
	}
}

// yield lets the next reader write.
func (w *wire) yield() {
	w.mu.Lock()
	w.writer = nil
	w.mu.Unlock()
	<-w.turn
}

// part says that a reader reads no more. The wire loses its client with its newest reader only.
func (w *wire) part(r *reading) {
	w.mu.Lock()
	newest := w.newest == r
	w.mu.Unlock()
	if newest {
		w.leave()
	}
}
