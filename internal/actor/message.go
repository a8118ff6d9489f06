package actor

import (
	"context"
	"iter"

	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/session"
)

type command struct {
	cmd   session.Command
	reply chan commandReply
}

type commandReply struct {
	receipt session.Receipt
	err     error
	forever []string // what a person has allowed for always
	dir     string   // in this working directory
}

func (m *command) handle(a *actor) {
	events, err := a.state.Decide(m.cmd)
	if err != nil {
		m.reply <- commandReply{err: err}
		return
	}
	queue := a.state.Queue
	a.emit(events...)
	receipt := session.Receipt{Seq: a.state.Seq}
	if _, ok := m.cmd.(session.Abort); ok && len(events) > 0 {
		receipt.Dropped = queue
	}
	if a.state.Run != nil {
		receipt.Run = a.state.Run.ID
	}
	if u := said(a.state, m.cmd, events); u != nil {
		receipt.Run, receipt.Item = u.Run, u.ID
	}
	// A repeated command waits too: what it repeats may be in the same batch.
	reply := commandReply{receipt: receipt}
	if c, ok := m.cmd.(session.Answer); ok && c.Scope == session.Always {
		reply.forever, reply.dir = events[0].(session.QueryAnswered).Grants, a.state.Cwd
	}
	a.answers = append(a.answers, func(err error) { reply.err = err; m.reply <- reply })
}

// said returns the user item of a prompt or steer, new or repeated.
func said(s *session.State, cmd session.Command, events []session.Event) *session.User {
	switch c := cmd.(type) {
	case session.Prompt:
		if len(events) == 0 {
			return s.FindPrompt(c.ID)
		}
		u, _ := s.Settled[len(s.Settled)-1].(*session.User)
		return u
	case session.Steer:
		if len(events) == 0 {
			return s.FindPrompt(c.ID)
		}
		return s.Queue[len(s.Queue)-1]
	}
	return nil
}

type getState struct{ reply chan *session.State }

func (m *getState) handle(a *actor) {
	a.answers = append(a.answers, func(err error) {
		if err == nil {
			m.reply <- a.state.Clone()
		}
	})
}

type watch struct {
	from  *session.Position
	reply chan *live.Subscription
}

func (m *watch) handle(a *actor) {
	a.answers = append(a.answers, func(err error) {
		if err == nil {
			a.engine.hold(a)
			sub := a.hub.Subscribe(a.state.Clone(), a.missed(m.from))
			sub.Earliest = a.store.through
			sub.OnClose(func() { a.engine.release(a) })
			m.reply <- sub
		}
	})
}

// missed yields the durable records after a position, nil when it is none of this log's.
func (a *actor) missed(from *session.Position) iter.Seq2[session.Record, error] {
	log := a.engine.cfg.Log
	if from == nil || from.Epoch != log.Epoch() || from.Seq > a.state.Seq {
		return nil
	}
	return log.Read(context.Background(), a.id, from.Seq)
}

type remove struct{ reply chan error }

func (m *remove) handle(a *actor) {
	a.answers = append(a.answers, func(err error) {
		if err != nil {
			return
		}
		a.stopWorks()
		if err := a.engine.cfg.Log.Delete(context.Background(), a.id); err != nil {
			m.reply <- logError(err)
			return
		}
		a.removed = true
		a.removeOutputs()
		a.engine.forget(a, false)
		a.hub.Close(live.ErrRemoved)
		a.engine.changed(Change{ID: a.id, Kind: SessionRemoved})
		m.reply <- nil
	})
}
