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
	var pages []string
	for _, piece := range []string{"<div>", "<table><tr><td>", "<blockquote>", "<p>x", "<b><p>", "<a href=x>", "<pre>`", "<li>", "*_[`"} {
		n := maxTags / max(strings.Count(piece, "<"), 1)
		pages = append(pages, strings.Repeat(piece, n), strings.Repeat(piece, MaxBody/len(piece)))
	}
	pages = append(pages,
		"<table>"+strings.Repeat("<tr><td colspan=1000 rowspan=1000>x", 7000),
		"<table><tr><td>"+strings.Repeat("x", maxConvert/2)+strings.Repeat("<tr><td>x", maxTags/3),
	)
	for _, page := range pages {
		start := time.Now()
		text, err := textOf([]byte(page), hypertext, "", at)
		if took := time.Since(start); err != nil || took > 10*time.Second || len(text) > 16*maxConvert {
			t.Errorf("%.40q: %v, %d bytes, %v", page, took, len(text), err)
		}
	}
}
