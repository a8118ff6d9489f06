package cursortool

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// text draws lines that repeat, so that there is something to find.
func text(t *rapid.T, label string, ends ...string) string {
	var b strings.Builder
	pieces := append([]string{"a", "b", "  c", "é", "\ufeff", ""}, ends...)
	for _, p := range rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 30).Draw(t, label) {
		b.WriteString(p)
	}
	return b.String()
}

// Whatever the line ends: a patch is the replacement on the text without them, and the file keeps
// its own.
func TestPatchIsAReplacement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ends := rapid.SampledFrom([][]string{{"\n"}, {"\r\n"}, {"\n", "\r\n"}}).Draw(t, "ends")
		content := text(t, "content", append(ends, ends...)...)
		old, put := text(t, "old", "\n"), text(t, "new", "\n", "\r\n")
		if flat := lf(content); rapid.Bool().Draw(t, "from the file") && flat != "" {
			i := rapid.IntRange(0, len(flat)-1).Draw(t, "i")
			old = flat[i:rapid.IntRange(i+1, len(flat)).Draw(t, "j")]
		}
		if lf(old) == lf(put) || old == "" {
			return
		}
		all := rapid.Bool().Draw(t, "all")
		out, n, err := patch(content, old, put, all)
		count := strings.Count(lf(content), old)
		switch exactly := strings.Count(content, old); {
		case err != nil && count == 0, err != nil && !all && count > 1:
			return
		case err != nil:
			t.Fatalf("%d matches: %v", count, err)
		case n != count && n != exactly || n == 0 || n > 1 && !all:
			t.Fatalf("%d replacements of %d", n, count)
		case n != count: // some of the matches were exact, and only these were meant
			return
		}
		if want := strings.ReplaceAll(lf(content), old, lf(put)); lf(out) != want {
			t.Fatalf("%q becomes %q, want %q", content, lf(out), want)
		}
		lone := strings.Contains(lf(out), "\r")
		if len(ends) == 1 && strings.Contains(content, "\n") && !lone && out != ended(out, ends[0]) {
			t.Fatalf("%q with ends %q becomes %q", content, ends[0], out)
		}
	})
}

// The diff of two texts turns the one into the other.
func TestDiff(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := text(t, "before", "\n", "\n", "\n"), text(t, "after", "\n", "\n", "\r\n")
		d := newDiff(before, after)
		var out strings.Builder
		at, added, removed := 0, 0, 0
		for _, c := range d.changes {
			for ; at < c.a; at++ {
				out.WriteString(d.old[at])
			}
			for _, row := range d.new[c.b : c.b+c.added] {
				out.WriteString(row)
			}
			at += c.removed
			added, removed = added+c.added, removed+c.removed
		}
		for ; at < len(d.old); at++ {
			out.WriteString(d.old[at])
		}
		if out.String() != after {
			t.Fatalf("%q to %q gives %q", before, after, out.String())
		}
		if added-removed != len(d.new)-len(d.old) {
			t.Fatalf("+%d -%d", added, removed)
		}
		if a, r := countDiff(d.unified("f")); before != after && !strings.Contains(before+after, "-") && (int(a) != added || int(r) != removed) {
			t.Fatalf("the text has +%d -%d, want +%d -%d: %s", a, r, added, removed, d.unified("f"))
		}
		if (d.unified("f") == "") != (before == after) {
			t.Fatal("no diff of different texts")
		}
	})
}

func TestUnifiedDiff(t *testing.T) {
	before := "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16"
	after := "1\ntwo\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n"
	want := "--- f\n+++ f\n@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n@@ -13,4 +13,4 @@\n 13\n 14\n 15\n-16\n\\ No newline at end of file\n+16\n"
	if got := newDiff(before, after).unified("f"); got != want {
		t.Errorf("the diff is\n%s\nwant\n%s", got, want)
	}
	if got := newDiff("", "x\n").unified("f"); got != "--- f\n+++ f\n@@ -0,0 +1,1 @@\n+x\n" {
		t.Errorf("of an empty file: %q", got)
	}
}

// Texts made to be slow are not.
func TestDiffOfManyLines(t *testing.T) {
	before, after := strings.Repeat("a\nb\n", 50_000), strings.Repeat("b\na\nc\n", 50_000)
	if a, r := newDiff(before, after).counts(); a < 50_000 || r < 0 {
		t.Errorf("+%d -%d", a, r)
	}
}
