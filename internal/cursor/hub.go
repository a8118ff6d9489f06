package cursor

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire"
)

// What the transport holds at most.
const (
	// maxLines bounds the request ids that are known at a time, and maxPlaceholders those of them,
	// and of the streams of Run, that no run has come for. Beyond them a client is told to come back.
	maxLines        = 20_000
	maxPlaceholders = 5_000
	// maxInbox and maxInboxBytes bound what waits for one driver. Beyond them appends wait unread.
	maxInbox      = 1024
	maxInboxBytes = 2 * cursorwire.MaxMessage
	// maxQueuedBytes and maxQueuedMessages bound what waits for one client to read it. A client
	// beyond them loses its link and comes back.
	maxQueuedBytes    = 64 << 20
	maxQueuedMessages = 20_000
	// maxBacklog is how many bytes may wait before its driver reads no more of what happens, and
	// queuedCost what a message costs besides its text. What happens waits in the event log then.
	maxBacklog = 256 << 10
	queuedCost = 64
	// maxWrite is how many bytes are written at once, unless one message is longer.
	maxWrite = 256 << 10

	writeTime    = time.Minute      // for a client to take what is written at once
	readTime     = 10 * time.Minute // for an append to arrive: 128 MiB in hex at 4 Mbit/s
	readHeadTime = 30 * time.Second // for the request of a stream
	yieldTime    = time.Second      // for a reader to step back by itself
)

// hubOptions is what a hub is made of. Drive is required.
type hubOptions struct {
	Drive       func(context.Context, link)
	EventStream func(cursorwire.Headers) bool // nil for never
	Logger      *slog.Logger                  // nil discards
	Stuck       func()                        // a client was given up that takes nothing; nil for nothing

	Placeholder time.Duration // for the other half of a run to come; 0 means 30 s (section 2.3)
	Retention   time.Duration // for a reader of a run that has ended; 0 means 30 s
	Heartbeat   time.Duration // of silence before one is written; 0 means 5 s (section 1.7)
	MaxMessage  int           // bytes; 0 means cursorwire.MaxMessage
}

// hub joins what carries a run: appends and readers find each other by the request id, in either
// order (section 2.3), and a driver serves what has come together. It is safe for concurrent use.
// Where both are held, the lock of a line comes before that of the hub.
type hub struct {
	opt    hubOptions
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu           sync.Mutex
	lines        map[string]*line
	wires        map[*wire]bool // that are not over
	placeholders int            // how many of them have not started
	closed       bool
	readers      int           // streams that are being written
	drained      chan struct{} // closed when none is any more, after closed
}

func newHub(opt hubOptions) *hub {
	set := func(d *time.Duration, to time.Duration) {
		if *d == 0 {
			*d = to
		}
	}
	set(&opt.Placeholder, 30*time.Second)
	set(&opt.Retention, 30*time.Second)
	set(&opt.Heartbeat, 5*time.Second)
	if opt.MaxMessage == 0 {
		opt.MaxMessage = cursorwire.MaxMessage
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.EventStream == nil {
		opt.EventStream = func(cursorwire.Headers) bool { return false }
	}
	h := &hub{opt: opt, lines: make(map[string]*line), wires: make(map[*wire]bool), drained: make(chan struct{})}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

func (h *hub) register(mux *http.ServeMux) {
	mux.HandleFunc(cursorwire.PathBidiAppend, h.append)
	mux.HandleFunc(cursorwire.PathRunSSE, h.runSSE)
	mux.HandleFunc(cursorwire.PathRun, h.run)
	mux.HandleFunc(cursorwire.PathRunPoll, h.runPoll)
}

// Why a stream or an append is turned away; its client tries again.
var (
	errBusy    = cursorwire.Interrupted("the server has too many streams")
	errClosing = cursorwire.Interrupted("the server is shutting down")
)

// lastWords is how long the streams may take to write their ends when the server closes.
const lastWords = time.Second

// Close ends every stream with an error that has its client try again, and returns when no driver
// runs any more and the clients have been told.
func (h *hub) Close() {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		h.drain()
	}
	var waiting []*wire
	for w := range h.wires {
		waiting = append(waiting, w)
	}
	h.mu.Unlock()
	for _, w := range waiting {
		h.drop(w, errClosing)
	}
	h.cancel()
	h.work.Wait()
	select {
	case <-h.drained:
	case <-time.After(lastWords):
	}
}

// reading notes that a stream is being written, until the function it returns is called.
func (h *hub) reading() (done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readers++
	return func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.readers--
		h.drain()
	}
}

// drain is called with the lock held.
func (h *hub) drain() {
	if h.closed && h.readers == 0 && !isClosed(h.drained) {
		close(h.drained)
	}
}

// admit makes the wire of a request id. One that is not about to start is a placeholder.
func (h *hub) admit(id string, placeholder bool) (*wire, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.admitLocked(id, placeholder)
}

func (h *hub) admitLocked(id string, placeholder bool) (*wire, error) {
	switch {
	case h.closed:
		return nil, errClosing
	case placeholder && h.placeholders >= maxPlaceholders:
		return nil, errBusy
	}
	w := newWire(id)
	h.wires[w] = true
	h.placeholders++
	return w, nil
}

// over forgets a wire that has no driver, or no longer.
func (h *hub) over(w *wire) {
	w.once.over.Do(func() { close(w.over) })
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.wires[w] && !w.isStarted() {
		h.placeholders--
	}
	delete(h.wires, w)
}

// drop ends a wire that has not started, and has it never start. It reports false for another.
func (h *hub) drop(w *wire, err *cursorwire.Error) bool {
	if !w.expire() {
		return false
	}
	h.over(w)
	w.End(err)
	return true
}

// unread gives up the wait for a reader that has not come.
func (h *hub) unread(w *wire) {
	select {
	case <-w.connected:
	default:
		w.leave()
	}
}

// drive starts the driver of a wire, whose first message is put in by the caller afterwards. Ended is
// called when the driver has returned. It reports false when the wire may no longer start.
func (h *hub) drive(w *wire, head cursorwire.Headers, ended func()) bool {
	h.mu.Lock()
	if h.closed || !w.start(head) {
		h.mu.Unlock()
		return false
	}
	h.placeholders--
	ctx, cancel := context.WithCancel(h.ctx)
	w.in.open(ctx, &h.work)
	h.work.Add(1)
	h.mu.Unlock()
	go func() {
		defer h.work.Done()
		defer func() {
			if v := recover(); v != nil {
				h.opt.Logger.Error("a run failed", slog.String("request", w.id), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
			}
			w.End(cursorwire.Interrupted("the server failed; try again")) // unless it has ended otherwise
			cancel()
			h.over(w)
			ended()
		}()
		h.opt.Drive(ctx, w)
	}()
	return true
}

// newRequestID is for streams whose client gives none.
func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x", b)
}
