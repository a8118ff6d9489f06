package piwire

import (
	"math"
	"strconv"
)

// How many levels a free JSON value may hold below itself so that a session
// snapshot with it stays within depth 64 (section 1.2).
const (
	ToolCallLevels = 57 // ToolCall.Input
	ToolItemLevels = 59 // ToolItem.Input and ToolItem.Details
)

// Value is a free JSON value: a tool's input and details, an error's details. It
// is immutable, holds its canonical encoding, and is comparable: equal Values are
// equal JSON with the same order of keys.
//
// The zero Value is no value at all. In an optional field it means absent; in a
// required one it is written as null.
type Value struct {
	enc    string // one item in the canonical form, valid at depth 0
	height uint8  // levels below the item, at most 64
}

// Null returns JSON null.
func Null() Value { return Value{enc: string([]byte{simpleNull})} }

// TextValue returns s as a JSON string, made valid with [SafeText].
func TextValue(s string) Value {
	s = SafeText(s)
	return Value{enc: string(appendText(make([]byte, 0, len(s)+headMax), s))}
}

// headMax is the largest size of an item's head.
const headMax = 9

// IsZero reports whether v is no value. Null is a value.
func (v Value) IsZero() bool { return v.enc == "" }

// Text returns the string that v is, or false when it is something else.
func (v Value) Text() (string, bool) {
	r := cborReader{b: []byte(v.enc)}
	major, n, fault := r.head()
	if fault != "" || major != majorText {
		return "", false
	}
	return v.enc[r.pos : r.pos+int(n)], true
}

// String returns v as JSON text, "" for no value.
func (v Value) String() string { return string(v.AppendJSON(nil)) }

// AppendJSON appends v as compact JSON text; no value appends nothing. Numbers
// without a fraction are printed as integers.
func (v Value) AppendJSON(dst []byte) []byte {
	if v.enc == "" {
		return dst
	}
	p := jsonPrinter{cborReader: cborReader{b: []byte(v.enc)}, out: dst}
	p.item()
	return p.out
}

// MarshalJSON is AppendJSON for encoding/json; no value becomes null.
func (v Value) MarshalJSON() ([]byte, error) {
	if v.enc == "" {
		return []byte("null"), nil
	}
	return v.AppendJSON(nil), nil
}

// jsonPrinter prints a canonical encoding, which it trusts.
type jsonPrinter struct {
	cborReader
	out []byte
}

func (p *jsonPrinter) item() {
	major, arg, _ := p.head()
	switch major {
	case majorUint:
		p.out = strconv.AppendUint(p.out, arg, 10)
	case majorNegative:
		p.out = strconv.AppendInt(p.out, -1-int64(arg), 10)
	case majorText:
		p.text(major, arg)
	case majorArray:
		p.array(arg)
	case majorMap:
		p.object(arg)
	default:
		p.simple(byte(arg))
	}
}

func (p *jsonPrinter) array(n uint64) {
	p.out = append(p.out, '[')
	for i := range n {
		if i > 0 {
			p.out = append(p.out, ',')
		}
		p.item()
	}
	p.out = append(p.out, ']')
}

func (p *jsonPrinter) object(n uint64) {
	p.out = append(p.out, '{')
	for i := range n {
		if i > 0 {
			p.out = append(p.out, ',')
		}
		p.item()
		p.out = append(p.out, ':')
		p.item()
	}
	p.out = append(p.out, '}')
}

func (p *jsonPrinter) text(major byte, n uint64) {
	s, _ := p.str(major, n)
	p.out = append(p.out, '"')
	start := 0
	for i, c := range s {
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		p.out = append(append(p.out, s[start:i]...), '\\')
		start = i + 1
		switch c {
		case '"', '\\':
			p.out = append(p.out, c)
		case '\n':
			p.out = append(p.out, 'n')
		case '\r':
			p.out = append(p.out, 'r')
		case '\t':
			p.out = append(p.out, 't')
		default:
			const hex = "0123456789abcdef"
			p.out = append(p.out, 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	p.out = append(append(p.out, s[start:]...), '"')
}

func (p *jsonPrinter) simple(first byte) {
	switch first {
	case simpleFalse:
		p.out = append(p.out, "false"...)
	case simpleTrue:
		p.out = append(p.out, "true"...)
	case simpleNull:
		p.out = append(p.out, "null"...)
	default:
		f, _ := p.float()
		format := byte('f')
		if f != 0 && math.Abs(f) < 1e-6 { // the form JavaScript prints
			format = 'e'
		}
		p.out = strconv.AppendFloat(p.out, f, format, -1, 64)
	}
}
