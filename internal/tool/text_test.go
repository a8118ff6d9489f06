package tool_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/tool"
)

func TestHeadStopsAtEitherLimit(t *testing.T) {
	var many tool.Head
	for many.Add("x") {
	}
	if many.Lines() != tool.MaxLines {
		t.Errorf("short lines: kept %d lines, want %d", many.Lines(), tool.MaxLines)
	}
	var long tool.Head
	for long.Add(strings.Repeat("y", 1023)) {
	}
	if got := len(long.String()); got != tool.MaxBytes-1 {
		t.Errorf("long lines: kept %d bytes, want %d", got, tool.MaxBytes-1)
	}
	var one tool.Head
	if one.Add(strings.Repeat("z", tool.MaxBytes+1)) || one.String() != "" {
		t.Error("a line longer than the limit was kept")
	}
}

func TestHeadKeepsEmptyLines(t *testing.T) {
	var h tool.Head
	for _, l := range []string{"", "a", "", ""} {
		h.Add(l)
	}
	if got, want := h.String(), "\na\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTail(t *testing.T) {
	wide := strings.Repeat("é", tool.MaxBytes)
	for _, c := range []struct {
		name, text, want string
		lines            int
		partial          bool
	}{
		{"empty", "", "", 0, false},
		{"one line", "a", "a", 1, false},
		{"line end", "a\nb\n", "a\nb", 2, false},
		{"blank lines", "\n\n", "\n", 2, false},
		{"lines over", strings.Repeat("x\n", tool.MaxLines+5), strings.Repeat("x\n", tool.MaxLines-1) + "x", tool.MaxLines, false},
		{"long line dropped", wide + "\nend", "end", 1, false},
		{"last line too long", "x\na" + wide, strings.Repeat("é", tool.MaxBytes/2), 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, lines, partial := tool.Tail(c.text)
			if got != c.want || lines != c.lines || partial != c.partial {
				t.Errorf("got %d bytes, %d lines, %v; want %d, %d, %v",
					len(got), lines, partial, len(c.want), c.lines, c.partial)
			}
		})
	}
}

func TestTailIsASuffixWithinTheLimits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.SampledFrom([]string{"", "a", "é", strings.Repeat("w", 3000)})
		text := strings.Join(rapid.SliceOfN(line, 0, 3000).Draw(t, "lines"), "\n")
		kept, lines, _ := tool.Tail(text)
		if !strings.HasSuffix(strings.TrimSuffix(text, "\n"), kept) {
			t.Fatal("not a suffix")
		}
		if len(kept) > tool.MaxBytes || lines > tool.MaxLines || !utf8.ValidString(kept) {
			t.Fatalf("%d bytes, %d lines", len(kept), lines)
		}
		if kept != "" && strings.Count(kept, "\n")+1 != lines {
			t.Fatalf("said %d lines, are %d", lines, strings.Count(kept, "\n")+1)
		}
	})
}

func TestCleanCutSizeName(t *testing.T) {
	if got := tool.Clean("a\xff\xfeb\x00c"); got != "a\uFFFDb\uFFFDc" {
		t.Errorf("Clean: %q", got)
	}
	if got := tool.Cut("ééééé", 7); got != "éé…" {
		t.Errorf("Cut: %q", got)
	}
	if got := tool.Cut("short", 5); got != "short" {
		t.Errorf("Cut: %q", got)
	}
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 20 << 20: "20.0 MiB", 3 << 50: "3072.0 TiB"} {
		if got := tool.Size(n); got != want {
			t.Errorf("Size(%d) = %q, want %q", n, got, want)
		}
	}
	if got := tool.CleanName("a\nb"); got != `"a\nb"` {
		t.Errorf("CleanName: %s", got)
	}
	if got := tool.CleanName("käse brot"); got != "käse brot" {
		t.Errorf("CleanName: %s", got)
	}
	if got := tool.Notice("x\n", "cut"); got != "x\n\n[cut]" {
		t.Errorf("Notice: %q", got)
	}
}
