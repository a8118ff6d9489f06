package piwire

import (
	"encoding/binary"
	"math"
)

// appendHead appends an initial byte with arg in its shortest form (section 1.3).
func appendHead(b []byte, major byte, arg uint64) []byte {
	m := major << 5
	switch {
	case arg < 24:
		return append(b, m|byte(arg))
	case arg <= math.MaxUint8:
		return append(b, m|24, byte(arg))
	case arg <= math.MaxUint16:
		return append(b, m|25, byte(arg>>8), byte(arg))
	case arg <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(b, m|26), uint32(arg))
	default:
		return binary.BigEndian.AppendUint64(append(b, m|27), arg)
	}
}

func appendText(b []byte, s string) []byte {
	return append(appendHead(b, majorText, uint64(len(s))), s...)
}

func appendInt(b []byte, n int64) []byte {
	if n < 0 {
		return appendHead(b, majorNegative, uint64(-1-n))
	}
	return appendHead(b, majorUint, uint64(n))
}

// appendNumber appends a finite number whose integers are safe: an integer when
// it has no fraction, else a float64. Minus zero stays a float64.
func appendNumber(b []byte, f float64) []byte {
	if math.Trunc(f) == f && (f != 0 || !math.Signbit(f)) {
		return appendInt(b, int64(f))
	}
	return binary.BigEndian.AppendUint64(append(b, simpleFloat), math.Float64bits(f))
}
