package guard

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// logged serves a request behind an AccessLog and returns the records.
func logged(t *testing.T, h http.Handler, requests ...*http.Request) (records []map[string]any, text string) {
	t.Helper()
	var out strings.Builder
	h = AccessLog(slog.New(slog.NewJSONHandler(&out, nil)), h)
	for _, r := range requests {
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	for line := range strings.Lines(out.String()) {
		var rec map[string]any
		if err := json.Unmarshal([]byte(line), &rec); err != nil {
			t.Fatal(err)
		}
		records = append(records, rec)
	}
	return records, out.String()
}

func request(token, target string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, target, nil)
	r.Host = "localhost:7777"
	r.Header.Set("Authorization", "Bearer "+token)
	return r
}

func TestAccessLogNamesTheClientAndNoSecret(t *testing.T) {
	g, token := newGuard(t)
	secret := token.Reveal()
	records, text := logged(t, g.Handler(pass), request(laptopToken, "/a?token="+secret), request(secret+"x", "/b%0Afake?token="+secret))
	if strings.Contains(text, secret) || strings.Contains(text, laptopToken) {
		t.Errorf("the log has a token: %s", text)
	}
	if len(records) != 2 {
		t.Fatalf("%d records: %s", len(records), text)
	}
	if r := records[0]; r["client"] != "laptop" || r["path"] != "/a" || r["status"] != 200.0 || r["bytes"] == 0.0 || r["level"] != "INFO" {
		t.Errorf("accepted: %v", r)
	}
	if r := records[1]; r["client"] != nil || r["status"] != 401.0 || r["refused"] == nil || r["level"] != "WARN" {
		t.Errorf("refused: %v", r)
	}
}

func TestAccessLogIsNotFlooded(t *testing.T) {
	_, token := newGuard(t)
	g, err := New(Options{Port: 7777, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	var requests []*http.Request
	for range 200 {
		r := request("wrong", "/"+strings.Repeat("a", 5000))
		requests = append(requests, r)
		r = request("wrong", "/")
		r.Host = "evil.com"
		requests = append(requests, r)
	}
	records, text := logged(t, g.Handler(pass), requests...)
	if len(records) > burst+5 || len(text) > 30_000 {
		t.Errorf("%d records, %d bytes", len(records), len(text))
	}
}

func TestAccessLogAfterPanic(t *testing.T) {
	defer func() { _ = recover() }()
	var out strings.Builder
	defer func() {
		if !strings.Contains(out.String(), "path=/p") {
			t.Errorf("log %q", out.String())
		}
	}()
	h := AccessLog(slog.New(slog.NewTextHandler(&out, nil)), http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	h.ServeHTTP(httptest.NewRecorder(), request("", "/p"))
}

// Streams and WebSockets work through the log: flushes arrive, the connection can be taken.
func TestAccessLogKeepsStreaming(t *testing.T) {
	more := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("/stream", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "first\n")
		w.(http.Flusher).Flush()
		<-more
		_ = http.NewResponseController(w).Flush()
	})
	mux.HandleFunc("/take", func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n")
		_ = conn.Close()
	})
	records := make(chan string, 2)
	srv := httptest.NewServer(AccessLog(slog.New(slog.NewTextHandler(chanWriter(records), nil)), mux))
	defer srv.Close()

	resp, err := srv.Client().Get(srv.URL + "/stream")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || line != "first\n" {
		t.Errorf("%q %v", line, err) // would wait for ever without the flush
	}
	close(more)
	if r := <-records; !strings.Contains(r, "status=200 bytes=6") {
		t.Error(r)
	}

	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/take", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "x")
	taken, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Body.Close()
	if r := <-records; taken.StatusCode != 101 || !strings.Contains(r, "status=101") {
		t.Error(taken.StatusCode, r)
	}
}

type chanWriter chan string

func (c chanWriter) Write(p []byte) (int, error) {
	select {
	case c <- string(p):
		return len(p), nil
	default:
		return 0, errors.New("nobody reads")
	}
}
