package project

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// clean returns text as valid UTF-8 with "\n" line ends, and with every character that
// changes how its surroundings are shown, or that a person cannot see, as U+FFFD.
func clean(text string) string {
	text = strings.TrimPrefix(strings.ToValidUTF8(text, "\uFFFD"), "\uFEFF")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case hidden(r):
			return utf8.RuneError
		}
		return r
	}, text)
}

// hidden reports control characters, marks of direction, invisible spaces and the tag
// characters that spell text nobody sees. The joiners of scripts and emoji stay.
func hidden(r rune) bool {
	switch {
	case r < ' ', r >= 0x7f && r <= 0x9f:
		return true
	case r == 0x200b, r == 0x200e, r == 0x200f, r == 0x061c, r == 0xfeff:
		return true
	case r == 0x2028, r == 0x2029, r >= 0x202a && r <= 0x202e, r >= 0x2060 && r <= 0x206f:
		return true
	case r >= 0xfff9 && r <= 0xfffb, r >= 0xe0000 && r <= 0xe0fff:
		return true
	}
	return false
}

// line returns text on one line and cut to limit characters.
func line(text string, limit int) string {
	text = strings.Join(strings.Fields(clean(text)), " ")
	if utf8.RuneCountInString(text) <= limit {
		return text
	}
	runes := []rune(text)
	return string(runes[:limit-1]) + "…"
}

// fit cuts text to limit bytes at a line's end where one is near, and says so in the text,
// as it does when only the beginning of the file was read.
func fit(text string, limit int, size int64) (string, bool) {
	if len(text) <= limit && size <= MaxFile {
		return text, false
	}
	text = text[:min(len(text), limit)]
	for text != "" {
		if r, n := utf8.DecodeLastRuneInString(text); r != utf8.RuneError || n != 1 {
			break
		}
		text = text[:len(text)-1]
	}
	if i := strings.LastIndexByte(text, '\n'); i > len(text)/2 {
		text = text[:i]
	}
	return text + fmt.Sprintf("\n\n[The file has %d bytes; the rest is not shown. Read the file for it.]", size), true
}
