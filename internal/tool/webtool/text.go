package webtool

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"github.com/roost-dev/roost/internal/tool"
)

// kind is how a body becomes text.
type kind uint8

const (
	unknown kind = iota // the server does not say: decided by the bytes
	plain
	hypertext
)

var errKind = errors.New("only text can be fetched")

// kindOf reads a Content-Type.
func kindOf(contentType string) (kind, error) {
	media, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		media, _, _ = strings.Cut(contentType, ";")
		media = strings.ToLower(strings.TrimSpace(media))
	}
	switch {
	case media == "", media == "application/octet-stream":
		return unknown, nil
	case media == "text/html", media == "application/xhtml+xml":
		return hypertext, nil
	case strings.HasPrefix(media, "text/"), strings.HasSuffix(media, "+json"), strings.HasSuffix(media, "+xml"), strings.HasSuffix(media, "+yaml"):
		return plain, nil
	}
	switch media {
	case "application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml",
		"application/javascript", "application/x-javascript", "application/ecmascript", "application/x-ndjson", "application/jsonl", "application/sql", "application/x-sh":
		return plain, nil
	}
	return unknown, fmt.Errorf("it is %s, and %w; use bash to download it", tool.CleanName(tool.Cut(media, 100)), errKind)
}

// textOf returns a body as valid UTF-8, and HTML as Markdown.
func textOf(body []byte, k kind, contentType string, at *url.URL) (string, error) {
	if k == unknown {
		sniffed := http.DetectContentType(body)
		switch {
		case strings.HasPrefix(sniffed, "text/html"):
			k = hypertext
		case strings.HasPrefix(sniffed, "text/"):
			k = plain
		default:
			return "", fmt.Errorf("it is %s, and %w; use bash to download it", sniffed, errKind)
		}
	}
	text, err := decode(body, contentType)
	if err != nil {
		return "", err
	}
	if k == hypertext {
		text = markdown(text, at)
	}
	return strings.TrimSpace(tool.Clean(text)), nil
}

// decode turns a body into UTF-8, by the charset that its server names, its own marks, or,
// when it has none and is not UTF-8, the web's custom.
func decode(body []byte, contentType string) (string, error) {
	if !strings.Contains(strings.ToLower(contentType), "charset=") && utf8.Valid(body) {
		return string(bytes.TrimPrefix(body, []byte("\uFEFF"))), nil
	}
	r, err := charset.NewReader(bytes.NewReader(body), contentType)
	if err != nil {
		return "", fmt.Errorf("its characters cannot be read: %w", err)
	}
	// A character of one byte becomes three at most.
	decoded, err := io.ReadAll(io.LimitReader(r, 3*MaxBody))
	if err != nil {
		return "", fmt.Errorf("its characters cannot be read: %w", err)
	}
	return string(decoded), nil
}

// page is what was fetched.
type page struct {
	url    *url.URL // after redirects
	status int
	text   string
	cut    bool // the body was longer than MaxBody
}

// result shows a part of the page's text, from offset.
func (p page) result(offset int) tool.Result {
	if offset > len(p.text) || offset > 0 && offset == len(p.text) {
		return tool.Failure(fmt.Sprintf("The page's text has %d bytes, so there is nothing at offset %d.", len(p.text), offset))
	}
	for offset > 0 && !utf8.RuneStart(p.text[offset]) {
		offset--
	}
	shown := piece(p.text[offset:])
	end := offset + len(shown)
	text := fmt.Sprintf("URL: %s\n", tool.Cut(tool.CleanName(p.url.Redacted()), 1000))
	if p.status != http.StatusOK {
		text += fmt.Sprintf("Status: %d %s\n", p.status, http.StatusText(p.status))
	}
	text += "\n" + shown
	switch {
	case p.text == "":
		text = tool.Notice(text, "The page has no text.")
	case end < len(p.text):
		text = tool.Notice(text, fmt.Sprintf("Showing bytes %d-%d of %d. Use offset=%d to continue.", offset, end, len(p.text), end))
	}
	if p.cut {
		text = tool.Notice(text, fmt.Sprintf("The page is larger than %s; the rest was not read.", tool.Size(MaxBody)))
	}
	return tool.Result{Text: text, IsError: p.status >= http.StatusBadRequest}
}

// piece returns the beginning of text within the limits, up to a line's end when there is
// one in its second half.
func piece(text string) string {
	const lines = tool.MaxLines - 10
	n := 0
	for i := range len(text) {
		if text[i] != '\n' {
			continue
		}
		if n++; n == lines {
			text = text[:i+1]
			break
		}
	}
	if len(text) <= MaxText {
		return text
	}
	end := MaxText
	for !utf8.RuneStart(text[end]) {
		end--
	}
	if i := strings.LastIndexByte(text[:end], '\n'); i > MaxText/2 {
		end = i + 1
	}
	return text[:end]
}
