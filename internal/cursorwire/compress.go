package cursorwire

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
)

// isGzip reads the value of a header that names a compression.
func isGzip(encoding string) (bool, error) {
	switch encoding {
	case "", "identity":
		return false, nil
	case "gzip":
		return true, nil
	default:
		return false, NewError(Unimplemented, "unknown compression: use gzip")
	}
}

// Decompress returns the plain form of a unary body. encoding is the header Content-Encoding: empty,
// "identity" or "gzip"; for another one the error is an [*Error] with the code unimplemented. What is
// read from the result is not bounded. A reader of gzip fails with an [*Error] when the body is not
// gzip.
func Decompress(encoding string, body io.Reader) (io.Reader, error) {
	zipped, err := isGzip(encoding)
	if err != nil || !zipped {
		return body, err
	}
	return &gzipReader{src: body}, nil
}

// gzipReader opens its source with the first read, so that making one reads nothing.
type gzipReader struct {
	src io.Reader
	zr  *gzip.Reader
}

func (r *gzipReader) Read(p []byte) (int, error) {
	if r.zr == nil {
		zr, err := gzip.NewReader(r.src)
		if err != nil {
			return 0, gzipFailure(err)
		}
		r.zr = zr
	}
	n, err := r.zr.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = gzipFailure(err)
	}
	return n, err
}

// gzipFailure tells a broken body from a broken connection.
func gzipFailure(err error) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if _, corrupt := errors.AsType[flate.CorruptInputError](err); corrupt || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, gzip.ErrHeader) || errors.Is(err, gzip.ErrChecksum) {
		return malformed(err, "the body is not gzip")
	}
	return err
}

// inflate writes the plain form of src to dst, at most limit bytes.
func inflate(dst *bytes.Buffer, src io.Reader, limit int) error {
	n, err := io.Copy(dst, io.LimitReader(&gzipReader{src: src}, int64(limit)+1))
	if err != nil {
		return err
	}
	if n > int64(limit) {
		return tooLarge(limit)
	}
	return nil
}
