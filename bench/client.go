package main

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/roost-dev/roost/internal/piwire"
)

// client is a connection that follows one session. It does only what measuring needs, so
// that little of the machine goes to it: client/pi keeps the whole view of a session. It
// belongs to one goroutine.
type client struct {
	nc       net.Conn
	frames   *piwire.FrameReader
	stop     func() bool // ends the watch over the context
	requests int
	session  *piwire.SessionSnapshot // the newest
	turn     *turn                   // what the client is listening to, or nil
	before   string                  // the newest answer when the turn began
}

// dial connects and shakes hands. The connection ends with ctx.
func dial(ctx context.Context, socket string) (*client, error) {
	var d net.Dialer
	nc, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	c := &client{nc: nc, frames: piwire.NewFrameReader(nc, piwire.FromServer, piwire.MaxFrame)}
	c.stop = context.AfterFunc(ctx, func() { _ = nc.Close() })
	if err := c.send(&piwire.Hello{Version: piwire.ProtocolVersion}); err != nil {
		c.close()
		return nil, err
	}
	m, _, err := c.read()
	if err == nil {
		if _, ok := m.(*piwire.ServerHello); !ok {
			err = fmt.Errorf("hello was answered by %T", m)
		}
	}
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *client) close() {
	c.stop()
	_ = c.nc.Close()
}

func (c *client) send(m piwire.ClientMessage) error {
	frame, err := piwire.AppendClientFrame(nil, m, piwire.MaxFrame)
	if err != nil {
		return err
	}
	_, err = c.nc.Write(frame)
	return err
}

// read returns the next message and its size on the wire.
func (c *client) read() (piwire.ServerMessage, int, error) {
	payload, err := c.frames.Next()
	if err != nil {
		return nil, 0, err
	}
	m, err := piwire.DecodeServer(payload)
	return m, len(payload) + 4, err
}

// do sends a command and reads until its answer, taking in what comes before it.
func (c *client) do(cmd piwire.Command) (piwire.Result, error) {
	c.requests++
	id := strconv.Itoa(c.requests)
	if err := c.send(&piwire.Request{ID: id, Command: cmd}); err != nil {
		return nil, err
	}
	for {
		m, size, err := c.read()
		if err != nil {
			return nil, err
		}
		r, ok := m.(*piwire.Response)
		if !ok {
			if err := c.take(m, size); err != nil {
				return nil, err
			}
			continue
		}
		if r.Error != nil {
			return nil, fmt.Errorf("%s: %s: %s", cmd.CommandName(), r.Error.Code, r.Error.Message)
		}
		if s, ok := r.Result.(*piwire.SessionResult); ok {
			c.snapshot(s.Session)
		}
		return r.Result, nil
	}
}

// take takes in a message that nobody asked for.
func (c *client) take(m piwire.ServerMessage, size int) error {
	switch m := m.(type) {
	case *piwire.SessionSnapshotEvent:
		c.snapshot(m.Snapshot)
	case *piwire.SessionProgressEvent:
		c.progress(m.Progress, size)
	case *piwire.HelloError:
		return fmt.Errorf("%s: %s", m.Error.Code, m.Error.Message)
	}
	return nil
}

func (c *client) snapshot(s *piwire.SessionSnapshot) {
	c.session = s
	if a := newestAnswer(s); a != nil {
		c.whole(a)
	}
}

func (c *client) progress(p piwire.Progress, size int) {
	switch p := p.(type) {
	case *piwire.AssistantDelta:
		if c.turn == nil {
			return
		}
		c.turn.take(p.Delta, time.Now())
		if len(p.Delta) == c.turn.size {
			c.turn.wire.deltas++
			c.turn.wire.bytes += size
		}
	case *piwire.ItemFinished:
		if a, ok := p.Item.(*piwire.AssistantItem); ok {
			c.whole(a)
		}
	}
}

// whole takes an answer as a whole, which says something new only if the server has left
// out deltas because this client is slow.
func (c *client) whole(a *piwire.AssistantItem) {
	if c.turn == nil || a.ID == c.before || len(a.Content) == 0 {
		return
	}
	if t, ok := a.Content[0].(*piwire.Text); ok {
		c.turn.replace(t.Text, time.Now())
	}
}

func newestAnswer(s *piwire.SessionSnapshot) *piwire.AssistantItem {
	for i := len(s.Transcript) - 1; i >= 0; i-- {
		if a, ok := s.Transcript[i].(*piwire.AssistantItem); ok {
			return a
		}
	}
	return nil
}

// create makes a session and follows it.
func (c *client) create() error {
	_, err := c.do(&piwire.Create{})
	return err
}

// attach follows a session that exists.
func (c *client) attach(id string) error {
	_, err := c.do(&piwire.Attach{SessionID: id})
	return err
}

// prompt sends a prompt and reads until its run has ended.
func (c *client) prompt(o order) (*turn, error) {
	t := newTurn(o)
	c.turn, c.before = t, ""
	if a := newestAnswer(c.session); a != nil {
		c.before = a.ID
	}
	defer func() { c.turn = nil }()
	began := c.session.Revision
	if _, err := c.do(&piwire.Prompt{SessionID: c.session.ID, Text: o.String()}); err != nil {
		return nil, err
	}
	t.acked = time.Now()
	for c.session.Phase != piwire.PhaseIdle || c.session.Revision == began {
		m, size, err := c.read()
		if err != nil {
			return nil, err
		}
		if err := c.take(m, size); err != nil {
			return nil, err
		}
	}
	return t, t.check(o)
}
