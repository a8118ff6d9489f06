package cursortest

import (
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/cursorwire"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

// Class is what a client makes of a failed attempt (section 1.5).
type Class string

// The classes. Only the last two are retried, each with a limit of its own.
const (
	Cancelled      Class = "cancelled"
	ActionRequired Class = "action required"
	NonRetriable   Class = "not retriable"
	NoProgress     Class = "no progress"
	ServerError    Class = "server error"
	TransportError Class = "transport error"
)

// The limits of a run's retries.
const (
	maxServerRetries    = 3
	maxTransportRetries = 10
)

// What breaks an attempt without an error of the server.
var (
	ErrNoEnd       = errors.New("protocol error: missing EndStreamResponse")
	ErrNoTurnEnded = errors.New("stream ended without turn_ended, the connection was likely dropped")
	ErrStalled     = errors.New("connection stalled: no message of the server")
	ErrBroken      = errors.New("the connection was broken by the test")
	ErrLostReply   = errors.New("the reply to an append was lost")
	// ErrCancelled ends a run that the client cancelled, ErrStopped one that it stopped.
	ErrCancelled = errors.New("the run was cancelled by the client")
	ErrStopped   = errors.New("the run was stopped by the client")
)

// Failure is the error of a run: that of its last attempt.
type Failure struct {
	Class Class
	// Text is what the user is shown.
	Text string
	// Cause is a [*cursorwire.Error] if the server said what is wrong.
	Cause error
}

// Error returns class and text.
func (f *Failure) Error() string { return string(f.Class) + ": " + f.Text }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// The values of aiserver.v1.ErrorDetails.Error that have a rule of their own.
var (
	silent        = []aiserverv1.ErrorDetails_Error{21, 35}
	wantLogin     = []aiserverv1.ErrorDetails_Error{2, 18, 11, 12, 3, 38, 46, 47}
	wantUpgrade   = []aiserverv1.ErrorDetails_Error{9, 7, 23, 10, 8, 50, 51, 22}
	wantPayment   = []aiserverv1.ErrorDetails_Error{44, 45}
	wantConfig    = []aiserverv1.ErrorDetails_Error{1, 42, 30}
	socketSymptom = []string{"socket", "econnreset", "econnrefused", "epipe", "etimedout", "protocol error", "connection"}
)

// classify judges what an attempt ended with. What is no error of the server is a failure of the
// transport.
func classify(err error, retryCanceled bool) *Failure {
	e, worded := errors.AsType[*cursorwire.Error](err)
	if !worded || errors.Is(err, io.ErrUnexpectedEOF) {
		return &Failure{TransportError, err.Error(), err}
	}
	return &Failure{classOf(e, retryCanceled), textOf(e), err}
}

// classOf is the table of section 1.5, in its order.
func classOf(e *cursorwire.Error, retryCanceled bool) Class {
	kind, custom := e.Details.GetError(), e.Details.GetDetails()
	canceled := e.Code == cursorwire.Canceled || e.Code == cursorwire.Aborted
	never := custom != nil && custom.IsRetryable != nil && !custom.GetIsRetryable()
	switch {
	case canceled && !retryCanceled && !looksLikeSocket(e), slices.Contains(silent, kind):
		return Cancelled
	case custom.GetAnalyticsMetadata().GetActionRequired() != "",
		slices.Contains(wantLogin, kind), slices.Contains(wantUpgrade, kind),
		slices.Contains(wantPayment, kind), slices.Contains(wantConfig, kind):
		return ActionRequired
	case kind == aiserverv1.ErrorDetails_ERROR_CUSTOM_MESSAGE && !custom.GetIsRetryable(), never:
		return NonRetriable
	case e.Code == cursorwire.Unauthenticated:
		return ActionRequired
	case e.Code == cursorwire.PermissionDenied && !custom.GetIsRetryable():
		return NonRetriable
	case canceled, strings.Contains(e.Message, "protocol error"):
		return TransportError
	default:
		return ServerError
	}
}

func looksLikeSocket(e *cursorwire.Error) bool {
	text := strings.ToLower(e.Message)
	return slices.ContainsFunc(socketSymptom, func(s string) bool { return strings.Contains(text, s) })
}

func textOf(e *cursorwire.Error) string {
	d := e.Details.GetDetails()
	if text := strings.TrimSpace(d.GetTitle() + " " + d.GetDetail()); text != "" {
		return text
	}
	return e.Message
}
