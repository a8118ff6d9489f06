package guard

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func contextWithLocal(t *testing.T, r *http.Request, addr string) context.Context {
	t.Helper()
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	return context.WithValue(r.Context(), http.LocalAddrContextKey, tcp)
}

func TestCheckListen(t *testing.T) {
	for addr, loopback := range map[string]bool{
		"127.0.0.1:7777": true, "localhost:0": true, "[::1]:7777": true, "127.9.9.9:1": true, "[::ffff:127.0.0.1]:1": true,
		":7777": false, "0.0.0.0:7777": false, "[::]:7777": false, "192.168.1.5:7777": false, "example.com:7777": false,
		"localhost.evil.com:1": false, "127.1:7777": false, "0:7777": false,
	} {
		if err := CheckListen(addr, false, false); (err == nil) != loopback {
			t.Errorf("%s: %v", addr, err)
		}
		if CheckListen(addr, true, false) != nil || CheckListen(addr, false, true) != nil {
			t.Errorf("%s is refused with TLS or the flag", addr)
		}
	}
	for _, addr := range []string{"", "127.0.0.1", "127.0.0.1:", "127.0.0.1:http", "127.0.0.1:70000", "::1:7777"} {
		if err := CheckListen(addr, true, true); err == nil {
			t.Errorf("%q was accepted", addr)
		}
	}
}

func TestLimitBody(t *testing.T) {
	var read int
	h := LimitBody(10, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		data, err := io.ReadAll(r.Body)
		read = len(data)
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		}
	}))
	for _, tc := range []struct {
		size     int
		declared bool
		want     int
		read     int
	}{{10, true, 200, 10}, {11, true, 413, 0}, {10, false, 200, 10}, {1 << 20, false, 413, 10}} {
		read = 0
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("a", tc.size)))
		if !tc.declared {
			r.ContentLength = -1
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tc.want || read != tc.read {
			t.Errorf("%+v: status %d, read %d", tc, w.Code, read)
		}
	}
}

func TestLimitBodyExceptions(t *testing.T) {
	var read int64
	h := LimitBody(10, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		read, _ = io.Copy(io.Discard, r.Body)
	}), "/upload", "/run/stream")
	for path, want := range map[string]int64{
		"/upload": 100, "/run/stream": 100,
		"/": 0, "/upload/": 0, "/upload/x": 0, "/run": 0, "/Upload": 0, "/x/upload": 0, "/upload?x=/run/stream": 100, "/x?/upload": 0,
	} {
		read = 0
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, path, strings.NewReader(strings.Repeat("a", 100))))
		if read != want || (w.Code == http.StatusOK) != (want == 100) {
			t.Errorf("%s: status %d, read %d, want %d", path, w.Code, read, want)
		}
	}
}

// Whatever the headers are, only the token opens the door, and only under our names.
func TestNoHeaderOpensTheDoor(t *testing.T) {
	g, token := newGuard(t)
	word := rapid.SampledFrom([]string{"", "null", "*", "127.0.0.1:7777", "localhost:7777", "http://127.0.0.1:7777", "http://localhost:7777", "evil.com", "pi.v1", "Bearer", "Bearer x", "websocket", "same-origin", "cross-site", ",", tokenPrefix})
	rapid.Check(t, func(rt *rapid.T) {
		host := word.Draw(rt, "host")
		w := ask(g, token.Reveal()[:rapid.IntRange(0, len(token.Reveal())-1).Draw(rt, "prefix")], func(r *http.Request) {
			r.Host = host
			for _, name := range []string{"Origin", "Sec-Fetch-Site", "Upgrade", protocolHeader, "Authorization"} {
				for range rapid.IntRange(0, 2).Draw(rt, "count") {
					r.Header.Add(name, word.Draw(rt, name))
				}
			}
		})
		if w.Code != 401 && w.Code != 403 {
			rt.Fatalf("status %d", w.Code)
		}
		if w.Code == 401 && host != "127.0.0.1:7777" && host != "localhost:7777" {
			rt.Fatalf("Host %q came as far as the token", host)
		}
	})
}

func FuzzHost(f *testing.F) {
	for _, s := range []string{"127.0.0.1:7777", "[::1]:7777", "evil.com:7777", "[", "]:", ":", "[::1%lo]:7777", "localhost:7777"} {
		f.Add(s, s)
	}
	g, token := newGuard(f)
	f.Fuzz(func(t *testing.T, host, origin string) {
		w := ask(g, token.Reveal(), func(r *http.Request) {
			r.Host = host
			r.Header["Origin"] = []string{origin}
		})
		if w.Code == 200 && origin != "https://app.example.com" && origin != "http://"+strings.ToLower(host) {
			t.Errorf("Host %q, Origin %q", host, origin)
		}
	})
}
