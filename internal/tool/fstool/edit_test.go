package fstool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/tool"
)

func one(old, text string) []in { return []in{{"oldText": old, "newText": text}} }

func TestEdit(t *testing.T) {
	for _, c := range []struct {
		name, before string
		edits        []in
		after        string
	}{
		{"plain", "a b c", one("b", "x"), "a x c"},
		{"delete", "a b c", one(" b", ""), "a c"},
		{"against the original", "one two", []in{{"oldText": "one", "newText": "two"}, {"oldText": "two", "newText": "one"}}, "two one"},
		{"any order, touching", "abcd", []in{{"oldText": "cd", "newText": "2"}, {"oldText": "ab", "newText": "1"}}, "12"},
		{"line ends kept", "a\r\nb\r\nc\r\n", one("b\nc", "x\ny\nz"), "a\r\nx\r\ny\r\nz\r\n"},
		{"old text with CRLF", "a\nb\n", one("a\r\nb", "x\r\ny"), "x\ny\n"},
		{"mixed line ends stay", "a\r\nb\nc\r\nd\n", one("d", "e"), "a\r\nb\nc\r\ne\n"},
		{"BOM stays", "\uFEFFa\nb\n", one("a", "x"), "\uFEFFx\nb\n"},
		{"BOM in old text", "\uFEFFa\nb\n", one("\uFEFFa", "x"), "\uFEFFx\nb\n"},
		{"smart quotes", "say “hi” and ‘ho’\n", one(`say "hi"`, "say nothing"), "say nothing and ‘ho’\n"},
		{"dashes and spaces", "a – b\u00a0c — d\n", one("b c", "x"), "a – x — d\n"},
		{"NFKC", "ﬁle ① é\n", one("file 1", "done"), "done é\n"},
		{"composition", "caf\u0065\u0301 au lait\n", one("café", "tea"), "tea au lait\n"},
		{"trailing blanks in the file", "f() {  \n\tx\t\n}\n", one("f() {\n\tx\n}", "g()"), "g()\n"},
		{"trailing blanks in old text", "f() {\n\tx\n}\n", one("f() {  \n\tx", "g() {"), "g() {\n}\n"},
		{"blanks outside stay", "a  \nb  \nc  \n", one("a\nb", "x"), "x  \nc  \n"},
		{"untouched bytes stay", "“q” b\xff “q”\nkey “z”\n", one(`key "z"`, "k"), "“q” b\xff “q”\nk\n"},
		{"exact wins over loose", "'a' ‘a’", one("'a'", "x"), "x ‘a’"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.put(t, "f", c.before)
			b.good(t, "edit", in{"path": "f", "edits": c.edits})
			if got := b.get(t, "f"); got != c.after {
				t.Errorf("got %q, want %q", got, c.after)
			}
		})
	}
}

func TestEditRefuses(t *testing.T) {
	b := newBench(t)
	const text = "aaa b\nc ﬁ\nb\n'q' ‘r’ “r”\n"
	b.put(t, "f", text)
	for _, c := range []struct {
		edits []in
		why   string
	}{
		{one("zzz", "x"), "edit 1: oldText was not found"},
		{one("b", "x"), "edit 1: oldText occurs more than once"},
		{one("aa", "x"), "more than once"},
		{one("i\n", "x"), "not found"}, // half of a ligature
		{one("   ", "x"), "not found"},
		{[]in{{"oldText": "aaa b", "newText": "x"}, {"oldText": "b\nc", "newText": "y"}}, "edits 1 and 2 overlap"},
		{[]in{{"oldText": "c", "newText": "x"}, {"oldText": "nope", "newText": "y"}}, "edit 2"},
		{one("aaa", "aaa"), "equals the old"},
	} {
		b.bad(t, "edit", in{"path": "f", "edits": c.edits}, c.why)
	}
	if got := b.get(t, "f"); got != text {
		t.Errorf("a refused edit changed the file: %q", got)
	}
	b.put(t, "large", strings.Repeat("x", 11<<20))
	b.bad(t, "edit", in{"path": "large", "edits": one("x", "y")}, "up to 10.0 MiB")
	if err := os.Chmod(filepath.Join(b.dir, "f"), 0o444); err != nil {
		t.Fatal(err)
	}
	b.bad(t, "edit", in{"path": "f", "edits": one("aaa", "y")}, "read-only")
}

func TestEditForms(t *testing.T) {
	for _, input := range []string{
		`{"path":"f","edits":[{"oldText":"a","newText":"b"}]}`,
		`{"path":"f","edits":{"oldText":"a","newText":"b"}}`,
		`{"path":"f","edits":"[{\"oldText\":\"a\",\"newText\":\"b\"}]"}`,
		`{"path":"f","edits":"{\"oldText\":\"a\",\"newText\":\"b\"}"}`,
		`{"path":"f","oldText":"a","newText":"b"}`,
		`{"path":"f","edits":null,"oldText":"a","newText":"b"}`,
		`{"path":"f","edits":[],"oldText":"a","newText":"b"}`,
	} {
		b := newBench(t)
		b.put(t, "f", "a")
		b.good(t, "edit", input)
		if got := b.get(t, "f"); got != "b" {
			t.Errorf("%s: got %q", input, got)
		}
	}
}

type details struct {
	Diff, Patch      string
	FirstChangedLine int
	Truncated        bool
}

func TestEditDetails(t *testing.T) {
	b := newBench(t)
	before := numberedLines(40)
	b.put(t, "f", before)
	res := b.good(t, "edit", in{"path": "f", "edits": []in{
		{"oldText": "line 10\n", "newText": "ten\nand a half\n"}, {"oldText": "line 30\n", "newText": ""},
	}})
	var d details
	if err := json.Unmarshal(res.Details, &d); err != nil {
		t.Fatal(err)
	}
	if d.FirstChangedLine != 10 || d.Truncated {
		t.Errorf("got %+v", d)
	}
	for _, want := range []string{"\n  9 line 9\n-10 line 10\n+10 ten\n+11 and a half\n 11 line 11\n", "\n    ...\n", "\n-30 line 30\n 31 line 31"} {
		if !strings.Contains("\n"+d.Diff, want) {
			t.Errorf("%q is not in the diff:\n%s", want, d.Diff)
		}
	}
	if !strings.HasPrefix(d.Diff, "  6 line 6\n") {
		t.Errorf("four lines of context wanted:\n%s", d.Diff)
	}
	other := newBench(t)
	other.put(t, "f", before)
	git := exec.Command("git", "apply", "-")
	git.Dir, git.Stdin = other.dir, strings.NewReader(d.Patch)
	if out, err := git.CombinedOutput(); err != nil || other.get(t, "f") != b.get(t, "f") {
		t.Errorf("the patch does not give the file: %v %s\n%s", err, out, d.Patch)
	}
}

func TestEditDetailsAreBounded(t *testing.T) {
	b := newBench(t)
	b.put(t, "f", strings.Repeat("\x01\x02\x03\x04\n", 20_000)+"x\n")
	res := b.good(t, "edit", in{"path": "f", "edits": one(strings.Repeat("\x01\x02\x03\x04\n", 20_000)+"x", "y")})
	var d details
	if err := json.Unmarshal(res.Details, &d); err != nil {
		t.Fatal(err)
	}
	if !d.Truncated || d.Patch != "" || !strings.HasSuffix(d.Diff, "...") || d.FirstChangedLine != 1 {
		t.Errorf("got %.200v", d)
	}
}

// Edits through one set of tools do not lose each other's work.
func TestEditsOfOneFileQueue(t *testing.T) {
	b := newBench(t)
	b.put(t, "f", numberedLines(30))
	if err := os.Symlink("f", filepath.Join(b.dir, "link")); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			path := []string{"f", "link"}[i%2]
			res := b.run(context.WithoutCancel(t.Context()), t, "edit", in{"path": path, "edits": one(fmt.Sprintf("line %d\n", i+1), fmt.Sprintf("done %d\n", i+1))})
			if res.IsError {
				t.Error(res.Text)
			}
		})
	}
	all.Wait()
	if got := strings.Count(b.get(t, "f"), "done"); got != 30 {
		t.Errorf("%d of 30 edits are in the file", got)
	}
}

// What an edit does to a text is what cutting the text at the old part and putting the new
// one there does, whatever the line ends.
func TestEditProperty(t *testing.T) {
	b := newBench(t)
	part := rapid.StringOfN(rapid.RuneFrom([]rune("ab \t\n“–é\u00a0ﬁ")), 0, 12, -1)
	rapid.Check(t, func(rt *rapid.T) {
		head, tail, text := part.Draw(rt, "head"), part.Draw(rt, "tail"), part.Draw(rt, "new")
		old := "<" + part.Draw(rt, "old") + ">"
		end := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(rt, "end")
		ends := func(s string) string { return strings.ReplaceAll(s, "\n", end) }
		b.put(t, "f", ends(head+old+tail))
		b.good(t, "edit", in{"path": "f", "edits": one(old, text+"!")})
		style := ends
		if !strings.Contains(head+old+tail, "\n") {
			style = func(s string) string { return s }
		}
		if got, want := b.get(t, "f"), ends(head)+style(text+"!")+ends(tail); got != want {
			rt.Fatalf("got %q, want %q", got, want)
		}
	})
}

func TestWaitingForAFileEndsWithItsContext(t *testing.T) {
	b := newBench(t)
	b.put(t, "f", "a")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if res := b.run(ctx, t, "edit", in{"path": "f", "edits": one("a", "b")}); !res.IsError || !strings.HasPrefix(res.Text, "Aborted") {
		t.Errorf("got %q", res.Text)
	}
	if got := b.get(t, "f"); got != "a" {
		t.Errorf("an aborted edit changed the file to %q", got)
	}
}

func BenchmarkEditLargeFile(b *testing.B) {
	bench := newBench(b)
	text := numberedLines(700_000)
	run := func(old, text string) tool.Result {
		return bench.good(b, "edit", in{"path": "f", "edits": []in{{"oldText": old, "newText": text}, {"oldText": "line 700000\n", "newText": "end\n"}}})
	}
	for b.Loop() {
		bench.put(b, "f", text)
		run("line 3\n", "three\n")
	}
}
