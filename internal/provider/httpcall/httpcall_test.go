package httpcall_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/provider/httpcall"
	"github.com/roost-dev/roost/internal/provider/sse"
	"github.com/roost-dev/roost/internal/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// lines is a decoder for tests: "stop" and "over" say so, "ping" is no sign of life, and
// everything else is text.
type lines struct{}

func (lines) Decode(e sse.Event, parts []provider.Part) ([]provider.Part, httpcall.Progress, error) {
	switch s := string(e.Data); s {
	case "stop":
		return parts, httpcall.Stopped, nil
	case "over":
		return parts, httpcall.Over, nil
	case "ping":
		return parts, httpcall.Open, nil
	case "bad":
		return parts, httpcall.Open, provider.Errorf(provider.FaultProtocol, "bad")
	default:
		return append(parts, provider.Part{Kind: provider.TextDelta, Text: s}), httpcall.Open, nil
	}
}

func (lines) End(parts []provider.Part) []provider.Part {
	return append(parts, provider.Part{Kind: provider.Finish, Stop: session.StopEnd})
}

const key = "sk-very-secret-key"

func header(key string) http.Header { return http.Header{"Authorization": {"Bearer " + key}} }

// serve starts a server and returns a client of it; pooled connections end with the test.
func serve(t *testing.T, o httpcall.Options, h http.HandlerFunc) *httpcall.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	if o.BaseURL == "" {
		o.BaseURL = srv.URL
	}
	o.BaseURL = strings.Replace(o.BaseURL, "SERVER", srv.URL, 1)
	o.Name = "acme"
	if o.Key == nil {
		o.Key = func(context.Context) (string, error) { return key + "\n", nil }
	}
	o.HTTP = httpcall.NewHTTP()
	t.Cleanup(o.HTTP.CloseIdleConnections)
	return httpcall.New(o, "/chat")
}

// read makes a call and returns its text, whether it finished, and its error.
func read(ctx context.Context, c *httpcall.Client) (text string, finished bool, err error) {
	for p, err := range c.Stream(ctx, httpcall.Call{Body: []byte(`{}`), Header: header, Decoder: lines{}}) {
		if err != nil {
			return text, finished, err
		}
		text += p.Text
		finished = p.Kind == provider.Finish
	}
	return text, finished, nil
}

func send(w http.ResponseWriter, events ...string) {
	for _, e := range events {
		fmt.Fprintf(w, "data: %s\n\n", e)
	}
	_ = http.NewResponseController(w).Flush()
}

func fault(t *testing.T, err error) *provider.Error {
	t.Helper()
	f, ok := errors.AsType[*provider.Error](err)
	if !ok {
		t.Fatalf("%v is no provider error", err)
	}
	if strings.Contains(f.Message, key) {
		t.Errorf("the key is in %q", f.Message)
	}
	if !strings.HasPrefix(f.Message, "acme: ") {
		t.Errorf("the provider is not named in %q", f.Message)
	}
	return f
}

func TestAnswer(t *testing.T) {
	c := serve(t, httpcall.Options{Headers: map[string]string{"X-Extra": "1"}}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer "+key || r.Header.Get("X-Extra") != "1" || string(body) != "{}" || len(r.Header.Values("Idempotency-Key")) != 0 {
			t.Errorf("request %v %q", r.Header, body)
		}
		send(w, "a", "b", "stop", "over")
	})
	if text, ok, err := read(t.Context(), c); text != "ab" || !ok || err != nil {
		t.Errorf("%q %v %v", text, ok, err)
	}
}

func TestEnds(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events []string
		ok     bool
		fault  provider.Fault
	}{
		{"over", []string{"a", "over"}, true, 0},
		{"stop, then the end", []string{"a", "stop"}, true, 0},
		{"just the end", []string{"a"}, false, provider.FaultNetwork},
		{"nothing at all", nil, false, provider.FaultNetwork},
		{"malformed", []string{"a", "bad"}, false, provider.FaultProtocol},
		{"huge", []string{"a", strings.Repeat("x", sse.MaxLine+1)}, false, provider.FaultProtocol},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := serve(t, httpcall.Options{}, func(w http.ResponseWriter, _ *http.Request) { send(w, tc.events...) })
			_, ok, err := read(t.Context(), c)
			if ok != tc.ok || !ok && fault(t, err).Fault != tc.fault {
				t.Errorf("%v, %v", ok, err)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	for _, tc := range []struct {
		name    string
		status  int
		head    map[string]string
		body    string
		fault   provider.Fault
		message string
		after   time.Duration
	}{
		{"openai", 429, map[string]string{"Retry-After": "7"}, `{"error":{"message":"slow\ndown","code":"rate_limit_exceeded"}}`, provider.FaultRateLimit, "acme: slow down (status 429)", 7 * time.Second},
		{"milliseconds win", 503, map[string]string{"Retry-After": "7", "Retry-After-Ms": "1500"}, `{}`, provider.FaultOverload, "acme: Service Unavailable (status 503)", 1500 * time.Millisecond},
		{"a date", 429, map[string]string{"Retry-After": "Mon, 02 Jan 2006 15:04:35 GMT", "Date": "Mon, 02 Jan 2006 15:04:05 GMT"}, ``, provider.FaultRateLimit, "acme: Too Many Requests (status 429)", 30 * time.Second},
		{"nonsense", 429, map[string]string{"Retry-After": "NaN"}, `x`, provider.FaultRateLimit, "acme: x (status 429)", 0},
		{"negative", 429, map[string]string{"Retry-After": "-5"}, `x`, provider.FaultRateLimit, "acme: x (status 429)", 0},
		{"anthropic", 529, nil, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, provider.FaultOverload, "acme: Overloaded (status 529)", 0},
		{"a string", 400, nil, `{"error":"prompt is too long"}`, provider.FaultContext, "acme: prompt is too long (status 400)", 0},
		{"a list", 400, nil, `[{"error":{"message":"bad","status":"INVALID"}}]`, provider.FaultRequest, "acme: bad (status 400)", 0},
		{"detail", 422, nil, `{"detail":"no such field"}`, provider.FaultRequest, "acme: no such field (status 422)", 0},
		{"the key is echoed", 401, nil, `{"error":{"message":"wrong key ` + key + `"}}`, provider.FaultAuth, "acme: wrong key [redacted] (status 401)", 0},
		{"a page", 502, map[string]string{"Content-Type": "text/html"}, `<html>`, provider.FaultOverload, "acme: Bad Gateway (status 502)", 0},
		{"an error that is called fine", 200, map[string]string{"Content-Type": "application/json"}, `{"error":{"message":"quota","code":"insufficient_quota"}}`, provider.FaultAuth, "acme: quota", 0},
		{"no stream", 200, map[string]string{"Content-Type": "application/json"}, `{"choices":[]}`, provider.FaultProtocol, "acme: it answered with application/json instead of an event stream; check the base URL", 0},
		{"a page that is called fine", 200, map[string]string{"Content-Type": "text/html"}, `<html>`, provider.FaultProtocol, "acme: it answered with text/html instead of an event stream; check the base URL", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := serve(t, httpcall.Options{}, func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range tc.head {
					w.Header().Set(k, v)
				}
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			})
			_, _, err := read(t.Context(), c)
			f := fault(t, err)
			if f.Fault != tc.fault || f.Message != tc.message || f.RetryAfter != tc.after || f.Status != tc.status && f.Status != 0 {
				t.Errorf("got %+v", f)
			}
		})
	}
}

func TestLongRefusalIsCut(t *testing.T) {
	c := serve(t, httpcall.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, strings.Repeat("ü\x00\xff ", 1<<20))
	})
	_, _, err := read(t.Context(), c)
	if f := fault(t, err); len(f.Message) > 3000 || strings.ContainsRune(f.Message, 0) {
		t.Errorf("%d bytes", len(f.Message))
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := serve(t, httpcall.Options{}, func(w http.ResponseWriter, r *http.Request) {
		send(w, "a")
		<-r.Context().Done()
	})
	for _, err := range c.Stream(ctx, httpcall.Call{Header: header, Decoder: lines{}}) {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			return
		}
		cancel()
	}
	t.Error("the stream ended without an error")
}

func TestLeavingTheLoopClosesTheConnection(t *testing.T) {
	gone := make(chan struct{})
	c := serve(t, httpcall.Options{}, func(w http.ResponseWriter, r *http.Request) {
		send(w, "a")
		<-r.Context().Done()
		close(gone)
	})
	for range c.Stream(t.Context(), httpcall.Call{Header: header, Decoder: lines{}}) {
		break
	}
	<-gone
}

func TestBothFormsOfTheBaseURL(t *testing.T) {
	for base, want := range map[string]string{
		"SERVER":              "/v1/chat",
		"SERVER/":             "/v1/chat",
		"SERVER/v1":           "/v1/chat",
		"SERVER/v1/":          "/v1/chat",
		"SERVER/v1/chat":      "/v1/chat",
		"SERVER/api":          "/api/chat",
		"SERVER/api/v1":       "/api/chat",
		"SERVER/paas/v4":      "/paas/v4/chat",
		"SERVER/v1beta/x?q=1": "/v1beta/x/chat?q=1",
	} {
		t.Run(base, func(t *testing.T) {
			var asked atomic.Int32
			c := serve(t, httpcall.Options{BaseURL: base}, func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				if r.URL.RequestURI() != want {
					http.NotFound(w, r)
					return
				}
				send(w, "a", "over")
			})
			for range 3 {
				if _, ok, err := read(t.Context(), c); !ok {
					t.Fatal(err)
				}
			}
			if n := asked.Load(); n > 4 {
				t.Errorf("%d requests for three answers: the form is not remembered", n)
			}
		})
	}
	c := serve(t, httpcall.Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"error":{"message":"no %s"}}`, r.URL.Path)
	})
	if _, _, err := read(t.Context(), c); fault(t, err).Message != "acme: no /v1/chat (status 404)" {
		t.Errorf("neither form: %v", err)
	}
}

func TestBadBaseURL(t *testing.T) {
	for _, base := range []string{" ", "host/v1", "ftp://host", "http://", "http://%zz"} {
		c := serve(t, httpcall.Options{BaseURL: base}, func(http.ResponseWriter, *http.Request) { t.Error("asked") })
		if _, _, err := read(t.Context(), c); fault(t, err).Fault != provider.FaultRequest {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func TestRedirects(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("another host was asked") }))
	defer other.Close()
	c := serve(t, httpcall.Options{}, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/v1/chat", http.StatusTemporaryRedirect)
	})
	if _, _, err := read(t.Context(), c); fault(t, err).Fault != provider.FaultRequest {
		t.Errorf("to another host: %v", err)
	}
	c = serve(t, httpcall.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/chat" {
			http.Redirect(w, r, "/here", http.StatusTemporaryRedirect)
			return
		}
		send(w, "a", "over")
	})
	if text, ok, err := read(t.Context(), c); text != "a" || !ok {
		t.Errorf("within the host: %v", err)
	}
	c = serve(t, httpcall.Options{}, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/here", http.StatusFound) })
	if _, _, err := read(t.Context(), c); fault(t, err).Fault != provider.FaultRequest {
		t.Errorf("that loses the body: %v", err)
	}
}

func TestKeyErrors(t *testing.T) {
	c := serve(t, httpcall.Options{Key: func(context.Context) (string, error) { return "", errors.New("no such file") }},
		func(http.ResponseWriter, *http.Request) { t.Error("asked without a key") })
	if _, _, err := read(t.Context(), c); fault(t, err).Fault != provider.FaultAuth {
		t.Errorf("got %v", err)
	}
	c = serve(t, httpcall.Options{Key: func(context.Context) (string, error) { return key + "\n\x01" + key, nil }},
		func(http.ResponseWriter, *http.Request) { t.Error("asked with a malformed key") })
	if _, _, err := read(t.Context(), c); fault(t, err) == nil {
		t.Error("no error")
	}
}

func TestNobodyThere(t *testing.T) {
	c := httpcall.New(httpcall.Options{Name: "acme", BaseURL: "http://user:" + key + "@127.0.0.1:1/v1?key=" + key}, "/chat")
	_, _, err := read(t.Context(), c)
	if fault(t, err).Fault != provider.FaultNetwork {
		t.Errorf("got %v", err)
	}
}

// A pooled connection that died while it was idle must not cost a pass, although the
// request is a POST.
func TestDeadPooledConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for n := 0; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			answerOnce(conn)
		}
	}()
	h := httpcall.NewHTTP()
	c := httpcall.New(httpcall.Options{Name: "acme", BaseURL: "http://" + l.Addr().String(), HTTP: h}, "/chat")
	for n := range 3 {
		if _, ok, err := read(t.Context(), c); !ok {
			t.Errorf("request %d: %v", n+1, err)
		}
	}
	h.CloseIdleConnections()
	_ = l.Close()
	<-done
}

// answerOnce answers the first request on a connection as if it could be used again, and
// breaks the connection when a second one arrives.
func answerOnce(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	buf := make([]byte, 4096)
	if _, err := conn.Read(buf); err != nil {
		return
	}
	body := "data: over\n\n"
	fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	_, _ = conn.Read(buf)
}

// Connections go back to the pool after an answer.
func TestConnectionsAreReused(t *testing.T) {
	ports := make(map[string]bool)
	c := serve(t, httpcall.Options{}, func(w http.ResponseWriter, r *http.Request) {
		ports[r.RemoteAddr] = true
		send(w, "a", "over")
	})
	for range 5 {
		if _, ok, err := read(t.Context(), c); !ok {
			t.Fatal(err)
		}
	}
	if len(ports) != 1 {
		t.Errorf("%d connections for five answers in a row", len(ports))
	}
}

// The proxy variables are read once per process, so this needs a process of its own.
func TestProxy(t *testing.T) {
	if os.Getenv("ROOST_TEST_PROXY") != "" {
		proxy := httpcall.NewHTTP().Transport.(*http.Transport).Proxy
		for _, host := range []string{"127.0.0.1:80", "localhost:1234", "[::1]:80", "example.com"} {
			u, err := proxy(httptest.NewRequest(http.MethodPost, "http://"+host+"/v1", nil))
			fmt.Println("via", host, u, err)
		}
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestProxy$", "-test.v")
	cmd.Env = append(os.Environ(), "ROOST_TEST_PROXY=1", "HTTP_PROXY=http://proxy:3128", "NO_PROXY=", "no_proxy=")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, want := range []string{"via 127.0.0.1:80 <nil>", "via localhost:1234 <nil>", "via [::1]:80 <nil>", "via example.com http://proxy:3128"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in %s", want, out)
		}
	}
}
