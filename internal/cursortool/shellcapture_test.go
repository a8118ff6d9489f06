package cursortool

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

func TestCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringOf(rapid.RuneFrom([]rune("ab\nö€😀"))).Draw(t, "s")
		n := rapid.IntRange(8, 40).Draw(t, "n")
		before, after, middle := cutBefore(s, n), cutAfter(s, n), cutMiddle(s, n)
		if !strings.HasPrefix(s, before) || !strings.HasSuffix(s, after) {
			t.Fatalf("%q: got %q and %q", s, before, after)
		}
		for _, part := range []string{before, after, middle} {
			if !utf8.ValidString(part) {
				t.Fatalf("%q is cut through a character: %q", s, part)
			}
		}
		if len(before) > n || len(after) > n || len(s) > n && min(len(before), len(after)) < n-3 {
			t.Fatalf("%q: %d and %d bytes, want %d", s, len(before), len(after), n)
		}
		if len(s) <= n && middle != s {
			t.Fatalf("%q is cut to %q", s, middle)
		}
		if head, end, cut := strings.Cut(middle, "\n[... "); len(s) > n {
			_, end, _ = strings.Cut(end, "left out ...]\n")
			if !cut || !strings.HasPrefix(s, head) || !strings.HasSuffix(s, end) || len(head)+len(end) > n {
				t.Fatalf("%q: got %q", s, middle)
			}
		}
	})
	// What is no text is cut as well.
	if got := cutBefore(strings.Repeat("\x80", 20), 10); len(got) != 10 {
		t.Errorf("got %d bytes", len(got))
	}
	if got := cutAfter(strings.Repeat("\x80", 20), 10); len(got) != 10 {
		t.Errorf("got %d bytes", len(got))
	}
}
