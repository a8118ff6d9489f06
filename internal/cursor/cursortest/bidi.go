package cursortest

import (
	"context"
	"io"
	"net/http"
	"sync"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// bidi is the transport over HTTP/2: Run carries both directions.
type bidi struct {
	c      *Client
	id     identity
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
	queue  *queue[outgoing]
	r      *io.PipeReader
	w      *io.PipeWriter
	errs   chan error
}

func (c *Client) openBidi(ctx context.Context, id identity) *bidi {
	b := &bidi{c: c, id: id, errs: make(chan error, 1), queue: newQueue[outgoing]()}
	b.ctx, b.cancel = context.WithCancel(ctx)
	b.r, b.w = io.Pipe()
	b.all.Go(b.write)
	return b
}

func (b *bidi) send(m *agentv1.AgentClientMessage, written chan<- error) {
	b.queue.push(outgoing{m, written})
}

func (b *bidi) failed() <-chan error { return b.errs }

func (b *bidi) close() {
	b.cancel()
	_ = b.r.Close() // wakes the writer
	b.all.Wait()
}

func (b *bidi) body() (*http.Response, error) {
	h := b.c.streamHeaders(b.id)
	if b.c.o.Gzip {
		h.Set("Connect-Content-Encoding", "gzip")
	}
	return b.c.post(b.ctx, cursorwire.PathRun, h, b.r)
}

// write sends the messages in order. Its errors are those of the connection, which whoever reads the
// stream sees as well.
func (b *bidi) write() {
	defer func() { _ = b.w.Close() }()
	for {
		out, ok := b.queue.pop(b.ctx)
		if !ok {
			return
		}
		envelope, err := cursorwire.AppendMessage(nil, cursorwire.Proto, out.message, cursorwire.MaxMessage)
		if err == nil {
			if b.c.o.Gzip {
				envelope = zipEnvelope(envelope)
			}
			_, err = b.w.Write(envelope)
		}
		if out.written != nil {
			out.written <- err
		}
		if err != nil {
			return
		}
	}
}
