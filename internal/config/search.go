package config

// Search is the service that sessions search the web with. The zero Search is none, and the
// tool is not offered then.
type Search struct {
	Provider SearchProvider
	URL      string // absolute http or https URL without user, query, fragment or final slash; empty for the provider's own
	Key      *Key   // nil for SearXNG, which has none
}

// SearchProvider is a service that searches the web.
type SearchProvider string

// The services of this version.
const (
	SearchSearXNG SearchProvider = "searxng" // an instance of the user's own; its URL is set
	SearchBrave   SearchProvider = "brave"
	SearchTavily  SearchProvider = "tavily"
)

func (d *decoder) search(dst *Search, v value) {
	var (
		s    Search
		keys keySources
	)
	before := len(d.problems)
	d.mapping(v, fields{
		"provider": enum(d, &s.Provider, SearchSearXNG, SearchBrave, SearchTavily),
		"url":      func(v value) { d.baseURL(&s.URL, v) },
		"api_key":  func(v value) { d.apiKey(&keys, v) },
	})
	if len(d.problems) > before {
		return
	}
	s.Key = keys.key
	switch {
	case s.Provider == "":
		d.problemf(v, "needs provider: searxng, brave or tavily")
	case s.Provider == SearchSearXNG && s.URL == "":
		d.problemf(v, "needs url, the address of your SearXNG instance")
	case s.Provider == SearchSearXNG && s.Key != nil:
		d.problemf(v, "api_key has no meaning for provider: searxng")
	case s.Provider != SearchSearXNG && s.Key == nil:
		d.problemf(v, "needs api_key for provider: %s", s.Provider)
	}
	if s.Key != nil && cleartext(s.URL) {
		d.warnf("web.search: its key is sent unencrypted; use an https address")
	}
	*dst = s
}
