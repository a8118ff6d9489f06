package cursortool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"
)

const (
	searchYes = `{"id":7,"web_search_request_response":{"approved":{}}}`
	fetchYes  = `{"id":7,"web_fetch_request_response":{"approved":{}}}`
)

// webEnv answers every search and fetch with the same text.
func webEnv(text string, isError bool, got *string) *Env {
	answer := func(_ context.Context, what string) (string, bool) {
		*got = what
		return text, isError
	}
	return &Env{Shells: NewShells(), Search: answer, Fetch: answer}
}

func TestWebSearch(t *testing.T) {
	for _, c := range []struct {
		found   string
		isError bool
		text    string
	}{
		{"1. Go 1.26", false, "1. Go 1.26"},
		{"", false, "Nothing was found."},
		{"quota used up", true, "quota used up"},
		{strings.Repeat("ö", 20_000), false, strings.Repeat("ö", 8192) + "\n[... 23616 bytes left out ...]\n"},
	} {
		var got string
		m := beginSearch(Call{ID: "call_q"}, json.RawMessage(`{"search_term":"x","explanation":"why"}`), webEnv(c.found, c.isError, &got))
		asked(t, m, `{"web_search_request_query":{"args":{"search_term":"x","tool_call_id":"call_q"}}}`)
		st := m.Answered(answerMessage(t, searchYes))
		if st.Local == nil || st.Done != nil {
			t.Fatalf("nothing is searched: %+v", st)
		}
		o := over(t, m.Finished(st.Local(t.Context())))
		if o.Text != c.text || o.IsError != c.isError || got != "x" {
			t.Errorf("got %.100q, %v, searched %q; want %.100q", o.Text, o.IsError, got, c.text)
		}
		res := o.Card.GetWebSearchToolCall().GetResult()
		if c.isError && res.GetError().GetError() != c.text || !c.isError && res.GetSuccess().GetReferences()[0].GetChunk() != c.text {
			t.Errorf("the card says %.200v", res)
		}
	}
}

func TestWebRefusals(t *testing.T) {
	for answer, want := range map[string]string{
		`{"web_search_request_response":{"rejected":{"reason":"offline"}}}`: "The search was refused: offline. Do not try it again",
		`{"web_search_request_response":{}}`:                                "The search was refused. Do not try it again",
		fetchYes:                                                            "The search was refused. Do not try it again",
	} {
		m := beginSearch(Call{}, json.RawMessage(`{"search_term":"x"}`), webEnv("", false, new(string)))
		m.Start()
		if o := over(t, m.Answered(answerMessage(t, answer))); !o.IsError || !strings.HasPrefix(o.Text, want) || o.Card.GetWebSearchToolCall().GetResult().GetRejected() == nil {
			t.Errorf("%s: %q", answer, o.Text)
		}
	}
	for answer, want := range map[string]string{
		`{"web_fetch_request_response":{"rejected":{"reason":"offline"}}}`: "The fetch was refused: offline. Do not try it again",
		searchYes: "The fetch was refused. Do not try it again",
	} {
		m := beginFetch(Call{}, json.RawMessage(`{"url":"https://example.org"}`), webEnv("", false, new(string)))
		m.Start()
		if o := over(t, m.Answered(answerMessage(t, answer))); !o.IsError || !strings.HasPrefix(o.Text, want) || o.Card.GetWebFetchToolCall().GetResult().GetRejected() == nil {
			t.Errorf("%s: %q", answer, o.Text)
		}
	}
}

// Some clients never answer; a search that has begun is not given up for that.
func TestWebConsentIsLimited(t *testing.T) {
	for name, c := range map[string]struct {
		begin func() Machine
		yes   string
	}{
		"search": {func() Machine {
			return beginSearch(Call{}, json.RawMessage(`{"search_term":"x"}`), webEnv("", false, new(string)))
		}, searchYes},
		"fetch": {func() Machine {
			return beginFetch(Call{}, json.RawMessage(`{"url":"http://a"}`), webEnv("", false, new(string)))
		}, fetchYes},
	} {
		k := newTicker(t, c.begin())
		k.pass(5 * time.Minute)
		k.news()
		k.pass(4*time.Minute + 59*time.Second)
		k.stillWaits()
		k.pass(2 * time.Second)
		if o := over(t, k.last); !o.IsError || !strings.Contains(o.Text, "did not say within 10 minutes") {
			t.Errorf("%s: %q", name, o.Text)
		}
		k = newTicker(t, c.begin())
		k.pass(time.Minute)
		k.take(k.m.Answered(answerMessage(t, c.yes)))
		k.pass(time.Hour)
		k.news()
		k.stillWaits()
	}
}

func TestWebFetchHere(t *testing.T) {
	for _, c := range []struct {
		page    string
		isError bool
		text    string
	}{
		{"# Title", false, "# Title"},
		{"", false, "(the page is empty)"},
		{"no such host", true, "WebFetch error: no such host"},
		{strings.Repeat("x", 40_000), false, strings.Repeat("x", 32<<10) + "\n[... 7232 bytes left out ...]\n"},
		{"bad \xff\x00", false, "bad \uFFFD\uFFFD"},
	} {
		var got string
		m := beginFetch(Call{ID: "call_q"}, json.RawMessage(`{"url":" https://example.org/a?b "}`), webEnv(c.page, c.isError, &got))
		asked(t, m, `{"web_fetch_request_query":{"args":{"url":"https://example.org/a?b","tool_call_id":"call_q"}}}`)
		st := m.Answered(answerMessage(t, fetchYes))
		if st.Local == nil || len(st.Requests) != 0 {
			t.Fatalf("got %+v", st)
		}
		o := over(t, m.Finished(st.Local(t.Context())))
		if o.Text != c.text || o.IsError != c.isError || got != "https://example.org/a?b" {
			t.Errorf("got %.100q, %v, fetched %q; want %.100q", o.Text, o.IsError, got, c.text)
		}
	}
}

func TestWebFetchInTheClient(t *testing.T) {
	for message, want := range map[string]string{
		`{"fetch_result":{"success":{"url":"http://a","content":"page","status_code":200}}}`:                                          "page",
		`{"fetch_result":{"success":{"content":"page"}},"hook_additional_contexts":[{"hook_event_name":"post","content":"careful"}]}`: "page\n\n[post hook] careful",
		`{"fetch_result":{"success":{"content":"gone","status_code":410}}}`:                                                           "WebFetch error: the server answered with status 410.\ngone",
		`{"fetch_result":{"error":{"error":"refused"}}}`:                                                                              "WebFetch error: the page could not be read: refused.",
		`{"mcp_result":{"error":{"error":"Tool result not provided"}}}`:                                                               "WebFetch error: the client did not fetch. Its answer was: Tool result not provided",
		"closed": "WebFetch error: the client returned nothing.",
		"thrown": "WebFetch error: the client could not fetch: No handler found.",
	} {
		m := beginFetch(Call{ID: "c"}, json.RawMessage(`{"url":"http://a"}`), &Env{Shells: NewShells()})
		m.Start()
		st := m.Answered(answerMessage(t, fetchYes))
		if len(st.Requests) != 1 || st.Requests[0].Message.GetFetchArgs().GetUrl() != "http://a" || st.Requests[0].Patience == 0 || st.Requests[0].Unsafe {
			t.Fatalf("asked %+v", st)
		}
		if empty := m.Result(0, execMessage(t, `{}`)); empty.Done != nil {
			t.Fatal("an empty message ends the call")
		}
		switch message {
		case "closed":
			st = m.Closed(0)
		case "thrown":
			st = m.Thrown(0, "No handler found", true)
		default:
			st = m.Result(0, execMessage(t, message))
		}
		if o := over(t, st); o.Text != want || o.IsError != strings.HasPrefix(want, "WebFetch error") {
			t.Errorf("%s: got %q, %v; want %q", message, o.Text, o.IsError, want)
		}
	}
}

func TestWebInput(t *testing.T) {
	env := webEnv("", false, new(string))
	for _, url := range []string{"", "example.org", "ftp://a", "file:///etc/passwd", "http://", "https://u:p@a", "http://a b", "javascript:1", "http://" + strings.Repeat("a", 9000)} {
		if st := beginFetch(Call{}, json.RawMessage(`{"url":"`+url+`"}`), env).Start(); st.Query != nil || !over(t, st).IsError {
			t.Errorf("%.40s is asked for", url)
		}
	}
	if st := beginSearch(Call{}, json.RawMessage(`{"search_term":" "}`), env).Start(); st.Query != nil || !over(t, st).IsError {
		t.Error("nothing is searched for")
	}
	if o := over(t, beginSearch(Call{}, json.RawMessage(`{"search_term":"x"}`), &Env{}).Start()); !o.IsError || !strings.Contains(o.Text, "no search here") {
		t.Errorf("without a search: %q", o.Text)
	}
}
