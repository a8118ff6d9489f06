package control

import (
	"context"

	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// Answer implements the method of the service.
func (s *Server) Answer(ctx context.Context, req *roostv1.AnswerRequest) (*roostv1.AnswerResponse, error) {
	scope, err := parseScope(req.Scope)
	if err != nil {
		return nil, err
	}
	r, at, err := s.do(ctx, req.SessionId, session.Answer{
		Call: session.CallID(req.ItemId), Allow: req.Allow, Reason: req.Reason, Scope: scope,
	})
	return &roostv1.AnswerResponse{Position: at, Run: uint32(r.Run)}, err
}

// parseScope reads a scope. One that it does not know must not be taken for less or more than
// the person meant.
func parseScope(s roostv1.Scope) (session.Scope, error) {
	switch s {
	case roostv1.Scope_SCOPE_UNSPECIFIED, roostv1.Scope_SCOPE_ONCE:
		return session.Once, nil
	case roostv1.Scope_SCOPE_SESSION:
		return session.Session, nil
	case roostv1.Scope_SCOPE_ALWAYS:
		return session.Always, nil
	}
	return 0, session.Errorf(session.Invalid, "scope %d is not known here", s)
}
