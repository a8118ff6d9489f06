package cursor

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/cursorwire/order"
)

// maxLines bounds the request ids that are known at a time.
const maxLines = 20_000

// hubOptions is what a hub is made of. Drive is required.
type hubOptions struct {
	Drive       func(context.Context, link)
	EventStream func(cursorwire.Headers) bool // nil for never
	Logger      *slog.Logger                  // nil discards

	Placeholder time.Duration // for the other half of a run to come; 0 means 30 s (section 2.3)
	Retention   time.Duration // for a reader of a run that has ended; 0 means 30 s
	Heartbeat   time.Duration // of silence before one is written; 0 means 5 s (section 1.7)
	MaxMessage  int           // bytes; 0 means cursorwire.MaxMessage
}

// hub joins what carries a run: appends and readers find each other by the request id, in either
// order (section 2.3), and a driver serves what has come together. It is safe for concurrent use.
type hub struct {
	opt    hubOptions
	ctx    context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu     sync.Mutex
	lines  map[string]*line
	wires  map[*wire]bool // that are not over
	closed bool
}

// line is a request id: its appends in order, and the wire of its newest epoch.
type line struct {
	id string

	mu      sync.Mutex
	order   *order.Stream[*arrival]
	pending map[int64]*arrival // not yet acknowledged, by number
	timer   *time.Timer
	wire    *wire
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
	h := &hub{opt: opt, lines: make(map[string]*line), wires: make(map[*wire]bool)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

func (h *hub) register(mux *http.ServeMux) {
	mux.HandleFunc(cursorwire.PathBidiAppend, h.append)
	mux.HandleFunc(cursorwire.PathRunSSE, h.runSSE)
	mux.HandleFunc(cursorwire.PathRun, h.run)
	mux.HandleFunc(cursorwire.PathRunPoll, h.runPoll)
}

// Close ends every stream with an error that has its client try again, and returns when no driver
// runs any more.
func (h *hub) Close() {
	h.mu.Lock()
	h.closed = true
	wires := make([]*wire, 0, len(h.wires))
	for w := range h.wires {
		wires = append(wires, w)
	}
	lines := slices.Collect(maps.Values(h.lines))
	h.mu.Unlock()
	for _, l := range lines {
		l.mu.Lock()
		wires = append(wires, l.wire)
		l.mu.Unlock()
	}
	for _, w := range wires {
		if !w.isStarted() {
			w.End(cursorwire.Interrupted("the server is shutting down"))
		}
	}
	h.cancel()
	h.work.Wait()
}

// errBusy is for a server that has no room for another stream.
var errBusy = cursorwire.Interrupted("the server has too many streams")

// line returns that of a request id, and makes it if need be.
func (h *hub) line(id string) (*line, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.lines[id]
	switch {
	case h.closed:
		return nil, cursorwire.Interrupted("the server is shutting down")
	case l != nil:
		return l, nil
	case len(h.lines) >= maxLines:
		return nil, errBusy
	}
	l = &line{id: id, order: order.New[*arrival](order.DefaultLimits), pending: make(map[int64]*arrival)}
	h.lines[id] = l
	h.renew(l)
	return l, nil
}

// renew gives a line a wire for its next epoch. The caller holds h.mu or l.mu, and nobody else uses l.
func (h *hub) renew(l *line) {
	w := newWire(l.id)
	l.wire = w
	time.AfterFunc(h.opt.Placeholder, func() {
		if w.isStarted() {
			h.unread(w)
			return
		}
		w.End(cursorwire.Interrupted("no run has come for this stream; try again"))
		h.forget(l, w)
	})
}

// unread gives up the wait for a reader that has not come.
func (h *hub) unread(w *wire) {
	select {
	case <-w.connected:
	default:
		w.leave()
	}
}

// forget drops a line whose newest wire is w.
func (h *hub) forget(l *line, w *wire) {
	l.mu.Lock()
	drop := l.wire == w
	if drop {
		for _, a := range l.pending {
			a.finish()
		}
		if l.timer != nil {
			l.timer.Stop()
		}
	}
	l.mu.Unlock()
	if !drop {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.lines[l.id] == l {
		delete(h.lines, l.id)
	}
}

// drive starts the driver of a wire, whose first message is put in by the caller afterwards. L is nil
// for a wire that no request id leads to.
func (h *hub) drive(w *wire, head cursorwire.Headers, l *line) {
	if !w.start(head) {
		return
	}
	ctx, cancel := context.WithCancel(h.ctx)
	h.mu.Lock()
	h.wires[w] = true
	h.mu.Unlock()
	w.in.open(ctx, &h.work)
	h.work.Go(func() {
		defer func() {
			if v := recover(); v != nil {
				h.opt.Logger.Error("a run failed", slog.String("request", w.id), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
			}
			w.End(cursorwire.Interrupted("the server failed; try again")) // unless it has ended otherwise
			cancel()
			w.once.over.Do(func() { close(w.over) })
			h.mu.Lock()
			delete(h.wires, w)
			h.mu.Unlock()
			if l != nil {
				time.AfterFunc(h.opt.Retention, func() { h.forget(l, w) })
			}
		}()
		h.opt.Drive(ctx, w)
	})
}

// newRequestID is for streams whose client gives none.
func newRequestID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return fmt.Sprintf("%x", b)
}
