package glob

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

var errOpenSet = errors.New(`a "[" is not closed`)

// classes are the named sets, in ASCII as git has them.
var classes = map[string]string{
	"alnum": "09AZaz", "alpha": "AZaz", "blank": "  \t\t", "cntrl": "\x00\x1f\x7f\x7f", "digit": "09",
	"graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "  \t\r", "upper": "AZ", "xdigit": "09AFaf",
}

// span is a range of characters.
type span struct{ low, high rune }

// set translates "[…]".
func (t *translator) set() error {
	t.at++
	negated := t.at < len(t.pattern) && strings.IndexByte("!^", t.pattern[t.at]) >= 0
	if negated {
		t.at++
	}
	var spans []span
	for first, last := true, rune(-1); ; first = false {
		if t.at == len(t.pattern) {
			return errOpenSet
		}
		switch {
		case t.pattern[t.at] == ']' && !first:
			t.at++
			t.writeSet(spans, negated)
			return nil
		case t.atClass():
			named, err := t.class()
			if err != nil {
				return err
			}
			spans, last = append(spans, named...), -1
		case t.pattern[t.at] == '-' && last >= 0 && t.at+1 < len(t.pattern) && t.pattern[t.at+1] != ']':
			t.at++
			high, err := t.member()
			if err != nil {
				return err
			}
			spans, last = append(spans, span{last, high}), -1
		default:
			r, err := t.member()
			if err != nil {
				return err
			}
			spans, last = append(spans, span{r, r}), r
		}
	}
}

// member reads one character of a set.
func (t *translator) member() (rune, error) {
	if t.pattern[t.at] == '\\' {
		t.at++
	}
	if t.at == len(t.pattern) {
		return 0, errOpenSet
	}
	r, n := utf8.DecodeRuneInString(t.pattern[t.at:])
	t.at += n
	return r, nil
}

// atClass tells whether "[:" with its end before the set's end is next.
func (t *translator) atClass() bool {
	rest, ok := strings.CutPrefix(t.pattern[t.at:], "[:")
	end := strings.IndexByte(rest, ']')
	return ok && end > 0 && rest[end-1] == ':'
}

func (t *translator) class() ([]span, error) {
	rest := t.pattern[t.at+len("[:"):]
	end := strings.IndexByte(rest, ']')
	name := rest[:end-1]
	t.at += len("[:") + end + 1
	pairs, ok := classes[name]
	if !ok {
		return nil, fmt.Errorf("there is no set [:%s:]", name)
	}
	var spans []span
	for i := 0; i < len(pairs); i += 2 {
		spans = append(spans, span{rune(pairs[i]), rune(pairs[i+1])})
	}
	return spans, nil
}

// writeSet writes the set without the slash, which no set matches.
func (t *translator) writeSet(spans []span, negated bool) {
	var in strings.Builder
	for _, s := range spans {
		for _, part := range []span{{s.low, min(s.high, '/'-1)}, {max(s.low, '/'+1), s.high}} {
			if part.low <= part.high {
				fmt.Fprintf(&in, `\x{%x}-\x{%x}`, part.low, part.high)
			}
		}
	}
	switch {
	case negated:
		t.out.WriteString(`[^/` + in.String() + `]`)
	case in.Len() == 0:
		t.out.WriteString(`[^\x00-\x{10FFFF}]`) // nothing
	default:
		t.out.WriteString(`[` + in.String() + `]`)
	}
}
