package fstool_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/fstool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a working directory with tools.
type bench struct {
	dir   string
	tools map[string]tool.Tool
}

func newBench(t testing.TB) *bench {
	t.Helper()
	b := &bench{dir: t.TempDir(), tools: map[string]tool.Tool{}}
	for _, tl := range fstool.New() {
		b.tools[tl.Spec().Name] = tl
	}
	return b
}

func (b *bench) put(t testing.TB, path, content string) {
	t.Helper()
	full := filepath.Join(b.dir, path)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (b *bench) get(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(b.dir, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func (b *bench) run(ctx context.Context, t testing.TB, name string, input any) tool.Result {
	t.Helper()
	raw, ok := input.(string)
	if !ok {
		data, err := json.Marshal(input)
		if err != nil {
			t.Fatal(err)
		}
		raw = string(data)
	}
	res := b.tools[name].Run(ctx, tool.Call{Input: json.RawMessage(raw), Dir: b.dir, Confined: true}, func(tool.Progress) {})
	if !utf8.ValidString(res.Text) || len(res.Text) > tool.MaxBytes+tool.MaxNotice ||
		strings.Count(res.Text, "\n") > tool.MaxLines+4 || len(res.Details) > tool.MaxDetails {
		t.Fatalf("%s %.100s: result is over the limits: %d bytes, %d of details", name, raw, len(res.Text), len(res.Details))
	}
	return res
}

type in map[string]any

// good runs a tool that must succeed, and bad one that must fail with a text that says why.
func (b *bench) good(t testing.TB, name string, input any) tool.Result {
	t.Helper()
	res := b.run(t.Context(), t, name, input)
	if res.IsError {
		t.Fatalf("%s %v: %s", name, input, res.Text)
	}
	return res
}

func (b *bench) bad(t testing.TB, name string, input any, why string) {
	t.Helper()
	res := b.run(t.Context(), t, name, input)
	if !res.IsError || !strings.Contains(res.Text, why) {
		t.Errorf("%s %.200v: got error %v, %q, want %q", name, input, res.IsError, res.Text, why)
	}
}

func TestSpecs(t *testing.T) {
	b := newBench(t)
	for name, repeatable := range map[string]bool{"read": true, "ls": true, "edit": false, "write": false} {
		spec := b.tools[name].Spec()
		if spec.Repeatable != repeatable || spec.Description == "" || !json.Valid(spec.Schema) {
			t.Errorf("%s: %+v", name, spec)
		}
	}
}

func TestEveryToolStaysInside(t *testing.T) {
	b := newBench(t)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(b.dir, "out")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../x", "/etc/passwd", outside + "/secret", "out/secret", "out/new", "/proc/self/root/etc/passwd"} {
		const why = "outside the working directory"
		b.bad(t, "read", in{"path": path}, why)
		b.bad(t, "ls", in{"path": path}, why)
		b.bad(t, "write", in{"path": path, "content": "x"}, why)
		b.bad(t, "edit", in{"path": path, "edits": []in{{"oldText": "secret", "newText": "x"}}}, why)
	}
	if res := b.good(t, "ls", in{}); res.Text != "out" {
		t.Errorf("ls shows a link to the outside as %q", res.Text)
	}
	if data, err := os.ReadFile(filepath.Join(outside, "secret")); err != nil || string(data) != "secret" {
		t.Errorf("the file outside is %q, %v", data, err)
	}
}

func TestWrongInputNamesTheParameter(t *testing.T) {
	b := newBench(t)
	b.put(t, "a", "x")
	b.bad(t, "read", `{}`, "path (string, required)")
	b.bad(t, "read", `{"path":"a","offset":0}`, "/offset")
	b.bad(t, "read", `{"path":"a","ofset":1}`, "ofset")
	b.bad(t, "read", `{"path":"a\u0000b"}`, "NUL")
	b.bad(t, "write", `{"path":"a"}`, `"content"`)
	b.bad(t, "write", `{"path":"a","content":1}`, "/content")
	b.bad(t, "edit", `{"path":"a"}`, `"edits"`)
	b.bad(t, "edit", `{"path":"a","edits":[]}`, "/edits")
	b.bad(t, "edit", `{"path":"a","edits":[{"oldText":"x"}]}`, `"newText"`)
	b.bad(t, "edit", `{"path":"a","edits":[{"oldText":"","newText":"y"}]}`, "oldText")
	b.bad(t, "edit", `{"path":"a","edits":"not json"}`, "/edits")
	b.bad(t, "edit", `{"path":"a","oldText":"x"}`, `newText`)
	b.bad(t, "edit", `[]`, "JSON object")
	b.bad(t, "ls", `{"limit":0}`, "/limit")
}

func TestUnusableFiles(t *testing.T) {
	b := newBench(t)
	b.put(t, "dir/file", "x")
	b.put(t, "bin", "a\x00b")
	if err := syscall.Mkfifo(filepath.Join(b.dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	one := []in{{"oldText": "x", "newText": "y"}}
	for path, why := range map[string]string{
		"none": "Use find or ls", "dir": "is a directory", "pipe": "named pipe", "bin": "binary", "dir/file/x": "not a directory",
	} {
		b.bad(t, "read", in{"path": path}, why)
		b.bad(t, "edit", in{"path": path, "edits": one}, why)
	}
	b.bad(t, "write", in{"path": "dir", "content": ""}, "is a directory")
	b.bad(t, "write", in{"path": "pipe", "content": ""}, "named pipe")
	b.bad(t, "ls", in{"path": "dir/file"}, "use read")
	free := tool.Call{Input: json.RawMessage(`{"path":"/dev/zero"}`), Dir: b.dir}
	if res := b.tools["read"].Run(t.Context(), free, nil); !res.IsError || !strings.Contains(res.Text, "device") {
		t.Errorf("/dev/zero: %+v", res)
	}
}

func TestWrite(t *testing.T) {
	b := newBench(t)
	res := b.good(t, "write", in{"path": "new/deep/file.txt", "content": "a\nb"})
	if want := "Wrote 3 bytes (2 lines) to new/deep/file.txt."; res.Text != want {
		t.Errorf("got %q, want %q", res.Text, want)
	}
	b.good(t, "write", in{"path": "new/deep/file.txt", "content": ""})
	if got := b.get(t, "new/deep/file.txt"); got != "" {
		t.Errorf("got %q", got)
	}
}

func TestLs(t *testing.T) {
	b := newBench(t)
	for _, f := range []string{"b.txt", "A.txt", ".dot", "Cdir/x", "odd\nname"} {
		b.put(t, f, "")
	}
	if err := os.Symlink("Cdir", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	if got, want := b.good(t, "ls", in{}).Text, ".dot\nA.txt\nb.txt\nCdir/\nlink/\n\"odd\\nname\""; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := b.good(t, "ls", in{"limit": 2}).Text; !strings.HasPrefix(got, ".dot\nA.txt\n\n[Showing 2 of 6 entries.") {
		t.Errorf("got %q", got)
	}
	b.good(t, "write", in{"path": "e/f", "content": ""})
	if err := os.Remove(filepath.Join(b.dir, "e", "f")); err != nil {
		t.Fatal(err)
	}
	if got := b.good(t, "ls", in{"path": "e"}).Text; got != "[The directory is empty.]" {
		t.Errorf("got %q", got)
	}
}

func TestLsStopsAtTheOutputLimit(t *testing.T) {
	b := newBench(t)
	for i := range 300 {
		b.put(t, "d/"+strings.Repeat("n", 200)+string(rune('a'+i%26))+strings.Repeat("x", i/26), "")
	}
	if got := b.good(t, "ls", in{"path": "d"}).Text; !strings.Contains(got, "of 300 entries: the output reached its limit") {
		t.Errorf("got …%q", got[len(got)-200:])
	}
}
