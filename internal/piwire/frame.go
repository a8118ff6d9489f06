package piwire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// MaxFrame is the default limit of one payload in bytes, inclusive. Every client
// known to exist uses it in both directions.
const MaxFrame = 16 << 20

const (
	headerSize  = 4
	firstBuffer = 4 << 10
	bufferBlock = 64 << 10
	// maxEmptyReads bounds a reader that returns neither bytes nor an error.
	maxEmptyReads = 100
)

// AppendFrame appends payload with its length prefix to dst. A payload above
// limit is refused and dst returned unchanged.
func AppendFrame(dst, payload []byte, dir Direction, limit uint32) ([]byte, error) {
	if uint64(len(payload)) > uint64(limit) {
		return dst, newError(StageEncode, dir, overLimit("CBOR byte", limit))
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(payload)))
	return append(dst, payload...), nil
}

// FrameReader splits a byte stream into payloads (section 1.1). It holds the
// bytes that have arrived, never what a header merely announces. It is
// fail-stop: after the first error every call returns that error.
//
// It is not safe for concurrent use.
type FrameReader struct {
	src   io.Reader
	dir   Direction
	limit uint32
	buf   []byte // buf[start:end] has arrived and is not yet given out
	start int
	end   int
	err   error
}

// NewFrameReader reads frames of at most limit payload bytes from src. dir only
// words the errors.
func NewFrameReader(src io.Reader, dir Direction, limit uint32) *FrameReader {
	return &FrameReader{src: src, dir: dir, limit: limit}
}

// Next returns the next payload, which is valid until the following call. The
// error is io.EOF when the stream ends between frames, an [*Error] when it ends
// inside one or announces a frame above the limit (as soon as the fourth byte of
// the header is in), or whatever the source returned.
func (r *FrameReader) Next() ([]byte, error) {
	if r.err != nil {
		return nil, r.err
	}
	payload, err := r.next()
	if err != nil {
		r.fail(err)
		return nil, err
	}
	return payload, nil
}

func (r *FrameReader) next() ([]byte, error) {
	if r.start == r.end {
		r.start, r.end = 0, 0
		if len(r.buf) > bufferBlock { // do not keep one large frame's memory for ever
			r.buf = nil
		}
	}
	if err := r.need(headerSize); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(r.buf[r.start:])
	if n > r.limit {
		return nil, newError(StageFrame, r.dir, fmt.Sprintf("Frame length %d exceeds configured limit of %d", n, r.limit))
	}
	if err := r.need(headerSize + int(n)); err != nil {
		return nil, err
	}
	payload := r.buf[r.start+headerSize : r.start+headerSize+int(n)]
	r.start += headerSize + int(n)
	return payload, nil
}

// need reads until n bytes are there, counted from start.
func (r *FrameReader) need(n int) error {
	empty := 0
	for r.end-r.start < n {
		r.makeRoom(n)
		got, err := r.src.Read(r.buf[r.end:])
		r.end += got
		switch {
		case r.end-r.start >= n: // an error with the last bytes comes again at the next read
			return nil
		case errors.Is(err, io.EOF) && r.start == r.end:
			return io.EOF
		case errors.Is(err, io.EOF):
			return newError(StageFraming, r.dir, "Truncated frame at end of stream")
		case err != nil:
			return fmt.Errorf("read frame: %w", err)
		case got > 0:
			empty = 0
		default:
			if empty++; empty == maxEmptyReads {
				return fmt.Errorf("read frame: %w", io.ErrNoProgress)
			}
		}
	}
	return nil
}

// makeRoom leaves space for at least one byte. The buffer at most doubles what
// has arrived, so memory follows the peer's bytes and not its promises.
func (r *FrameReader) makeRoom(n int) {
	if r.end < len(r.buf) {
		return
	}
	if r.start > 0 {
		r.end = copy(r.buf, r.buf[r.start:r.end])
		r.start = 0
		if r.end < len(r.buf) {
			return
		}
	}
	size := firstBuffer
	if len(r.buf) > 0 {
		size = max(bufferBlock, min(2*len(r.buf), n))
	}
	grown := make([]byte, size)
	copy(grown, r.buf[:r.end])
	r.buf = grown
}

func (r *FrameReader) fail(err error) {
	r.err = err
	r.buf = nil
}
