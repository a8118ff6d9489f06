package searchtool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/searchtool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type in map[string]any

// bench is a working directory with the tools.
type bench struct {
	dir   string
	free  bool // not confined
	tools map[string]tool.Tool
}

func newBench(t testing.TB, files map[string]string) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), tools: map[string]tool.Tool{}}
	for _, tl := range searchtool.New() {
		b.tools[tl.Spec().Name] = tl
	}
	for path, content := range files {
		full := filepath.Join(b.dir, path)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func (b *bench) run(ctx context.Context, t testing.TB, name string, input in) tool.Result {
	t.Helper()
	raw, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	res := b.tools[name].Run(ctx, tool.Call{Input: raw, Dir: b.dir, Confined: !b.free}, nil)
	if !utf8.ValidString(res.Text) || len(res.Text) > tool.MaxBytes+tool.MaxNotice || strings.Count(res.Text, "\n") > tool.MaxLines+4 {
		t.Fatalf("%s %v: %d bytes", name, input, len(res.Text))
	}
	return res
}

func (b *bench) want(t testing.TB, name string, input in, want string) {
	t.Helper()
	if res := b.run(t.Context(), t, name, input); res.IsError || res.Text != want {
		t.Errorf("%s %v: got %v\n%s\nwant\n%s", name, input, res.IsError, res.Text, want)
	}
}

func (b *bench) bad(t testing.TB, name string, input in, why string) {
	t.Helper()
	if res := b.run(t.Context(), t, name, input); !res.IsError || !strings.Contains(res.Text, why) {
		t.Errorf("%s %v: got %v, %q, want %q", name, input, res.IsError, res.Text, why)
	}
}

var project = map[string]string{
	".git/config":       "alpha in git\n",
	".git/info/exclude": "local.txt\n",
	".gitignore":        "*.log\n/build/\n!keep.log\n",
	".ignore":           "vendor/\n",
	".env":              "alpha=1\n",
	"a.go":              "package a\n\nfunc alpha() {}\nfunc Alpha() {}\n",
	"a-b/x.go":          "alpha\n",
	"a/x.go":            "one\nalpha two\nthree\n",
	"a/.gitignore":      "y.go\n",
	"a/y.go":            "alpha\n",
	"build/out.go":      "alpha\n",
	"keep.log":          "alpha kept\n",
	"drop.log":          "alpha dropped\n",
	"local.txt":         "alpha\n",
	"sub/build/in.go":   "alpha deep\n",
	"vendor/v.go":       "alpha\n",
	"bin":               "alpha\x00\n",
	"crlf.txt":          "alpha\r\nbeta\r\n",
}

func TestSpecs(t *testing.T) {
	for _, tl := range searchtool.New() {
		if s := tl.Spec(); !s.Repeatable || s.Description == "" || !json.Valid(s.Schema) {
			t.Errorf("%+v", s)
		}
	}
}

func TestFind(t *testing.T) {
	b := newBench(t, project)
	if err := os.Symlink("/etc", filepath.Join(b.dir, "sub", "link")); err != nil {
		t.Fatal(err)
	}
	for _, free := range []bool{false, true} {
		b.free = free
		b.want(t, "find", in{"pattern": "*.go"}, "a-b/x.go\na.go\na/x.go\nsub/build/in.go")
		b.want(t, "find", in{"pattern": "**/x.go"}, "a-b/x.go\na/x.go")
		b.want(t, "find", in{"pattern": "*/*.go"}, "a-b/x.go\na/x.go")
		b.want(t, "find", in{"pattern": "./a/*"}, "a/.gitignore\na/x.go")
		b.want(t, "find", in{"pattern": "{build,l*k}"}, "sub/build/\nsub/link")
		b.want(t, "find", in{"pattern": "*.go", "path": "sub"}, "sub/build/in.go")
		b.want(t, "find", in{"pattern": "build/*", "path": "sub"}, "sub/build/in.go")
		b.want(t, "find", in{"pattern": "*.go", "path": "build"}, "build/out.go") // asked for by name
		b.want(t, "find", in{"pattern": "*.log", "path": "sub/.."}, "keep.log")
		b.want(t, "find", in{"pattern": "none"}, "No files found")
		b.want(t, "find", in{"pattern": "*.go", "limit": 2}, "a-b/x.go\na.go\n\n[The first 2 are shown; there are more. Use a narrower pattern or path, or a higher limit.]")
		b.want(t, "find", in{"pattern": "*.go", "limit": 4}, "a-b/x.go\na.go\na/x.go\nsub/build/in.go")
		b.bad(t, "find", in{"pattern": "[a"}, "not closed")
		b.bad(t, "find", in{"pattern": "*", "path": "a.go"}, "not a directory")
		b.bad(t, "find", in{"pattern": "*", "path": "gone"}, "Use ls")
		b.bad(t, "find", in{}, `"pattern"`)
	}
	b.free = false
	b.bad(t, "find", in{"pattern": "*", "path": "sub/link"}, "outside the working directory")
	b.bad(t, "grep", in{"pattern": "root", "path": "sub/link/passwd"}, "outside the working directory")
	b.bad(t, "grep", in{"pattern": "root", "path": "../.."}, "outside the working directory")
}

func TestGrep(t *testing.T) {
	b := newBench(t, project)
	if err := os.Symlink("a.go", filepath.Join(b.dir, "link.go")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, free := range []bool{false, true} {
		b.free = free
		b.want(t, "grep", in{"pattern": "alpha"}, strings.Join([]string{
			".env:1: alpha=1", "a-b/x.go:1: alpha", "a.go:3: func alpha() {}", "a/x.go:2: alpha two",
			"crlf.txt:1: alpha", "keep.log:1: alpha kept", "sub/build/in.go:1: alpha deep",
		}, "\n"))
		b.want(t, "grep", in{"pattern": "ALPHA\\(", "ignoreCase": true}, "a.go:3: func alpha() {}\na.go:4: func Alpha() {}")
		b.want(t, "grep", in{"pattern": "alpha()", "literal": true}, "a.go:3: func alpha() {}")
		b.want(t, "grep", in{"pattern": "^alpha$", "glob": "*.{go,txt}"}, "a-b/x.go:1: alpha\ncrlf.txt:1: alpha")
		b.want(t, "grep", in{"pattern": "alpha", "glob": "sub/**"}, "sub/build/in.go:1: alpha deep")
		b.want(t, "grep", in{"pattern": "two", "context": 1}, "a/x.go-1- one\na/x.go:2: alpha two\na/x.go-3- three")
		b.want(t, "grep", in{"pattern": "func", "context": 1, "path": "a.go"}, "a.go-2- \na.go:3: func alpha() {}\na.go:4: func Alpha() {}")
		b.want(t, "grep", in{"pattern": "alpha", "path": "vendor/v.go"}, "vendor/v.go:1: alpha")
		b.want(t, "grep", in{"pattern": "^$", "path": "a.go"}, "a.go:2: ")
		b.want(t, "grep", in{"pattern": "a\\s+func"}, "No matches found") // over the end of a line
		b.want(t, "grep", in{"pattern": "alpha", "limit": 1}, ".env:1: alpha=1\n\n[The first 1 matches are shown; there are more. Use a narrower pattern, path or glob, or a higher limit.]")
		b.want(t, "grep", in{"pattern": "nowhere"}, "No matches found")
		b.bad(t, "grep", in{"pattern": "(?=a)"}, "RE2")
		b.bad(t, "grep", in{"pattern": "(a)\\1"}, "RE2")
		b.bad(t, "grep", in{"pattern": "((ab){0,30}){0,30}"}, "too complex")
		b.bad(t, "grep", in{"pattern": "a", "glob": "{"}, "glob")
		b.bad(t, "grep", in{"pattern": "a", "path": "pipe"}, "named pipe")
		b.bad(t, "grep", in{"pattern": "a", "limit": 0}, "/limit")
	}
}

func TestGrepGroups(t *testing.T) {
	b := newBench(t, map[string]string{"f": "x1\n2\n3\n4\nx5\nx6\n7\n8\n9\nx10"})
	b.want(t, "grep", in{"pattern": "x", "context": 1},
		"f:1: x1\nf-2- 2\n--\nf-4- 4\nf:5: x5\nf:6: x6\nf-7- 7\n--\nf-9- 9\nf:10: x10")
}

func TestGrepCutsLinesAndOutput(t *testing.T) {
	b := newBench(t, map[string]string{"long": strings.Repeat("é", 600) + "\n"})
	b.want(t, "grep", in{"pattern": "é"}, "long:1: "+strings.Repeat("é", 248)+"…")
	b = newBench(t, map[string]string{"many": strings.Repeat(strings.Repeat("y", 400)+"\n", 1000)})
	res := b.run(t.Context(), t, "grep", in{"pattern": "y", "limit": 1000})
	if !strings.Contains(res.Text, "as the output reached its limit") {
		t.Errorf("got … %q", res.Text[len(res.Text)-200:])
	}
}

func TestGrepOverBlocks(t *testing.T) {
	var text, want strings.Builder
	for i := 1; i <= 100_000; i++ {
		switch {
		case i%20_000 == 0:
			fmt.Fprintf(&text, "needle %d\n", i)
			fmt.Fprintf(&want, "f:%d: needle %d\n", i, i)
		case i == 50_001:
			fmt.Fprintf(&text, "%s needle\n", strings.Repeat("w", 1<<20))
			fmt.Fprintf(&want, "f:%d: %s…\n", i, strings.Repeat("w", 497))
		default:
			fmt.Fprintf(&text, "line %d of hay\n", i)
		}
	}
	b := newBench(t, map[string]string{"f": text.String()})
	for _, pattern := range []string{"needle", `needle( \d+)?\z`, "needle( [0-9]+)?$"} {
		b.want(t, "grep", in{"pattern": pattern}, strings.TrimSuffix(want.String(), "\n"))
	}
}

func TestSearchEndsWithItsContext(t *testing.T) {
	b := newBench(t, project)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"grep", "find"} {
		if res := b.run(ctx, t, name, in{"pattern": "alpha"}); !res.IsError || !strings.HasPrefix(res.Text, "Aborted") {
			t.Errorf("%s: got %q", name, res.Text)
		}
	}
}
