package searchtool_test

import (
	"fmt"
	"strings"
	"testing"
)

// A tree of 4,000 files and 40 MB, a thousandth of whose lines match.
func bigTree() map[string]string {
	files := map[string]string{".gitignore": "*.o\n/dist/\nnode_modules/\n*.tmp\ncoverage\n"}
	for i := range 4000 {
		var text strings.Builder
		for j := range 250 {
			fmt.Fprintf(&text, "func line%dOf%d(ctx context.Context) error // ", j, i)
			if (i*250+j)%1000 == 0 {
				text.WriteString("Needle")
			}
			text.WriteString("\n")
		}
		files[fmt.Sprintf("pkg%d/sub%d/file%d.go", i%40, i%7, i)] = text.String()
	}
	return files
}

func BenchmarkGrep(b *testing.B) {
	w := newBench(b, bigTree())
	for name, input := range map[string]in{
		"literal": {"pattern": "Needle", "limit": 2000},
		"regexp":  {"pattern": `[A-Z]\w+le$`, "limit": 2000},
		"nothing": {"pattern": "absent"},
		"limit":   {"pattern": "func", "limit": 100},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if res := w.run(b.Context(), b, "grep", input); res.IsError {
					b.Fatal(res.Text)
				}
			}
		})
	}
}

func BenchmarkFind(b *testing.B) {
	w := newBench(b, bigTree())
	for b.Loop() {
		if res := w.run(b.Context(), b, "find", in{"pattern": "*39.go"}); res.IsError {
			b.Fatal(res.Text)
		}
	}
}
