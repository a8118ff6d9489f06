package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// The styles, as parameters of the SGR control sequence.
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	yellow = "33"
	cyan   = "36"
)

// terminal writes text to a terminal, or to a file or pipe as it is.
type terminal struct {
	w      io.Writer
	tty    bool // control characters would be obeyed
	colour bool
}

func newTerminal(w io.Writer) *terminal {
	tty := isTerminal(w)
	return &terminal{w: w, tty: tty, colour: tty && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"}
}

// isTerminal reports whether a reader or writer is a terminal.
func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// printf writes. There is nobody to tell when that fails: a closed pipe ends the process by
// its signal.
func (t *terminal) printf(format string, args ...any) { _, _ = fmt.Fprintf(t.w, format, args...) }

// style gives text, which holds no foreign control characters, a style.
func (t *terminal) style(code, text string) string {
	if !t.colour || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// text prepares foreign text for output: on a terminal it is made harmless, elsewhere it is
// left alone.
func (t *terminal) text(s string) string {
	if t.tty {
		return t.clean(s)
	}
	return s
}

// clean makes foreign text harmless everywhere: a model or tool must not move the cursor,
// change the title, write the clipboard or turn the reading direction. Control characters
// become visible pictures of themselves.
func (*terminal) clean(s string) string { return strings.Map(visible, s) }

const (
	controlPictures = '\u2400' // the picture of a C0 character is this plus its value
	deletePicture   = '\u2421'
)

func visible(r rune) rune {
	switch {
	case r == '\n', r == '\t':
		return r
	case r == '\r':
		return -1
	case r < ' ':
		return controlPictures + r
	case r == 0x7f:
		return deletePicture
	case unicode.Is(unicode.Cc, r), unicode.Is(unicode.Bidi_Control, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r):
		return unicode.ReplacementChar
	}
	return r
}

// line returns foreign text as a single line of at most limit characters.
func (t *terminal) line(s string, limit int) string {
	s = strings.Join(strings.Fields(t.clean(s)), " ")
	runes := []rune(s)
	if len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return s
}
