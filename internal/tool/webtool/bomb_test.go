package webtool

import (
	"net/url"
	"strings"
	"testing"
	"time"
)

// Pages that are made to be slow or to grow are still converted in time, and stay bounded.
func TestBombs(t *testing.T) {
	at := &url.URL{Scheme: "http", Host: "a"}
	fill := func(piece string) string { return strings.Repeat(piece, maxConvert/len(piece)) }
	for _, page := range []string{
		fill("<div>"), fill("<table><tr><td>"), fill("<blockquote>"), fill("<p>x"), fill("<b><p>"), fill("*_[`"), fill("<pre>`"), fill("<li>"),
		strings.Repeat("<table><tr><td>", MaxBody/15),
		"<table>" + strings.Repeat("<tr><td colspan=1000 rowspan=1000>x", 7000),
		"<table><tr><td>" + strings.Repeat("x", maxConvert/2) + strings.Repeat("<tr><td>x", maxConvert/20),
	} {
		start := time.Now()
		text, err := textOf([]byte(page), hypertext, "", at)
		if took := time.Since(start); err != nil || took > 15*time.Second || len(text) > 16*maxConvert {
			t.Errorf("%.40q: %v, %d bytes, %v", page, took, len(text), err)
		}
	}
}
