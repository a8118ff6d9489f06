package searchtool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/roost-dev/roost/internal/tool"
)

// hits are the matching lines of one file.
type hits struct {
	path    string
	context int // lines to show around each
	lines   []line
	size    int // bytes of their text
}

// line is one to show.
type line struct {
	number int
	text   string
	match  bool
}

func (h *hits) add(number int, text []byte) {
	l := line{number, shorten(text), true}
	h.lines = append(h.lines, l)
	h.size += len(l.text) + len(h.path)
}

// shorten makes a line fit to be shown.
func shorten(text []byte) string {
	// What Clean adds is bounded by cutting before as well as after.
	return tool.Cut(tool.Clean(string(text[:min(len(text), lineLimit+1)])), lineLimit)
}

// surround reads the file again and puts the lines around the matching ones between them.
func (h *hits) surround(ctx context.Context, r io.Reader) error {
	matches := h.lines
	h.lines = nil
	buf := bufio.NewReaderSize(r, block)
	last := matches[len(matches)-1].number + h.context
	for number := 1; number <= last; number++ {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		text, err := wholeLine(buf)
		if err != nil && (!errors.Is(err, io.EOF) || len(text) == 0) {
			break // the file may have become shorter
		}
		for len(matches) > 1 && matches[0].number+h.context < number && matches[0].number < number {
			matches = matches[1:]
		}
		if l, ok := h.near(matches, number, text); ok {
			h.lines = append(h.lines, l)
		}
	}
	return nil
}

// near returns a line when it matches or is close enough to one that does. The first of
// matches is the last one before the line, or close to it.
func (h *hits) near(matches []line, number int, text []byte) (line, bool) {
	around := false
	for _, m := range matches {
		if m.number == number {
			return m, true
		}
		if m.number-h.context > number {
			break
		}
		around = around || m.number+h.context >= number
	}
	return line{number, shorten(text), false}, around
}

// wholeLine returns the beginning of the next line, as much as may be shown, and skips the
// rest of it.
func wholeLine(r *bufio.Reader) ([]byte, error) {
	part, err := r.ReadSlice('\n')
	text := bytes.Clone(part[:min(len(part), lineLimit+2)])
	for errors.Is(err, bufio.ErrBufferFull) {
		_, err = r.ReadSlice('\n')
	}
	return bytes.TrimRight(text, "\r\n"), err
}

// report is the result of a grep while it is put together.
type report struct {
	limit   int
	head    tool.Head
	matches int
	full    bool // nothing more is added
	limited bool // because of limit, not of the size of the output
}

// add adds the hits of the next file and reports whether more can be added.
func (r *report) add(h hits) bool {
	before := 0
	for _, l := range h.lines {
		if l.match && r.matches == r.limit {
			r.full, r.limited = true, true
			return false
		}
		if h.context > 0 && l.number != before+1 && r.head.Lines() > 0 && !r.head.Add("--") {
			r.full = true
			return false
		}
		form := "%s-%d- %s"
		if l.match {
			form = "%s:%d: %s"
		}
		if !r.head.Add(fmt.Sprintf(form, h.path, l.number, l.text)) {
			r.full = true
			return false
		}
		before = l.number
		if l.match {
			r.matches++
		}
	}
	return true
}

func (r *report) text(missed string) string {
	text := strings.TrimSuffix(r.head.String(), "\n--")
	switch {
	case r.limited:
		text = tool.Notice(text, fmt.Sprintf("The first %d matches are shown; there are more. Use a narrower pattern, path or glob, or a higher limit.", r.limit))
	case r.full:
		text = tool.Notice(text, fmt.Sprintf("The first %d matches are shown, as the output reached its limit. Use a narrower pattern, path or glob.", r.matches))
	case r.matches == 0:
		text = "No matches found"
	}
	if missed != "" {
		text = tool.Notice(text, missed)
	}
	return text
}
