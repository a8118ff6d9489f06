package webtool

import (
	"errors"
	"net/url"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
)

// The largest page, without scripts and styles, that is made Markdown. Of a larger one only
// the words are shown, because the time of the conversion grows with the square of the
// number of tags for pages that are made for it.
const (
	maxConvert = 512 << 10 // bytes
	maxTags    = 20_000
)

var errConvert = errors.New("the page's HTML cannot be turned into Markdown")

// markdown returns a page as Markdown, or just its words when it is too large or too deep.
func markdown(page string, at *url.URL) string {
	page, tags := strip(page)
	if len(page) <= maxConvert && tags <= maxTags {
		if text, err := convert(page, at); err == nil {
			return text
		}
	}
	return words(page)
}

// convert calls the library. It has not been written for pages that want to break it, so a
// panic of it concerns that page only.
func convert(page string, at *url.URL) (text string, err error) {
	defer func() {
		if recover() != nil {
			err = errConvert
		}
	}()
	// Nothing is escaped or padded: a model reads the text, and padding a table to its
	// longest cell can make it grow a thousandfold.
	conv := converter.NewConverter(converter.WithEscapeMode(converter.EscapeModeDisabled),
		converter.WithPlugins(base.NewBasePlugin(), commonmark.NewCommonmarkPlugin(), table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal))))
	return conv.ConvertString(page, converter.WithDomain(at.Scheme+"://"+at.Host))
}

// silent reports elements whose content is not for reading.
func silent(name string) bool {
	switch name {
	case "script", "style", "svg", "noscript", "template", "iframe", "canvas", "object":
		return true
	}
	return false
}

// strip drops what is not for reading, comments included, in one pass, and counts the tags
// that are left. Cells of tables lose their attributes: a cell that spans thousands of
// others would become as many.
func strip(page string) (stripped string, tags int) {
	var out strings.Builder
	each(page, func(kind html.TokenType, name string, raw []byte) {
		if name != "" {
			tags++
		}
		if kind == html.StartTagToken && (name == "td" || name == "th") {
			raw = []byte("<" + name + ">")
		}
		out.Write(raw)
	})
	return out.String(), tags
}

// words returns the text of a page with a new line at each tag that is not part of a
// sentence.
func words(page string) string {
	var out strings.Builder
	each(page, func(kind html.TokenType, name string, raw []byte) {
		switch kind {
		case html.TextToken:
			out.WriteString(html.UnescapeString(string(raw)))
		case html.StartTagToken, html.EndTagToken, html.SelfClosingTagToken:
			switch name {
			case "a", "abbr", "b", "code", "em", "font", "i", "kbd", "mark", "s", "small", "span", "strong", "sub", "sup", "u":
			default:
				out.WriteByte('\n')
			}
		case html.ErrorToken, html.CommentToken, html.DoctypeToken:
		}
	})
	var lines []string
	for l := range strings.Lines(out.String()) {
		if l = strings.Join(strings.Fields(l), " "); l != "" {
			lines = append(lines, l)
		}
	}
	return strings.Join(lines, "\n")
}

// each calls f for every token of a page that is for reading.
func each(page string, f func(kind html.TokenType, name string, raw []byte)) {
	z := html.NewTokenizer(strings.NewReader(page))
	skip, depth := "", 0
	for {
		kind := z.Next()
		if kind == html.ErrorToken { // the end
			return
		}
		raw := z.Raw()
		name := ""
		if kind == html.StartTagToken || kind == html.EndTagToken || kind == html.SelfClosingTagToken {
			raw = append([]byte(nil), raw...) // TagName changes it
			tag, _ := z.TagName()
			name = string(tag)
		}
		switch {
		case skip != "":
			if name == skip && kind == html.StartTagToken {
				depth++
			}
			if name == skip && kind == html.EndTagToken {
				if depth--; depth == 0 {
					skip = ""
				}
			}
		case kind == html.StartTagToken && silent(name):
			skip, depth = name, 1
		case kind != html.CommentToken:
			f(kind, name, raw)
		}
	}
}
