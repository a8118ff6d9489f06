package httpcall

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// Template is a shortcut around JSON parsing for streams of deltas. The chunks of an
// answer are the same bytes but for one string:
//
//	{"id":"x","choices":[{"delta":{"content":"  Hel  "}}]}
//	└──────────────── before ───────────────┘     └ after ┘
//
// Once a parsed chunk is learnt, a chunk with the same bytes before and after one JSON
// string has the same meaning with another string, and needs no parser. Whatever does not
// fit exactly is left to the parser, so a template can be missed but not be wrong.
type Template struct {
	Kind          int // the caller's meaning of the string
	before, after []byte
}

// Learn remembers data as a template of a kind. field is the member that holds the string,
// as `"content":"`, and value is what a full parse found as the only news in data. Data
// whose field is not the one and only place of value is not learnt.
func (t *Template) Learn(data []byte, field, value string, kind int) {
	t.before = t.before[:0]
	if bytes.Count(data, []byte(field)) != 1 || value == "" {
		return // an unescaped `"content":"` is always a member, but two are ambiguous
	}
	start := bytes.Index(data, []byte(field)) + len(field)
	n := stringEnd(data[start:])
	if n < 0 {
		return
	}
	if s, ok := unquote(data[start : start+n]); !ok || s != value {
		return
	}
	t.Kind = kind
	t.before = append(t.before, data[:start]...)
	t.after = append(t.after[:0], data[start+n:]...)
}

// Match returns the string in data, valid UTF-8, when data fits the template.
func (t *Template) Match(data []byte) (string, bool) {
	if len(t.before) == 0 || len(data) < len(t.before)+len(t.after) ||
		!bytes.HasPrefix(data, t.before) || !bytes.HasSuffix(data, t.after) {
		return "", false
	}
	middle := data[len(t.before) : len(data)-len(t.after)]
	// The first unescaped quote must be the one that begins after, which it is when there
	// is none in the middle and the middle does not end inside an escape.
	if bytes.IndexByte(middle, '\\') < 0 {
		if bytes.IndexByte(middle, '"') >= 0 || !plain(middle) {
			return "", false
		}
		return string(middle), true
	}
	if stringEnd(data[len(t.before):]) != len(middle) {
		return "", false
	}
	return unquote(middle)
}

// plain reports whether b can stand in a JSON string as it is: valid UTF-8 without control
// characters.
func plain(b []byte) bool {
	for _, c := range b {
		if c < ' ' {
			return false
		}
	}
	return utf8.Valid(b)
}

// stringEnd returns the index of the first quote that is not escaped, or -1.
func stringEnd(b []byte) int {
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// unquote decodes the inside of a JSON string.
func unquote(inside []byte) (string, bool) {
	quoted := make([]byte, 0, len(inside)+2)
	quoted = append(append(append(quoted, '"'), inside...), '"')
	var s string
	err := json.Unmarshal(quoted, &s)
	return s, err == nil
}
