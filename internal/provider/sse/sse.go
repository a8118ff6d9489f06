// Package sse reads server-sent events: the first step of every streamed answer, between
// the HTTP body and a dialect's decoder. It follows the WHATWG rules for event streams:
//
//	stream = [BOM] *event
//	event  = *( comment / field ) end-of-line
//	field  = name [ ":" [ " " ] value ] end-of-line      end-of-line = CR LF / LF / CR
//
// Comments, "id" and "retry" are ignored: nobody resumes the answer of a model, and a
// comment must not count as a sign of life (an open stream that only sends comments has
// stalled).
package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
)

// MaxLine is the limit of one line, and of the data of one event, in bytes.
const MaxLine = 8 << 20

// ErrTooLong reports a line or an event over MaxLine.
var ErrTooLong = errors.New("event stream: a line or event is over 8 MiB")

// Event is one event. Data is valid until the next step of the loop.
type Event struct {
	Type string // "" stands for "message"
	Data []byte // the data lines, joined by line feeds
}

// Events yields the events of r in order. It ends without an error when r ends between
// events and when r ends inside one (WHATWG: an event without its blank line never
// happened), so the caller must know from the data whether the answer is complete. Any
// other error of r, or ErrTooLong, is yielded last. Memory is bounded by four times MaxLine.
func Events(r io.Reader) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		p := parser{lines: lines{r: r}}
		for {
			line, err := p.lines.next()
			if errors.Is(err, io.EOF) {
				return
			}
			if err == nil {
				err = p.line(line)
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			if len(line) != 0 || !p.pending {
				continue
			}
			if !yield(Event{Type: p.typ, Data: p.data}, nil) {
				return
			}
			p.reset()
		}
	}
}

// parser gathers the fields of one event.
type parser struct {
	lines   lines
	typ     string
	known   string // the last type, so that a repeated one costs no memory
	data    []byte
	pending bool // a data line was seen; an event without one is not dispatched
}

func (p *parser) reset() {
	p.typ, p.pending = "", false
	if cap(p.data) > keep {
		p.data = nil
	}
	p.data = p.data[:0]
}

// line takes one line. The blank line that ends an event is left to the caller, but it
// forgets the type of an event without data.
func (p *parser) line(line []byte) error {
	if len(line) == 0 && !p.pending {
		p.typ = ""
		return nil
	}
	name, value, _ := bytes.Cut(line, colon)
	value = bytes.TrimPrefix(value, space)
	switch string(name) { // no allocation: the compiler compares in place
	case "data":
		if len(p.data)+len(value) >= MaxLine {
			return ErrTooLong
		}
		if p.pending {
			p.data = append(p.data, '\n')
		}
		p.data = append(p.data, value...)
		p.pending = true
	case "event":
		if string(value) != p.known {
			p.known = string(value)
		}
		p.typ = p.known
	}
	return nil
}

var (
	colon = []byte{':'}
	space = []byte{' '}
	bom   = []byte("\xef\xbb\xbf")
)

const (
	chunk = 4 << 10  // bytes asked from the reader at once
	keep  = 32 << 10 // a larger buffer is given back after use
)

// lines splits a reader into lines that end in LF, CR or CR LF.
type lines struct {
	r        io.Reader
	buf      []byte
	pos, end int // buf[pos:end] is not yet consumed
	started  bool
	skipLF   bool  // the last line ended in CR: an LF that follows belongs to it
	err      error // what r ended with, once everything before it is consumed
	empty    int
}

// next returns the next line without its end, valid until the next call. An unfinished
// last line is dropped.
func (l *lines) next() ([]byte, error) {
	seen := 0
	for {
		if l.skipLF && l.pos < l.end {
			l.skipLF = false
			if l.buf[l.pos] == '\n' {
				l.pos++
			}
		}
		window := l.buf[l.pos:l.end]
		if i := indexEOL(window[seen:]); i >= 0 {
			return l.take(window, seen+i), nil
		}
		seen = len(window)
		if seen > MaxLine {
			return nil, ErrTooLong
		}
		if l.err != nil {
			return nil, l.err
		}
		l.fill()
	}
}

func (l *lines) take(window []byte, n int) []byte {
	line := window[:n]
	l.skipLF = window[n] == '\r'
	l.pos += n + 1
	if !l.started {
		l.started = true
		line = bytes.TrimPrefix(line, bom)
	}
	return line
}

// fill reads once, behind what is not yet consumed.
func (l *lines) fill() {
	if l.pos == l.end && cap(l.buf) > keep {
		l.buf, l.pos, l.end = nil, 0, 0
	}
	l.end = copy(l.buf, l.buf[l.pos:l.end])
	l.pos = 0
	if len(l.buf)-l.end < chunk {
		grown := make([]byte, max(2*len(l.buf), 2*chunk))
		copy(grown, l.buf[:l.end])
		l.buf = grown
	}
	n, err := l.r.Read(l.buf[l.end : l.end+chunk])
	l.end += n
	l.err = err
	if n > 0 {
		l.empty = 0
	} else if l.empty++; l.empty > 100 && err == nil {
		l.err = fmt.Errorf("event stream: %w", io.ErrNoProgress)
	}
}

// indexEOL finds the first CR or LF. It looks at small windows, so that many short lines
// that end in CR do not each search the whole buffer for an LF.
func indexEOL(b []byte) int {
	const window = 512
	for off := 0; off < len(b); off += window {
		w := b[off:min(off+window, len(b))]
		i := bytes.IndexByte(w, '\n')
		if i >= 0 {
			w = w[:i]
		}
		if j := bytes.IndexByte(w, '\r'); j >= 0 {
			return off + j
		}
		if i >= 0 {
			return off + i
		}
	}
	return -1
}
