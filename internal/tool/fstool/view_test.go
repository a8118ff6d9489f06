package fstool

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Every occurrence of a piece of a view leads back to text with that view.
func TestViewLeadsBack(t *testing.T) {
	element := rapid.SampledFrom([]string{"a", "b", " ", "\t", "\n", "\r\n", "“", "–", "é", "ﬁ", "\u00a0", "\u0301", "①", "\xff"})
	forms := []struct {
		name string
		make func(string) *view
	}{{"line", lineView}, {"loose", looseView}}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(element, 0, 30).Draw(t, "text"), "")
		for _, form := range forms {
			name, make := form.name, form.make
			v := make(text)
			if again := make(v.text); again.text != v.text {
				t.Fatalf("%s: the view of %q is %q, and the view of that %q", name, text, v.text, again.text)
			}
			from := rapid.IntRange(0, len(v.text)).Draw(t, "from")
			to := rapid.IntRange(from, len(v.text)).Draw(t, "to")
			start, ok1 := v.start(from)
			end, ok2 := v.end(to)
			if !ok1 || !ok2 || from == to {
				continue
			}
			if start > end || start < 0 || end > len(text) {
				t.Fatalf("%s: %q[%d:%d] became [%d:%d] of %d", name, v.text, from, to, start, end, len(text))
			}
			if got, want := make(text[start:end]).text, make(v.text[from:to]).text; got != want {
				t.Fatalf("%s: %q[%d:%d] is %q, its view %q, want %q", name, text, start, end, text[start:end], got, want)
			}
		}
	})
}
