package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxNotice is the number of bytes that notices about a cut may add to a text beyond
// MaxBytes, in at most four lines beyond MaxLines.
const MaxNotice = 2 << 10

// Clean returns s as valid UTF-8 without NUL bytes, which some providers refuse even when
// they are escaped. Each run of invalid bytes and each NUL becomes U+FFFD.
func Clean(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	return strings.ReplaceAll(s, "\x00", "\uFFFD")
}

// CleanName returns the name of a file so that it takes one line: as it is, or in Go's
// quoted form when it holds control characters or is not UTF-8.
func CleanName(name string) string {
	odd := func(r rune) bool { return r < ' ' || r == 0x7f || r == utf8.RuneError }
	if strings.ContainsFunc(name, odd) {
		return fmt.Sprintf("%q", name)
	}
	return name
}

// Cut returns s cut to at most limit bytes at a character's boundary, with an ellipsis in
// place of what was cut.
func Cut(s string, limit int) string {
	const ellipsis = "…"
	if len(s) <= limit {
		return s
	}
	n := max(0, limit-len(ellipsis))
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + ellipsis
}

// Notice returns text with a notice in brackets below it.
func Notice(text, notice string) string {
	if text == "" {
		return "[" + notice + "]"
	}
	return strings.TrimRight(text, "\n") + "\n\n[" + notice + "]"
}

// Size returns a number of bytes for people: "512 B", "1.5 KiB", "20.0 MiB".
func Size(n int64) string {
	const unit = 1 << 10
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	v, names := float64(n)/unit, []string{"KiB", "MiB", "GiB", "TiB"}
	for v >= unit && len(names) > 1 {
		v, names = v/unit, names[1:]
	}
	return fmt.Sprintf("%.1f %s", v, names[0])
}

// Head collects the first lines of an output while they are within MaxLines and MaxBytes.
// The zero value is empty. It is not safe for concurrent use.
type Head struct {
	text  strings.Builder
	lines int
}

// Add adds a line, given without its line end, and reports whether there was room for it.
// After the first line without room the caller adds no more.
func (h *Head) Add(line string) bool {
	need := len(line)
	if h.lines > 0 {
		need++
	}
	if h.lines == MaxLines || h.text.Len()+need > MaxBytes {
		return false
	}
	if h.lines > 0 {
		h.text.WriteByte('\n')
	}
	h.text.WriteString(line)
	h.lines++
	return true
}

// Lines returns how many lines were kept.
func (h *Head) Lines() int { return h.lines }

// String returns the lines that were kept, without a line end after the last.
func (h *Head) String() string { return h.text.String() }

// Tail returns the last lines of text that are within MaxLines and MaxBytes, and how many
// they are; a line end after the last does not count. When the last line alone is too long,
// its end is kept, and partial is true.
func Tail(text string) (kept string, lines int, partial bool) {
	text = strings.TrimSuffix(text, "\n")
	if text == "" {
		return "", 0, false
	}
	start := len(text)
	for end := len(text); end >= 0 && lines < MaxLines; end = start - 1 {
		i := strings.LastIndexByte(text[:end], '\n') + 1
		if len(text)-i > MaxBytes {
			break
		}
		start = i
		lines++
	}
	if lines > 0 {
		return text[start:], lines, false
	}
	start = len(text) - MaxBytes
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	return text[start:], 1, true
}
