// Package glob turns file name patterns into regular expressions, which match in time
// linear in the path, whoever wrote the pattern.
//
// In both dialects "*" and "?" and sets do not match "/", "**" between slashes or at an end
// stands for any number of directories, and "\" takes a character's meaning away.
package glob

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

// ErrPattern is what errors of this package are.
var ErrPattern = errors.New("not a valid file pattern")

// MaxPattern is the length of patterns that are accepted, in bytes.
const MaxPattern = 4096

// Compile compiles a pattern of a tool: it may hold alternatives in braces, "*.{c,h}".
func Compile(pattern string) (*regexp.Regexp, error) {
	return compile(&translator{pattern: pattern, braces: true})
}

// CompileIgnore compiles a pattern of an ignore file, without the marks at its ends.
func CompileIgnore(pattern string) (*regexp.Regexp, error) {
	t := &translator{pattern: pattern}
	// git compares what is before the first special character by itself, and matches the
	// rest as if it began there: "a**/b" is "a", then "**/b".
	t.begin = strings.IndexAny(pattern, `*?[\`)
	return compile(t)
}

func compile(t *translator) (*regexp.Regexp, error) {
	if len(t.pattern) > MaxPattern || !utf8.ValidString(t.pattern) {
		return nil, fmt.Errorf("%w: it must be UTF-8 of at most %d bytes", ErrPattern, MaxPattern)
	}
	t.out.WriteString(`(?s)\A(?:`)
	for t.at < len(t.pattern) {
		if err := t.next(); err != nil {
			return nil, fmt.Errorf("%w: %q: %w", ErrPattern, t.pattern, err)
		}
	}
	if t.depth > 0 {
		return nil, fmt.Errorf("%w: %q: a brace is not closed", ErrPattern, t.pattern)
	}
	t.out.WriteString(`)\z`)
	re, err := regexp.Compile(t.out.String())
	if err != nil {
		return nil, fmt.Errorf("%w: %q is too complex: %w", ErrPattern, t.pattern, err)
	}
	return re, nil
}

// translator goes through a pattern once.
type translator struct {
	pattern string
	braces  bool
	begin   int // "**" here counts as being at the pattern's beginning
	at      int
	depth   int // open braces
	out     strings.Builder
}

func (t *translator) next() error {
	c := t.pattern[t.at]
	switch {
	case c == '*':
		t.stars()
	case c == '?':
		t.out.WriteString(`[^/]`)
		t.at++
	case c == '[':
		return t.set()
	case c == '\\':
		t.at++
		if t.at == len(t.pattern) {
			return errors.New(`it ends in a "\"`)
		}
		t.literal()
	case t.braces && c == '{':
		t.out.WriteString(`(?:`)
		t.depth++
		t.at++
	case t.depth > 0 && c == ',':
		t.out.WriteByte('|')
		t.at++
	case t.depth > 0 && c == '}':
		t.out.WriteByte(')')
		t.depth--
		t.at++
	default:
		t.literal()
	}
	return nil
}

func (t *translator) literal() {
	_, n := utf8.DecodeRuneInString(t.pattern[t.at:])
	t.out.WriteString(regexp.QuoteMeta(t.pattern[t.at : t.at+n]))
	t.at += n
}

// stars translates a run of stars.
func (t *translator) stars() {
	from := t.at
	for t.at < len(t.pattern) && t.pattern[t.at] == '*' {
		t.at++
	}
	rest := t.pattern[t.at:]
	opens := from == 0 || from == t.begin || t.pattern[from-1] == '/' || t.depth > 0 && strings.IndexByte("{,", t.pattern[from-1]) >= 0
	switch {
	case t.at-from < 2 || !opens:
		t.out.WriteString(`[^/]*`)
	case strings.HasPrefix(rest, "/"):
		t.out.WriteString(`(?:.*/)?`)
		t.at++
	case rest == "" || t.depth > 0 && strings.IndexByte(",}", rest[0]) >= 0:
		t.out.WriteString(`.*`)
	default:
		t.out.WriteString(`[^/]*`)
	}
}
