package cursor

import (
	"log/slog"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/cursorwire/order"
)

// line is a request id: its appends in order, and the wire of its newest epoch (section 2.4).
type line struct {
	id string

	mu      sync.Mutex
	order   *order.Stream[*arrival]
	pending map[int64]*arrival // with a number, and not yet taken by a driver
	timer   *time.Timer        // for a gap
	wire    *wire
	epochs  int
	dead    bool // it is forgotten: whoever holds it looks the id up again
}

// line returns that of a request id, locked, and makes it if need be.
func (h *hub) line(id string) (*line, error) {
	for {
		l, err := h.lookUp(id)
		if err != nil {
			return nil, err
		}
		l.mu.Lock()
		if !l.dead {
			return l, nil
		}
		l.mu.Unlock()
	}
}

func (h *hub) lookUp(id string) (*line, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l := h.lines[id]
	switch {
	case h.closed:
		return nil, errClosing
	case l != nil:
		return l, nil
	case len(h.lines) >= maxLines:
		return nil, errBusy
	}
	w, err := h.admitLocked(id, true)
	if err != nil {
		return nil, err
	}
	l = &line{id: id, order: order.New[*arrival](order.DefaultLimits), pending: make(map[int64]*arrival), wire: w}
	h.lines[id] = l
	h.await(l, w)
	return l, nil
}

// renew gives a line a wire for its next epoch. The caller holds l.mu.
func (h *hub) renew(l *line, placeholder bool) error {
	w, err := h.admit(l.id, placeholder)
	if err != nil {
		return err
	}
	l.wire.in.close() // a driver that is still there gets no more
	l.wire = w
	h.await(l, w)
	return nil
}

// await ends the wait for what a wire of l still lacks after a while: its run, or its reader.
func (h *hub) await(l *line, w *wire) {
	time.AfterFunc(h.opt.Placeholder, func() {
		if h.drop(w, cursorwire.Interrupted("no run has come for this stream; try again")) {
			h.forget(l, w)
		} else {
			h.unread(w)
		}
	})
}

// forget drops a line whose newest wire is w.
func (h *hub) forget(l *line, w *wire) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wire != w || l.dead {
		return
	}
	l.dead = true
	if n := len(l.pending); n > 0 {
		h.opt.Logger.Warn("appends had no run to go to", slog.String("request", l.id), slog.Int("dropped", n))
	}
	for _, a := range l.pending {
		a.finish(nil)
	}
	if l.timer != nil {
		l.timer.Stop()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.lines, l.id)
}
