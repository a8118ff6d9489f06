package piwire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"
)

func frame(tb testing.TB, payload string) []byte {
	tb.Helper()
	b, err := AppendFrame(nil, []byte(payload), FromClient, MaxFrame)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func TestAppendFrame(t *testing.T) {
	if got := frame(t, "abc"); string(got) != "\x00\x00\x00\x03abc" {
		t.Errorf("got %q", got)
	}
	if got := frame(t, ""); string(got) != "\x00\x00\x00\x00" {
		t.Errorf("got %q", got)
	}
	dst := []byte("kept")
	if got, err := AppendFrame(dst, []byte("abcd"), FromClient, 4); err != nil || string(got) != "kept\x00\x00\x00\x04abcd" {
		t.Errorf("at the limit: %q, %v", got, err)
	}
	got, err := AppendFrame(dst, []byte("abcd"), FromClient, 3)
	if err == nil || string(got) != "kept" {
		t.Errorf("above the limit: %q, %v", got, err)
	}
}

func TestFrameLimitAtFourthHeaderByte(t *testing.T) {
	pr, pw := io.Pipe() // blocks: nothing but the header can have been read
	go func() { _, _ = pw.Write([]byte{0, 0, 0, 4}) }()
	r := NewFrameReader(pr, FromServer, 3)
	_, err := r.Next()
	const want = "Invalid server protocol frame: Frame length 4 exceeds configured limit of 3"
	if err == nil || err.Error() != want {
		t.Fatalf("got %v", err)
	}
	if _, again := r.Next(); !errors.Is(again, err) {
		t.Errorf("goes on: %v", again)
	}
	for _, limit := range []uint32{0, 3} {
		r := NewFrameReader(bytes.NewReader(make([]byte, headerSize)), FromServer, limit)
		if p, err := r.Next(); err != nil || len(p) != 0 {
			t.Errorf("empty frame with limit %d: %q, %v", limit, p, err)
		}
	}
}

func TestFrameReaderDoesNotTrustLength(t *testing.T) {
	src := io.MultiReader(strings.NewReader("\x01\x00\x00\x00"+strings.Repeat("x", 100_000)), iotest.ErrReader(io.ErrClosedPipe))
	r := NewFrameReader(src, FromClient, MaxFrame)
	if _, err := r.next(); !errors.Is(err, io.ErrClosedPipe) {
		t.Fatalf("got %v", err)
	}
	if len(r.buf) > 2*100_000 {
		t.Errorf("%d bytes kept for 100,000 that came", len(r.buf))
	}
}

func TestFrameReaderReleasesLargeBuffer(t *testing.T) {
	stream := append(frame(t, strings.Repeat("x", 300_000)), frame(t, "y")...)
	r := NewFrameReader(bytes.NewReader(stream), FromClient, MaxFrame)
	for _, want := range []int{300_000, 1} {
		if p, err := r.Next(); err != nil || len(p) != want {
			t.Fatalf("%d bytes, %v", len(p), err)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) || r.buf != nil {
		t.Errorf("%v, %d bytes kept", err, len(r.buf))
	}
}

func TestFrameReaderEnds(t *testing.T) {
	tests := []struct {
		name string
		src  io.Reader
		want error
	}{
		{"between frames", strings.NewReader(""), io.EOF},
		{"in a header", strings.NewReader("\x00\x00"), io.ErrUnexpectedEOF},
		{"in a payload", strings.NewReader("\x00\x00\x00\x02x"), io.ErrUnexpectedEOF},
		{"source fails", iotest.ErrReader(io.ErrClosedPipe), io.ErrClosedPipe},
		{"source stalls", stalled{}, io.ErrNoProgress},
	}
	for _, tt := range tests {
		r := NewFrameReader(tt.src, FromClient, MaxFrame)
		for range 2 {
			if _, err := r.Next(); !errors.Is(err, tt.want) {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
	}
}

type stalled struct{}

func (stalled) Read([]byte) (int, error) { return 0, nil }

// chunked hands out a stream in pieces of given sizes.
type chunked struct {
	rest  []byte
	sizes []int
}

func (c *chunked) Read(p []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := len(c.rest)
	if len(c.sizes) > 0 {
		n, c.sizes = c.sizes[0], c.sizes[1:]
	}
	n = copy(p, c.rest[:min(n, len(c.rest))])
	c.rest = c.rest[n:]
	return n, nil
}

func TestFramesSurviveAnySplit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 40), rapid.IntRange(4000, 200_000)), 1, 6).Draw(t, "payloads")
		var stream []byte
		var payloads [][]byte
		for i, n := range sizes {
			p := bytes.Repeat([]byte{byte('a' + i)}, n)
			payloads = append(payloads, p)
			stream, _ = AppendFrame(stream, p, FromClient, MaxFrame)
		}
		cuts := rapid.SliceOfN(rapid.OneOf(rapid.IntRange(0, 9), rapid.IntRange(0, 70_000)), 0, 50).Draw(t, "chunks")
		r := NewFrameReader(&chunked{stream, cuts}, FromClient, MaxFrame)
		for i, want := range payloads {
			if got, err := r.Next(); err != nil || !bytes.Equal(got, want) {
				t.Fatalf("frame %d: %d bytes, %v; want %d", i, len(got), err, len(want))
			}
		}
		if _, err := r.Next(); !errors.Is(err, io.EOF) {
			t.Fatalf("at the end: %v", err)
		}
	})
}

func TestGoodMessagesBeforeABadOneAreDelivered(t *testing.T) {
	for _, v := range vectors(t, "negative") {
		if v.Name != "frame-second-bad" {
			continue
		}
		got, err := readAll(t, v.Kind, bytes.NewReader(v.stream(t)))
		if len(got) != 1 || err == nil || err.Error() != v.Error {
			t.Errorf("%d messages, %v", len(got), err)
		}
	}
}
