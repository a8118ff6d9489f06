package pi_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Every trap is listed in docs/pi.md, once and in order, and every test named there exists.
func TestDocumentNamesTests(t *testing.T) {
	const traps = 52
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "pi.md"))
	if err != nil {
		t.Fatal(err)
	}
	row := regexp.MustCompile(`^\| (\d+) \|.*\| ([^|]+) \|$`)
	trap := 0
	for line := range strings.Lines(string(text)) {
		m := row.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		trap++
		if n, err := strconv.Atoi(m[1]); err != nil || n != trap {
			t.Errorf("trap %s comes where %d should", m[1], trap)
		}
		if !strings.Contains(m[2], ".Test") {
			t.Errorf("trap %d has no test", trap)
		}
	}
	if trap != traps {
		t.Errorf("%d traps, want %d", trap, traps)
	}
	names := regexp.MustCompile(`\b([a-z]+)\.(Test\w+)`).FindAllStringSubmatch(string(text), -1)
	tests := make(map[string]string) // by package
	for _, n := range names {
		pkg, name := n[1], n[2]
		if _, ok := tests[pkg]; !ok {
			tests[pkg] = testSource(t, filepath.Join("..", pkg))
		}
		if !strings.Contains(tests[pkg], "\nfunc "+name+"(") {
			t.Errorf("there is no test %s.%s", pkg, name)
		}
	}
}

func testSource(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b)
	}
	return all.String()
}
