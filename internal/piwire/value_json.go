package piwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Why a text is no JSON value.
var (
	// ErrNotJSON is a text that is not one JSON value, or one nested deeper than
	// 10,000 levels.
	ErrNotJSON = errors.New("not one JSON value")
	// ErrValueTooLarge is a text above [MaxFrame] bytes.
	ErrValueTooLarge = errors.New("JSON value is larger than 16 MiB, shorten it")
)

// ValueFromJSON reads one JSON value and reduces what the protocol cannot carry:
//
//   - of several entries with one key the last counts;
//   - lone surrogates and invalid UTF-8 become U+FFFD;
//   - a number is an integer when it has no fraction, and becomes its own text as
//     a string when it is then beyond ±(2⁵³−1);
//   - a value with more than levels levels below it, or with a container above
//     1,000,000 entries, becomes its JSON text as one string.
//
// levels is [ToolCallLevels], [ToolItemLevels], or a smaller budget. The only
// errors are [ErrNotJSON] and [ErrValueTooLarge].
func ValueFromJSON(text []byte, levels int) (Value, error) {
	if len(text) > MaxFrame {
		return Value{}, ErrValueTooLarge
	}
	if !json.Valid(text) {
		return Value{}, ErrNotJSON
	}
	p := jsonParser{in: text, out: make([]byte, 0, len(text)+headMax)}
	height := p.value(min(levels, maxDepth))
	if p.tooBig {
		return TextValue(string(bytes.TrimSpace(text))), nil
	}
	if p.repeated { // dropped entries may have been the deepest
		w := walker{cborReader: cborReader{b: p.out}}
		_, height, _ = w.item(0)
	}
	return Value{enc: string(p.out), height: uint8(height)}, nil
}

// jsonParser turns valid JSON into the canonical encoding. Since the syntax has
// been checked, it only has to look where to go next.
type jsonParser struct {
	in       []byte
	pos      int
	out      []byte
	scratch  []byte  // one unescaped string
	entries  []entry // of the objects being read, innermost last
	repeated bool    // some object had a repeated key
	tooBig   bool    // the value does not fit; reading has stopped
}

// entry is where an object's key and value lie in the output.
type entry struct{ key, value, end int }

// value reads the value at the cursor, which may have room levels below it, and
// returns how many it has.
func (p *jsonParser) value(room int) (height int) {
	switch p.peek() {
	case '{':
		return p.object(room)
	case '[':
		return p.array(room)
	case '"':
		p.out = append(p.out, p.text()...)
	case 't':
		p.word("true", simpleTrue)
	case 'f':
		p.word("false", simpleFalse)
	case 'n':
		p.word("null", simpleNull)
	default:
		p.number()
	}
	return 0
}

// peek skips white space and returns the byte under the cursor.
func (p *jsonParser) peek() byte {
	for {
		switch c := p.in[p.pos]; c {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return c
		}
	}
}

func (p *jsonParser) word(w string, first byte) {
	p.pos += len(w)
	p.out = append(p.out, first)
}

func (p *jsonParser) array(room int) (height int) {
	start := p.open()
	n := 0
	for p.more(']', n) {
		if p.grow(&n, room); p.tooBig {
			return 0
		}
		height = max(height, 1+p.value(room-1))
		if p.tooBig {
			return 0
		}
	}
	p.close(start, majorArray, n)
	return height
}

func (p *jsonParser) object(room int) (height int) {
	start, base := p.open(), len(p.entries)
	n := 0
	for p.more('}', n) {
		if p.grow(&n, room); p.tooBig {
			return 0
		}
		p.peek()
		e := entry{key: len(p.out)}
		p.out = append(p.out, p.text()...)
		e.value = len(p.out)
		p.peek()
		p.pos++ // the colon
		height = max(height, 1+p.value(room-1))
		if p.tooBig {
			return 0
		}
		e.end = len(p.out)
		p.entries = append(p.entries, e)
	}
	n = p.dropRepeated(start+1, p.entries[base:])
	p.entries = p.entries[:base]
	p.close(start, majorMap, n)
	return height
}

// open passes the opening bracket and keeps one byte for the container's head.
func (p *jsonParser) open() (start int) {
	p.pos++
	start = len(p.out)
	p.out = append(p.out, 0)
	return start
}

// more passes the comma before another entry, or the closing bracket.
func (p *jsonParser) more(closing byte, n int) bool {
	if p.peek() == closing {
		p.pos++
		return false
	}
	if n > 0 {
		p.pos++
	}
	return true
}

// grow counts one more entry.
func (p *jsonParser) grow(n *int, room int) {
	*n++
	p.tooBig = room <= 0 || *n > maxContainer
}

// close writes the head of the container that began at start, moving its content
// when the head takes more than the byte kept for it.
func (p *jsonParser) close(start int, major byte, n int) {
	var head [headMax]byte
	h := appendHead(head[:0], major, uint64(n))
	p.out = append(p.out, h[1:]...)
	copy(p.out[start+len(h):], p.out[start+1:len(p.out)-len(h)+1])
	copy(p.out[start:], h)
}

// dropRepeated keeps the last value of each key at the place of its first, as
// JavaScript does, and returns the number of keys left.
func (p *jsonParser) dropRepeated(body int, entries []entry) int {
	var keys keySet
	unique := true
	for _, e := range entries {
		unique = keys.add(p.out[e.key:e.value]) && unique
	}
	if unique {
		return len(entries)
	}
	p.repeated = true
	kept := make([]entry, 0, len(entries))
	at := make(map[string]int, len(entries))
	for _, e := range entries {
		key := string(p.out[e.key:e.value])
		if i, found := at[key]; found {
			kept[i] = e
			continue
		}
		at[key] = len(kept)
		kept = append(kept, e)
	}
	old := bytes.Clone(p.out[body:])
	p.out = p.out[:body]
	for _, e := range kept {
		p.out = append(p.out, old[e.key-body:e.end-body]...)
	}
	return len(kept)
}

// number reads a number. Valid JSON leaves only range errors to ParseFloat,
// which come with an infinity.
func (p *jsonParser) number() {
	start := p.pos
	for p.pos < len(p.in) && isNumberByte(p.in[p.pos]) {
		p.pos++
	}
	text := string(p.in[start:p.pos])
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n != 0 && n >= -MaxCount && n <= MaxCount {
		p.out = appendInt(p.out, n)
		return
	}
	f, _ := strconv.ParseFloat(text, 64)
	if math.Trunc(f) == f && math.Abs(f) > MaxCount {
		p.out = appendText(p.out, text)
		return
	}
	p.out = appendNumber(p.out, f)
}

func isNumberByte(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// text reads the string at the cursor and returns its encoding, which is valid
// until the next call.
func (p *jsonParser) text() []byte {
	raw := p.quoted()
	if bytes.IndexByte(raw, '\\') >= 0 {
		raw = unescape(raw)
	}
	if !utf8.Valid(raw) {
		raw = bytes.ToValidUTF8(raw, []byte("\uFFFD"))
	}
	p.scratch = append(appendHead(p.scratch[:0], majorText, uint64(len(raw))), raw...)
	return p.scratch
}

// quoted passes a string and returns what is between its quotes.
func (p *jsonParser) quoted() []byte {
	p.pos++
	start := p.pos
	for p.in[p.pos] != '"' {
		if p.in[p.pos] == '\\' {
			p.pos++
		}
		p.pos++
	}
	p.pos++
	return p.in[start : p.pos-1]
}

// unescape resolves the escapes of a valid JSON string.
func unescape(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(out, raw...)
		}
		out = append(out, raw[:i]...)
		c := raw[i+1]
		raw = raw[i+2:]
		switch c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			var r rune
			r, raw = unescapeRune(raw)
			out = utf8.AppendRune(out, r)
		default: // quote, slash, backslash
			out = append(out, c)
		}
	}
}

// unescapeRune reads the four digits after \u, and the second half of a
// surrogate pair where there is one. Half a pair becomes U+FFFD.
func unescapeRune(raw []byte) (rune, []byte) {
	r, raw := hexRune(raw), raw[4:]
	if !utf16.IsSurrogate(r) {
		return r, raw
	}
	if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
		if pair := utf16.DecodeRune(r, hexRune(raw[2:])); pair != utf8.RuneError {
			return pair, raw[6:]
		}
	}
	return utf8.RuneError, raw
}

func hexRune(digits []byte) rune {
	n, _ := strconv.ParseUint(string(digits[:4]), 16, 16)
	return rune(n)
}
