package fstool_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/tool"
)

func numberedLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "line %d\n", i+1)
	}
	return b.String()
}

func TestReadWindows(t *testing.T) {
	b := newBench(t)
	b.put(t, "ten", numberedLines(10))
	b.put(t, "open", "a\nb")
	b.put(t, "crlf", "a\r\nb\r\n")
	b.put(t, "empty", "")
	b.put(t, "blank", "\n\n")
	b.put(t, "invalid", "a\xffb\n\xc3")
	b.put(t, "many", numberedLines(5000))
	b.put(t, "wide", "first\n"+strings.Repeat("w", tool.MaxBytes)+"\nlast\n")
	b.put(t, "wider", strings.Repeat("w", 300<<10)+"\nlast\n")
	for _, c := range []struct{ input, want string }{
		{`{"path":"ten"}`, strings.TrimSuffix(numberedLines(10), "\n")},
		{`{"path":"ten","offset":9}`, "line 9\nline 10"},
		{`{"path":"ten","offset":10,"limit":5}`, "line 10"},
		{`{"path":"ten","offset":2,"limit":2}`, "line 2\nline 3\n\n[Showing lines 2-3 of 10. Use offset=4 to continue.]"},
		{`{"path":"ten","limit":10}`, strings.TrimSuffix(numberedLines(10), "\n")},
		{`{"path":"open"}`, "a\nb"},
		{`{"path":"crlf"}`, "a\nb"},
		{`{"path":"empty"}`, "[The file is empty.]"},
		{`{"path":"blank"}`, "\n"},
		{`{"path":"invalid"}`, "a\uFFFDb\n\uFFFD"},
		{`{"path":"many"}`, strings.TrimSuffix(numberedLines(2000), "\n") + "\n\n[Showing lines 1-2000 of 5000. Use offset=2001 to continue.]"},
		{`{"path":"many","offset":4999}`, "line 4999\nline 5000"},
		{`{"path":"wide"}`, "first\n\n[Showing lines 1-1 of 3. Use offset=2 to continue.]"},
		{`{"path":"wide","offset":2}`, strings.Repeat("w", tool.MaxBytes) + "\n\n[Showing lines 2-2 of 3. Use offset=3 to continue.]"},
		{`{"path":"wider"}`, "[Line 1 alone is over the limit of 50.0 KiB. Use bash: sed -n 1p FILE | head -c 51200]"},
		{`{"path":"wider","offset":2}`, "last"},
	} {
		if got := b.good(t, "read", c.input).Text; got != c.want {
			t.Errorf("%s: got %.200q, want %.200q", c.input, got, c.want)
		}
	}
	b.bad(t, "read", `{"path":"ten","offset":11}`, "offset 11 is beyond the end of ten, which has 10 lines")
	b.bad(t, "read", `{"path":"empty","offset":2}`, "which has 0 lines")
}

// Reading page after page, as the notices say, gives every line of the file once.
func TestReadPagesGiveTheWholeFile(t *testing.T) {
	b := newBench(t)
	var want strings.Builder
	for i := range 9000 {
		fmt.Fprintf(&want, "%d %s\n", i, strings.Repeat("x", i%97))
	}
	b.put(t, "f", want.String())
	var got strings.Builder
	for offset := 1; ; {
		text, notice, more := strings.Cut(b.good(t, "read", in{"path": "f", "offset": offset}).Text, "\n\n[")
		got.WriteString(text + "\n")
		if !more {
			break
		}
		var first, last, total int
		if _, err := fmt.Sscanf(notice, "Showing lines %d-%d of %d. Use offset=%d", &first, &last, &total, &offset); err != nil {
			t.Fatalf("%s: %v", notice, err)
		}
	}
	if got.String() != want.String() {
		t.Error("the pages are not the file")
	}
}

func TestReadOfAHugeFileEndsWithItsContext(t *testing.T) {
	b := newBench(t)
	f, err := os.Create(filepath.Join(b.dir, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	head := strings.Repeat("some text\n", 10000)
	if _, err := f.WriteString(head); err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(40 << 30); err != nil { // sparse
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	// Its last line has no end in sight, and is given up with the context.
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	start := time.Now()
	if res := b.run(ctx, t, "read", `{"path":"huge","offset":9999}`); !res.IsError || !strings.HasPrefix(res.Text, "Aborted") {
		t.Errorf("got %.200q", res.Text)
	}
	if took := time.Since(start); took > 2*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestReadCountsOnlySoFar(t *testing.T) {
	b := newBench(t)
	b.put(t, "big", strings.Repeat("short\n", 3000))
	if err := os.Truncate(filepath.Join(b.dir, "big"), 300<<20); err != nil { // sparse
		t.Fatal(err)
	}
	if got := b.good(t, "read", `{"path":"big"}`).Text; !strings.Contains(got, "Showing lines 1-2000 of more than 3001.") {
		t.Errorf("got …%q", got[len(got)-100:])
	}
}
