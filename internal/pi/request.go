package pi

import (
	"fmt"
	"log/slog"

	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
)

// request obeys one command and sees to it that it is answered exactly once. Requests run
// side by side, so an abort is not kept waiting by the prompt it aborts (SPEC 3.2).
func (c *conn) request(r *piwire.Request) {
	defer func() { <-c.asked }()
	if err := c.obey(r); err != nil {
		if e := session.AsError(err); e.Kind == session.Internal {
			c.log.Error("request failed", slog.String("command", string(r.Command.CommandName())), slog.Any("error", err))
		}
		c.respond(&piwire.Response{ID: r.ID, Error: protocolError(err)})
	}
}

func (c *conn) respond(r *piwire.Response) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.send(r)
}

// obey does what a command asks. It answers the request itself unless it returns an error.
func (c *conn) obey(r *piwire.Request) error {
	switch cmd := r.Command.(type) {
	case *piwire.List:
		sessions, err := c.server.sessions(c.ctx)
		if err != nil {
			return err
		}
		c.respond(&piwire.Response{ID: r.ID, Result: &piwire.ListResult{Sessions: sessions}})
		return nil
	case *piwire.Create:
		id, err := c.server.opt.Engine.Create(c.ctx, create(cmd))
		if err != nil {
			return err
		}
		return c.attach(id, r.Command.CommandName(), r.ID)
	case *piwire.Attach:
		return c.attach(session.ID(cmd.SessionID), r.Command.CommandName(), r.ID)
	case *piwire.Detach:
		c.obeyDetach(r.ID, cmd.SessionID)
		return nil
	case *piwire.Prompt:
		return c.command(r, cmd.SessionID, session.Prompt{Text: cmd.Text}, !c.server.opt.PromptAccepted)
	case *piwire.Steer:
		return c.command(r, cmd.SessionID, session.Steer{Text: cmd.Text}, false)
	case *piwire.Abort:
		return c.command(r, cmd.SessionID, session.Abort{}, true)
	case *piwire.SetModel:
		return c.command(r, cmd.SessionID, session.SetModel{Model: session.ModelRef{Provider: cmd.Model.Provider, ID: cmd.Model.ID}}, false)
	case *piwire.SetThinking:
		return c.command(r, cmd.SessionID, session.SetThinking{Thinking: session.Thinking(cmd.ThinkingLevel)}, false)
	}
	return fmt.Errorf("unknown command %T", r.Command)
}

func (c *conn) obeyDetach(request, sessionID string) {
	id := session.ID(sessionID)
	c.writing.Lock()
	was := c.detach(id)
	c.send(&piwire.Response{ID: request, Result: &piwire.DetachResult{SessionID: sessionID}})
	c.writing.Unlock()
	if was {
		c.server.touch(id, nil)
		c.server.Changed()
	}
}

func create(cmd *piwire.Create) session.Create {
	c := session.Create{Cwd: cmd.Cwd, Thinking: session.Thinking(cmd.ThinkingLevel), Origin: Origin}
	if cmd.Name != nil {
		c.Name = *cmd.Name
	}
	if cmd.Model != nil {
		c.Model = session.ModelRef{Provider: cmd.Model.Provider, ID: cmd.Model.ID}
	}
	return c
}

// command has an attached session obey cmd. The answer comes once the client has been told
// what it changed and, with settled, once the run that it belongs to has ended; nothing waits
// for that but an entry in a list, so that whatever is open, an abort gets through.
func (c *conn) command(r *piwire.Request, sessionID string, cmd session.Command, settled bool) error {
	id := session.ID(sessionID)
	a, err := c.hold(id)
	if err != nil {
		return err
	}
	receipt, err := c.server.opt.Engine.Do(c.ctx, id, cmd)
	if err != nil {
		c.writing.Lock()
		defer c.writing.Unlock()
		c.settle(a)
		return err
	}
	w := waiter{seq: receipt.Seq, reply: func(s *session.State, err error) { a.answer(r, s, err) }}
	if settled {
		w.run = receipt.Run
	}
	a.await(w)
	return nil
}
