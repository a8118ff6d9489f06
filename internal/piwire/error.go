package piwire

import "io"

// Direction says which of the two message languages is meant. It appears in
// error texts only.
type Direction string

// The two directions.
const (
	FromClient Direction = "client"
	FromServer Direction = "server"
)

// Stage is the layer that refused a message.
type Stage int

// The stages, in the order in which a received message passes them.
const (
	// StageFraming: the stream ended inside a frame.
	StageFraming Stage = iota + 1
	// StageFrame: a frame above the limit, or a payload that is not one item of
	// the CBOR subset (section 1.2).
	StageFrame
	// StageSchema: well-formed, but not a message (section 2).
	StageSchema
	// StageEncode: a message that cannot be written (section 1.3).
	StageEncode
)

// maxErrorText is the length in bytes at which error texts are cut.
const maxErrorText = 500

// Error is a protocol violation, of the peer when decoding or of the caller when
// encoding. Its text is safe to send to the peer: it holds no part of the payload
// and at most 500 bytes (section 1.4).
type Error struct {
	Stage Stage
	Msg   string
}

// Error returns Msg.
func (e *Error) Error() string { return e.Msg }

// Unwrap makes errors.Is(err, io.ErrUnexpectedEOF) true for a stream that ended
// inside a frame.
func (e *Error) Unwrap() error {
	if e.Stage == StageFraming {
		return io.ErrUnexpectedEOF
	}
	return nil
}

func newError(stage Stage, dir Direction, detail string) *Error {
	var msg string
	switch stage {
	case StageFraming:
		msg = "Invalid " + string(dir) + " protocol framing: " + detail
	case StageFrame:
		msg = "Invalid " + string(dir) + " protocol frame: " + detail
	case StageSchema:
		msg = "Invalid " + string(dir) + " protocol message"
	case StageEncode:
		msg = "Unable to encode " + string(dir) + " protocol message: " + detail
	}
	return &Error{Stage: stage, Msg: msg[:min(len(msg), maxErrorText)]}
}
