package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"
	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// codes says each kind of error in Connect's words. The kind itself travels in an ErrorInfo.
var codes = map[session.Kind]connect.Code{
	session.Internal:        connect.CodeInternal,
	session.Invalid:         connect.CodeInvalidArgument,
	session.NotFound:        connect.CodeNotFound,
	session.Busy:            connect.CodeFailedPrecondition,
	session.Locked:          connect.CodeAborted,
	session.Unauthenticated: connect.CodeUnauthenticated,
	session.Forbidden:       connect.CodePermissionDenied,
	session.TooLarge:        connect.CodeResourceExhausted,
	session.Unavailable:     connect.CodeUnavailable,
	session.Provider:        connect.CodeUnavailable,
	session.Canceled:        connect.CodeCanceled,
}

// kinds gives the errors that Connect itself makes, about requests it cannot read, a kind.
var kinds = map[connect.Code]session.Kind{
	connect.CodeInvalidArgument:   session.Invalid,
	connect.CodeUnimplemented:     session.NotFound,
	connect.CodeResourceExhausted: session.TooLarge,
	connect.CodeCanceled:          session.Canceled,
	connect.CodeDeadlineExceeded:  session.Canceled,
}

// wireError projects an error. What has no kind is an internal error, and its text stays
// here.
func wireError(err error) *connect.Error {
	own, isOwn := errors.AsType[*connect.Error](err)
	position, isPosition := errors.AsType[*positionError](err)
	e := session.AsError(err)
	switch {
	case isPosition && position.fault != roostv1.PositionFault_POSITION_FAULT_MALFORMED:
		own = connect.NewError(connect.CodeOutOfRange, e.Message)
	case isOwn:
		e = session.Errorf(kinds[own.Code()], "%s", own.Message())
	case e.Kind != session.Internal:
		own = connect.NewError(codes[e.Kind], e.Message)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		e = session.Errorf(session.Canceled, "the request took too long or was canceled")
		own = connect.NewError(codes[e.Kind], e.Message)
	default:
		own = connect.NewError(codes[e.Kind], e.Message)
	}
	details := []proto.Message{&roostv1.ErrorInfo{Kind: e.Kind.String(), Retry: e.Retry}}
	if isPosition {
		details = append(details, position.info())
	}
	for _, m := range details {
		if detail, err := connectproto.NewErrorDetail(m); err == nil {
			own = own.WithDetail(detail)
		}
	}
	return own
}

// protect bounds a call in time, and turns whatever it ends with into an error of the API: a
// panic ends the call and nothing else.
func (s *Server) protect(next connect.ServerFunc) connect.ServerFunc {
	return func(ctx context.Context, spec connect.Spec, stream connect.ServerStream) (err error) {
		defer func() {
			if p := recover(); p != nil {
				s.opt.Logger.Error("call failed", slog.String("call", spec.Procedure),
					slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
				err = wireError(session.Errorf(session.Internal, "internal error"))
			}
		}()
		if spec.StreamType == connect.StreamTypeUnary {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, s.opt.CallTimeout)
			defer cancel()
		}
		if err := next(ctx, spec, stream); err != nil {
			wire := wireError(err)
			if wire.Code() == connect.CodeInternal {
				s.opt.Logger.Error("call failed", slog.String("call", spec.Procedure), slog.Any("error", err))
			}
			return wire
		}
		return nil
	}
}
