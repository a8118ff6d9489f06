package mcptool_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/mcptool"
)

// listen serves h for the test.
func listen(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return srv
}

func httpServer(url string) mcptool.Server {
	return mcptool.Server{Name: "web", URL: url, Timeout: 10 * time.Second, StartTimeout: 10 * time.Second}
}

func streamable(t *testing.T, opts *mcp.StreamableHTTPOptions) http.Handler {
	t.Helper()
	s := goodServer()
	t.Cleanup(func() {
		for session := range s.Sessions() {
			_ = session.Close()
		}
	})
	return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, opts)
}

func TestToolsOverHTTP(t *testing.T) {
	for name, opts := range map[string]*mcp.StreamableHTTPOptions{
		"streams": nil, "JSON": {JSONResponse: true}, "stateless": {Stateless: true},
	} {
		t.Run(name, func(t *testing.T) {
			var wrong atomic.Int64
			h := streamable(t, opts)
			srv := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get("X-Key") != "hunter2" {
					wrong.Add(1)
				}
				h.ServeHTTP(w, r)
			}))
			s := httpServer(srv.URL + "/mcp?team=a")
			s.Headers = http.Header{"X-Key": {"hunter2"}}
			m := manager(t, s)
			if res := run(t, find(t, m, "mcp__web__echo"), `{"text":"x"}`); res.IsError || res.Text != "said x" {
				t.Errorf("%+v", res)
			}
			if res := run(t, find(t, m, "mcp_read_resource"), `{"server":"web","uri":"test://one"}`); res.IsError {
				t.Errorf("%+v", res)
			}
			if n := wrong.Load(); n > 0 {
				t.Errorf("%d requests without the header", n)
			}
		})
	}
}

func TestHTTPChangedToolsAndProgress(t *testing.T) {
	m := manager(t, httpServer(listen(t, streamable(t, nil)).URL))
	changed := m.Changed()
	grow := find(t, m, "mcp__web__grow")
	<-changed // its first tools
	changed = m.Changed()
	if res := run(t, grow, `{"text":"more"}`); res.IsError {
		t.Fatalf("%+v", res)
	}
	select {
	case <-changed:
	case <-time.After(5 * time.Second):
		t.Fatal("no change was told")
	}
	find(t, m, "mcp__web__more")

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var shown tool.Progress
	wait := find(t, m, "mcp__web__wait")
	within(t, 5*time.Second, func() {
		res := wait.Run(ctx, tool.Call{Input: []byte(`{"text":"/dev/null"}`)}, func(p tool.Progress) { shown = p; cancel() })
		if !res.IsError {
			t.Errorf("%+v", res)
		}
	})
	if shown.Text != "half way (3 of 10)" {
		t.Errorf("progress %+v", shown)
	}
}

// A server that has forgotten the session, as after its restart, is greeted again.
func TestHTTPServerRestarts(t *testing.T) {
	var current atomic.Value
	current.Store(streamable(t, nil))
	srv := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { current.Load().(http.Handler).ServeHTTP(w, r) }))
	m := manager(t, httpServer(srv.URL))
	echo := find(t, m, "mcp__web__echo")
	current.Store(streamable(t, nil))
	if res := run(t, echo, `{"text":"x"}`); res.IsError || res.Text != "said x" {
		t.Errorf("%+v", res)
	}
}

// Redirects away from the configured address are refused, and nothing is sent there.
func TestRedirectsElsewhere(t *testing.T) {
	var reached atomic.Int64
	other := listen(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Add(1) }))
	srv := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/x?secret", http.StatusTemporaryRedirect)
	}))
	s := httpServer(srv.URL)
	s.Headers = http.Header{"Authorization": {"Bearer hunter2"}}
	_, problems := manager(t, s).Tools(t.Context())
	if len(problems) != 1 || !strings.Contains(problems[0].Err.Error(), "not followed") || !strings.Contains(problems[0].Err.Error(), other.URL) ||
		strings.Contains(problems[0].Err.Error(), "secret") {
		t.Errorf("problems %v", problems)
	}
	if reached.Load() != 0 {
		t.Error("the other server was reached")
	}
}

// Within its own address a server may send elsewhere, and gets its headers there.
func TestRedirectsWithin(t *testing.T) {
	h := streamable(t, nil)
	srv := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/old" {
			http.Redirect(w, r, "/new", http.StatusPermanentRedirect)
			return
		}
		h.ServeHTTP(w, r)
	}))
	find(t, manager(t, httpServer(srv.URL+"/old")), "mcp__web__echo")
}

// answers plays a server by hand: what it does for each method.
func answers(hello, list, call func(w http.ResponseWriter, r *http.Request)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		switch bodyMethod(r) {
		case "initialize":
			hello(w, r)
		case "tools/list":
			list(w, r)
		case "tools/call":
			call(w, r)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func flood(kind, text string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		text := []byte(strings.Repeat(text, 1000))
		for {
			if _, err := w.Write(text); err != nil {
				return
			}
		}
	}
}

func TestHTTPFaults(t *testing.T) {
	const timeout = 1500 * time.Millisecond
	fine := func(result string) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, bodyID(r), result)
		}
	}
	status := func(code int) func(http.ResponseWriter, *http.Request) {
		return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no \x1b[31m", code) }
	}
	const sse = "text/event-stream"
	for _, c := range []struct {
		name  string
		fault func(http.ResponseWriter, *http.Request)
	}{
		{"hang", hang},
		{"500", status(500)},
		{"404", status(404)},
		{"401", status(401)},
		{"HTML", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }},
		{"garbage", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, "{{{")
		}},
		{"endless JSON", flood("application/json", "[")},
		{"endless event", flood(sse, "data: x")},
		{"endless events", flood(sse, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n")},
		{"endless comments", flood(sse, ": x\n\n")},
		{"endless answer of 500", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(500); flood("text/plain", "x")(w, r) }},
		{"end without answer", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Type", sse) }},
	} {
		for phase := range 3 {
			t.Run(fmt.Sprint(c.name, " in phase ", phase), func(t *testing.T) {
				t.Parallel()
				handlers := []func(http.ResponseWriter, *http.Request){fine(helloResult), fine(listResult), fine(callAnswer)}
				handlers[phase] = c.fault
				s := httpServer(listen(t, answers(handlers[0], handlers[1], handlers[2])).URL)
				if phase < 2 {
					s.StartTimeout = timeout
				} else {
					s.Timeout = timeout
				}
				m := manager(t, s)
				within(t, 15*time.Second, func() {
					if phase < 2 {
						if _, problems := m.Tools(t.Context()); len(problems) != 1 || strings.Contains(problems[0].Err.Error(), "\x1b") {
							t.Errorf("problems %v", problems)
						}
						return
					}
					if res := run(t, find(t, m, "mcp__web__go"), "{}"); !res.IsError || res.Text == "" {
						t.Errorf("%+v", res)
					}
				})
			})
		}
	}
}

// A server that never answers the request for its notices is one without notices.
func TestHTTPServerWithoutNotices(t *testing.T) {
	h := streamable(t, nil)
	srv := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			hang(w, r)
			return
		}
		h.ServeHTTP(w, r)
	}))
	m := manager(t, httpServer(srv.URL))
	if res := run(t, find(t, m, "mcp__web__echo"), `{"text":"x"}`); res.Text != "said x" {
		t.Errorf("%+v", res)
	}
}

// Several servers are started at once, so that a slow one costs its own time only.
func TestServersStartAtOnce(t *testing.T) {
	var (
		mu      sync.Mutex
		waiting int
		all     = make(chan struct{})
	)
	h := streamable(t, nil)
	srv := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if bodyMethod(r) == "initialize" {
			mu.Lock()
			if waiting++; waiting == 3 {
				close(all)
			}
			mu.Unlock()
			select {
			case <-all:
			case <-r.Context().Done():
			}
		}
		h.ServeHTTP(w, r)
	}))
	var servers []mcptool.Server
	for _, name := range []string{"a", "b", "c"} {
		s := httpServer(srv.URL)
		s.Name = name
		servers = append(servers, s)
	}
	tools, problems := manager(t, servers...).Tools(t.Context())
	if len(problems) != 0 || !slices.ContainsFunc(tools, func(tl tool.Tool) bool { return tl.Spec().Name == "mcp__c__echo" }) {
		t.Errorf("%d tools, problems %v", len(tools), problems)
	}
}
