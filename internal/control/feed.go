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
)

// feed is what a watcher of a session is told, frame by frame. Watch and server-sent events are two
// encodings of it.
type feed struct {
	server *Server
	id     session.ID
	from   *session.Position // nil to begin with a reset
	strict bool              // refuse a position that cannot be resumed
	limit  int               // items in a reset
	write  func(*roostv1.WatchResponse, session.Position) error

	sub    *live.Subscription
	reason roostv1.ResetReason // of the next reset
	at     session.Position    // what the watcher has been told
}

// run tells what there is at once, and then what happens, until ctx ends, the session is gone or
// write fails. What is wrong with the request it says before it writes anything.
func (f *feed) run(ctx context.Context) error {
	f.reason = roostv1.ResetReason_RESET_REASON_START
	if f.from != nil {
		f.at = *f.from
	}
	var err error
	if f.sub, err = f.server.opt.Engine.Watch(ctx, f.id, f.from); err != nil {
		return err
	}
	defer f.sub.Close()
	over, cancel := context.WithCancel(ctx)
	cancel()
	u, err := f.sub.Next(over)
	if err == nil && u.Reset && f.from != nil {
		why := f.server.unresumable(*f.from, f.sub, u.State)
		if f.strict {
			return why
		}
		f.reason = resetReasons[why.fault]
	}
	for {
		switch {
		case err == nil:
			err = f.tell(ctx, u)
		case errors.Is(err, live.ErrRemoved):
			return f.send(ctx, &roostv1.WatchResponse{Frame: &roostv1.WatchResponse_Ended{
				Ended: &roostv1.Ended{Reason: roostv1.EndReason_END_REASON_DELETED},
			}})
		case ctx.Err() == nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)):
			err = f.send(ctx, &roostv1.WatchResponse{Frame: &roostv1.WatchResponse_Heartbeat{
				Heartbeat: &roostv1.Heartbeat{Position: controlview.Position(f.at)},
			}})
		}
		if err != nil {
			return err
		}
		f.reason = roostv1.ResetReason_RESET_REASON_SLOW
		u, err = f.next(ctx)
	}
}

// next waits for an update, or until it is time for a heartbeat.
func (f *feed) next(ctx context.Context) (live.Update, error) {
	ctx, cancel := context.WithTimeout(ctx, f.server.opt.Heartbeat)
	defer cancel()
	return f.sub.Next(ctx)
}

func (f *feed) tell(ctx context.Context, u live.Update) error {
	switch {
	case u.Reset:
		if f.reason == roostv1.ResetReason_RESET_REASON_SLOW {
			f.server.opt.Logger.InfoContext(ctx, "a watcher was too slow and got the state instead of the events",
				slog.String("session", string(u.State.ID)), slog.Uint64("after", uint64(f.at.Seq)), slog.Uint64("now", uint64(u.State.Seq)))
		}
		f.at = session.Position{Epoch: f.server.opt.Engine.Epoch(), Seq: u.State.Seq}
		items, first := controlview.Items(u.State, 0, f.limit)
		return f.send(ctx, &roostv1.WatchResponse{Frame: &roostv1.WatchResponse_Reset_{Reset_: &roostv1.Reset{
			Position: controlview.Position(f.at), Reason: f.reason,
			Session: controlview.Session(u.State), Items: items, FirstIndex: uint32(first),
		}}})
	case len(u.Records) == 0:
		return nil
	}
	f.at.Seq = u.Records[len(u.Records)-1].Seq
	return f.send(ctx, &roostv1.WatchResponse{Frame: &roostv1.WatchResponse_Events{Events: &roostv1.Events{
		Position: controlview.Position(f.at), Events: controlview.Events(u.Records),
	}}})
}

func (f *feed) send(ctx context.Context, frame *roostv1.WatchResponse) error {
	f.server.allowWrite(ctx)
	began := time.Now()
	err := f.write(frame, f.at)
	// The deadline has ended the connection then, though write may not have noticed.
	if stuck := f.server.opt.Stuck; stuck != nil && time.Since(began) >= f.server.opt.WriteTimeout {
		stuck()
	}
	return err
}
