package cursortool

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Bounds of what a command's output becomes, in bytes.
const (
	shellText  = 16 << 10 // of one stream, for the model and in the card
	shellAwait = 64 << 10 // of a background shell, from its end
)

// capture keeps the beginning and the end of a stream, shellText bytes at most. What it shows
// depends on the bytes only, not on the pieces in which they came.
type capture struct {
	head  []byte // the first half
	tail  tail   // the end of what came after the head
	total int    // bytes that came
}

func (c *capture) add(s string) {
	c.total += len(s)
	if room := shellText/2 - len(c.head); room > 0 {
		n := min(room, len(s))
		c.head = append(c.head, s[:n]...)
		s = s[n:]
	}
	c.tail.add(s, shellText/2)
}

// text returns the stream, without its middle when that was not kept, as valid UTF-8 without NUL.
func (c *capture) text() string {
	if c.total <= shellText {
		return clean(string(c.head) + string(c.tail))
	}
	head, end := whole(string(c.head)), c.tail.last(shellText/2)
	return clean(head) + leftOut(c.total-len(head)-len(end)) + end
}

// whole returns s without an incomplete character at its end.
func whole(s string) string {
	for i := len(s) - 1; i >= 0 && i > len(s)-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			if !utf8.FullRuneInString(s[i:]) {
				return s[:i]
			}
			break
		}
	}
	return s
}

// tail keeps at least the last n bytes of a stream once it has had as many.
type tail []byte

func (t *tail) add(s string, n int) {
	if len(s) > n {
		*t, s = (*t)[:0], s[len(s)-n:]
	}
	*t = append(*t, s...)
	if len(*t) > 2*n {
		*t = append((*t)[:0], (*t)[len(*t)-n:]...)
	}
}

// last returns the last n bytes, from a character's beginning, as valid UTF-8 without NUL.
func (t tail) last(n int) string {
	s := string(t[max(0, len(t)-n):])
	for range utf8.UTFMax - 1 {
		if s != "" && !utf8.RuneStart(s[0]) {
			s = s[1:]
		}
	}
	return clean(s)
}

// cutMiddle returns s without its middle when it is longer than limit bytes.
func cutMiddle(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head, end := cutBefore(s, limit/2), cutAfter(s, limit/2)
	return head + leftOut(len(s)-len(head)-len(end)) + end
}

func leftOut(n int) string { return fmt.Sprintf("\n[... %d bytes left out ...]\n", n) }

// cutBefore returns at most the first n bytes of s, up to a character's boundary.
func cutBefore(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for i := n; i > 0 && i > n-utf8.UTFMax; i-- {
		if utf8.RuneStart(s[i]) {
			return s[:i]
		}
	}
	return s[:n]
}

// cutAfter returns at most the last n bytes of s, from a character's boundary.
func cutAfter(s string, n int) string {
	if len(s) <= n {
		return s
	}
	start := len(s) - n
	for i := start; i < len(s) && i < start+utf8.UTFMax; i++ {
		if utf8.RuneStart(s[i]) {
			return s[i:]
		}
	}
	return s[start:]
}

// clean returns s as valid UTF-8 without NUL, which JSON and some providers refuse.
func clean(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
