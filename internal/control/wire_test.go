package control_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/klauspost/compress/zstd"

	"github.com/roost-dev/roost/internal/control"
	"github.com/roost-dev/roost/internal/control/controltest"
)

// ask posts a body with headers.
func ask(t *testing.T, r *controltest.Rig, method string, body []byte, headers map[string]string) *http.Response {
	t.Helper()
	transport := &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return r.Dial(ctx) },
		DisableKeepAlives: true, DisableCompression: true,
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost"+control.Pattern+method, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// unpack returns what is in r.
func unpack(t *testing.T, encoding string, r io.Reader) []byte {
	t.Helper()
	var plain io.Reader
	var err error
	switch encoding {
	case "gzip":
		plain, err = gzip.NewReader(r)
	case "zstd":
		plain, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
	}
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(plain)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Large answers and large frames are compressed for clients that accept it.
func TestCompression(t *testing.T) {
	for _, encoding := range []string{"gzip", "zstd"} {
		t.Run(encoding, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				long := strings.Repeat("the same again, ", 4096)
				r := controltest.Start(t, nil, controltest.Says(long))
				id := r.Create()
				r.Prompt(id, "go")
				r.Idle(id)
				body := []byte(`{"sessionId":"` + id + `"}`)
				res := ask(t, r, "GetSession", body, map[string]string{"Content-Type": "application/json", "Accept-Encoding": encoding})
				defer func() { _ = res.Body.Close() }()
				small, err := io.ReadAll(res.Body)
				if err != nil || res.Header.Get("Content-Encoding") != encoding || len(small) > len(long)/10 {
					t.Fatalf("%d bytes for %d, encoding %q, %v", len(small), len(long), res.Header.Get("Content-Encoding"), err)
				}
				var answer map[string]any
				if err := json.Unmarshal(unpack(t, encoding, bytes.NewReader(small)), &answer); err != nil || answer["session"] == nil {
					t.Errorf("%v in %v", err, answer)
				}
				watch := ask(t, r, "Watch", append([]byte{0, 0, 0, 0, byte(len(body))}, body...),
					map[string]string{"Content-Type": "application/connect+json", "Connect-Accept-Encoding": encoding})
				defer func() { _ = watch.Body.Close() }()
				head := make([]byte, 5)
				if _, err := io.ReadFull(watch.Body, head); err != nil {
					t.Fatal(err)
				}
				size := binary.BigEndian.Uint32(head[1:])
				frame := unpack(t, encoding, io.LimitReader(watch.Body, int64(size)))
				if head[0]&1 == 0 || int(size) > len(long)/10 || !bytes.Contains(frame, []byte(long)) {
					t.Errorf("flags %d, %d bytes for a frame of %d", head[0], size, len(frame))
				}
			})
		})
	}
}

// A request that unpacks to far more than a request may have is refused, without room for all of it.
func TestCompressionBombs(t *testing.T) {
	for _, encoding := range []string{"gzip", "zstd"} {
		t.Run(encoding, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var bomb bytes.Buffer
				var w io.WriteCloser = gzip.NewWriter(&bomb)
				if encoding == "zstd" {
					var err error
					if w, err = zstd.NewWriter(&bomb, zstd.WithEncoderConcurrency(1)); err != nil {
						t.Fatal(err)
					}
				}
				piece := make([]byte, 1<<20)
				for range 64 {
					if _, err := w.Write(piece); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.Close(); err != nil {
					t.Fatal(err)
				}
				r := controltest.Start(t, nil)
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				res := ask(t, r, "GetSession", bomb.Bytes(), map[string]string{"Content-Type": "application/json", "Content-Encoding": encoding})
				runtime.ReadMemStats(&after)
				defer func() { _ = res.Body.Close() }()
				if res.StatusCode != http.StatusTooManyRequests { // Connect's word for resource_exhausted
					t.Errorf("%d bytes that unpack to 64 MiB: %s", bomb.Len(), res.Status)
				}
				if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
					t.Errorf("the request took %d bytes of memory", took)
				}
			})
		})
	}
}

// A client that is too slow learns that it was reset, and so does the log of the server.
func TestSlowWatcherIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		big := strings.Repeat("x", 60<<10)
		r := controltest.Start(t, func(o *control.Options) { o.Logger = slog.New(slog.NewTextHandler(&log, nil)) },
			controltest.Says(strings.Split(strings.Repeat(big+" ", 20), " ")...))
		id := r.Create()
		body := []byte(`{"sessionId":"` + id + `"}`)
		res := ask(t, r, "Watch", append([]byte{0, 0, 0, 0, byte(len(body))}, body...), map[string]string{"Content-Type": "application/connect+json"})
		defer func() { _ = res.Body.Close() }()
		r.Prompt(id, "go")
		r.Idle(id) // nothing has been read yet
		var slow bytes.Buffer
		for !bytes.Contains(slow.Bytes(), []byte("RESET_REASON_SLOW")) {
			if _, err := io.CopyN(&slow, res.Body, 100); err != nil {
				t.Fatalf("%v after %d bytes", err, slow.Len())
			}
		}
		synctest.Wait()
		if !strings.Contains(log.String(), "too slow") || !strings.Contains(log.String(), "session="+id) {
			t.Errorf("the log has %q", log.String())
		}
	})
}
