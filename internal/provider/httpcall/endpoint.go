package httpcall

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/roost-dev/roost/internal/provider"
)

var version = regexp.MustCompile(`/v\d+[a-z0-9]*(/|$)`)

// endpoints returns the URLs that a base URL may mean for a path, the likelier first. A
// base that ends in the path is meant as it is. Otherwise a base with a version ("/v1",
// "/v1beta/openai") is complete, and one without wants "/v1"; the other form is second.
func endpoints(base, path string) ([]string, error) {
	u, err := url.Parse(strings.TrimSpace(base))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, provider.Errorf(provider.FaultRequest, "the base URL must look like https://host/v1")
	}
	u.User = nil // a key belongs into a header, where no log finds it
	trimmed := strings.TrimRight(u.Path, "/")
	form := func(p string) string {
		v := *u
		v.Path, v.RawPath = p, ""
		return v.String()
	}
	switch {
	case strings.HasSuffix(trimmed, path):
		return []string{form(trimmed)}, nil
	case strings.HasSuffix(trimmed, "/v1"):
		return []string{form(trimmed + path), form(strings.TrimSuffix(trimmed, "/v1") + path)}, nil
	case version.MatchString(trimmed):
		return []string{form(trimmed + path), form(trimmed + "/v1" + path)}, nil
	}
	return []string{form(trimmed + "/v1" + path), form(trimmed + path)}, nil
}
