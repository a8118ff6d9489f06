package control

import (
	"context"
	"strings"

	"github.com/roost-dev/roost/internal/controlview"
	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// parseModel reads "provider/id"; the id may contain slashes. An empty text is the zero
// ModelRef.
func parseModel(s string) (session.ModelRef, error) {
	if s == "" {
		return session.ModelRef{}, nil
	}
	provider, id, ok := strings.Cut(s, "/")
	if !ok || provider == "" || id == "" {
		return session.ModelRef{}, session.Errorf(session.Invalid, "model %q: write it as provider/id", s)
	}
	return session.ModelRef{Provider: provider, ID: id}, nil
}

// CreateSession implements the method of the service.
func (s *Server) CreateSession(ctx context.Context, req *roostv1.CreateSessionRequest) (*roostv1.CreateSessionResponse, error) {
	model, err := parseModel(req.Model)
	if err != nil {
		return nil, err
	}
	if parent := session.ID(req.Parent); parent != "" && !parent.Valid() {
		return nil, session.Errorf(session.Invalid, "parent is not the id of a session")
	}
	id, err := s.opt.Engine.Create(ctx, session.Create{
		Cwd: req.Cwd, Name: req.Name, Model: model, Thinking: session.Thinking(req.Thinking),
		Parent: session.ID(req.Parent), Origin: Origin,
	})
	if err != nil {
		return nil, err
	}
	head, at, err := s.head(ctx, id)
	return &roostv1.CreateSessionResponse{Session: head, Position: at}, err
}

// head returns a session and the position at which it is like that.
func (s *Server) head(ctx context.Context, id session.ID) (*roostv1.Session, *roostv1.Position, error) {
	state, err := s.opt.Engine.State(ctx, id)
	if err != nil {
		return nil, nil, err
	}
	return controlview.Session(state), s.position(state.Seq), nil
}

// do has a session obey a command and returns the position at which it has.
func (s *Server) do(ctx context.Context, id string, cmd session.Command) (session.Receipt, *roostv1.Position, error) {
	receipt, err := s.opt.Engine.Do(ctx, session.ID(id), cmd)
	return receipt, s.position(receipt.Seq), err
}

func (s *Server) position(seq session.Seq) *roostv1.Position {
	return controlview.Position(session.Position{Epoch: s.opt.Engine.Epoch(), Seq: seq})
}

// RenameSession implements the method of the service.
func (s *Server) RenameSession(ctx context.Context, req *roostv1.RenameSessionRequest) (*roostv1.RenameSessionResponse, error) {
	_, at, err := s.do(ctx, req.SessionId, session.Rename{Name: req.Name})
	return &roostv1.RenameSessionResponse{Position: at}, err
}

// DeleteSession implements the method of the service.
func (s *Server) DeleteSession(ctx context.Context, req *roostv1.DeleteSessionRequest) (*roostv1.DeleteSessionResponse, error) {
	return &roostv1.DeleteSessionResponse{}, s.opt.Engine.Delete(ctx, session.ID(req.SessionId))
}

// Prompt implements the method of the service.
func (s *Server) Prompt(ctx context.Context, req *roostv1.PromptRequest) (*roostv1.PromptResponse, error) {
	if strings.TrimSpace(req.Text) == "" {
		return nil, session.Errorf(session.Invalid, "a prompt needs a text")
	}
	cmd := session.Prompt{ID: req.PromptId, Text: req.Text}
	if len(req.Attachments) > 0 {
		var err error
		if cmd.Blocks, err = s.attach(ctx, req); err != nil {
			return nil, err
		}
	}
	r, at, err := s.do(ctx, req.SessionId, cmd)
	return &roostv1.PromptResponse{Position: at, Run: uint32(r.Run), ItemId: string(r.Item)}, err
}

// Steer implements the method of the service.
func (s *Server) Steer(ctx context.Context, req *roostv1.SteerRequest) (*roostv1.SteerResponse, error) {
	if strings.TrimSpace(req.Text) == "" {
		return nil, session.Errorf(session.Invalid, "a steer needs a text")
	}
	r, at, err := s.do(ctx, req.SessionId, session.Steer{ID: req.PromptId, Text: req.Text})
	return &roostv1.SteerResponse{Position: at, Run: uint32(r.Run), ItemId: string(r.Item)}, err
}

// Abort implements the method of the service.
func (s *Server) Abort(ctx context.Context, req *roostv1.AbortRequest) (*roostv1.AbortResponse, error) {
	r, at, err := s.do(ctx, req.SessionId, session.Abort{})
	res := &roostv1.AbortResponse{Position: at, Run: uint32(r.Run)}
	for _, u := range r.Dropped {
		res.Dropped = append(res.Dropped, controlview.Item(u))
	}
	return res, err
}

// SetModel implements the method of the service.
func (s *Server) SetModel(ctx context.Context, req *roostv1.SetModelRequest) (*roostv1.SetModelResponse, error) {
	model, err := parseModel(req.Model)
	if err != nil {
		return nil, err
	}
	_, at, err := s.do(ctx, req.SessionId, session.SetModel{Model: model})
	return &roostv1.SetModelResponse{Position: at}, err
}

// SetThinking implements the method of the service.
func (s *Server) SetThinking(ctx context.Context, req *roostv1.SetThinkingRequest) (*roostv1.SetThinkingResponse, error) {
	_, at, err := s.do(ctx, req.SessionId, session.SetThinking{Thinking: session.Thinking(req.Thinking)})
	return &roostv1.SetThinkingResponse{Position: at}, err
}

// SetMode implements the method of the service.
func (s *Server) SetMode(ctx context.Context, req *roostv1.SetModeRequest) (*roostv1.SetModeResponse, error) {
	_, at, err := s.do(ctx, req.SessionId, session.SetMode{Mode: session.Mode(req.Mode)})
	return &roostv1.SetModeResponse{Position: at}, err
}

// Rewind implements the method of the service.
func (s *Server) Rewind(ctx context.Context, req *roostv1.RewindRequest) (*roostv1.RewindResponse, error) {
	_, at, err := s.do(ctx, req.SessionId, session.Rewind{Item: session.ItemID(req.ItemId)})
	return &roostv1.RewindResponse{Position: at}, err
}

// Fork implements the method of the service.
func (s *Server) Fork(ctx context.Context, req *roostv1.ForkRequest) (*roostv1.ForkResponse, error) {
	id, err := s.opt.Engine.Fork(ctx, session.ID(req.SessionId), session.ItemID(req.BeforeItemId), req.Name)
	if err != nil {
		return nil, err
	}
	head, at, err := s.head(ctx, id)
	return &roostv1.ForkResponse{Session: head, Position: at}, err
}

// Compact implements the method of the service.
func (s *Server) Compact(ctx context.Context, req *roostv1.CompactRequest) (*roostv1.CompactResponse, error) {
	r, at, err := s.do(ctx, req.SessionId, session.Compact{})
	return &roostv1.CompactResponse{Position: at, Run: uint32(r.Run)}, err
}
