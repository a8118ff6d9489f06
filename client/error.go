package client

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectproto"

	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// Kind classifies the errors of a server. A newer server may have more.
type Kind string

// The kinds of error.
const (
	Internal        Kind = "internal"        // a fault of the server
	Invalid         Kind = "invalid"         // the request cannot be obeyed as it is
	NotFound        Kind = "not_found"       // there is no such thing
	Busy            Kind = "busy"            // not now: the session's phase does not allow it
	Locked          Kind = "locked"          // another process owns it
	Unauthenticated Kind = "unauthenticated" // no token, or a wrong one
	Forbidden       Kind = "forbidden"       // a rule or policy says no
	TooLarge        Kind = "too_large"       // over a limit that the message names
	Unavailable     Kind = "unavailable"     // the server cannot serve now
	Provider        Kind = "provider"        // the model's provider failed
	Canceled        Kind = "canceled"        // the asker went away or aborted
	Unreachable     Kind = "unreachable"     // no connection to a server, or it broke; whether the call took effect is unknown
)

// Error is an error for a person.
type Error struct {
	Kind    Kind
	Message string
	Retry   bool // whether the same request may succeed later without a change
	// Position says why a position cannot be resumed; nil if that is not what is wrong.
	Position *roostv1.PositionInfo
	cause    error
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Unwrap returns what the transport said, if anything.
func (e *Error) Unwrap() error { return e.cause }

// KindOf returns the kind of the Error in err's chain, or Internal.
func KindOf(err error) Kind {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	return Internal
}

// codes gives the answers that no roost made, such as those of a guard or proxy in front of
// it, a kind.
var codes = map[connect.Code]Kind{
	connect.CodePermissionDenied:  Forbidden,
	connect.CodeInvalidArgument:   Invalid,
	connect.CodeResourceExhausted: TooLarge,
	connect.CodeUnavailable:       Unavailable,
}

// answered are the codes of errors that the transport makes of an HTTP status or message: there
// was an answer. All others that it makes are about the connection.
var answered = map[connect.Code]bool{
	connect.CodeUnauthenticated: true, connect.CodePermissionDenied: true,
	connect.CodeUnimplemented: true, connect.CodeResourceExhausted: true,
}

// typed turns the error of a call into an *Error, or into ctx's when that has ended.
func typed(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	wire, ok := errors.AsType[*connect.Error](err)
	switch {
	case !ok || !wire.IsRemote() && !answered[wire.Code()]:
		return &Error{Kind: Unreachable, Message: fmt.Sprintf("the server cannot be reached: %v", err), Retry: true, cause: err}
	case wire.Code() == connect.CodeUnimplemented:
		return &Error{Kind: NotFound, Message: "the server does not have this call; is it an older roost, or no roost at all?", cause: err}
	}
	if e := detailed(wire); e != nil {
		return e
	}
	if wire.Code() == connect.CodeUnauthenticated {
		return &Error{Kind: Unauthenticated, Message: "the server refuses the token; it is in the file " + TokenFile + " of the server's data directory", cause: wire}
	}
	kind, known := codes[wire.Code()]
	if !known {
		kind = Internal
	}
	return &Error{Kind: kind, Message: wire.Error(), Retry: kind == Unavailable, cause: wire}
}

// detailed reads what roost itself says of an error, nil if it says nothing.
func detailed(wire *connect.Error) *Error {
	var e *Error
	var position *roostv1.PositionInfo
	for _, d := range wire.Details() {
		m, err := connectproto.UnmarshalErrorDetail(d)
		if err != nil {
			continue
		}
		switch m := m.(type) {
		case *roostv1.ErrorInfo:
			e = &Error{Kind: Kind(m.Kind), Message: wire.Message(), Retry: m.Retry, cause: wire}
		case *roostv1.PositionInfo:
			position = m
		}
	}
	if e != nil {
		e.Position = position
	}
	return e
}
