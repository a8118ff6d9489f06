package prompt

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/session"
)

// minShort is the least that a text is shortened to: less would be all notice.
const minShort = 200

// ShortenOld returns items with the outputs of the tools among items[:before] shortened to
// limit characters (at least 200), and a note in place of their images. It is the first
// thing to try when a transcript grows too long, because what was read long ago can be read
// again. items is not changed, and shortening twice is shortening once.
func ShortenOld(items []session.Item, before, limit int) []session.Item {
	items = slices.Clone(items)
	for i, it := range items[:min(max(before, 0), len(items))] {
		t, ok := it.(*session.Tool)
		if !ok {
			continue
		}
		text := t.Output
		if n := len(t.Images); n > 0 {
			text += fmt.Sprintf("\n[Images left out: %d]", n)
		}
		if text = shorten(text, limit); text != t.Output {
			short := *t
			short.Output, short.Images = text, nil
			items[i] = &short
		}
	}
	return items
}

// shorten returns at most limit characters of text: its beginning, its end, and a notice
// between them.
func shorten(text string, limit int) string {
	limit = max(limit, minShort)
	n := utf8.RuneCountInString(text)
	if n <= limit {
		return text
	}
	const notice = "\n[… %d characters left out …]\n"
	keep := limit - len(notice) - len("1000000000")
	runes := []rune(text)
	begin := keep * 2 / 3
	return string(runes[:begin]) + fmt.Sprintf(notice, n-keep) + string(runes[n-(keep-begin):])
}
