package webtool

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/tool"
)

// hit is one page that was found, as the provider describes it.
type hit struct{ title, url, snippet string }

// Limits on what is shown of one result. An address is never cut, since it would be another.
const (
	maxTitle   = 200 // bytes
	maxSnippet = 500
	maxAddress = 2 << 10

	maxLeft = 100 // bytes of the notice about results without room
)

// decode reads a provider's answer.
func (s *search) decode(body []byte) ([]hit, error) {
	type result struct {
		Title       string `json:"title"`
		URL         string `json:"url"`
		Content     string `json:"content"`     // SearXNG, Tavily
		Description string `json:"description"` // Brave
	}
	var answer struct {
		Results *[]result `json:"results"` // SearXNG, Tavily
		Type    string    `json:"type"`    // Brave
		Web     *struct {
			Results []result `json:"results"`
		} `json:"web"`
	}
	// The decoder's own error would quote the answer.
	if json.Unmarshal(body, &answer) != nil {
		return nil, errAnswer
	}
	var hits []hit
	if s.opt.Provider == Brave {
		switch {
		case answer.Web != nil:
		case answer.Type == "search": // nothing was found
			return nil, nil
		default:
			return nil, errAnswer
		}
		for _, r := range answer.Web.Results {
			hits = append(hits, hit{html.UnescapeString(r.Title), r.URL, html.UnescapeString(r.Description)})
		}
		return hits, nil
	}
	if answer.Results == nil {
		return nil, errAnswer
	}
	for _, r := range *answer.Results {
		hits = append(hits, hit{r.Title, r.URL, r.Content})
	}
	return hits, nil
}

// list shows at most count results, as many as there is room for.
func list(hits []hit, count int, key string) string {
	var b strings.Builder
	shown, left := 0, 0
	for _, h := range hits {
		if shown+left == count {
			break
		}
		text, ok := h.show(shown+1, key)
		switch {
		case !ok:
		case left > 0 || b.Len()+len(text) > MaxResults-maxLeft:
			left++
		default:
			b.WriteString(text)
			shown++
		}
	}
	switch {
	case shown == 0:
		return tool.Notice("", "Nothing was found. Try other words.")
	case left > 0:
		return tool.Notice(b.String(), fmt.Sprintf("There was no room for %d more results.", left))
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// show returns the lines of a result, and false for one that is no page of the web.
func (h hit) show(number int, key string) (string, bool) {
	u, err := url.Parse(strings.TrimSpace(h.url))
	if err != nil || check(u) != nil {
		return "", false
	}
	address := line(u.String(), key)
	if len(address) > maxAddress {
		return "", false
	}
	title := tool.Cut(line(h.title, key), maxTitle)
	if title == "" {
		title = "(no title)"
	}
	text := fmt.Sprintf("%d. %s\n   %s\n", number, title, address)
	if snippet := tool.Cut(line(h.snippet, key), maxSnippet); snippet != "" {
		text += "   " + snippet + "\n"
	}
	return text, true
}

// line returns text from a server as one line of valid UTF-8 in which nothing can drive a
// terminal, turn the order of what is read around, or hide: so a result cannot pass for
// another one. The key is not in it.
func line(text, key string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r):
			return utf8.RuneError
		case unicode.Is(unicode.Bidi_Control, r), r >= 0xE0000 && r <= 0xE007F: // tags, which no font shows
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	if key == "" {
		return text
	}
	return strings.ReplaceAll(text, key, "[redacted]")
}
