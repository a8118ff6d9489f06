package server

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The web is searched with the service of the configuration, which gets its key, and without
// one there is no such tool.
func TestConfiguredSearch(t *testing.T) {
	const key = "hunter2-search-key"
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("X-Subscription-Token")+r.Header.Get("Authorization") == "" && r.URL.Query().Get("format") == "" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		page := `[{"title": "Found", "url": "http://a.example/", "content": "` + key + `", "description": "` + key + `"}]`
		_, _ = io.WriteString(w, `{"results": `+page+`, "web": {"results": `+page+`}}`)
	}))
	t.Cleanup(service.Close)
	configured := func(provider string) string {
		return "web: {search: {provider: " + provider + ", url: '" + service.URL + "'}}"
	}
	for more, want := range map[string]string{
		"":                                    `STATUS_FAILED There is no tool "search"`,
		configured("searxng"):                 "STATUS_COMPLETE 1. Found",
		configured("brave, api_key: " + key):  "STATUS_COMPLETE 1. Found\n   http://a.example/\n   [redacted]",
		configured("tavily, api_key: " + key): "STATUS_COMPLETE 1. Found\n   http://a.example/\n   [redacted]",
	} {
		h := newHome(t, "")
		h.scripted(`rules: [{default: true, passes: [[{tool: {name: search, input: {query: q}}}], [{text: "done"}]]}]`, more)
		h.start()
		c := h.dialAPI()
		v := h.watch(c, h.begin(c, "go"), "the end", ended)
		if got := outputs(v, "search"); len(got) != 1 || !strings.HasPrefix(got[0], want) {
			t.Errorf("%s: got %q", more, got)
		}
	}
}
