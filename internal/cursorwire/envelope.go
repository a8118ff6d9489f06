package cursorwire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// envelopeHeader is a byte of flags and a length in four bytes, big-endian.
const envelopeHeader = 5

// The flags of an envelope.
const (
	flagCompressed byte = 1 << iota
	flagEnd
)

// keepBuffer is the size in bytes up to which a reader keeps its buffer for the next envelope.
const keepBuffer = 64 << 10

// Envelope is one message of a stream, or its end.
type Envelope struct {
	// End is true for the last envelope, whose Data is for [DecodeEnd].
	End bool
	// Data is decompressed. It is valid until the reader is used again.
	Data []byte
}

// EnvelopeReader splits the body of a stream into envelopes (section 1.3). It holds the bytes that
// have arrived, never what a header merely announces. It is fail-stop: after the first error every
// call returns that error. It is not safe for concurrent use.
type EnvelopeReader struct {
	src      io.Reader
	limit    int
	gzip     bool
	buf      bytes.Buffer
	inflated bytes.Buffer
	ended    bool
	err      error
}

// NewEnvelopeReader reads envelopes of at most limit bytes, compressed as well as decompressed, from
// src. encoding is the header Connect-Content-Encoding of the stream: empty, "identity" or "gzip";
// for another one the first read fails with the code unimplemented.
func NewEnvelopeReader(src io.Reader, encoding string, limit int) *EnvelopeReader {
	r := &EnvelopeReader{src: src, limit: limit}
	r.gzip, r.err = isGzip(encoding)
	return r
}

// Next returns the next envelope. The error is io.EOF when the body ends between envelopes; a
// client's half of a stream has no end envelope, after a server's half without one the run is lost.
// It is an [*Error] if the body is not a stream of envelopes, ends inside one (it wraps
// io.ErrUnexpectedEOF then), continues after the end, or holds an envelope above the limit, which is
// refused as soon as its header is read. Otherwise it is what the source returned.
func (r *EnvelopeReader) Next() (Envelope, error) {
	if r.err != nil {
		return Envelope{}, r.err
	}
	e, err := r.next()
	if err != nil {
		r.err = err
		r.buf, r.inflated = bytes.Buffer{}, bytes.Buffer{}
	}
	return e, err
}

func (r *EnvelopeReader) next() (Envelope, error) {
	var header [envelopeHeader]byte
	switch _, err := io.ReadFull(r.src, header[:]); {
	case errors.Is(err, io.EOF):
		return Envelope{}, io.EOF
	case err != nil:
		return Envelope{}, readFailure(err)
	case r.ended:
		return Envelope{}, malformed(nil, "the stream goes on after its end")
	}
	flags, n := header[0], binary.BigEndian.Uint32(header[1:])
	switch {
	case flags&^(flagCompressed|flagEnd) != 0:
		return Envelope{}, malformed(nil, "the envelope has unknown flags %#x", flags)
	case flags&flagCompressed != 0 && !r.gzip:
		return Envelope{}, malformed(nil, "the envelope is compressed, but the stream names no compression")
	case uint64(n) > uint64(r.limit):
		return Envelope{}, tooLarge(r.limit)
	}
	data, err := r.payload(int64(n), flags&flagCompressed != 0)
	if err != nil {
		return Envelope{}, err
	}
	r.ended = flags&flagEnd != 0
	return Envelope{End: r.ended, Data: data}, nil
}

func (r *EnvelopeReader) payload(n int64, compressed bool) ([]byte, error) {
	reuse(&r.buf)
	if _, err := io.CopyN(&r.buf, r.src, n); err != nil {
		return nil, readFailure(err)
	}
	// An empty payload is not compressed, whatever its flag says.
	if !compressed || n == 0 {
		return r.buf.Bytes(), nil
	}
	reuse(&r.inflated)
	if err := inflate(&r.inflated, &r.buf, r.limit); err != nil {
		return nil, err
	}
	return r.inflated.Bytes(), nil
}

// reuse empties b, and frees it if it is large: one large envelope's memory is not kept for ever.
func reuse(b *bytes.Buffer) {
	if b.Cap() > keepBuffer {
		*b = bytes.Buffer{}
		return
	}
	b.Reset()
}

func readFailure(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return malformed(io.ErrUnexpectedEOF, "the stream ends inside an envelope")
	}
	return fmt.Errorf("read envelope: %w", err)
}

// closeEnvelope writes the header of the envelope that starts at start and ends with out.
func closeEnvelope(out []byte, start int, flags byte, limit int) ([]byte, error) {
	n := len(out) - start - envelopeHeader
	if n > limit {
		return out[:start], tooLarge(limit)
	}
	out[start] = flags
	binary.BigEndian.PutUint32(out[start+1:], uint32(n))
	return out, nil
}
