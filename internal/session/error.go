package session

import (
	"errors"
	"fmt"
)

// Kind classifies every error that a client can see. Each front end maps the kinds to
// its protocol's words in one table.
type Kind uint8

// The kinds of error.
const (
	Internal        Kind = iota // a fault of roost; the message never says more than that
	Invalid                     // the request cannot be obeyed as it is
	NotFound                    // there is no such thing
	Busy                        // not now: the session's phase does not allow it
	Locked                      // another process owns it
	Unauthenticated             // no token, or a wrong one
	Forbidden                   // a rule or policy says no
	TooLarge                    // over a limit that the message names
	Unavailable                 // roost cannot serve now: disk full, shutting down
	Provider                    // the model's provider failed
	Canceled                    // the asker went away or aborted
)

var kindNames = [...]string{"internal", "invalid", "not_found", "busy", "locked", "unauthenticated", "forbidden", "too_large", "unavailable", "provider", "canceled"}

// String returns the kind's name as it appears in logs and in roost's own API.
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[Internal]
}

// Error is an error for a person: what is wrong and what to do about it. Its message never
// holds secrets or paths of the server's own files. Safe to share between goroutines.
type Error struct {
	Kind    Kind
	Message string
	Retry   bool // whether the same request may succeed later without a change
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Errorf returns an Error of a kind. Kinds Busy, Locked and Unavailable are worth a retry.
func Errorf(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...), Retry: kind == Busy || kind == Locked || kind == Unavailable}
}

// AsError returns the Error in err's chain, or an Internal one that hides err's text.
func AsError(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Kind: Internal, Message: "internal error"}
}
