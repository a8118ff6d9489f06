package config

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestExpand(t *testing.T) {
	getenv := env("A", "1", "B", "${A}$$")
	for _, tc := range []struct {
		in, out string
		names   []string
	}{
		{"plain", "plain", nil},
		{"${A}-${A}", "1-1", []string{"A", "A"}},
		{"${B}", "${A}$$", []string{"B"}}, // not expanded again
		{"$${A}", "${A}", nil},
		{"$$$${A}", "$${A}", nil},
		{"$A $ 5$", "$A $ 5$", nil},
		{"${X:-d e}", "d e", []string{"X"}},
		{"${X:-}", "", []string{"X"}},
		{"${A:-d}", "1", []string{"A"}},
	} {
		out, names, err := expand(tc.in, getenv)
		if err != nil || out != tc.out || !slices.Equal(names, tc.names) {
			t.Errorf("%s: %q %v %v", tc.in, out, names, err)
		}
	}
	for _, in := range []string{"${}", "${A", "${1A}", "${A-b}", "${X}", "${é}", "${${A}}"} {
		if out, _, err := expand(in, getenv); err == nil {
			t.Errorf("%s gave %q", in, out)
		}
	}
}

// Doubling the dollar signs of any text keeps it as it is.
func TestExpandEscapeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[a${}:-]{0,20}`).Draw(t, "text")
		out, names, err := expand(strings.ReplaceAll(text, "$", "$$"), noEnv)
		if err != nil || out != text || len(names) != 0 {
			t.Fatalf("%q became %q, %v, %v", text, out, names, err)
		}
	})
}

func TestSizeRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(0, 1<<50).Draw(t, "n")
		if back, ok := parseSize(formatSize(n)); !ok || back != n {
			t.Fatalf("%d became %s became %d", n, formatSize(n), back)
		}
	})
}

func TestNearest(t *testing.T) {
	known := []string{"base_url", "api", "api_key", "api_key_file"}
	for word, want := range map[string]string{"baseurl": "base_url", "API-KEY": "api_key", "apikeyfile": "api_key_file", "apy": "api", "zzz": "", "": "", strings.Repeat("a", 1000): ""} {
		got, ok := nearest(word, known)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q %v", word, got, ok)
		}
	}
}
