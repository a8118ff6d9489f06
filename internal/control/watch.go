package control

import (
	"context"

	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
	"github.com/roost-dev/roost/proto/roost/v1/roostv1connect"
)

// Watch implements the method of the service.
func (s *Server) Watch(ctx context.Context, req *roostv1.WatchRequest, stream roostv1connect.SessionServiceWatchServerStream) error {
	limit, err := pageSize(req.TranscriptLimit)
	if err != nil {
		return err
	}
	from, err := readPosition(req.Position)
	if err != nil {
		return err
	}
	f := &feed{
		server: s, id: session.ID(req.SessionId), from: from, strict: req.Strict, limit: limit,
		write: func(frame *roostv1.WatchResponse, _ session.Position) error { return stream.Send(frame) },
	}
	return f.run(ctx)
}
