package piwire

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// Limits of section 1.2, all tested on the declared number.
const (
	maxDepth     = 64
	maxContainer = 1_000_000
)

// The major types of CBOR.
const (
	majorUint = iota
	majorNegative
	majorBytes
	majorText
	majorArray
	majorMap
	majorTag
	majorSimple
)

// The three simple values and the one float of the subset, as initial bytes.
const (
	simpleFalse = 0xf4
	simpleTrue  = 0xf5
	simpleNull  = 0xf6
	simpleFloat = 0xfb
)

const (
	infoIndefinite = 31

	faultTruncated = "Truncated CBOR payload"
	faultTrailing  = "CBOR payload contains trailing data"
	faultDepth     = "CBOR nesting depth exceeds configured limit of 64"
	faultLength    = "Decoded CBOR integer or length is outside the safe range"
	faultInteger   = "Decoded CBOR integer is outside the safe range"
	faultUTF8      = "CBOR text string contains invalid UTF-8"
)

// cborReader reads the heads and scalars of the subset. Methods return a fault,
// the detail of the error text; it is empty when all is well.
type cborReader struct {
	b   []byte
	pos int
}

// head reads an initial byte and its argument. For major type 7 arg is the
// initial byte itself; a float's eight bytes are left to be read.
func (r *cborReader) head() (major byte, arg uint64, fault string) {
	if r.pos >= len(r.b) {
		return 0, 0, faultTruncated
	}
	first := r.b[r.pos]
	r.pos++
	major, info := first>>5, first&31
	if info < 24 && major < majorTag {
		return major, uint64(info), ""
	}
	switch {
	case major == majorTag:
		return 0, 0, "CBOR tags are not supported"
	case major == majorSimple:
		return major, uint64(first), simpleFault(first)
	case info == infoIndefinite:
		return 0, 0, "Indefinite-length CBOR " + kindOf(major) + " are not supported"
	case info > 27:
		return 0, 0, "Malformed CBOR additional information"
	}
	arg, fault = r.argument(info)
	return major, arg, fault
}

// argument reads the 1, 2, 4 or 8 bytes that follow info 24 to 27. The shortest
// form is not demanded.
func (r *cborReader) argument(info byte) (uint64, string) {
	size := 1 << (info - 24)
	if len(r.b)-r.pos < size {
		return 0, faultTruncated
	}
	var arg uint64
	for _, c := range r.b[r.pos : r.pos+size] {
		arg = arg<<8 | uint64(c)
	}
	r.pos += size
	if arg > MaxCount {
		return 0, faultLength
	}
	return arg, ""
}

func simpleFault(first byte) string {
	switch first {
	case simpleFalse, simpleTrue, simpleNull, simpleFloat:
		return ""
	case 0xff:
		return "CBOR break marker is not supported"
	default:
		return "Unsupported CBOR simple value or floating-point width"
	}
}

func kindOf(major byte) string {
	switch major {
	case majorBytes:
		return "byte strings"
	case majorText:
		return "text strings"
	case majorArray:
		return "arrays"
	case majorMap:
		return "maps"
	default:
		return "items"
	}
}

// float reads the eight bytes of a float64. One without a fraction has to be a
// safe integer.
func (r *cborReader) float() (float64, string) {
	if len(r.b)-r.pos < 8 {
		return 0, faultTruncated
	}
	f := math.Float64frombits(binary.BigEndian.Uint64(r.b[r.pos:]))
	r.pos += 8
	switch {
	case math.IsNaN(f) || math.IsInf(f, 0):
		return 0, "Decoded CBOR number must be finite"
	case math.Trunc(f) == f && math.Abs(f) > MaxCount:
		return 0, faultInteger
	}
	return f, ""
}

// str returns the n bytes of a string, which alias the payload.
func (r *cborReader) str(major byte, n uint64) ([]byte, string) {
	if n > MaxFrame {
		if major == majorText {
			return nil, overLimit("CBOR text string", MaxFrame)
		}
		return nil, overLimit("CBOR byte string", MaxFrame)
	}
	if uint64(len(r.b)-r.pos) < n {
		return nil, faultTruncated
	}
	s := r.b[r.pos : r.pos+int(n)]
	r.pos += int(n)
	if major == majorText && !utf8.Valid(s) {
		return nil, faultUTF8
	}
	return s, ""
}

// container checks the declared length of an array or map.
func container(major byte, n uint64) string {
	switch {
	case n <= maxContainer:
		return ""
	case major == majorArray:
		return overLimit("CBOR array", maxContainer)
	default:
		return overLimit("CBOR map", maxContainer)
	}
}
