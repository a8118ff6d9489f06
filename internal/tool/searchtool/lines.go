package searchtool

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"regexp/syntax"
	"slices"
)

const (
	block   = 256 << 10 // bytes that are read at once
	maxLine = 4 << 20   // bytes of a line; a longer one ends the search of its file
)

// scanner finds the lines of files that match. It belongs to one goroutine.
type scanner struct {
	re     *regexp.Regexp
	byLine bool // the expression must see one line at a time
	buf    []byte
}

func newScanner(re *regexp.Regexp) *scanner {
	return &scanner{re: re, byLine: seesText(re.String()), buf: make([]byte, block)}
}

// seesText tells whether an expression asks for the beginning or the end of the text, which
// a line is and a block of lines is not.
func seesText(expr string) bool {
	parsed, err := syntax.Parse(expr, syntax.Perl)
	if err != nil {
		return true
	}
	var sees func(*syntax.Regexp) bool
	sees = func(re *syntax.Regexp) bool {
		if re.Op == syntax.OpBeginText || re.Op == syntax.OpEndText {
			return true
		}
		return slices.ContainsFunc(re.Sub, sees)
	}
	return sees(parsed)
}

// errBinary says that a file is not text.
var errBinary = errors.New("binary file")

// scan calls hit with each line of r that matches, without its end, and its number from 1,
// until hit returns false. The line is only valid during the call.
func (s *scanner) scan(ctx context.Context, r io.Reader, hit func(number int, line []byte) bool) error {
	number, kept := 1, 0
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := io.ReadFull(r, s.buf[kept:])
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return err
		}
		data := s.buf[:kept+n]
		if bytes.IndexByte(data[kept:], 0) >= 0 {
			return errBinary
		}
		end := len(data)
		if !last {
			end = bytes.LastIndexByte(data, '\n') + 1
		}
		if !s.lines(data[:end], &number, hit) || last {
			return nil
		}
		kept = copy(s.buf, data[end:])
		if kept == len(s.buf) {
			if len(s.buf) >= maxLine {
				return nil
			}
			s.buf = append(s.buf, make([]byte, len(s.buf))...)
		}
	}
}

// lines finds the matching lines of a block of whole lines, and counts its lines.
func (s *scanner) lines(data []byte, number *int, hit func(int, []byte) bool) bool {
	byLine := s.byLine || bytes.IndexByte(data, '\r') >= 0 // "$" must match before a CR, too
	for len(data) > 0 {
		at := 0
		if !byLine {
			loc := s.re.FindIndex(data)
			if loc == nil || loc[0] == len(data) && data[len(data)-1] == '\n' {
				break
			}
			// The expression may have matched over the end of a line; the line where it
			// began is the first that can match by itself.
			at = bytes.LastIndexByte(data[:loc[0]], '\n') + 1
		}
		*number += bytes.Count(data[:at], []byte{'\n'})
		line, rest, ended := bytes.Cut(data[at:], []byte{'\n'})
		line = bytes.TrimSuffix(line, []byte{'\r'})
		if s.re.Match(line) && !hit(*number, line) {
			return false
		}
		if ended {
			*number++
		}
		data = rest
	}
	*number += bytes.Count(data, []byte{'\n'})
	return true
}
