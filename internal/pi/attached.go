package pi

import (
	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
)

// maxDue is how many commands of one attachment may be open.
const maxDue = 256

// known returns the attachment of a session that is not gone, attached or only answering,
// or nil.
func (c *conn) known(id session.ID) *attachment {
	c.mu.Lock()
	defer c.mu.Unlock()
	if a := c.sessions[id]; a != nil && !a.gone {
		return a
	}
	return nil
}

func (c *conn) isGone(a *attachment) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return a.gone
}

// hold returns the attachment of a session for a command, whose answer it owes until settle.
// The command is refused unless the client is attached.
func (c *conn) hold(id session.ID) (*attachment, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := c.sessions[id]
	switch {
	case a == nil || !a.attached:
		return nil, session.Errorf(session.Invalid, "Connection is not attached to session %s", id)
	case a.due >= maxDue:
		return nil, session.Errorf(session.Busy, "%d requests of this session are open, which is the limit", maxDue)
	}
	a.due++
	return a, nil
}

// settle takes back a hold. A detached attachment that owes nothing more ends. The caller
// holds writing.
func (c *conn) settle(a *attachment) {
	c.mu.Lock()
	a.due--
	over := !a.attached && a.due == 0
	c.mu.Unlock()
	if over {
		c.leave(a)
	}
}

// enter makes an attachment the one of its session. The caller holds writing.
func (c *conn) enter(a *attachment) {
	c.mu.Lock()
	a.attached, a.following = true, true
	c.sessions[a.id] = a
	c.mu.Unlock()
	c.server.watch(a)
}

// leave ends an attachment. Its goroutine notices and comes to its end. The caller holds
// writing.
func (c *conn) leave(a *attachment) {
	c.mu.Lock()
	a.gone = true
	// A client that has not been told that the session is gone may go on naming it, and is
	// answered not_found instead of being told that it never was attached (trap 31).
	if c.sessions[a.id] == a && !a.attached {
		delete(c.sessions, a.id)
	}
	c.mu.Unlock()
	c.server.subscription(a).Close()
}

// detach ends what the client is told of a session, answers excepted. It reports whether the
// client was attached. The caller holds writing.
func (c *conn) detach(id session.ID) bool {
	c.mu.Lock()
	a := c.sessions[id]
	if a == nil || !a.attached {
		c.mu.Unlock()
		return false
	}
	a.attached = false
	idle := a.due == 0
	c.mu.Unlock()
	if idle {
		c.leave(a)
	}
	return true
}

// await has reply called, under writing, once the state that the client has been told
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

// answer writes the response to a command. The caller holds writing.
func (a *attachment) answer(r *piwire.Request, s *session.State, err error) {
	c := a.conn
	defer c.settle(a)
	if err == nil {
		var snapshot *piwire.SessionSnapshot
		if snapshot, err = c.snapshot(s, a.attached); err == nil {
			c.reserve(snapshot)
			c.send(&piwire.Response{ID: r.ID, Result: &piwire.SessionResult{Command: r.Command.CommandName(), Session: snapshot}})
			return
		}
	}
	c.send(&piwire.Response{ID: r.ID, Error: protocolError(err)})
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

// watch and unwatch keep the index of attachments, for what one connection's doings mean to
// the others (SPEC 3.5).
func (s *Server) watch(a *attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.watched[a.id] == nil {
		s.watched[a.id] = make(map[*attachment]struct{})
	}
	s.watched[a.id][a] = struct{}{}
}

func (s *Server) unwatch(a *attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watched[a.id], a)
	if len(s.watched[a.id]) == 0 {
		delete(s.watched, a.id)
	}
}

// touch sends a snapshot of a session to everyone attached to it but one.
func (s *Server) touch(id session.ID, but *attachment) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for a := range s.watched[id] {
		if a != but {
			a.sub.Touch()
		}
	}
}
