package shelltool

import (
	"bytes"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/tool"
)

// afterFlood is what is shown when the shown text has become too long: the last lines, so
// that a program which prints without end costs its readers little.
const afterFlood = 16 << 10

// shower shows new output. What is shown is never longer than tool.MaxBytes. It belongs to
// one goroutine.
type shower struct {
	out      *output
	progress func(tool.Progress)
	seen     int64 // bytes of output that were shown or passed over
	length   int   // bytes shown now
}

// next shows what was printed since the last time.
func (s *shower) next() {
	tail, total := s.out.printed(s.seen)
	held := cutRune(tail)
	tail, total = tail[:len(tail)-held], total-int64(held)
	fresh := total - s.seen
	if fresh <= 0 {
		return
	}
	s.seen = total
	if fresh <= int64(len(tail)) {
		text := tool.Clean(string(tail[int64(len(tail))-fresh:]))
		if s.length+len(text) <= tool.MaxBytes {
			s.length += len(text)
			s.progress(tool.Progress{Text: text})
			return
		}
	}
	recent := tail[max(0, len(tail)-afterFlood):]
	if i := bytes.IndexByte(recent, '\n'); i >= 0 && i < len(recent)-1 {
		recent = recent[i+1:]
	}
	text := tool.Clean(string(recent))
	s.length = len(text)
	s.progress(tool.Progress{Text: text, Replace: true})
}

// cutRune returns how many bytes at the end of p are the beginning of a character.
func cutRune(p []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if b := p[len(p)-n]; utf8.RuneStart(b) {
			if b >= utf8.RuneSelf && !utf8.FullRune(p[len(p)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
