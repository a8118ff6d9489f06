package cursor

import (
	"crypto/sha256"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/cursorwire/order"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// arrival is an append that was received.
type arrival struct {
	message *agentv1.AgentClientMessage
	seq     int64
	headers cursorwire.Headers
	ready   bool // it was handed on; guarded by the line
	done    chan struct{}
	once    sync.Once
}

func (a *arrival) finish() { a.once.Do(func() { close(a.done) }) }

// append answers BidiAppend. It is acknowledged when what follows from it lasts, and never waits for
// another append; only what is no append is an error, because any error ends the client's run
// (sections 1.5, 1.6 and 2.2).
func (h *hub) append(w http.ResponseWriter, r *http.Request) {
	codec, ok := cursorwire.UnaryCodec(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	case !ok:
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return
	}
	a, data, id, err := h.readAppend(r, codec)
	if err == nil {
		err = h.deliver(r, id, a, data)
	}
	if err != nil {
		wire, ok := errors.AsType[*cursorwire.Error](err)
		if !ok { // the client has gone away
			wire = cursorwire.NewError(cursorwire.Canceled, "the body ended early")
		}
		writeUnary(w, "application/json", wire.Code.HTTPStatus(), cursorwire.MarshalError(wire))
		return
	}
	var body []byte
	if codec == cursorwire.JSON {
		body = []byte("{}")
	}
	writeUnary(w, codec.UnaryType(), http.StatusOK, body)
}

func (h *hub) readAppend(r *http.Request, codec cursorwire.Codec) (*arrival, []byte, string, error) {
	body, err := cursorwire.Decompress(r.Header.Get("Content-Encoding"), r.Body)
	if err != nil {
		return nil, nil, "", err
	}
	a, err := cursorwire.ReadAppend(body, codec, h.opt.MaxMessage)
	if err != nil {
		return nil, nil, "", err
	}
	m, err := cursorwire.DecodeClient(cursorwire.Proto, a.Message)
	if err != nil {
		return nil, nil, "", err
	}
	return &arrival{message: m, seq: a.Seq, headers: cursorwire.ReadHeaders(r.Header), done: make(chan struct{})}, a.Message, a.RequestID, nil
}

// deliver puts an append into its order, and returns when it may be acknowledged.
func (h *hub) deliver(r *http.Request, id string, a *arrival, data []byte) error {
	l, err := h.line(id)
	if err != nil {
		return err
	}
	waitFor, wire, held := h.accept(l, a, data) //nolint:contextcheck // a run outlives the append that begins it
	if held && wire.keep(a.seq, data) {
		return nil
	}
	if waitFor == nil {
		return nil
	}
	select {
	case <-waitFor.done:
	case <-wire.over:
	case <-r.Context().Done():
	case <-h.ctx.Done():
	}
	return nil
}

// accept returns which append has to be waited for, if any, on which wire, and whether this one waits
// for those before it.
func (h *hub) accept(l *line, a *arrival, data []byte) (waitFor *arrival, w *wire, held bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	res := l.order.Accept(order.Message[*arrival]{
		Seq: a.seq, Kind: order.KindOf(a.message), Hash: sha256.Sum256(data), Size: len(data), Value: a,
	}, time.Now())
	if res.Duplicate {
		return l.pending[a.seq], l.wire, false
	}
	l.pending[a.seq] = a
	h.apply(l, res)
	return a, l.wire, !a.ready
}

// apply hands on what may be applied. The caller holds l.mu.
func (h *hub) apply(l *line, res order.Result[*arrival]) {
	if res.NewEpoch {
		if l.wire.isStarted() {
			h.renew(l)
		}
		first := res.Ready[0]
		h.drive(l.wire, first.headers, l)
	}
	if res.Skipped > 0 || res.Dropped > 0 {
		h.opt.Logger.Warn("appends were lost", slog.String("request", l.id), slog.Int64("skipped", res.Skipped), slog.Int("dropped", res.Dropped))
	}
	for _, a := range res.Ready {
		a.ready = true
		if !l.wire.isStarted() { // without a run there is nobody to take it
			a.finish()
			delete(l.pending, a.seq)
			continue
		}
		l.wire.in.put(received{Message: a.message, Seq: a.seq, Done: func(error) {
			a.finish()
			l.mu.Lock()
			defer l.mu.Unlock()
			if l.pending[a.seq] == a {
				delete(l.pending, a.seq)
			}
		}})
	}
	h.schedule(l)
}

// schedule has the line give up a gap when its time has come. The caller holds l.mu.
func (h *hub) schedule(l *line) {
	if l.timer != nil {
		l.timer.Stop()
		l.timer = nil
	}
	at, ok := l.order.Deadline()
	if !ok {
		return
	}
	l.timer = time.AfterFunc(time.Until(at), func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		h.apply(l, l.order.Expire(time.Now()))
	})
}
