package pi

import (
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/piview"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
)

// smallSnapshot is up to which size, in bytes, a snapshot is sent in the middle of a run when
// it is merely useful: each costs as much as the whole transcript (SPEC 3.8).
const smallSnapshot = 64 << 10

// attachment is one connection's view of one session. Its goroutine waits for events and
// writes them; answers to requests that changed the session are written by it as well, so
// that a change is always seen before the answer (SPEC 3.5).
type attachment struct {
	conn *conn
	id   session.ID
	sub  *live.Subscription // changed by its own goroutine under server.mu

	// Guarded by conn.writing.
	state    *session.State // as the client has been told
	stream   piview.Stream
	size     int // bytes of the last snapshot
	waiting  []waiter
	detached bool // the client is told nothing more but what it waits for
	gone     bool // the goroutine has ended
}

// waiter is a request that is answered once its change has been told.
type waiter struct {
	seq   session.Seq   // at least this event has been told
	run   session.RunID // and this run has ended; 0 for none
	reply func(*session.State, error)
}

func (w waiter) satisfied(s *session.State) bool {
	return s.Seq >= w.seq && (w.run == 0 || s.Run == nil || s.Run.ID != w.run)
}

// attach subscribes the connection to a session, and answers the request.
func (c *conn) attach(id session.ID, command piwire.CommandName, request string) error {
	c.attaching.Lock()
	defer c.attaching.Unlock()
	a := c.attached[id]
	fresh := a == nil || !a.alive()
	if fresh {
		var err error
		if a, err = c.subscribe(id); err != nil {
			return err
		}
	}
	c.writing.Lock()
	snapshot, err := c.snapshot(a.state, true)
	if err == nil && c.sendSnapshot(a, snapshot) {
		c.send(&piwire.Response{ID: request, Result: &piwire.SessionResult{Command: command, Session: snapshot}})
	}
	c.writing.Unlock()
	if fresh && !c.start(a.follow) {
		a.sub.Close()
	}
	if err != nil {
		return err
	}
	c.server.touch(id, a)
	c.server.Changed()
	return nil
}

func (a *attachment) alive() bool {
	a.conn.writing.Lock()
	defer a.conn.writing.Unlock()
	return !a.gone
}

func (c *conn) subscribe(id session.ID) (*attachment, error) {
	sub, err := c.server.opt.Engine.Watch(c.ctx, id, nil)
	if err != nil {
		return nil, err
	}
	first, err := sub.Next(c.ctx)
	if err != nil {
		sub.Close()
		return nil, err
	}
	a := &attachment{conn: c, id: id, sub: sub, state: first.State}
	a.stream.Reset(first.State)
	c.attached[id] = a
	c.server.watch(a)
	return a, nil
}

// detach ends a subscription; it reports whether there was one.
func (c *conn) detach(id session.ID) bool {
	c.attaching.Lock()
	defer c.attaching.Unlock()
	a := c.attached[id]
	if a == nil {
		return false
	}
	delete(c.attached, id)
	c.server.unwatch(a)
	c.writing.Lock()
	a.detached = true
	idle := len(a.waiting) == 0
	c.writing.Unlock()
	if idle {
		c.server.subscription(a).Close()
	}
	return true
}

func (c *conn) attachment(id session.ID) *attachment {
	c.attaching.Lock()
	defer c.attaching.Unlock()
	return c.attached[id]
}

// follow tells the client what happens until the subscription ends. A session that had to be
// reloaded is subscribed to again.
func (a *attachment) follow() {
	err := a.pump()
	for attempt := 0; attempt < 3 && session.AsError(err).Kind == session.Unavailable && a.conn.ctx.Err() == nil; attempt++ {
		if err = a.renew(); err == nil {
			err = a.pump()
		}
	}
	a.sub.Close()
	a.conn.server.unwatch(a)
	a.end(err)
}

func (a *attachment) renew() error {
	sub, err := a.conn.server.opt.Engine.Watch(a.conn.ctx, a.id, nil)
	if err != nil {
		return err
	}
	a.sub.Close()
	a.conn.server.replace(a, sub)
	return nil
}

func (s *Server) subscription(a *attachment) *live.Subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	return a.sub
}

// replace gives an attachment another subscription.
func (s *Server) replace(a *attachment, sub *live.Subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.sub = sub
}

func (a *attachment) pump() error {
	for {
		u, err := a.sub.Next(a.conn.ctx)
		if err != nil {
			return err
		}
		if done := a.tell(u); done {
			return nil
		}
	}
}

// tell writes an update, then the answers that waited for it. It reports whether the
// attachment has served its purpose.
func (a *attachment) tell(u live.Update) bool {
	c := a.conn
	c.writing.Lock()
	defer c.writing.Unlock()
	a.state = u.State
	if !a.detached && !a.write(u) {
		return true
	}
	a.waiting = slices.DeleteFunc(a.waiting, func(w waiter) bool {
		if !w.satisfied(a.state) {
			return false
		}
		w.reply(a.state, nil)
		return true
	})
	return a.detached && len(a.waiting) == 0
}

// write encodes an update as progress, a snapshot, or both in this order.
func (a *attachment) write(u live.Update) bool {
	c := a.conn
	if u.Reset || len(u.Records) == 0 {
		a.stream.Reset(u.State)
		return a.writeSnapshot()
	}
	progress, due := a.stream.Project(u.Records, u.State, c.server.opt.Images)
	buf := c.buf[:0]
	for _, p := range progress {
		var err error
		buf, err = piwire.AppendServerFrame(buf, &piwire.SessionProgressEvent{SessionID: string(a.id), Progress: p}, c.server.opt.MaxFrame)
		if err != nil {
			// It does not fit a message or cannot be said; a snapshot can.
			c.log.Warn("progress cannot be sent", slog.String("session", string(a.id)), slog.Any("error", err))
			due = piview.Needed
			break
		}
	}
	ok := len(buf) == 0 || c.write(buf)
	c.keep(buf)
	if ok && (due == piview.Needed || due == piview.Useful && a.size <= smallSnapshot) {
		a.stream.Reset(u.State)
		return a.writeSnapshot()
	}
	return ok
}

func (a *attachment) writeSnapshot() bool {
	snapshot, err := a.conn.snapshot(a.state, true)
	if err != nil {
		a.conn.log.Error("session cannot be shown", slog.String("session", string(a.id)), slog.Any("error", err))
		a.conn.close()
		return false
	}
	return a.conn.sendSnapshot(a, snapshot)
}

func (c *conn) snapshot(s *session.State, attached bool) (*piwire.SessionSnapshot, error) {
	return piview.Snapshot(s, attached, int(c.server.opt.MaxFrame), c.server.opt.Images)
}

// sendSnapshot writes a snapshot event. The caller holds writing.
func (c *conn) sendSnapshot(a *attachment, snapshot *piwire.SessionSnapshot) bool {
	ok := c.send(&piwire.SessionSnapshotEvent{Snapshot: snapshot})
	a.size = 0
	for _, i := range snapshot.Transcript {
		if raw, isRaw := i.(*piwire.RawItem); isRaw {
			a.size += raw.Size()
		}
	}
	return ok
}

// await has reply called, under conn.writing, once the state that the client has been told
// satisfies w, or the attachment has ended.
func (a *attachment) await(w waiter) {
	a.conn.writing.Lock()
	defer a.conn.writing.Unlock()
	switch {
	case a.gone:
		w.reply(nil, errNotFound)
	case w.satisfied(a.state):
		w.reply(a.state, nil)
	default:
		a.waiting = append(a.waiting, w)
	}
}

var errNotFound = session.Errorf(session.NotFound, "The session is gone")

// end answers what still waits. A session that was removed is no reason to end the
// connection; one that cannot be followed any more is (SPEC 3.10).
func (a *attachment) end(err error) {
	c := a.conn
	c.writing.Lock()
	a.gone = true
	for _, w := range a.waiting {
		w.reply(nil, errNotFound)
	}
	a.waiting = nil
	detached := a.detached
	c.writing.Unlock()
	switch {
	case err == nil, detached, errors.Is(err, live.ErrRemoved), errors.Is(err, live.ErrClosed), errors.Is(err, context.Canceled):
		return
	}
	c.log.Error("session cannot be followed", slog.String("session", string(a.id)), slog.Any("error", err))
	c.close()
}

// removed tells the client that a session was deleted, and forgets it.
func (c *conn) removed(id session.ID) {
	c.start(func() {
		c.detach(id)
		c.writing.Lock()
		defer c.writing.Unlock()
		c.send(&piwire.SessionRemovedEvent{SessionID: string(id)})
	})
}
