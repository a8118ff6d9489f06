package cursor

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/cursorwire/order"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// arrival is an append that was received.
type arrival struct {
	message *agentv1.AgentClientMessage
	data    []byte // the message as it came, until it is in its place
	size    int    // of data
	seq     int64
	headers cursorwire.Headers

	ready bool          // it was handed on; guarded by the line
	kept  chan struct{} // closed when the journal has it or refuses it; nil without

	once sync.Once
	err  error
	done chan struct{} // closed when it may be acknowledged, or refused with err
}

func (a *arrival) finish(err error) {
	a.once.Do(func() {
		a.err = err
		close(a.done)
	})
}

// waiting is an append whose handler has something to wait for.
type waiting struct {
	*arrival
	wire *wire
	keep func() error // for one that has overtaken others; nil without
}

// deliver puts an append into its order, and returns when it may be acknowledged. One without a run is
// acknowledged after a while, and waits on for one.
func (h *hub) deliver(ctx context.Context, id string, a *arrival) error {
	w, err := h.accept(ctx, id, a)
	if err != nil || w.arrival == nil {
		return err
	}
	if w.keep != nil {
		w.journal()
	}
	patience := time.NewTimer(order.DefaultLimits.Gap)
	defer patience.Stop()
	for {
		select {
		case <-w.done:
			return w.err
		case <-patience.C:
			if w.wire.isPlaceholder() { // a run may yet come for it, most likely none will
				return nil
			}
			continue
		case <-w.wire.over:
		case <-ctx.Done():
		case <-h.ctx.Done():
		}
		return nil
	}
}

// journal keeps a message that waits for others. Its driver does not get it before that is done, so
// that it knows of it.
func (w waiting) journal() {
	defer close(w.kept)
	if w.keep() == nil {
		w.finish(nil)
	}
}

// accept takes an append as soon as there is room for it, and returns what is to be waited for.
func (h *hub) accept(ctx context.Context, id string, a *arrival) (waiting, error) {
	for {
		l, err := h.line(id)
		if err != nil {
			return waiting{}, err
		}
		if room := l.wire.in.room(); room != nil {
			l.mu.Unlock()
			select {
			case <-room:
				continue
			case <-ctx.Done(): // the client has not been told that it was taken
				return waiting{}, nil
			case <-h.ctx.Done():
				return waiting{}, errClosing
			}
		}
		defer l.mu.Unlock()
		return h.take(l, a) //nolint:contextcheck // a run outlives the append that begins it
	}
}

// take puts an append into the order of a line. The caller holds l.mu.
func (h *hub) take(l *line, a *arrival) (waiting, error) {
	kind := order.KindOf(a.message)
	res := l.order.Accept(order.Message[*arrival]{
		Seq: a.seq, Kind: kind, Hash: sha256.Sum256(a.data), Size: a.size, Value: a,
	}, time.Now())
	if res.Duplicate {
		return waiting{arrival: l.pending[a.seq], wire: l.wire}, nil
	}
	if res.NewEpoch {
		if err := h.begin(l, a); err != nil {
			return waiting{}, err
		}
	}
	if a.seq > 0 || kind == order.Start {
		l.pending[a.seq] = a
	}
	h.apply(l, res)
	w := waiting{arrival: a, wire: l.wire}
	if keep := l.wire.keeper(); keep != nil && !a.ready {
		data := a.data
		w.keep = func() error { return keep(a.seq, data) }
		a.kept = make(chan struct{})
	}
	a.data = nil
	return w, nil
}

// begin starts the run of a new epoch, with a as its first message. The caller holds l.mu.
func (h *hub) begin(l *line, a *arrival) error {
	if l.epochs++; l.epochs > 1 { // what still waits concerns a former run
		for _, p := range l.pending {
			p.finish(nil)
		}
		clear(l.pending)
	}
	w := l.wire
	if !w.isPlaceholder() {
		if err := h.renew(l, false); err != nil {
			return err
		}
		w = l.wire
	}
	ended := func() { time.AfterFunc(h.opt.Retention, func() { h.forget(l, w) }) }
	if !h.drive(w, a.headers, ended) {
		return errClosing
	}
	return nil
}

// apply hands on what may be applied. The caller holds l.mu.
func (h *hub) apply(l *line, res order.Result[*arrival]) {
	if res.Skipped > 0 || res.Dropped > 0 {
		h.opt.Logger.Warn("appends were lost", slog.String("request", l.id), slog.Int64("skipped", res.Skipped), slog.Int("dropped", res.Dropped))
	}
	for _, a := range res.Ready {
		a.ready = true
		if !l.wire.in.put(delivery{received{Message: a.message, Seq: a.seq, Done: h.done(l, a)}, a.size, a.kept}) {
			a.finish(nil) // there is no run, or no longer
			l.settle(a)
		}
	}
	h.schedule(l)
}

// done returns what a driver calls when it has taken a.
func (h *hub) done(l *line, a *arrival) func(error) {
	return func(err error) {
		if err != nil {
			err = driverError{err}
		}
		a.finish(err)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.settle(a)
	}
}

// settle forgets that a was pending. The caller holds l.mu.
func (l *line) settle(a *arrival) {
	if l.pending[a.seq] == a {
		delete(l.pending, a.seq)
	}
}

// schedule has the line give up a gap when its time has come. Before there is a run its messages wait
// for that. The caller holds l.mu.
func (h *hub) schedule(l *line) {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	at, ok := l.order.Deadline()
	if !ok || !l.wire.isStarted() {
		return
	}
	l.timer = time.AfterFunc(time.Until(at), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.dead {
			h.apply(l, l.order.Expire(time.Now()))
		}
	})
}
