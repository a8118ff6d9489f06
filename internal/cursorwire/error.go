package cursorwire

import (
	"fmt"
	"net/http"

	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

// Code is a Connect error code as it is written.
type Code string

// The codes.
const (
	Canceled           Code = "canceled"
	Unknown            Code = "unknown"
	InvalidArgument    Code = "invalid_argument"
	DeadlineExceeded   Code = "deadline_exceeded"
	NotFound           Code = "not_found"
	AlreadyExists      Code = "already_exists"
	PermissionDenied   Code = "permission_denied"
	ResourceExhausted  Code = "resource_exhausted"
	FailedPrecondition Code = "failed_precondition"
	Aborted            Code = "aborted"
	OutOfRange         Code = "out_of_range"
	Unimplemented      Code = "unimplemented"
	Internal           Code = "internal"
	Unavailable        Code = "unavailable"
	DataLoss           Code = "data_loss"
	Unauthenticated    Code = "unauthenticated"
)

// HTTPStatus is the status of a unary reply with this code. A stream always has 200.
func (c Code) HTTPStatus() int {
	switch c {
	case Canceled:
		return 499
	case InvalidArgument, FailedPrecondition, OutOfRange:
		return http.StatusBadRequest
	case DeadlineExceeded:
		return http.StatusGatewayTimeout
	case NotFound:
		return http.StatusNotFound
	case AlreadyExists, Aborted:
		return http.StatusConflict
	case PermissionDenied:
		return http.StatusForbidden
	case ResourceExhausted:
		return http.StatusTooManyRequests
	case Unimplemented:
		return http.StatusNotImplemented
	case Unavailable:
		return http.StatusServiceUnavailable
	case Unauthenticated:
		return http.StatusUnauthorized
	case Unknown, Internal, DataLoss:
		return http.StatusInternalServerError
	default:
		return http.StatusInternalServerError
	}
}

// Error is what a call or a stream ends with. The client sees everything but Cause.
type Error struct {
	Code    Code
	Message string
	// Details make the client retry, ask, or show a card (section 1.5). Without them it retries
	// nearly every error.
	Details *aiserverv1.ErrorDetails
	// Cause is for errors.Is and the log.
	Cause error
}

// NewError returns an error without details. In the end of a stream a client retries it by itself,
// unless the code is canceled, aborted, unauthenticated or permission_denied.
func NewError(code Code, message string) *Error { return &Error{Code: code, Message: message} }

// Error returns the code and the message.
func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }

// malformed is for bytes of a client that mean nothing. A client that gets it for an append gives up
// its whole run (section 1.5), so it is for nothing else.
func malformed(cause error, format string, args ...any) *Error {
	return &Error{Code: InvalidArgument, Message: fmt.Sprintf(format, args...), Cause: cause}
}

func tooLarge(limit int) *Error {
	return &Error{Code: ResourceExhausted, Message: fmt.Sprintf("the message is longer than the limit of %d bytes", limit)}
}
