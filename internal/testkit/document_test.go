package testkit

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// testNames finds "package.TestName"; the package is the last element of its path.
var testNames = regexp.MustCompile(`\b([a-z]+)\.((?:Test|Fuzz)[A-Z]\w*)`)

// checkTestNames reports the tests that a document names and that do not exist, and returns
// how many it names.
func checkTestNames(t *testing.T, root, document, text string) int {
	t.Helper()
	sources := make(map[string]string) // of the tests of all packages with a name
	for _, pkg := range packages(t, root) {
		files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			sources[path.Base(pkg)] += "\n" + string(b)
		}
	}
	names := testNames.FindAllStringSubmatch(text, -1)
	for _, n := range names {
		if !strings.Contains(sources[n[1]], "\nfunc "+n[2]+"(") {
			t.Errorf("%s names %s, and there is no such test", document, n[0])
		}
	}
	return len(names)
}

func readDocument(t *testing.T, root, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Every problem is in the document once, in order, with a test or an honest word.
func TestUserProblems(t *testing.T) {
	root := moduleRoot(t)
	text := readDocument(t, root, "user-problems.md")
	row := regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \| ([^|]+) \|$`)
	var numbers []int
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
		if !testNames.MatchString(m[3]) && !strings.Contains(m[3], "not yet: ") {
			t.Errorf("problem %d has neither a test nor a reason why not", n)
		}
	}
	const last = 61
	want := make([]int, last)
	for i := range want {
		want[i] = i + 1
	}
	if !slices.Equal(numbers, want) {
		t.Errorf("problems %v, want 1 to %d", numbers, last)
	}
	if n := checkTestNames(t, root, "user-problems.md", text); n < last {
		t.Errorf("only %d tests are named", n)
	}
}

// Every test that the document on security names exists.
func TestSecurityNamesTests(t *testing.T) {
	root := moduleRoot(t)
	if n := checkTestNames(t, root, "security.md", readDocument(t, root, "security.md")); n < 20 {
		t.Errorf("only %d tests are named", n)
	}
}

// Every problem of the sections that concern all protocols has a cell for each of them, with a test or
// a reason why there is none.
func TestProblemsByProtocol(t *testing.T) {
	root := moduleRoot(t)
	text := readDocument(t, root, "problems-by-protocol.md")
	row := regexp.MustCompile(`(?m)^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|$`)
	var numbers []int
	for _, m := range row.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		numbers = append(numbers, n)
		for _, cell := range m[3:] {
			if !testNames.MatchString(cell) && !strings.Contains(cell, "– ") {
				t.Errorf("problem %d: the cell %q has neither a test nor a reason", n, cell)
			}
		}
	}
	var want []int
	for n := 1; n <= 31; n++ { // sections A and B
		want = append(want, n)
	}
	if want = append(want, 52, 53, 54); !slices.Equal(numbers, want) { // section F
		t.Errorf("problems %v, want %v", numbers, want)
	}
	if n := checkTestNames(t, root, "problems-by-protocol.md", text); n < 3*len(want) {
		t.Errorf("only %d tests are named", n)
	}
}

// What is said of reliability names tests that exist, and files that do.
func TestReliability(t *testing.T) {
	root := moduleRoot(t)
	text := readDocument(t, root, "reliability.md")
	if n := checkTestNames(t, root, "reliability.md", text); n < 10 {
		t.Errorf("only %d tests are named", n)
	}
	for _, m := range regexp.MustCompile(`\]\(([a-z-]+\.md)`).FindAllStringSubmatch(text, -1) {
		readDocument(t, root, m[1])
	}
}
