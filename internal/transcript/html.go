package transcript

import (
	_ "embed"
	"encoding/base64"
	"html/template"
	"io"

	"github.com/roost-dev/roost/internal/session"
)

//go:embed page.gohtml
var pageSource string

var pageTemplate = template.Must(template.New("page").Parse(pageSource))

// HTML writes a session as one page that needs nothing else: no scripts, no links to other
// files, images inside it when load gives their bytes. All text is escaped.
func HTML(w io.Writer, s *session.State, load Load) error {
	p := pageData{Title: title(s), Facts: facts(s)}
	for _, it := range s.Transcript() {
		p.Entries = append(p.Entries, entryOf(it, load))
	}
	return pageTemplate.Execute(w, p)
}

type pageData struct {
	Title   string
	Facts   []fact
	Entries []entry
}

type entry struct {
	Class, Title, Note, At string
	Parts                  []part
}

// part is a piece of an entry. Kind is text, thinking, call, output or image.
type part struct {
	Kind, Name, Text string
	Image            template.URL // a data URL made here; "" when there are no bytes
}

func entryOf(it session.Item, load Load) entry {
	switch it := it.(type) {
	case *session.User:
		return entry{Class: "user", Title: speaker(it), At: clock(it.At), Parts: parts(it.Blocks, load)}
	case *session.Assistant:
		return entry{Class: "assistant", Title: "Assistant", Note: ending(it), At: clock(it.At), Parts: parts(it.Blocks, load)}
	case *session.Tool:
		e := entry{Class: "tool", Title: it.Name + toolNote(it), At: clock(it.At)}
		if it.Output != "" {
			e.Parts = append(e.Parts, part{Kind: "output", Text: it.Output})
		}
		for _, img := range it.Images {
			e.Parts = append(e.Parts, picture(img, load))
		}
		return e
	}
	return entry{}
}

func parts(blocks []session.Block, load Load) []part {
	var list []part
	for _, b := range blocks {
		switch b := b.(type) {
		case session.Text:
			list = append(list, part{Kind: "text", Text: b.Text})
		case session.Reasoning:
			if b.Text != "" {
				list = append(list, part{Kind: "thinking", Text: b.Text})
			}
		case session.ToolCall:
			list = append(list, part{Kind: "call", Name: b.Name, Text: b.Input})
		case session.Image:
			list = append(list, picture(b, load))
		}
	}
	return list
}

// picture embeds an image of a kind that cannot hold scripts. Its URL is made of a known type
// and of base64, so it needs no check by the template.
func picture(img session.Image, load Load) part {
	p := part{Kind: "image", Name: img.MIME}
	if data, ok := load.load(img); ok && isPicture(img.MIME) {
		p.Image = template.URL("data:" + img.MIME + ";base64," + base64.StdEncoding.EncodeToString(data))
	}
	return p
}

// isPicture reports the types of image that are passed on.
func isPicture(mime string) bool {
	switch mime {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}
