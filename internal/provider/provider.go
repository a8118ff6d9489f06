// Package provider is the port to language models: what a pass asks, and the parts of the
// answer as they stream in. Each wire dialect is a package below; retries and fault
// classification are here, so that every dialect behaves alike.
package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/roost-dev/roost/internal/session"
)

// Model streams the answers of one provider's models. Implementations are safe for
// concurrent use.
type Model interface {
	// Stream sends one request and yields the parts of its answer in order. The sequence
	// ends after a part of kind Finish, or with an error, which is an *Error unless ctx
	// ended. A stream that just stops is an error (kind Network). It makes no retries of
	// its own and releases the connection when the loop is left.
	Stream(ctx context.Context, req *Request) iter.Seq2[Part, error]
}

// Request is one pass: everything the model is told. Its slices are not changed by a Model.
type Request struct {
	Model     session.ModelRef
	System    string
	Items     []session.Item // every tool call has its result in the items that follow it
	Tools     []Tool
	Thinking  session.Thinking
	MaxOutput int    // tokens; 0 leaves it to the dialect
	CacheKey  string // the same for every pass of a session

	// Continue asks for the rest of the last item of Items, an assistant item that was cut.
	Continue bool

	// Image returns the bytes of an image in Items.
	Image func(session.Image) ([]byte, error)
}

// Tool is a tool offered to the model. Schema is a JSON Schema whose type is "object".
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage
}

// PartKind says what a Part holds.
type PartKind uint8

// The kinds of Part.
const (
	TextDelta      PartKind = iota // Text
	ReasoningDelta                 // Text
	ReasoningEnd                   // Signature, Redacted: ends the current reasoning block, or is a whole redacted one
	CallStart                      // Key, Name
	CallDelta                      // Key, Text: a piece of the input's JSON text
	CallEnd                        // Key: the input is whole; without it at Finish, the call was cut
	UsageReport                    // Usage: replaces any earlier report of the pass
	Finish                         // Stop, ResponseModel: the answer is complete
)

// Part is a piece of a streaming answer. It is a struct rather than an interface because a
// busy server makes a hundred thousand a second and needs none of them on the heap.
type Part struct {
	Kind      PartKind
	Key       int    // tells the calls of one answer apart; calls may interleave
	Text      string // valid UTF-8, never empty in a delta
	Name      string
	Signature string
	Redacted  bool

	Usage         session.Usage
	Stop          session.StopReason
	ResponseModel string
}

// Fault classifies a provider's failure.
type Fault uint8

// The faults.
const (
	FaultProtocol  Fault = iota // an answer that makes no sense
	FaultNetwork                // no connection, or one that broke
	FaultStalled                // silence for longer than the limit
	FaultRateLimit              // 429
	FaultOverload               // 5xx, 529, "overloaded"
	FaultAuth                   // 401, 403: the key is missing, wrong or not allowed
	FaultContext                // the request does not fit the model's context window
	FaultRequest                // any other 4xx: the request is wrong
	FaultFilter                 // refused by a content filter
)

// Error is a provider's failure. Message is for a person: it names the provider and what it
// said, never a key or a header.
type Error struct {
	Fault      Fault
	Message    string
	Status     int           // HTTP status; 0 when there was none
	RetryAfter time.Duration // as the provider asked; 0 when it did not
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Retryable reports whether the same request may succeed later.
func (e *Error) Retryable() bool {
	switch e.Fault {
	case FaultNetwork, FaultStalled, FaultRateLimit, FaultOverload, FaultProtocol:
		return true
	case FaultAuth, FaultContext, FaultRequest, FaultFilter:
		return false
	}
	return false
}

// Errorf returns an Error without status.
func Errorf(f Fault, format string, args ...any) *Error {
	return &Error{Fault: f, Message: fmt.Sprintf(format, args...)}
}
