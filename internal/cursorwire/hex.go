package cursorwire

import (
	"bytes"
	"encoding/hex"
	"errors"
	"io"
)

const (
	// hexSlack is how much white space, in bytes, may stand around hex digits.
	hexSlack = 1 << 10
	hexBlock = 4 << 10
	// maxSmall bounds in bytes what stands beside a message in an append.
	maxSmall = 64 << 10
)

const space = " \t\r\n"

// decodeHex reads hex digits of either case, with white space around but not between them, and
// returns at most limit bytes. It reads src to its end.
func decodeHex(src io.Reader, limit int) ([]byte, error) {
	var out []byte
	var left []byte // what is read and not decoded: less than two digits, or what may be white space at the end
	block := make([]byte, hexBlock)
	for started := false; ; {
		n, err := src.Read(block)
		part := block[:n]
		if !started {
			part = bytes.TrimLeft(part, space)
			started = len(part) > 0
		}
		left = append(left, part...)
		if out, left, err = decodePairs(out, left, limit, err); err != nil {
			return out, endOfHex(left, err)
		}
	}
}

// decodePairs decodes the pairs of digits at the start of text and returns what follows them. It
// passes on the error of the read, after what came with it.
func decodePairs(out, text []byte, limit int, readErr error) (decoded, rest []byte, err error) {
	digits := bytes.TrimRight(text, space)
	even := len(digits) &^ 1
	if even/2 > limit-len(out) {
		return nil, nil, tooLarge(limit)
	}
	start := len(out)
	out = append(out, text[:even/2]...) // room, written over by what follows
	if _, err := hex.Decode(out[start:], text[:even]); err != nil {
		return nil, nil, notHex(err)
	}
	if len(text)-even > hexSlack {
		return nil, nil, notHex(hex.InvalidByteError(text[even]))
	}
	return out, append(text[:0], text[even:]...), readErr
}

// endOfHex judges what was left over when the source ended.
func endOfHex(left []byte, err error) error {
	switch {
	case !errors.Is(err, io.EOF):
		return err
	case len(bytes.Trim(left, space)) > 0:
		return notHex(hex.ErrLength)
	default:
		return nil
	}
}

func notHex(err error) error { return malformed(err, "data is not hexadecimal") }
