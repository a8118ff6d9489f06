package cursortool

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxNesting bounds how deep arguments are looked into while they are incomplete.
const maxNesting = 64

// partial returns what can be read of JSON text that may end anywhere, as a JSON object: values that
// are complete, and the beginning of a string that is a value. A number that may go on is left out.
func partial(input string) json.RawMessage {
	whole := json.RawMessage(strings.TrimSpace(input))
	if len(whole) > 0 && whole[0] == '{' && json.Valid(whole) {
		return whole
	}
	p := prefix{text: input}
	if repaired := p.repair(); len(repaired) > 0 && repaired[0] == '{' && json.Valid(repaired) {
		return repaired
	}
	return json.RawMessage("{}")
}

// prefix reads the beginning of a JSON text.
type prefix struct {
	text string
	open []byte // the closing brackets that are due, innermost last
	safe int    // up to here the text is good, once the brackets that were due there are closed
	due  []byte // those
}

func (p *prefix) keep(at int) {
	p.safe = at
	p.due = append(p.due[:0], p.open...)
}

func (p *prefix) repair() json.RawMessage {
	for i := 0; i < len(p.text); {
		switch c := p.text[i]; c {
		case '{', '[':
			if len(p.open) == maxNesting {
				return p.closed("")
			}
			p.open = append(p.open, c+2) // '}' and ']' are two further on than their openers
			i++
			p.keep(i)
		case '}', ']':
			if len(p.open) == 0 || p.open[len(p.open)-1] != c {
				return p.closed("")
			}
			p.open = p.open[:len(p.open)-1]
			i++
			p.keep(i)
			if len(p.open) == 0 {
				return p.closed("") // what follows the object does not belong to it
			}
		case '"':
			end, complete := stringEnd(p.text, i)
			isKey := p.expectsKey(i)
			if complete && !isKey {
				p.keep(end)
			}
			if !complete {
				if isKey {
					return p.closed("")
				}
				p.keep(i)
				return p.closed(p.text[i:end] + `"`)
			}
			i = end
		case ',', ':', ' ', '\t', '\r', '\n':
			i++
		default:
			n := strings.IndexAny(p.text[i:], ",]} \t\r\n")
			end := i + n
			if n < 0 || !json.Valid([]byte(p.text[i:end])) {
				return p.closed("")
			}
			i = end
			p.keep(i)
		}
	}
	return p.closed("")
}

// closed returns the good part of the text with tail and all brackets that are due.
func (p *prefix) closed(tail string) json.RawMessage {
	out := append([]byte(p.text[:p.safe]), tail...)
	for _, bracket := range slices.Backward(p.due) {
		out = append(out, bracket)
	}
	return json.RawMessage(strings.TrimSpace(string(out)))
}

// expectsKey reports whether a string at i is a key: in an object, and not after a colon.
func (p *prefix) expectsKey(i int) bool {
	if len(p.open) == 0 || p.open[len(p.open)-1] != '}' {
		return false
	}
	before := strings.TrimRight(p.text[:i], " \t\r\n")
	return !strings.HasSuffix(before, ":")
}

// stringEnd returns where the string that begins at i ends, with its quote. Of one that is not
// complete it returns the end of what can be used: no half escape, half surrogate pair or half
// character is left.
func stringEnd(s string, i int) (end int, complete bool) {
	for j := i + 1; j < len(s); {
		switch c := s[j]; {
		case c == '"':
			return j + 1, true
		case c == '\\':
			n := escapeLen(s[j:])
			if n == 0 {
				return j, false
			}
			j += n
		case c < utf8.RuneSelf:
			j++
		default:
			if !utf8.FullRuneInString(s[j:]) {
				return j, false
			}
			_, n := utf8.DecodeRuneInString(s[j:])
			j += n
		}
	}
	return len(s), false
}

// escapeLen returns the length of the escape that s begins with, of both halves for a surrogate
// pair, or 0 when it is not complete.
func escapeLen(s string) int {
	switch {
	case len(s) < 2:
		return 0
	case s[1] != 'u':
		return 2
	case len(s) < 6:
		return 0
	}
	if c := s[2:4]; !strings.ContainsAny(c[:1], "dD") || !strings.ContainsAny(c[1:], "89abAB") {
		return 6
	}
	switch low := s[6:]; {
	case len(low) >= 6 && low[:2] == `\u`:
		return 12
	case low == "", low == `\`, len(low) < 6 && strings.HasPrefix(low, `\u`):
		return 0
	default:
		return 6
	}
}
