package sse_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/provider/sse"
)

// read returns the events as "type|data" and the last error.
func read(r io.Reader) (events []string, err error) {
	for e, err := range sse.Events(r) {
		if err != nil {
			return events, err
		}
		events = append(events, e.Type+"|"+string(e.Data))
	}
	return events, nil
}

func TestEvents(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"one", "data: a\n\n", "|a"},
		{"no space after the colon", "data:a\n\n", "|a"},
		{"only one space is dropped", "data:  a\n\n", "| a"},
		{"types", "event: x\ndata: a\n\nevent: x\ndata: b\n\ndata: c\n\n", "x|a x|b |c"},
		{"the last type counts", "event: x\nevent: y\ndata: a\n\n", "y|a"},
		{"lines are joined", "data: a\ndata: b\ndata\n\n", "|a\nb\n"},
		{"empty data is data", "data\n\n", "|"},
		{"no data, no event", "event: x\n\nid: 7\n\n\n\ndata: a\n\n", "|a"},
		{"comments", ": hi\n:\ndata: a\n: there\n\n", "|a"},
		{"unknown fields", "foo: bar\nretry: 3\nid: 1\ndatax: 1\ndata: a\n\n", "|a"},
		{"cr", "data: a\r\rdata: b\r\r", "|a |b"},
		{"crlf", "data: a\r\n\r\ndata: b\r\n\r\n", "|a |b"},
		{"mixed", "data: a\r\n\ndata: b\n\r\ndata: c\r\n\r", "|a |b |c"},
		{"bom", "\xef\xbb\xbfdata: a\n\n", "|a"},
		{"only the first bom", "\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", "|b"},
		{"unfinished event", "data: a\n\ndata: b\n", "|a"},
		{"unfinished line", "data: a\n\ndata: b", "|a"},
		{"empty", "", ""},
		{"utf-8", "data: né 🌍\n\n", "|né 🌍"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for name, r := range map[string]io.Reader{
				"whole":    strings.NewReader(tc.in),
				"one byte": iotest.OneByteReader(strings.NewReader(tc.in)),
				"data+EOF": iotest.DataErrReader(strings.NewReader(tc.in)),
			} {
				got, err := read(r)
				if err != nil || strings.Join(got, " ") != tc.want {
					t.Errorf("%s: got %q, %v; want %q", name, got, err, tc.want)
				}
			}
		})
	}
}

func TestLimits(t *testing.T) {
	big := strings.Repeat("x", sse.MaxLine-100)
	got, err := read(strings.NewReader("data: " + big + "\n\ndata: b\n\n"))
	if err != nil || len(got) != 2 || len(got[0]) != len(big)+1 || got[1] != "|b" {
		t.Errorf("a line below the limit: %d events, %v", len(got), err)
	}
	for name, in := range map[string]string{
		"line":    "data: " + big + big + "\n\n",
		"event":   "data: " + big + "\ndata: " + big + "\n\n",
		"comment": ":" + big + big,
	} {
		if _, err := read(strings.NewReader(in)); !errors.Is(err, sse.ErrTooLong) {
			t.Errorf("%s over the limit: %v", name, err)
		}
	}
}

func TestReaderErrors(t *testing.T) {
	broken := errors.New("broken")
	got, err := read(io.MultiReader(strings.NewReader("data: a\n\ndata: b\n"), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := read(lazy{}); !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("a reader without progress: %v", err)
	}
}

type lazy struct{}

func (lazy) Read([]byte) (int, error) { return 0, nil }

func TestLeavingTheLoop(t *testing.T) {
	for e := range sse.Events(strings.NewReader("data: a\n\ndata: b\n\n")) {
		if string(e.Data) != "a" {
			t.Fatalf("went on after the break: %q", e.Data)
		}
		break
	}
}

// However the bytes are cut into reads, the events are the same.
func TestChunkingDoesNotMatter(t *testing.T) {
	piece := rapid.SampledFrom([]string{"data: a", "data", "event: x", ":", "\n", "\n", "\r", "\r\n", "\n\n", "é", "z: ", "\xff"})
	rapid.Check(t, func(t *rapid.T) {
		in := strings.Join(rapid.SliceOf(piece).Draw(t, "stream"), "")
		want, _ := read(strings.NewReader(in))
		got, _ := read(iotest.OneByteReader(strings.NewReader(in)))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%q: one by one %q, whole %q", in, got, want)
		}
	})
}

func FuzzSSE(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbfevent: a\r\ndata: b\rdata:c\n\n:x\n\n"))
	f.Add([]byte("data: {\"a\":1}\n\ndata: [DONE]\n\n"))
	f.Add([]byte("data\n\nevent\n\ndata: \xff\xfe\r\r\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		want, err := read(bytes.NewReader(in))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := read(iotest.HalfReader(bytes.NewReader(in)))
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("halves %q, whole %q", got, want)
		}
	})
}

func BenchmarkEvents(b *testing.B) {
	line := `data: {"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"token "},"finish_reason":null}]}` + "\n\n"
	stream := strings.Repeat(line, 1000)
	b.ReportAllocs()
	b.SetBytes(int64(len(line)))
	n := 0
	for n < b.N {
		for range sse.Events(strings.NewReader(stream)) {
			n++
		}
	}
}
