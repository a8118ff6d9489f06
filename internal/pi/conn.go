package pi

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
)

// closeGrace is how long a last message may take to reach a client, and its answer to it.
const closeGrace = 5 * time.Second

// conn is one connection: awaiting hello, ready, then closed (SPEC 3.1).
type conn struct {
	server *Server
	nc     net.Conn
	log    *slog.Logger
	id     string
	ctx    context.Context // ends with the connection
	cancel context.CancelFunc
	ready  atomic.Bool
	asked  chan struct{} // one token for each open request

	// writing orders all that the client is sent. What a client knows of a session changes
	// only under it.
	writing turn
	buf     []byte
	last    bool // the last message has been sent

	// mu guards sessions, and in attachments what says so. It is held for moments only.
	mu       sync.Mutex
	sessions map[session.ID]*attachment // attached, or still owing answers

	news *news

	working sync.Mutex
	work    sync.WaitGroup
	over    bool // no goroutine may be started any more; guarded by working
}

// turn is a lock that may be held for long. Unlike a sync.Mutex it lets simulated time go on
// while someone waits for it.
type turn chan struct{}

// Lock waits for its turn.
func (t turn) Lock() { t <- struct{}{} }

// Unlock lets the next one have it.
func (t turn) Unlock() { <-t }

// start runs f in a goroutine that the connection's end waits for. It reports false when the
// connection has ended already.
func (c *conn) start(f func()) bool {
	c.working.Lock()
	defer c.working.Unlock()
	if !c.over {
		c.work.Go(func() {
			defer c.recovered()
			f()
		})
	}
	return !c.over
}

// recovered ends a connection whose goroutine panics, and nothing else.
func (c *conn) recovered() {
	if v := recover(); v != nil {
		c.log.Error("connection failed", slog.String("connection", c.id), slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
		c.close()
	}
}

// wait waits for the goroutines of a connection that is closed.
func (c *conn) wait() {
	c.working.Lock()
	c.over = true
	c.working.Unlock()
	c.work.Wait()
}

func newConn(s *Server, nc net.Conn) *conn {
	ctx, cancel := context.WithCancel(context.Background())
	return &conn{
		server: s, nc: nc, ctx: ctx, cancel: cancel, id: rand.Text(),
		log:   s.opt.Logger,
		asked: make(chan struct{}, s.opt.MaxRequests), sessions: make(map[session.ID]*attachment),
		news: newNews(), writing: make(turn, 1),
	}
}

func (c *conn) isReady() bool { return c.ready.Load() }

// close ends the connection at once.
func (c *conn) close() {
	c.cancel()
	_ = c.nc.Close()
}

// serve reads messages until the connection ends.
func (c *conn) serve() {
	defer c.wait()
	defer c.close()
	defer c.recovered()
	timeout := time.AfterFunc(c.server.opt.HandshakeTimeout, func() {
		if !c.isReady() {
			c.start(func() { c.fail(invalid("Handshake timeout")) })
		}
	})
	defer timeout.Stop()
	messages := piwire.NewClientReader(c.nc, c.server.opt.MaxFrame)
	for {
		m, err := messages.Read()
		if err != nil {
			c.failRead(err)
			return
		}
		if e := c.message(m); e != nil {
			c.fail(e)
			return
		}
	}
}

// message handles one message. The error, if any, is the last thing the client hears.
func (c *conn) message(m piwire.ClientMessage) *piwire.ProtocolError {
	switch m := m.(type) {
	case *piwire.Hello:
		if c.isReady() {
			return invalid("hello may only be sent as the first message")
		}
		return c.hello(m)
	case *piwire.Request:
		if !c.isReady() {
			return invalid("The first client message must be hello")
		}
		select {
		case c.asked <- struct{}{}:
		case <-c.ctx.Done():
			return nil
		}
		c.start(func() { c.request(m) })
	}
	return nil
}

// hello answers a handshake. A change of the server between the snapshot and the moment from
// which the client is told of changes is made up for (SPEC 3.1).
func (c *conn) hello(h *piwire.Hello) *piwire.ProtocolError {
	if h.Version != piwire.ProtocolVersion {
		return &piwire.ProtocolError{
			Code:    piwire.CodeVersion,
			Message: fmt.Sprintf("Unsupported protocol version %d; expected %d", h.Version, piwire.ProtocolVersion),
		}
	}
	s := c.server
	s.mu.Lock()
	revision := s.revision
	s.mu.Unlock()
	snapshot, err := s.snapshot(c.ctx, revision)
	if err != nil {
		return protocolError(err)
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	if !c.send(&piwire.ServerHello{ConnectionID: c.id, Snapshot: snapshot}) {
		return nil
	}
	c.ready.Store(true)
	c.start(c.tellNews)
	s.mu.Lock()
	missed := s.revision != revision
	s.mu.Unlock()
	if missed {
		s.Changed()
	}
	return nil
}

// send encodes and writes a message. The caller holds writing. It returns false when the
// connection is lost; a message that cannot be sent ends it without a word (SPEC 3.1).
func (c *conn) send(m piwire.ServerMessage) bool {
	frame, err := piwire.AppendServerFrame(c.buf[:0], m, c.server.opt.MaxFrame)
	if err != nil {
		c.log.Error("message cannot be sent", slog.String("connection", c.id), slog.Any("error", err))
		c.close()
		return false
	}
	ok := c.write(frame)
	c.keep(frame)
	return ok
}

// keepBuffer is how large an encoding buffer may be to be kept for the next message.
const keepBuffer = 16 << 10

func (c *conn) keep(buf []byte) {
	if cap(buf) > keepBuffer {
		buf = nil
	}
	c.buf = buf
}

// write writes encoded messages. The caller holds writing.
func (c *conn) write(frames []byte) bool {
	if c.last || c.ctx.Err() != nil {
		return false
	}
	if _, err := c.nc.Write(frames); err != nil {
		c.close()
		return false
	}
	return true
}

// failRead ends the connection after what the client sent could not be read.
func (c *conn) failRead(err error) {
	e, ok := errors.AsType[*piwire.Error](err)
	switch {
	case ok && e.Stage != piwire.StageFraming:
		c.fail(invalid(e.Msg))
	case ok:
		c.log.Info("client vanished within a message", slog.String("connection", c.id))
	case errors.Is(err, io.EOF):
	default:
		c.log.Debug("connection lost", slog.String("connection", c.id), slog.Any("error", err))
	}
}

func invalid(message string) *piwire.ProtocolError {
	return &piwire.ProtocolError{Code: piwire.CodeInvalidRequest, Message: message}
}

// fail sends a last message, behind what is being written, and ends the connection. Reading
// on for a moment keeps the kernel from throwing the message away with what was not read.
func (c *conn) fail(e *piwire.ProtocolError) {
	_ = c.nc.SetWriteDeadline(time.Now().Add(closeGrace))
	c.writing.Lock()
	if !c.last {
		c.send(&piwire.HelloError{Error: *e})
		c.last = true
	}
	c.writing.Unlock()
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_ = c.nc.SetReadDeadline(time.Now().Add(closeGrace))
		_, _ = io.Copy(io.Discard, io.LimitReader(c.nc, 1<<20))
	}
	c.close()
}
