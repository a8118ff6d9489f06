package config

import (
	"slices"
	"strings"
	"testing"
)

func TestSearch(t *testing.T) {
	for text, want := range map[string]Search{
		"": {},
		"search: {provider: searxng, url: 'http://10.0.0.1:8888/searx/'}":        {Provider: SearchSearXNG, URL: "http://10.0.0.1:8888/searx"},
		"search: {provider: brave, api_key: '${K}'}":                             {Provider: SearchBrave},
		"search: {provider: tavily, api_key: '${K}', url: 'https://proxy/tav/'}": {Provider: SearchTavily, URL: "https://proxy/tav"},
	} {
		c := mustParse(t, "web: {"+text+"}", "K", "hunter2")
		key, err := c.Web.Search.Key.Value(t.Context())
		hasKey := strings.Contains(text, "api_key")
		if err != nil || hasKey != (key.Reveal() == "hunter2") || hasKey != slices.Equal(c.KeyEnv, []string{"K"}) {
			t.Errorf("%s: key %v, variables %v", text, err, c.KeyEnv)
		}
		if c.Web.Search.Key = nil; c.Web.Search != want || len(c.Warnings) != 0 {
			t.Errorf("%s: got %+v, warnings %v", text, c.Web.Search, c.Warnings)
		}
	}
}

func TestSearchErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "c.yaml:1:15: web.search: needs provider",
		"url: 'https://h'":                "needs provider",
		"provider: google":                "known: searxng, brave, tavily",
		"provider: brav":                  `did you mean "brave"?`,
		"provider: searxng":               "needs url",
		"provider: brave":                 "needs api_key for provider: brave",
		"provider: tavily, url: http://h": "needs api_key for provider: tavily",
		"provider: searxng, url: 'http://h', api_key: hunter2": "api_key has no meaning for provider: searxng",
		"provider: brave, api_key: ''":                         "web.search.api_key: is empty",
		"provider: brave, api_key: '${NOPE}'":                  "environment variable NOPE is not set",
		`provider: brave, api_key: "hunter2\n"`:                "characters that cannot be in a header",
		"provider: searxng, url: 'http://u:hunter2@h'":         "must not hold a user or password",
		"provider: searxng, url: 'http://h/?k=hunter2'":        "must not have a query",
		"provider: searxng, url: 'ftp://h'":                    "must be a URL",
		"provider: brave, api_key_file: x":                     `unknown key "api_key_file"; known: api_key, provider, url`,
	} {
		_, err := Parse("c.yaml", []byte("web: {search: {"+text+"}}"), noEnv)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s:\n got %v\nwant %s", text, err, want)
		}
	}
}

func TestSearchCleartextKeyWarns(t *testing.T) {
	for address, want := range map[string]int{"http://example.com": 1, "https://example.com": 0, "http://127.0.0.1:1": 0} {
		c := mustParse(t, "web: {search: {provider: tavily, api_key: k, url: '"+address+"'}}")
		if len(c.Warnings) != want {
			t.Errorf("%s: %v", address, c.Warnings)
		}
	}
}
