package guard

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestKeptPathsSeeTheTokenThatWasChecked(t *testing.T) {
	g, token := newGuard(t)
	for path, kept := range map[string]bool{"/auth/own": true, "/auth/own/": false, "/auth": false, "/session": false, "/x?/auth/own": false} {
		for name, secret := range map[string]string{OwnClient: token.Reveal(), "laptop": laptopToken} {
			w := ask(g, secret, func(r *http.Request) { r.URL.Path, _, _ = strings.Cut(path, "?") })
			body := w.Body.String()
			if w.Code != http.StatusOK || strings.Contains(body, "Bearer "+secret) != kept || !strings.Contains(body, "client="+name) {
				t.Errorf("%s: status %d, kept %v", path, w.Code, strings.Contains(body, secret))
			}
		}
		w := ask(g, "wrong", func(r *http.Request) { r.URL.Path = path })
		if w.Code != http.StatusUnauthorized {
			t.Errorf("%s with a wrong token: %d", path, w.Code)
		}
	}
}

func TestNoPathIsOpenAndKept(t *testing.T) {
	token, _, err := LoadToken(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := New(Options{Port: 1, Token: token, Open: []string{"/a", "/b"}, Keep: []string{"/b"}}); err == nil {
		t.Error("the handler of /b would see tokens that nobody has checked")
	}
}

// nodeHeaders is what the fetch of node sends by itself. Its Sec-Fetch-Mode says cors, and there is
// no Origin.
var nodeHeaders = map[string]string{
	"Accept": "*/*", "Accept-Language": "*", "Sec-Fetch-Mode": "cors", "User-Agent": "node",
	"Accept-Encoding": "br, gzip, deflate", "Content-Type": "application/json",
}

// connectHeaders is what Connect clients of node send on a stream.
var connectHeaders = map[string]string{
	"Connect-Protocol-Version": "1", "Content-Type": "application/connect+proto", "Te": "trailers",
	"Connect-Accept-Encoding": "gzip,br", "User-Agent": "connect-es/1.6.1", "X-Ghost-Mode": "true",
}

func TestNodeClientsPass(t *testing.T) {
	_, token := newGuard(t)
	srv := httptest.NewUnstartedServer(nil)
	g, err := New(Options{Port: srv.Listener.Addr().(*net.TCPAddr).Port, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	srv.Config.Handler = g.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto)
		pass(w, r)
	}))
	srv.Config.Protocols = new(http.Protocols)
	srv.Config.Protocols.SetHTTP1(true)
	srv.Config.Protocols.SetUnencryptedHTTP2(true)
	srv.Start()
	defer srv.Close()
	for protocol, set := range map[string]func(*http.Protocols){
		"HTTP/1.1": func(p *http.Protocols) { p.SetHTTP1(true) },
		"HTTP/2.0": func(p *http.Protocols) { p.SetUnencryptedHTTP2(true) },
	} {
		transport := &http.Transport{Protocols: new(http.Protocols)}
		set(transport.Protocols)
		for _, headers := range []map[string]string{nodeHeaders, connectHeaders} {
			body := fetch(t, transport, srv.URL+"/agent.v1.AgentService/Run", token.Reveal(), headers)
			if !strings.Contains(body, protocol) || !strings.Contains(body, "client="+OwnClient) {
				t.Errorf("%s, %v: %s", protocol, headers, body)
			}
		}
		transport.CloseIdleConnections()
	}
}

func fetch(t *testing.T, transport http.RoundTripper, url, token string, headers map[string]string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	resp, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.Status + " " + string(body)
}
