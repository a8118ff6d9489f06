package webtool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/webtool"
)

const plantedKey = "hunter2-planted-key"

var providers = []webtool.Provider{webtool.SearXNG, webtool.Brave, webtool.Tavily}

func options(p webtool.Provider, base string) webtool.SearchOptions {
	return webtool.SearchOptions{Provider: p, URL: base, Key: func(context.Context) (string, error) { return plantedKey, nil }}
}

func find(ctx context.Context, o webtool.SearchOptions, query string, count int) tool.Result {
	in, err := json.Marshal(map[string]any{"query": query, "count": count})
	if err != nil {
		panic(err)
	}
	return webtool.NewSearch(o).Run(ctx, tool.Call{Input: in}, nil)
}

// answer is what a provider sends for results of title, address and snippet.
func answer(p webtool.Provider, results ...[3]string) string {
	excerpt := "content"
	if p == webtool.Brave {
		excerpt = "description"
	}
	list := []map[string]string{}
	for _, r := range results {
		list = append(list, map[string]string{"title": r[0], "url": r[1], excerpt: r[2]})
	}
	var doc any = map[string]any{"results": list}
	if p == webtool.Brave {
		doc = map[string]any{"type": "search", "web": doc}
	}
	data, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return string(data)
}

func TestSearchRequests(t *testing.T) {
	const query = `a&b "c d" ü`
	for _, c := range []struct {
		provider                  webtool.Provider
		method, path, query, body string
		header                    [2]string
	}{
		{webtool.SearXNG, "GET", "/base/search", "format=json&q=" + url.QueryEscape(query), "", [2]string{"Authorization", ""}},
		{webtool.Brave, "GET", "/base/res/v1/web/search", "count=2&q=" + url.QueryEscape(query) + "&text_decorations=false", "", [2]string{"X-Subscription-Token", plantedKey}},
		{webtool.Tavily, "POST", "/base/search", "", `{"max_results":2,"query":"a\u0026b \"c d\" ü"}`, [2]string{"Authorization", "Bearer " + plantedKey}},
	} {
		var got *http.Request
		var body []byte
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			got = r.Clone(context.WithoutCancel(r.Context()))
			body, _ = io.ReadAll(r.Body)
			_, _ = io.WriteString(w, answer(c.provider, [3]string{"One", "https://one.example/x?a=1&b=2", "first\nexcerpt"}, [3]string{"", "http://two.example", ""}, [3]string{"Three", "http://three.example/", "x"}))
		})
		res := find(t.Context(), options(c.provider, server+"/base"), "  "+query+"\n", 2)
		if want := "1. One\n   https://one.example/x?a=1&b=2\n   first excerpt\n2. (no title)\n   http://two.example"; res.IsError || res.Text != want {
			t.Errorf("%s:\n got %q\nwant %q", c.provider, res.Text, want)
		}
		if got.Method != c.method || got.URL.Path != c.path || got.URL.RawQuery != c.query || string(body) != c.body || got.Header.Get(c.header[0]) != c.header[1] {
			t.Errorf("%s: %s %s, body %s, header %v", c.provider, got.Method, got.URL, body, got.Header)
		}
	}
}

func TestSearchFaults(t *testing.T) {
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			_, _ = fmt.Fprint(w, r.Header) // an echo of the key
		}
	}
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    map[webtool.Provider]string // by provider; "" for all others
	}{
		{"401", status(401), map[webtool.Provider]string{"": "refuses the key"}},
		{"403", status(403), map[webtool.Provider]string{"": "refuses the key", webtool.SearXNG: "search.formats"}},
		{"404", status(404), map[webtool.Provider]string{"": "no search at its address"}},
		{"429", status(429), map[webtool.Provider]string{"": "asked too often"}},
		{"500", status(500), map[webtool.Provider]string{"": "status 500 Internal Server Error"}},
		{"204", status(204), map[webtool.Provider]string{"": "status 204 No Content"}},
		{"html", page("text/html", "<html>"), map[webtool.Provider]string{"": "not a list of results"}},
		{"empty", page("application/json", ""), map[webtool.Provider]string{"": "not a list of results"}},
		{"other object", page("application/json", `{"error":"`+plantedKey+`"}`), map[webtool.Provider]string{"": "not a list of results"}},
		{"other types", page("application/json", `{"results":"`+plantedKey+`","web":1}`), map[webtool.Provider]string{"": "not a list of results"}},
		{"null", page("application/json", `null`), map[webtool.Provider]string{"": "not a list of results"}},
		{"deep", page("application/json", strings.Repeat("[", 1<<20)), map[webtool.Provider]string{"": "not a list of results"}},
		{"huge", page("application/json", `{"results":["`+strings.Repeat("x", webtool.MaxBody)+`"]}`), map[webtool.Provider]string{"": "larger than 2.0 MiB"}},
		{"cut short", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"results":[`)
		}, map[webtool.Provider]string{"": "its answer broke off"}},
		{"hangs up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, map[webtool.Provider]string{"": "EOF"}},
		{"bad redirect", func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://%zz"+r.Header.Get("X-Subscription-Token")+strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
			w.WriteHeader(http.StatusTemporaryRedirect)
		}, map[webtool.Provider]string{"": "Location"}},
		{"loop", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, r.URL.String(), http.StatusTemporaryRedirect)
		}, map[webtool.Provider]string{"": "redirects more than 5 times"}},
	} {
		server := serve(t, c.handler)
		for _, p := range providers {
			want, ok := c.want[p]
			if !ok {
				want = c.want[""]
			}
			res := find(t.Context(), options(p, server), "q", 5)
			if !res.IsError || !strings.HasPrefix(res.Text, "search: "+string(p)+": ") || !strings.Contains(res.Text, want) {
				t.Errorf("%s, %s: got %+v, want %q", c.name, p, res, want)
			}
			if strings.Contains(res.Text, plantedKey) {
				t.Errorf("%s, %s: the key is shown: %q", c.name, p, res.Text)
			}
		}
	}
}

func TestSearchOptionsThatCannotBeUsed(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	errKey := errors.New("key file is missing")
	for name, c := range map[string]struct {
		opt  webtool.SearchOptions
		want string
	}{
		"nobody listens": {options(webtool.Brave, closed.URL), "connection refused"},
		"no provider":    {options("", ""), "web.search.provider"},
		"no address":     {options(webtool.SearXNG, ""), "web.search.url"},
		"no URL":         {options(webtool.SearXNG, "http://%zz"+plantedKey), "not an address"},
		"no URL to post": {options(webtool.Tavily, "http://%zz"+plantedKey), "not an address"},
		"no key":         {webtool.SearchOptions{Provider: webtool.Brave, Key: func(context.Context) (string, error) { return "", errKey }}, errKey.Error()},
		"strange key":    {webtool.SearchOptions{Provider: webtool.Brave, URL: closed.URL, Key: func(context.Context) (string, error) { return plantedKey + "\n", nil }}, "X-Subscription-Token"},
	} {
		if res := find(t.Context(), c.opt, "q", 5); !res.IsError || !strings.Contains(res.Text, c.want) || strings.Contains(res.Text, plantedKey) {
			t.Errorf("%s: got %+v, want %q", name, res, c.want)
		}
	}
}

// A key goes to the configured scheme and host only, and a redirect within them is followed.
func TestSearchRedirects(t *testing.T) {
	strays := 0
	other := serve(t, func(http.ResponseWriter, *http.Request) { strays++ })
	for _, p := range providers {
		server := serve(t, func(w http.ResponseWriter, r *http.Request) {
			switch {
			case strings.HasPrefix(r.URL.Path, "/away"):
				http.Redirect(w, r, other+"/?"+plantedKey, http.StatusPermanentRedirect)
			case strings.HasPrefix(r.URL.Path, "/upgrade"):
				http.Redirect(w, r, "https://"+r.Host+r.URL.Path, http.StatusPermanentRedirect)
			case strings.HasSuffix(r.URL.Path, "/search"):
				http.Redirect(w, r, r.URL.Path+"/?"+r.URL.RawQuery, http.StatusPermanentRedirect)
			default:
				_, _ = io.WriteString(w, answer(p, [3]string{"T", "http://a.example/", ""}))
			}
		})
		for _, path := range []string{"/away", "/upgrade"} {
			if res := find(t.Context(), options(p, server+path), "q", 1); !res.IsError || !strings.Contains(res.Text, "redirects to another address") || strings.Contains(res.Text, plantedKey) {
				t.Errorf("%s%s: got %+v", p, path, res)
			}
		}
		if res := find(t.Context(), options(p, server), "q", 1); res.IsError || !strings.HasPrefix(res.Text, "1. T") {
			t.Errorf("%s: got %+v", p, res)
		}
	}
	if strays != 0 {
		t.Errorf("%d requests went astray", strays)
	}
}

func TestSearchResultsAreHarmless(t *testing.T) {
	for _, p := range providers {
		server := serve(t, page("application/json", answer(p,
			[3]string{"a\x1b[2J\r\n2. Fake\u2028x\u0085y\x00", "https://a.example/\u202e?k=" + plantedKey, "\u202eevil\u2066 \U000E0041" + plantedKey + "hunter2-\u200eplanted-key"},
			[3]string{"script", "javascript:alert(1)", ""}, [3]string{"file", "file:///etc/passwd", ""}, [3]string{"user", "http://good.example@bad.example/", ""}, [3]string{"none", "", ""},
			[3]string{"Ends", "http://b.example/\n3. Fake", "x"},
			[3]string{"Last", "http://c.example/", strings.Repeat("é", 1000)})))
		res := find(t.Context(), options(p, server), "q", 20)
		lines := strings.Split(res.Text, "\n")
		if res.IsError || len(lines) != 6 || !strings.HasPrefix(lines[0], "1. a\uFFFD[2J 2. Fake x y\uFFFD") || !strings.HasPrefix(lines[3], "2. Last") || !strings.HasSuffix(res.Text, "é…") {
			t.Errorf("%s: got %q", p, res.Text)
		}
		if strings.Contains(res.Text, plantedKey) || strings.ContainsAny(res.Text, "\x1b\r\x00\u0085\u2028\u202e\u2066\U000E0041") {
			t.Errorf("%s: harmful: %q", p, res.Text)
		}
	}
}

// Brave sends its texts as HTML, the others do not.
func TestSearchEntities(t *testing.T) {
	for p, want := range map[webtool.Provider]string{webtool.Brave: "1. it's\n", webtool.Tavily: "1. it&#x27;s\n"} {
		server := serve(t, page("application/json", answer(p, [3]string{"it&#x27;s", "http://a.example/", ""})))
		if res := find(t.Context(), options(p, server), "q", 1); !strings.HasPrefix(res.Text, want) {
			t.Errorf("%s: got %q", p, res.Text)
		}
	}
}

func TestSearchIsBounded(t *testing.T) {
	var results [][3]string
	for i := range 100 {
		results = append(results, [3]string{strings.Repeat("t", 5000), fmt.Sprintf("http://a.example/%d/%s", i, strings.Repeat("u", 1500)), strings.Repeat("é", 1500)})
	}
	server := serve(t, page("application/json", answer(webtool.Tavily, results...)))
	res := find(t.Context(), options(webtool.Tavily, server), "q", 20)
	if shown := strings.Count(res.Text, "http://a.example/"); res.IsError || len(res.Text) > webtool.MaxResults || shown != 7 || !utf8.ValidString(res.Text) || !strings.HasSuffix(res.Text, fmt.Sprintf("[There was no room for %d more results.]", 20-shown)) {
		t.Errorf("%d bytes, %d results: %q", len(res.Text), shown, res.Text[max(0, len(res.Text)-100):])
	}
	for _, body := range []string{answer(webtool.Brave), `{"type":"search"}`, answer(webtool.Brave, [3]string{"too long", "http://a.example/" + strings.Repeat("u", 3000), ""})} {
		if res := find(t.Context(), options(webtool.Brave, serve(t, page("application/json", body))), "q", 5); res.IsError || res.Text != "[Nothing was found. Try other words.]" {
			t.Errorf("nothing: got %+v", res)
		}
	}
}

func TestSearchEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		cancel()
		<-r.Context().Done()
	})
	if res := find(ctx, options(webtool.SearXNG, server), "q", 1); !res.IsError || !strings.HasPrefix(res.Text, "Aborted") {
		t.Errorf("got %+v", res)
	}
}

func TestSearchInput(t *testing.T) {
	s := webtool.NewSearch(options(webtool.SearXNG, "http://a.example"))
	for _, in := range []string{``, `{}`, `{"query":""}`, `{"query":1}`, `{"query":"q","count":0}`, `{"query":"q","count":21}`, `{"query":"q","page":2}`, `{"query":"` + strings.Repeat("x", 401) + `"}`} {
		if res := s.Run(t.Context(), tool.Call{Input: json.RawMessage(in)}, nil); !res.IsError || !strings.HasPrefix(res.Text, "search: invalid input") {
			t.Errorf("%s: got %+v", in, res)
		}
	}
	if res := s.Run(t.Context(), tool.Call{Input: json.RawMessage(`{"query":" \n"}`)}, nil); !res.IsError || !strings.Contains(res.Text, "the query is empty") {
		t.Errorf("got %+v", res)
	}
	if spec := s.Spec(); spec.Name != "search" || !spec.Repeatable {
		t.Errorf("spec: %+v", spec)
	}
}
