package webtool

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func FuzzHits(f *testing.F) {
	for _, s := range []string{
		`{"results":[{"title":"a","url":"https://a.example/","content":"b"}]}`, `{"type":"search","web":{"results":[{"title":"&lt;","url":"http://a","description":null}]}}`,
		`{"results":[{"url":"http://a/\u202e\u0000","title":"kkeyey"}]}`, `{"results":null}`, `[]`, `{"results":[{"url":"http://a/?key"},{"url":"http://[::1]%25/"}]}`, "\xff",
	} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, body []byte, count int) {
		count = min(max(count, 1), 20)
		for _, p := range []Provider{SearXNG, Brave, Tavily} {
			s := &search{opt: SearchOptions{Provider: p}}
			hits, err := s.decode(body)
			if err != nil {
				continue
			}
			text := list(hits, count, "hunter2")
			odd := func(r rune) bool { return r != '\n' && unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
			if len(text) > MaxResults || !utf8.ValidString(text) || strings.ContainsFunc(text, odd) || strings.Contains(text, "hunter2") || strings.Count(text, "\n") > 3*count+2 {
				t.Errorf("%s: %q", p, text)
			}
		}
	})
}
