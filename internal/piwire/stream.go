package piwire

import "io"

// Reader reads the messages of one direction from a byte stream. It is
// fail-stop: after the first error every call returns that error, so one bad
// message ends the stream (section 1.1).
//
// It is not safe for concurrent use.
type Reader[M any] struct {
	frames *FrameReader
	decode func([]byte) (M, error)
}

// NewClientReader reads what a client sends, with at most limit bytes a message.
func NewClientReader(src io.Reader, limit uint32) *Reader[ClientMessage] {
	return &Reader[ClientMessage]{frames: NewFrameReader(src, FromClient, limit), decode: DecodeClient}
}

// NewServerReader reads what a server sends, with at most limit bytes a message.
func NewServerReader(src io.Reader, limit uint32) *Reader[ServerMessage] {
	return &Reader[ServerMessage]{frames: NewFrameReader(src, FromServer, limit), decode: DecodeServer}
}

// Read returns the next message; it shares no memory with the stream's buffer.
// The error is io.EOF when the stream ends between messages, an [*Error] for a
// violation of the protocol, or the source's own error.
func (r *Reader[M]) Read() (M, error) {
	var none M
	payload, err := r.frames.Next()
	if err != nil {
		return none, err
	}
	m, err := r.decode(payload)
	if err != nil {
		r.frames.fail(err)
		return none, err
	}
	return m, nil
}
