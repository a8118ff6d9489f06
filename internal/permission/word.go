package permission

import (
	"slices"
	"strings"
	"unicode"

	"mvdan.cc/sh/v3/syntax"
)

// word is a word of a command, as far as it is known before the command runs.
type word struct {
	text string // with anything for what is not known
	show string // as a person sees it, and as a grant names it
	// glob says that what is not known are names of files: one word each, as matched.
	glob bool
}

// literal returns a word that is wholly known.
func literal(text string) word { return word{text: text, show: quote(text)} }

// unknown returns a word of which nothing is known.
func unknown(source string) word { return word{text: string(anything), show: printable(source)} }

func (w word) known() bool { return !strings.ContainsRune(w.text, anything) }

// free tells whether the word may turn out to be any words: what an expansion gives.
func (w word) free() bool { return !w.known() && !w.glob }

func (w word) option() bool { return strings.HasPrefix(w.text, "-") && w.text != "-" }

// climbs tells whether a component of the word is "..".
func (w word) climbs() bool { return slices.Contains(strings.Split(w.text, "/"), "..") }

// word reads a word of the source.
func (r *reader) word(w *syntax.Word) word {
	b := wordBuilder{glob: true}
	if hasBraces(w) {
		b.expand()
	} else {
		for i, part := range w.Parts {
			b.part(part, i == 0)
		}
	}
	out := word{text: b.text.String()}
	out.glob = b.glob && !out.known()
	switch {
	case !out.known():
		out.show = printable(r.source(w))
	case b.tilde:
		head, rest, found := strings.Cut(out.text, "/")
		out.show = head
		if found {
			out.show += quote("/" + rest)
		}
	default:
		out.show = quote(out.text)
		if strings.HasPrefix(out.text, "~") {
			out.text = "./" + out.text // a quoted "~" is a file's name
		}
	}
	return out
}

// hasBraces tells whether the word becomes several, as {a,b} and {1..3} do.
func hasBraces(w *syntax.Word) bool {
	split := &syntax.Word{Parts: slices.Clone(w.Parts)}
	return syntax.SplitBraces(split) && slices.ContainsFunc(split.Parts, func(p syntax.WordPart) bool {
		_, ok := p.(*syntax.BraceExp)
		return ok
	})
}

type wordBuilder struct {
	text  strings.Builder
	glob  bool // no expansion so far
	tilde bool
}

// expand notes a part that only running it gives.
func (b *wordBuilder) expand() {
	b.glob = false
	b.text.WriteRune(anything)
}

func (b *wordBuilder) part(part syntax.WordPart, first bool) {
	switch part := part.(type) {
	case *syntax.Lit:
		b.tilde = b.tilde || first && strings.HasPrefix(part.Value, "~")
		b.unquoted(part.Value)
	case *syntax.SglQuoted:
		if part.Dollar {
			b.text.WriteString(ansiC(part.Value))
		} else {
			b.text.WriteString(part.Value)
		}
	case *syntax.DblQuoted:
		if part.Dollar {
			b.expand() // a translation
			return
		}
		for _, inner := range part.Parts {
			if lit, ok := inner.(*syntax.Lit); ok {
				b.text.WriteString(unescape(lit.Value, "$`\"\\"))
			} else {
				b.part(inner, false)
			}
		}
	case *syntax.ProcSubst:
		b.text.WriteString("/dev/fd/63") // what bash puts there; its commands are judged themselves
	default:
		b.expand()
	}
}

// unquoted reads text outside of quotes, where patterns stand for names.
func (b *wordBuilder) unquoted(s string) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			i++
			if s[i] != '\n' {
				b.text.WriteByte(s[i])
			}
		case c == '*', c == '?':
			b.text.WriteRune(anything)
		case c == '[' && strings.Contains(s[i:], "]"):
			b.text.WriteRune(anything)
			i += strings.LastIndexByte(s[i:], ']')
		default:
			b.text.WriteByte(c)
		}
	}
}

// unescape takes the backslashes away that stand before one of the set, and joined lines.
func unescape(s, set string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) {
			if s[i+1] == '\n' {
				i++
				continue
			}
			if strings.IndexByte(set, s[i+1]) >= 0 {
				i++
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// quote writes a text as one word of a shell, on one line and without invisible characters.
func quote(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=:,./@%^"
	switch {
	case s != "" && strings.Trim(s, plain) == "":
		return s
	case isPrintable(s):
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return "$'" + printable(strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s)) + "'"
}

func isPrintable(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar }) < 0
}
