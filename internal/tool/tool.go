// Package tool is the port to the workspace's tools: what a tool says about itself, how it
// is run, and the limits on what it may return. The tools are in the packages below.
package tool

import (
	"context"
	"encoding/json"
	"errors"
)

// ErrShutdown is the cause of a call's end when the server stops. A call that may be repeated
// is run again after the next start.
var ErrShutdown = errors.New("the server is shutting down")

// Spec is what a tool says about itself.
type Spec struct {
	Name        string
	Description string          // for the model
	Schema      json.RawMessage // JSON Schema of the input; its type is "object"
	Repeatable  bool            // running it twice does no harm, so it is run again after a crash
}

// Tool is one tool. Implementations are safe for concurrent use.
type Tool interface {
	Spec() Spec
	// Run runs a call and returns its result, an error result included. It returns soon
	// (within 2 s) after ctx ends, with what there was so far, and leaves no process behind.
	// It may call progress, from one goroutine at a time and not after it has returned.
	Run(ctx context.Context, call Call, progress func(Progress)) Result
}

// Call is one use of a tool.
type Call struct {
	ID        string
	Session   string          // the session that asks
	Input     json.RawMessage // valid JSON; not yet checked against the schema
	Dir       string          // the session's working directory, absolute
	Confined  bool            // file tools must not leave Dir, by links neither
	Env       []string        // added to the environment of programs, "NAME=value"
	OutputDir string          // an existing private folder for outputs too large to return

	// Previous is the Details of the newest successful call of the same tool in the
	// session's transcript, nil when there is none. It lets a tool go on from what it said
	// last without a memory of its own.
	Previous json.RawMessage
}

// Progress is output of a running tool: Text is added to what was shown so far, or
// replaces it.
type Progress struct {
	Text    string
	Replace bool
}

// Result is the outcome of a call. Text is valid UTF-8 and within the limits below,
// notices (MaxNotice) aside.
type Result struct {
	Text    string
	Images  []Image
	Details json.RawMessage // at most MaxDetails bytes; nil when there are none
	IsError bool
}

// Image is a picture a tool returns.
type Image struct {
	MIME string
	Data []byte
}

// Limits on what a tool returns (SPEC pi 8.1).
const (
	MaxLines   = 2000
	MaxBytes   = 50 << 10 // bytes of text
	MaxDetails = 64 << 10 // bytes of details
	MaxImage   = 5 << 20  // bytes of one image
)

// Failure returns an error result with a text that tells the model what to do.
func Failure(text string) Result { return Result{Text: text, IsError: true} }
