package cursor

import (
	"context"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
)

// eventStream reports whether a client wants the other content type for RunSSE.
func (s *Server) eventStream(h cursorwire.Headers) bool {
	return slices.ContainsFunc(s.opt.EventStreamClients, func(kind string) bool { return strings.EqualFold(kind, h.ClientType) })
}

func (s *Server) callsOptions() callsOptions {
	return callsOptions{
		Models: s.opt.Models, Default: s.opt.Default, Aliases: s.opt.Aliases, Blobs: s.opt.Blobs, Ask: s.opt.Ask,
		Clone: s.clone, Rename: s.rename, Thinking: s.opt.Thinking, Named: s.named, Logger: s.opt.Logger,
	}
}

// clone makes a conversation with the history of another (section 6.5). One that is there already
// stays as it is.
func (s *Server) clone(ctx context.Context, from, to string) error {
	state, err := s.opt.Engine.State(ctx, SessionID(from))
	if err != nil {
		return err
	}
	id, err := s.opt.Engine.Create(ctx, session.Create{
		ID: SessionID(to), Cwd: state.Cwd, Name: state.Name, Model: state.Model, Thinking: state.Thinking,
		Parent: state.ID, Origin: Origin, Remote: state.Origin == Origin,
	})
	if err != nil {
		return err
	}
	runs, users := counters(state.Settled)
	_, err = s.opt.Engine.Do(ctx, id, session.Replace{Copies: copies(state.Settled, runs, users)})
	return err
}

func (s *Server) rename(ctx context.Context, conversation, name string) error {
	_, err := s.opt.Engine.Do(ctx, SessionID(conversation), session.Rename{Name: name})
	return err
}

// named reports whether a conversation has a name.
func (s *Server) named(ctx context.Context, conversation string) bool {
	state, err := s.opt.Engine.State(ctx, SessionID(conversation))
	return err == nil && state.Name != ""
}
