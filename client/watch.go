package client

import (
	"context"
	"errors"
	"iter"
	"time"

	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// WatchOptions says what a watch begins with.
type WatchOptions struct {
	// From is where to resume; nil begins with a Reset.
	From *roostv1.Position
	// Strict ends the watch with an *Error whose Position says why, when the server cannot resume
	// there, at the beginning or after a lost connection. Otherwise a Reset frame says so.
	Strict bool
	// Transcript is how many items a Reset brings, at most 1000; 0 means 100.
	Transcript uint32
	// Lost, if set, is called when the connection is lost, with the time until the next
	// attempt.
	Lost func(err error, wait time.Duration)
}

var errSilent = errors.New("the connection is silent")

// Watch yields what happens to a session. A lost connection is made again, without end, and
// the watch goes on exactly where it was: there is never a gap between the frames, nor
// anything twice; when the server cannot resume there, a Reset frame says so. The sequence
// ends after an Ended frame, with ctx's error, or with an *Error that another attempt cannot
// mend: there is no such session, the token is wrong, the request is.
func (c *Client) Watch(ctx context.Context, id string, opt WatchOptions) iter.Seq2[*roostv1.WatchResponse, error] {
	return func(yield func(*roostv1.WatchResponse, error) bool) {
		w := &watch{
			client: c, yield: yield,
			req: &roostv1.WatchRequest{SessionId: id, Position: opt.From, TranscriptLimit: opt.Transcript, Strict: opt.Strict},
		}
		for {
			err := w.stream(ctx)
			switch {
			case w.done:
				return
			case ctx.Err() != nil:
				yield(nil, context.Cause(ctx))
				return
			case hopeless(err):
				yield(nil, err)
				return
			}
			wait := backoff(w.attempt)
			w.attempt++
			if opt.Lost != nil {
				opt.Lost(err, wait)
			}
			if err := sleep(ctx, wait); err != nil {
				yield(nil, err)
				return
			}
		}
	}
}

// hopeless reports whether a watch that failed would fail again.
func hopeless(err error) bool {
	e, ok := errors.AsType[*Error](err)
	if !ok {
		return false
	}
	switch e.Kind {
	case NotFound, Invalid, Unauthenticated, Forbidden:
		return true
	case Internal, Busy, Locked, TooLarge, Unavailable, Provider, Canceled, Unreachable:
	}
	return false
}

// watch is the state of a watch over its connections.
type watch struct {
	client  *Client
	req     *roostv1.WatchRequest // its position follows what has been yielded
	yield   func(*roostv1.WatchResponse, error) bool
	attempt int  // failed connections since the last frame
	done    bool // nothing more is to be yielded
}

// stream yields the frames of one connection.
func (w *watch) stream(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	silence := time.AfterFunc(w.client.opt.Silence, func() { cancel(errSilent) })
	defer silence.Stop()
	stream, err := w.client.service.Watch(ctx, w.req)
	if err != nil {
		return w.failed(parent, ctx, err)
	}
	defer func() { _ = stream.Close() }()
	for {
		frame, err := stream.Receive()
		if err != nil {
			return w.failed(parent, ctx, err)
		}
		// However long the caller takes is no silence of the server.
		silence.Stop()
		w.attempt = 0
		if w.take(frame); w.done {
			return nil
		}
		silence.Reset(w.client.opt.Silence)
	}
}

// take yields a frame.
func (w *watch) take(frame *roostv1.WatchResponse) {
	ended := false
	switch f := frame.Frame.(type) {
	case *roostv1.WatchResponse_Reset_:
		w.req.Position = clonePosition(f.Reset_.Position)
	case *roostv1.WatchResponse_Events:
		w.req.Position = clonePosition(f.Events.Position)
	case *roostv1.WatchResponse_Ended:
		ended = true
	}
	w.done = !w.yield(frame, nil) || ended
}

// clonePosition makes a position the watch's own: what is yielded belongs to the caller.
func clonePosition(p *roostv1.Position) *roostv1.Position {
	return &roostv1.Position{Epoch: p.GetEpoch(), Seq: p.GetSeq()}
}

func (*watch) failed(parent, ctx context.Context, err error) error {
	if errors.Is(context.Cause(ctx), errSilent) {
		return &Error{Kind: Unreachable, Message: errSilent.Error(), Retry: true, cause: errSilent}
	}
	return typed(parent, err)
}
