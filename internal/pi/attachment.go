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

// maxReloads is how often an attachment outlives the failure of its session.
const maxReloads = 3

// attachment is one connection's view of one session. Its goroutine waits for events and
// writes them; answers to requests that changed the session are written by it as well, so
// that a change is always seen before the answer (SPEC 3.5). It outlives a detach while
// answers are due, and a new attach takes it up again: two views of a session on one
// connection could contradict each other.
type attachment struct {
	conn *conn
	id   session.ID
	sub  *live.Subscription // changed by its own goroutine under server.mu

	// Read under conn.mu or conn.writing, changed under both.
	attached  bool // the client is told everything, not only the answers
	gone      bool // nothing will be told any more
	following bool // the goroutine has been started
	due       int  // commands that will be answered by it; changed under conn.mu alone

	// Guarded by conn.writing.
	state   *session.State // as the client has been told
	stream  piview.Stream
	size    int // bytes of the last snapshot
	waiting []waiter
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

var errNotFound = session.Errorf(session.NotFound, "there is no such session")

// attach subscribes the connection to a session, and answers the request.
func (c *conn) attach(id session.ID, command piwire.CommandName, request string) error {
	for {
		a := c.known(id)
		if a == nil {
			var err error
			if a, err = c.subscribe(id); err != nil {
				return err
			}
		}
		a, err := c.welcome(a, command, request)
		if err != nil {
			return err
		}
		if a != nil {
			c.server.touch(id, a)
			c.server.Changed()
			return nil
		}
	}
}

// subscribe makes an attachment that nobody knows yet. Loading a session may take a while,
// so nothing is locked meanwhile.
func (c *conn) subscribe(id session.ID) (*attachment, error) {
	sub, err := c.server.opt.Engine.Watch(c.ctx, id, nil)
	if err != nil {
		return nil, err
	}
	first, err := sub.Next(c.ctx)
	if err != nil {
		sub.Close()
		if errors.Is(err, live.ErrRemoved) {
			err = errNotFound
		}
		return nil, err
	}
	return &attachment{conn: c, id: id, sub: sub, state: first.State}, nil
}

// welcome makes an attachment the connection's and tells the client. It returns the
// attachment that the connection has now, or nil when it ended meanwhile.
func (c *conn) welcome(a *attachment, command piwire.CommandName, request string) (*attachment, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	if now := c.known(a.id); now != nil && now != a {
		a.sub.Close() // another request was faster
		a = now
	}
	if a.gone {
		return nil, nil
	}
	// A removal is told to connections after it has ended the subscriptions, so a
	// subscription that lives here is in time to be told.
	snapshot, err := c.snapshot(a.state, true)
	if errors.Is(c.server.subscription(a).Err(), live.ErrRemoved) {
		err = errNotFound
	}
	switch {
	case a.following && err == nil:
	case a.following:
		return nil, err
	case err != nil || !c.start(a.follow):
		a.sub.Close()
		return a, err
	}
	c.enter(a)
	a.stream.Reset(a.state)
	if c.sendSnapshot(a, snapshot) {
		c.reserve(snapshot)
		c.send(&piwire.Response{ID: request, Result: &piwire.SessionResult{Command: command, Session: snapshot}})
	}
	return a, nil
}

// follow tells the client what happens until the subscription ends. A session that had to be
// reloaded is subscribed to again.
func (a *attachment) follow() {
	err := errors.New("attachment failed")
	defer func() {
		a.sub.Close()
		a.end(err)
	}()
	err = a.pump()
	for n := 0; n < maxReloads && session.AsError(err).Kind == session.Unavailable && a.conn.ctx.Err() == nil; n++ {
		if err = a.renew(); err == nil {
			err = a.pump()
		}
	}
}

func (a *attachment) renew() error {
	sub, err := a.conn.server.opt.Engine.Watch(a.conn.ctx, a.id, nil)
	if err != nil {
		return err
	}
	a.sub.Close()
	if a.conn.server.replace(a, sub); a.conn.isGone(a) {
		sub.Close()
	}
	return nil
}

func (a *attachment) pump() error {
	for {
		u, err := a.sub.Next(a.conn.ctx)
		if err != nil {
			return err
		}
		a.tell(u)
	}
}

// tell writes an update, then the answers that waited for it.
func (a *attachment) tell(u live.Update) {
	a.conn.writing.Lock()
	defer a.conn.writing.Unlock()
	a.state = u.State
	if a.attached && !a.write(u) {
		return
	}
	a.waiting = slices.DeleteFunc(a.waiting, func(w waiter) bool {
		if !w.satisfied(a.state) {
			return false
		}
		w.reply(a.state, nil)
		return true
	})
}

// write encodes an update as progress, a snapshot, or both in this order. The caller holds
// writing.
func (a *attachment) write(u live.Update) bool {
	c := a.conn
	if u.Reset || len(u.Records) == 0 || piview.Rewritten(u.Records) {
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
		return a.writeSnapshot()
	}
	return ok
}

func (a *attachment) writeSnapshot() bool {
	a.stream.Reset(a.state)
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
	a.size = c.reserve(snapshot)
	return c.send(&piwire.SessionSnapshotEvent{Snapshot: snapshot})
}

// reserve makes room for a message with a snapshot, which is large and would be copied
// several times while its buffer grows. It returns the size of the transcript. The caller
// holds writing.
func (c *conn) reserve(snapshot *piwire.SessionSnapshot) int {
	size := 0
	for _, i := range snapshot.Transcript {
		if raw, isRaw := i.(*piwire.RawItem); isRaw {
			size += raw.Size()
		}
	}
	const beside = 4 << 10 // what else a snapshot says, usually
	c.buf = slices.Grow(c.buf[:0], size+beside)
	return size
}

// end answers what still waits. A session that was removed is no reason to end the
// connection; one that cannot be followed any more is (SPEC 3.10).
func (a *attachment) end(err error) {
	c := a.conn
	c.server.unwatch(a)
	c.writing.Lock()
	attached := a.attached
	c.leave(a)
	unanswered := err
	if errors.Is(err, live.ErrRemoved) {
		unanswered = errNotFound
	}
	for _, w := range a.waiting {
		w.reply(nil, unanswered)
	}
	a.waiting = nil
	c.writing.Unlock()
	if !attached || errors.Is(err, live.ErrRemoved) || errors.Is(err, context.Canceled) {
		return
	}
	c.log.Error("session cannot be followed", slog.String("session", string(a.id)), slog.Any("error", err))
	c.close()
}
