package cursortest

import (
	"bytes"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

// maxInFlight is how many appends are on their way at once (section 1.6).
const maxInFlight = 16

// sse is the transport over HTTP/1.1: RunSSE for what the server sends, an append for each message of
// the client. Both begin at the same moment.
type sse struct {
	c      *Client
	id     identity
	ctx    context.Context
	cancel context.CancelFunc
	all    sync.WaitGroup
	queue  *queue[outgoing]
	errs   chan error
}

type outgoing struct {
	message *agentv1.AgentClientMessage
	written chan<- error
}

func (c *Client) openSSE(ctx context.Context, id identity) *sse {
	s := &sse{c: c, id: id, errs: make(chan error, 1), queue: newQueue[outgoing]()}
	s.ctx, s.cancel = context.WithCancel(ctx)
	s.all.Go(s.appendAll)
	return s
}

func (s *sse) send(m *agentv1.AgentClientMessage, written chan<- error) {
	s.queue.push(outgoing{m, written})
}

func (s *sse) failed() <-chan error { return s.errs }

func (s *sse) close() {
	s.cancel()
	s.all.Wait()
}

func (s *sse) body() (*http.Response, error) {
	request, err := cursorwire.AppendMessage(nil, cursorwire.Proto, &aiserverv1.BidiRequestId{RequestId: s.id.requestID}, cursorwire.MaxMessage)
	if err != nil {
		return nil, err
	}
	return s.c.post(s.ctx, cursorwire.PathRunSSE, s.c.streamHeaders(s.id), bytes.NewReader(request))
}

// appendAll starts an append for each message, in order, and waits for none.
func (s *sse) appendAll() {
	slots := make(chan struct{}, maxInFlight)
	for seq := int64(0); ; seq++ {
		out, ok := s.queue.pop(s.ctx)
		if !ok {
			return
		}
		a := Append{s.id.requestID, seq, out.message}
		f := s.c.dice.throw(a)
		if f.drop {
			continue
		}
		select {
		case slots <- struct{}{}:
		case <-s.ctx.Done():
			return
		}
		s.all.Go(func() {
			defer func() { <-slots }()
			err := s.deliver(a, f)
			if out.written != nil {
				out.written <- err
			}
			s.fail(err)
		})
	}
}

// fail reports the first error.
func (s *sse) fail(err error) {
	if err == nil || s.ctx.Err() != nil {
		return
	}
	select {
	case s.errs <- err:
	default:
	}
}

func (s *sse) deliver(a Append, f fate) error {
	if f.delay > 0 {
		select {
		case <-time.After(f.delay):
		case <-s.ctx.Done():
			return s.ctx.Err()
		}
	}
	if f.duplicate {
		s.all.Go(func() { s.fail(s.c.append(s.ctx, s.id, a)) })
	}
	err := s.c.append(s.ctx, s.id, a)
	if err == nil && f.dropResponse {
		return ErrLostReply
	}
	return err
}

// Append sends one append by itself, beside any run: a late one, a repetition, or one that no client
// would send. It returns what a refusal says.
func (c *Client) Append(ctx context.Context, a Append) error {
	return c.append(ctx, identity{a.RequestID, a.RequestID}, a)
}

func (c *Client) append(ctx context.Context, id identity, a Append) error {
	message, err := cursorwire.Proto.Append(nil, a.Message)
	if err != nil {
		return err
	}
	request := &aiserverv1.BidiAppendRequest{
		RequestId: &aiserverv1.BidiRequestId{RequestId: a.RequestID}, AppendSeqno: a.Seq,
	}
	if c.o.Binary {
		request.DataBinary = message
	} else {
		request.Data = hex.EncodeToString(message)
	}
	body, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	if c.o.Gzip {
		body = zip(body)
	}
	ctx, cancel := context.WithTimeout(ctx, appendTime(len(body)))
	defer cancel()
	resp, err := c.post(ctx, cursorwire.PathBidiAppend, c.appendHeaders(id, len(body)), bytes.NewReader(body))
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return refusal(resp)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}
