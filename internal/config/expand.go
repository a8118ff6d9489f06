package config

import (
	"errors"
	"fmt"
	"strings"
)

var errOpen = errors.New(`"${" without "}"; write "$${" for the text itself`)

// expand replaces ${NAME} and ${NAME:-default} in s by the environment's value, and $$ by
// one dollar sign; any other dollar sign stays. What a variable holds is not expanded
// again. A variable that is unset or empty is an error unless it has a default. It returns
// the names it met.
func expand(s string, getenv func(string) string) (string, []string, error) {
	var (
		out   strings.Builder
		names []string
	)
	for {
		before, rest, found := strings.Cut(s, "$")
		out.WriteString(before)
		switch {
		case !found:
			return out.String(), names, nil
		case strings.HasPrefix(rest, "$"):
			out.WriteByte('$')
			s = rest[1:]
		case strings.HasPrefix(rest, "{"):
			inner, after, closed := strings.Cut(rest[1:], "}")
			if !closed {
				return "", names, errOpen
			}
			name, fallback, hasFallback := strings.Cut(inner, ":-")
			if !envName(name) {
				return "", names, fmt.Errorf("%s is not the name of an environment variable", quote(name))
			}
			names = append(names, name)
			value := getenv(name)
			if value == "" {
				if !hasFallback {
					return "", names, fmt.Errorf("environment variable %s is not set; set it, or write ${%s:-default}", name, name)
				}
				value = fallback
			}
			out.WriteString(value)
			s = after
		default:
			out.WriteByte('$')
			s = rest
		}
	}
}

func envName(s string) bool {
	if s == "" || len(s) > 128 || s[0] >= '0' && s[0] <= '9' {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool {
		return r != '_' && (r < 'A' || r > 'Z') && (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}
