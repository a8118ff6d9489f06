// Package pi is a client of pi's remote session protocol, version 1, for programs that test,
// measure or script a server. It is stricter than most: anything that the published client
// would take as a violation ends the connection with an error.
package pi

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"

	"github.com/roost-dev/roost/internal/piwire"
)

// Error is an error that the server answered a request with.
type Error struct {
	Code    piwire.ErrorCode
	Message string
}

// Error returns the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// ErrViolation says that the server broke the protocol.
var ErrViolation = errors.New("protocol violation by the server")

// Client is one connection. It is safe for concurrent use.
type Client struct {
	nc    net.Conn
	hello *piwire.ServerHello
	done  chan struct{}

	writing sync.Mutex

	mu      sync.Mutex
	nextID  int
	waiting map[string]request
	views   map[string]*View
	server  *piwire.ServerSnapshot
	watch   func(piwire.Event)
	changed chan struct{} // closed and replaced at every event
	err     error
}

type request struct {
	command piwire.CommandName
	reply   chan *piwire.Response
}

// Dial connects to a server's Unix socket.
func Dial(ctx context.Context, path string) (*Client, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	return New(ctx, nc, nil)
}

// New says hello over a connection, which the client owns from then on. Watch, if not nil,
// is called with every event, in order, and must not block or call the client.
func New(ctx context.Context, nc net.Conn, watch func(piwire.Event)) (*Client, error) {
	c := &Client{
		nc: nc, done: make(chan struct{}), waiting: make(map[string]request),
		views: make(map[string]*View), watch: watch, changed: make(chan struct{}),
	}
	if err := c.send(&piwire.Hello{Version: piwire.ProtocolVersion}); err != nil {
		_ = nc.Close()
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = nc.Close() })
	messages := piwire.NewServerReader(nc, piwire.MaxFrame)
	first, err := messages.Read()
	if !stop() {
		return nil, ctx.Err()
	}
	switch m := first.(type) {
	case *piwire.ServerHello:
		c.hello, c.server = m, m.Snapshot
		go c.read(messages)
		return c, nil
	case *piwire.HelloError:
		err = &Error{Code: m.Error.Code, Message: m.Error.Message}
	default:
		if err == nil {
			err = fmt.Errorf("%w: the first message is a %T", ErrViolation, m)
		}
	}
	_ = nc.Close()
	return nil, err
}

// Hello returns the server's answer to the handshake.
func (c *Client) Hello() *piwire.ServerHello { return c.hello }

// Close ends the connection and waits for its reader.
func (c *Client) Close() {
	_ = c.nc.Close()
	<-c.done
}

// Done is closed when the connection has ended; Err then says why.
func (c *Client) Done() <-chan struct{} { return c.done }

// Err returns why the connection ended, nil while it is open.
func (c *Client) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

func (c *Client) send(m piwire.ClientMessage) error {
	frame, err := piwire.AppendClientFrame(nil, m, piwire.MaxFrame)
	if err != nil {
		return err
	}
	c.writing.Lock()
	defer c.writing.Unlock()
	_, err = c.nc.Write(frame)
	return err
}

// Do sends a command and waits for its result. The error is an *Error when the server
// answered with one.
func (c *Client) Do(ctx context.Context, cmd piwire.Command) (piwire.Result, error) {
	r := request{command: cmd.CommandName(), reply: make(chan *piwire.Response, 1)}
	c.mu.Lock()
	c.nextID++
	id := strconv.Itoa(c.nextID)
	c.waiting[id] = r
	c.mu.Unlock()
	if err := c.send(&piwire.Request{ID: id, Command: cmd}); err != nil {
		return nil, err
	}
	select {
	case m := <-r.reply:
		if m.Error != nil {
			return nil, &Error{Code: m.Error.Code, Message: m.Error.Message}
		}
		return m.Result, nil
	case <-c.done:
		return nil, c.Err()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Session sends a command whose result is a snapshot.
func (c *Client) Session(ctx context.Context, cmd piwire.Command) (*piwire.SessionSnapshot, error) {
	result, err := c.Do(ctx, cmd)
	if err != nil {
		return nil, err
	}
	r, ok := result.(*piwire.SessionResult)
	if !ok {
		return nil, fmt.Errorf("%w: %s answered with %T", ErrViolation, cmd.CommandName(), result)
	}
	return r.Session, nil
}

// With calls f with the view of an attached session, nil when there is none.
func (c *Client) With(sessionID string, f func(*View)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f(c.views[sessionID])
}

// Until waits until f, called with the view of a session after every event, returns true.
func (c *Client) Until(ctx context.Context, sessionID string, f func(*View) bool) error {
	for {
		c.mu.Lock()
		v, changed := c.views[sessionID], c.changed
		ok := v != nil && f(v)
		c.mu.Unlock()
		if ok {
			return nil
		}
		select {
		case <-changed:
		case <-c.done:
			return c.Err()
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// Server returns the newest server snapshot.
func (c *Client) Server() *piwire.ServerSnapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.server
}

func (c *Client) read(messages *piwire.Reader[piwire.ServerMessage]) {
	err := func() error {
		for {
			m, err := messages.Read()
			if err != nil {
				return err
			}
			if err := c.message(m); err != nil {
				return err
			}
		}
	}()
	c.mu.Lock()
	c.err = err
	c.mu.Unlock()
	_ = c.nc.Close()
	close(c.done)
}

func (c *Client) message(m piwire.ServerMessage) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m := m.(type) {
	case *piwire.Response:
		return c.response(m)
	case *piwire.HelloError:
		return &Error{Code: m.Error.Code, Message: m.Error.Message}
	case piwire.Event:
		c.event(m)
		if c.watch != nil {
			c.watch(m)
		}
		close(c.changed)
		c.changed = make(chan struct{})
		return nil
	}
	return fmt.Errorf("%w: a %T after the handshake", ErrViolation, m)
}

func (c *Client) response(m *piwire.Response) error {
	r, ok := c.waiting[m.ID]
	if !ok {
		return fmt.Errorf("%w: answer to request %q, which nobody made or which was answered", ErrViolation, m.ID)
	}
	delete(c.waiting, m.ID)
	if m.Result != nil {
		if m.Result.CommandName() != r.command {
			return fmt.Errorf("%w: %s answered as %s", ErrViolation, r.command, m.Result.CommandName())
		}
		switch result := m.Result.(type) {
		case *piwire.SessionResult:
			c.snapshot(result.Session)
		case *piwire.DetachResult:
			delete(c.views, result.SessionID)
		}
	}
	r.reply <- m
	return nil
}

func (c *Client) event(m piwire.Event) {
	switch m := m.(type) {
	case *piwire.ServerSnapshotEvent:
		if m.Snapshot.Revision >= c.server.Revision {
			c.server = m.Snapshot
		}
	case *piwire.SessionSnapshotEvent:
		c.snapshot(m.Snapshot)
	case *piwire.SessionProgressEvent:
		if v := c.views[m.SessionID]; v != nil {
			v.Apply(m.Progress)
		}
	case *piwire.SessionRemovedEvent:
		delete(c.views, m.SessionID)
	}
}

func (c *Client) snapshot(s *piwire.SessionSnapshot) {
	if !s.Attached {
		delete(c.views, s.ID)
		return
	}
	v := c.views[s.ID]
	if v == nil {
		v = &View{}
		c.views[s.ID] = v
	}
	v.SetSnapshot(s)
}
