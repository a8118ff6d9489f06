package fstool

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// view is a text in a form that is easier to find things in, and the way back: the places
// where the form differs from the text. What is not replaced keeps its bytes that way.
type view struct {
	text   string
	pieces []piece // in order; between them the form is the text itself
}

// piece says that form[from:to] stands for text[start:end]. The form may be empty.
type piece struct{ from, to, start, end int }

// lineView gives every line the end "\n".
func lineView(text string) *view {
	b := builder{source: text}
	for i := 0; i < len(text); {
		if strings.HasPrefix(text[i:], "\r\n") {
			b.replace(2, "\n")
			i += 2
			continue
		}
		next := strings.Index(text[i+1:], "\r\n") + 1
		if next == 0 {
			next = len(text) - i
		}
		b.keep(next)
		i += next
	}
	return b.view()
}

// looseView is lineView without blanks at line ends, and with plain characters in place of
// those that only look different: NFKC, quotes, dashes, spaces.
func looseView(text string) *view {
	b := builder{source: text}
	for i := 0; i < len(text); {
		n, form := looseStep(text[i:])
		if form == text[i:i+n] {
			b.keep(n)
		} else {
			b.replace(n, form)
		}
		i += n
	}
	return b.view()
}

// looseStep returns the length of the first element of text and its loose form.
func looseStep(text string) (n int, form string) {
	if n = blanks(text); n > 0 {
		rest := text[n:]
		if rest == "" || rest[0] == '\n' || strings.HasPrefix(rest, "\r\n") {
			return n, ""
		}
		return n, strings.Map(plainRune, norm.NFKC.String(text[:n]))
	}
	if strings.HasPrefix(text, "\r\n") {
		return 2, "\n"
	}
	if text[0] < utf8.RuneSelf && (len(text) == 1 || text[1] < utf8.RuneSelf) {
		return 1, text[:1]
	}
	n = max(1, norm.NFKC.NextBoundaryInString(text, true))
	return n, strings.Map(plainRune, norm.NFKC.String(text[:n]))
}

// blanks returns the length of the spaces and tabs that text begins with.
func blanks(text string) int {
	for i, r := range text {
		if r != '\t' && plainRune(r) != ' ' {
			return i
		}
	}
	return len(text)
}

// plainRune returns the character of ASCII that looks like r, or r.
func plainRune(r rune) rune {
	switch r {
	case '‘', '’', '‚', '‛':
		return '\''
	case '“', '”', '„', '‟':
		return '"'
	case '\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2015', '\u2212':
		return '-'
	case '\u00a0', '\u202f', '\u205f', '\u3000':
		return ' '
	}
	if r >= '\u2000' && r <= '\u200a' {
		return ' '
	}
	return r
}

// builder makes a view from the front of its text to the end.
type builder struct {
	source string
	at     int
	form   strings.Builder
	pieces []piece
}

func (b *builder) keep(n int) {
	b.form.WriteString(b.source[b.at : b.at+n])
	b.at += n
}

func (b *builder) replace(n int, form string) {
	from := b.form.Len()
	b.form.WriteString(form)
	b.pieces = append(b.pieces, piece{from, b.form.Len(), b.at, b.at + n})
	b.at += n
}

func (b *builder) view() *view { return &view{b.form.String(), b.pieces} }

// find returns where in the text the first two occurrences of want in the form are; they may
// overlap. An occurrence that begins or ends inside of a piece is none.
func (v *view) find(want string) (found []extent) {
	for at := 0; len(found) < 2; {
		i := strings.Index(v.text[at:], want)
		if i < 0 {
			break
		}
		from := at + i
		start, ok1 := v.start(from)
		end, ok2 := v.end(from + len(want))
		if ok1 && ok2 {
			found = append(found, extent{start, end})
		}
		at = from + 1
	}
	return found
}

// start returns the place in the text of what begins at pos in the form, after anything that
// the form leaves out there.
func (v *view) start(pos int) (int, bool) {
	i, _ := slices.BinarySearchFunc(v.pieces, pos, func(p piece, pos int) int {
		if p.to <= pos {
			return -1
		}
		return 1
	})
	return v.place(i, pos)
}

// end returns the place in the text of what ends at pos in the form, before anything that
// the form leaves out there.
func (v *view) end(pos int) (int, bool) {
	i, _ := slices.BinarySearchFunc(v.pieces, pos, func(p piece, pos int) int {
		return cmp.Or(cmp.Compare(p.from, pos), 1)
	})
	if i > 0 && v.pieces[i-1].to > pos {
		return 0, false
	}
	return v.place(i, pos)
}

// place translates pos, which lies after the first i pieces.
func (v *view) place(i, pos int) (int, bool) {
	if i < len(v.pieces) && v.pieces[i].from < pos {
		return 0, false
	}
	if i == 0 {
		return pos, true
	}
	p := v.pieces[i-1]
	return p.end + pos - p.to, true
}
