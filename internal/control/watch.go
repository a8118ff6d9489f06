package control

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/roost-dev/roost/internal/controlview"
	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
	"github.com/roost-dev/roost/proto/roost/v1/roostv1connect"
)

// watch is one stream of frames.
type watch struct {
	server *Server
	stream roostv1connect.SessionServiceWatchServerStream
	sub    *live.Subscription
	limit  int                 // items in a reset
	reason roostv1.ResetReason // of the next reset
	at     session.Position    // what the client has been told
}

// Watch implements the method of the service.
func (s *Server) Watch(ctx context.Context, req *roostv1.WatchRequest, stream roostv1connect.SessionServiceWatchServerStream) error {
	limit, err := pageSize(req.TranscriptLimit)
	if err != nil {
		return err
	}
	w := &watch{server: s, stream: stream, limit: limit, reason: roostv1.ResetReason_RESET_REASON_START}
	var from *session.Position
	if req.Position != nil {
		if from, err = parsePosition(req.Position); err != nil {
			return err
		}
		w.at = *from
		w.reason = roostv1.ResetReason_RESET_REASON_GONE
		if from.Epoch != s.opt.Engine.Epoch() {
			w.reason = roostv1.ResetReason_RESET_REASON_OTHER_EPOCH
		}
	}
	if w.sub, err = s.opt.Engine.Watch(ctx, session.ID(req.SessionId), from); err != nil {
		return err
	}
	defer w.sub.Close()
	return w.run(ctx)
}

func parsePosition(p *roostv1.Position) (*session.Position, error) {
	if p.Epoch == 0 {
		return nil, session.Errorf(session.Invalid, "position.epoch must be at least 1: use a position that the server has given")
	}
	return &session.Position{Epoch: session.Epoch(p.Epoch), Seq: session.Seq(p.Seq)}, nil
}

// run tells what there is at once, and then what happens.
func (w *watch) run(ctx context.Context) error {
	over, cancel := context.WithCancel(ctx)
	cancel()
	u, err := w.sub.Next(over)
	for {
		switch {
		case err == nil:
			err = w.tell(ctx, u)
		case errors.Is(err, live.ErrRemoved):
			return w.send(ctx, &roostv1.WatchResponse{Frame: &roostv1.WatchResponse_Ended{
				Ended: &roostv1.Ended{Reason: roostv1.EndReason_END_REASON_DELETED},
			}})
		case ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
			err = w.send(ctx, &roostv1.WatchResponse{Frame: &roostv1.WatchResponse_Heartbeat{
				Heartbeat: &roostv1.Heartbeat{Position: controlview.Position(w.at)},
			}})
		}
		if err != nil {
			return err
		}
		w.reason = roostv1.ResetReason_RESET_REASON_SLOW
		u, err = w.next(ctx)
	}
}

// next waits for an update, or until it is time for a heartbeat.
func (w *watch) next(ctx context.Context) (live.Update, error) {
	ctx, cancel := context.WithTimeout(ctx, w.server.opt.Heartbeat)
	defer cancel()
	return w.sub.Next(ctx)
}

func (w *watch) tell(ctx context.Context, u live.Update) error {
	switch {
	case u.Reset:
		if w.reason == roostv1.ResetReason_RESET_REASON_SLOW {
			w.server.opt.Logger.InfoContext(ctx, "a watcher was too slow and got the state instead of the events",
				slog.String("session", string(u.State.ID)), slog.Uint64("after", uint64(w.at.Seq)), slog.Uint64("now", uint64(u.State.Seq)))
		}
		w.at = session.Position{Epoch: w.server.opt.Engine.Epoch(), Seq: u.State.Seq}
		items, first := controlview.Items(u.State, 0, w.limit)
		return w.send(ctx, &roostv1.WatchResponse{Frame: &roostv1.WatchResponse_Reset_{Reset_: &roostv1.Reset{
			Position: controlview.Position(w.at), Reason: w.reason,
			Session: controlview.Session(u.State), Items: items, FirstIndex: uint32(first),
		}}})
	case len(u.Records) == 0:
		return nil
	}
	w.at.Seq = u.Records[len(u.Records)-1].Seq
	return w.send(ctx, &roostv1.WatchResponse{Frame: &roostv1.WatchResponse_Events{Events: &roostv1.Events{
		Position: controlview.Position(w.at), Events: controlview.Events(u.Records),
	}}})
}

func (w *watch) send(ctx context.Context, frame *roostv1.WatchResponse) error {
	w.server.allowWrite(ctx)
	began := time.Now()
	err := w.stream.Send(frame)
	// The deadline has ended the connection then, though Send may not have noticed.
	if stuck := w.server.opt.Stuck; stuck != nil && time.Since(began) >= w.server.opt.WriteTimeout {
		stuck()
	}
	return err
}
