package cursor

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// errNoRun is for a client's half of Run that ends before it has begun.
var errNoRun = cursorwire.NewError(cursorwire.InvalidArgument, "the stream has no run_request")

// run answers Run: both halves of a run on one request, over HTTP/2 only.
func (h *hub) run(w http.ResponseWriter, r *http.Request) {
	codec, ok := cursorwire.StreamCodec(r.Header.Get("Content-Type"))
	if !checkHead(w, r, ok) {
		return
	}
	s := stream{hub: h, w: w, control: startStream(w, codec.StreamType()), enc: messages{codec, h.opt.MaxMessage}}
	if r.ProtoMajor < 2 {
		_ = s.write(s.enc.end(nil, cursorwire.NewError(cursorwire.Unimplemented, "Run needs HTTP/2; over HTTP/1.1 use RunSSE and BidiAppend")), writeTime)
		return
	}
	head := cursorwire.ReadHeaders(r.Header)
	id := head.RequestID
	if id == "" {
		id = newRequestID()
	}
	l, err := h.admit(id, true)
	if err != nil {
		_ = s.write(s.enc.end(nil, appendError(err)), writeTime)
		return
	}
	s.wire = l
	late := time.AfterFunc(h.opt.Placeholder, func() {
		h.drop(l, cursorwire.Interrupted("no run has come on this stream; try again"))
	})
	defer late.Stop()
	read := make(chan struct{})
	go func() {
		defer close(read)
		h.readRun(r, l, codec, head)
	}()
	s.serve(r.Context())
	h.drop(l, errNoRun)
	_ = s.control.SetReadDeadline(time.Now()) // so that the reading ends
	<-read
}

// readRun reads the client's half. Its end is no more than that: the run goes on. Anything else that
// ends it is an error of the client's, or its departure, which the other half notices.
func (h *hub) readRun(r *http.Request, l *wire, codec cursorwire.Codec, head cursorwire.Headers) {
	defer l.in.close()
	envelopes := cursorwire.NewEnvelopeReader(r.Body, r.Header.Get("Connect-Content-Encoding"), h.opt.MaxMessage)
	for seq := int64(0); ; seq++ {
		m, size, err := nextRun(envelopes, codec)
		if wire, ok := errors.AsType[*cursorwire.Error](err); ok {
			h.drop(l, wire)
			l.End(wire)
			return
		}
		if err != nil {
			h.drop(l, errNoRun)
			return
		}
		starts := m.GetRunRequest() != nil || m.GetPrewarmRequest() != nil
		if starts && l.isPlaceholder() {
			h.drive(l, head, func() {}) //nolint:contextcheck // a run outlives the request that begins it
		}
		// Nothing can be done with it before there is a run, or after it.
		l.in.put(delivery{received: received{Message: m, Seq: seq, Done: l.fail}, size: size})
		if !l.in.wait(r.Context()) {
			return
		}
	}
}

// nextRun returns the next message of a client's half, and its size.
func nextRun(envelopes *cursorwire.EnvelopeReader, codec cursorwire.Codec) (*agentv1.AgentClientMessage, int, error) {
	e, err := envelopes.Next()
	if err != nil {
		return nil, 0, err
	}
	if e.End {
		return nil, 0, io.EOF
	}
	m, err := cursorwire.DecodeClient(codec, e.Data)
	return m, len(e.Data), err
}

// wait returns when there is room for more. It reports false when ctx has ended first.
func (b *inbox) wait(ctx context.Context) bool {
	for {
		room := b.room()
		if room == nil {
			return true
		}
		select {
		case <-room:
		case <-ctx.Done():
			return false
		}
	}
}

// fail ends the stream if a driver could not take a message.
func (w *wire) fail(err error) {
	if err != nil {
		w.End(appendError(driverError{err}))
	}
}
