package webtool

import (
	"net/url"
	"testing"
	"unicode/utf8"
)

func TestWordsOfAPage(t *testing.T) {
	got := words(`<h1>A &amp; <b>b</b></h1><p>c<script>x</script> d<br>e`)
	if got != "A & b\nc d\ne" {
		t.Errorf("got %q", got)
	}
}

func FuzzText(f *testing.F) {
	for _, s := range []string{"", "<p>a", "<table><tr><td colspan=9>x", "<pre><code>`</code>", "<script>", "<a href='javascript:x'>y</a>", "<meta charset=gbk>\x81", "<svg><svg></svg>a</svg>b"} {
		f.Add([]byte(s), "text/html")
	}
	at := &url.URL{Scheme: "https", Host: "a.example"}
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		for _, k := range []kind{plain, hypertext, unknown} {
			text, err := textOf(body, k, contentType, at)
			if err == nil && !utf8.ValidString(text) {
				t.Errorf("%q is not UTF-8", text)
			}
			if shown := piece(text); len(shown) > MaxText {
				t.Errorf("%d bytes are shown", len(shown))
			}
		}
	})
}
