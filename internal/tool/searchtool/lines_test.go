package searchtool

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func scanAll(ctx context.Context, expr, text string) ([]string, error) {
	var got []string
	err := newScanner(regexp.MustCompile(expr)).scan(ctx, strings.NewReader(text), func(n int, line []byte) bool {
		got = append(got, fmt.Sprintf("%d:%s", n, line))
		return true
	})
	return got, err
}

// Searching blocks finds what looking at each line finds.
func TestScanAgreesWithLineByLine(t *testing.T) {
	exprs := rapid.SampledFrom([]string{
		"(?m)a", "(?m)^a", "(?m)a$", "(?m)^$", "(?m)$", "(?m)", "(?m)b*", "(?m)[^a]", `(?m)\s`, `(?m)a\s+b`, `(?m)\Aa`, `(?m)a\z`,
		`(?m)\bb`, "(?ms)a.*b", "(?m)a|^b$", `(?m)(?-m:^b$)`, `(?m)\Bb`, "(?m)a??b?$",
	})
	text := rapid.StringOfN(rapid.RuneFrom([]rune("ab \n\n\r")), 0, 40, -1)
	rapid.Check(t, func(t *rapid.T) {
		expr, text := exprs.Draw(t, "expression"), text.Draw(t, "text")
		re := regexp.MustCompile(expr)
		var want []string
		if text != "" {
			for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
				if line = strings.TrimSuffix(line, "\r"); re.MatchString(line) {
					want = append(want, fmt.Sprintf("%d:%s", i+1, line))
				}
			}
		}
		got, err := scanAll(t.Context(), expr, text)
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s in %q: got %q, %v, want %q", expr, text, got, err, want)
		}
	})
}

func TestScanStops(t *testing.T) {
	if got, err := scanAll(t.Context(), "a", "a\n"+strings.Repeat("b", 300<<10)+"\x00"); !errors.Is(err, errBinary) {
		t.Errorf("binary: got %q, %v", got, err)
	}
	if got, err := scanAll(t.Context(), "a", "a\n"+strings.Repeat("b", 10<<20)+"\na"); err != nil || len(got) != 1 {
		t.Errorf("endless line: got %d, %v", len(got), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := scanAll(ctx, "a", "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
