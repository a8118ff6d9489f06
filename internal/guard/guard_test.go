package guard

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const laptopToken = "laptop-token"

// newGuard returns a guard on port 7777 that also knows a laptop, a host and an origin.
func newGuard(t testing.TB) (*Guard, Token) {
	t.Helper()
	token, _, err := LoadToken(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(0, 0)
	g, err := New(Options{
		Port:    7777,
		Keep:    []string{"/auth/own"},
		Token:   token,
		Clients: []Client{{"laptop", sha256.Sum256([]byte(laptopToken))}},
		Hosts:   []string{"roost.example.com", "proxy.example.com:8443"},
		Origins: []string{"https://app.example.com"},
		Open:    []string{"/healthz"},
		Now:     func() time.Time { at = at.Add(time.Hour); return at }, // no test meets the limit by accident
	})
	if err != nil {
		t.Fatal(err)
	}
	return g, token
}

// pass answers with what a front end would see.
var pass = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "client=%s authorization=%q protocols=%q", ClientName(r.Context()), r.Header.Values("Authorization"), r.Header.Values(protocolHeader))
})

// ask sends a request with a valid token to a guard, changed by edit.
func ask(g *Guard, token string, edit func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "/session", nil)
	r.Host = "127.0.0.1:7777"
	r.Header.Set("Authorization", "Bearer "+token)
	edit(r)
	w := httptest.NewRecorder()
	g.Handler(pass).ServeHTTP(w, r)
	return w
}

func TestHost(t *testing.T) {
	g, token := newGuard(t)
	for host, want := range map[string]int{
		"127.0.0.1:7777":          200,
		"localhost:7777":          200,
		"LOCALHOST:7777":          200,
		"[::1]:7777":              200,
		"[0:0:0:0:0:0:0:1]:7777":  200,
		"[::ffff:127.0.0.1]:7777": 200,
		"127.8.9.1:7777":          200,
		"roost.example.com":       200,
		"roost.example.com:1":     200,
		"proxy.example.com:8443":  200,

		"":                        403, // missing
		"evil.com":                403, // DNS rebinding
		"evil.com:7777":           403,
		"127.0.0.1.evil.com:7777": 403,
		"localhost.evil.com:7777": 403,
		"localhost.:7777":         403,
		"a.localhost:7777":        403,
		"localhost@evil.com:7777": 403,
		"127.0.0.1:7778":          403, // another server's port
		"127.0.0.1":               403, // port 80
		"localhost":               403,
		"127.0.0.1:":              403,
		"127.0.0.1:07777":         403,
		"127.0.0.1:7777:7777":     403,
		":7777":                   403,
		"0.0.0.0:7777":            403, // reaches loopback in some browsers
		"[::]:7777":               403,
		"192.168.1.5:7777":        403,
		"2130706433:7777":         403, // 127.0.0.1 as one number
		"127.1:7777":              403,
		"0x7f.0.0.1:7777":         403,
		"0177.0.0.1:7777":         403,
		"::1:7777":                403,
		"[::1%25lo]:7777":         403,
		"[::1]evil:7777":          403,
		"[127.0.0.1]:7777":        403,
		"[::1":                    403,
		"proxy.example.com":       403,
		"proxy.example.com:9":     403,
		"xroost.example.com":      403,
		"roost.example.com.":      403,
		"\t127.0.0.1:7777":        403,
	} {
		w := ask(g, token.Reveal(), func(r *http.Request) { r.Host = host })
		if w.Code != want {
			t.Errorf("Host %q: %d, want %d", host, w.Code, want)
		}
		if evil := "evil"; w.Code == 403 && strings.Contains(w.Body.String(), evil) {
			t.Errorf("Host %q is reflected", host)
		}
	}
}

func TestHostDefaultPortAndOwnAddress(t *testing.T) {
	_, token := newGuard(t)
	g, err := New(Options{Port: 443, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		host  string
		tls   bool
		local string
		want  int
	}{
		{"localhost", true, "", 200},
		{"localhost", false, "", 403},
		{"192.168.1.5", true, "192.168.1.5:443", 200},
		{"192.168.1.6", true, "192.168.1.5:443", 403},
		{"[fe80::1]", true, "[fe80::1%lo]:443", 200},
		{"evil.com", true, "192.168.1.5:443", 403},
	} {
		w := ask(g, token.Reveal(), func(r *http.Request) {
			r.Host = tc.host
			if tc.tls {
				r.TLS = &tls.ConnectionState{}
			}
			if tc.local != "" {
				*r = *r.WithContext(contextWithLocal(t, r, tc.local))
			}
		})
		if w.Code != tc.want {
			t.Errorf("%+v: %d", tc, w.Code)
		}
	}
}

func TestOrigin(t *testing.T) {
	g, token := newGuard(t)
	for _, tc := range []struct {
		origins []string
		site    string
		want    int
	}{
		{nil, "", 200}, // not a browser
		{[]string{"http://127.0.0.1:7777"}, "same-origin", 200},
		{[]string{"https://app.example.com"}, "cross-site", 200}, // configured
		{nil, "none", 200}, // typed or from a terminal
		{nil, "same-origin", 200},

		{[]string{"null"}, "", 403}, // sandboxed frame, file:
		{[]string{""}, "", 403},
		{[]string{"*"}, "", 403},
		{[]string{"https://evil.com"}, "", 403},
		{[]string{"http://127.0.0.1.evil.com"}, "", 403},
		{[]string{"http://127.0.0.1:7777.evil.com"}, "", 403},
		{[]string{"http://127.0.0.1:77777"}, "", 403},
		{[]string{"http://127.0.0.1:7777@evil.com"}, "", 403},
		{[]string{"http://localhost@evil.com"}, "", 403},
		{[]string{"http://127.0.0.1:7777/"}, "", 403},
		{[]string{"http://127.0.0.1:3000"}, "same-site", 403}, // another server of the user
		{[]string{"http://127.0.0.1"}, "", 403},
		{[]string{"https://127.0.0.1:7777"}, "", 403},
		{[]string{"http://localhost:7777"}, "", 403}, // not the Host it asked for
		{[]string{"http://[::1]:7777"}, "", 403},
		{[]string{"https://app.example.com.evil.com"}, "", 403},
		{[]string{"http://app.example.com"}, "", 403},
		{[]string{"https://app.example.com:444"}, "", 403},
		{[]string{"https://xapp.example.com"}, "", 403},
		{[]string{"file://"}, "", 403},
		{[]string{"chrome-extension://abc"}, "", 403},
		{[]string{"http://127.0.0.1:7777 https://evil.com"}, "", 403},
		{[]string{"http://127.0.0.1:7777", "https://evil.com"}, "", 403},
		{[]string{"http://127.0.0.1:7777", "http://127.0.0.1:7777"}, "", 403},
		{[]string{"http://127.0.0.1:7777"}, "cross-site", 403},
		{nil, "cross-site", 403}, // <img>, link
		{nil, "same-site", 403},
		{nil, "anything", 403},
	} {
		for _, upgrade := range []bool{false, true} {
			w := ask(g, token.Reveal(), func(r *http.Request) {
				r.Header["Origin"] = tc.origins
				if tc.site != "" {
					r.Header.Set("Sec-Fetch-Site", tc.site)
				}
				if upgrade {
					r.Header.Set("Connection", "Upgrade")
					r.Header.Set("Upgrade", "websocket")
				}
			})
			if w.Code != tc.want {
				t.Errorf("Origin %q, site %q, websocket %v: %d, want %d", tc.origins, tc.site, upgrade, w.Code, tc.want)
			}
		}
	}
}

// A form of another site can post text/plain without asking first.
func TestCrossSiteForm(t *testing.T) {
	g, token := newGuard(t)
	w := ask(g, token.Reveal(), func(r *http.Request) {
		r.Method = http.MethodPost
		r.Body = io.NopCloser(strings.NewReader(`{"method":"run"}`))
		r.Header.Set("Content-Type", "text/plain")
		r.Header.Set("Origin", "https://evil.com")
	})
	if w.Code != 403 {
		t.Errorf("status %d", w.Code)
	}
}

func TestToken(t *testing.T) {
	g, token := newGuard(t)
	good := token.Reveal()
	digest := token.Digest()
	for _, tc := range []struct {
		headers []string
		want    string // the client; empty for a refusal
	}{
		{[]string{"Bearer " + good}, OwnClient},
		{[]string{"bearer " + good}, OwnClient},
		{[]string{"Bearer " + laptopToken}, "laptop"},

		{nil, ""},
		{[]string{""}, ""},
		{[]string{"Bearer"}, ""},
		{[]string{"Bearer "}, ""},
		{[]string{"Bearer  " + good}, ""},
		{[]string{"Bearer " + good + " "}, ""},
		{[]string{good}, ""},
		{[]string{"Basic " + good}, ""},
		{[]string{"Bearer " + good[:len(good)-1]}, ""}, // a prefix
		{[]string{"Bearer " + good + "A"}, ""},
		{[]string{"Bearer " + tokenPrefix}, ""},
		{[]string{"Bearer " + strings.ToUpper(good)}, ""},
		{[]string{"Bearer " + strings.TrimPrefix(good, tokenPrefix)}, ""},
		{[]string{"Bearer " + fmt.Sprintf("%x", digest)}, ""}, // the digest opens nothing
		{[]string{"Bearer " + string(digest[:])}, ""},
		{[]string{"Bearer undefined"}, ""},
		{[]string{"Bearer null"}, ""},
		{[]string{"Bearer test"}, ""},
		{[]string{"Bearer [redacted]"}, ""},
		{[]string{"Bearer " + strings.Repeat("a", 1<<20)}, ""},
		{[]string{"Bearer " + good, "Bearer " + good}, ""},
		{[]string{"Bearer wrong", "Bearer " + good}, ""},
		{[]string{"Bearer wrong, Bearer " + good}, ""},
	} {
		w := ask(g, "", func(r *http.Request) {
			r.Header["Authorization"] = tc.headers
			r.URL.RawQuery = "token=" + good + "&access_token=" + good
			r.AddCookie(&http.Cookie{Name: "token", Value: good})
			r.Header.Set("X-Api-Key", good)
		})
		if tc.want == "" {
			if w.Code != 401 || w.Header().Get("WWW-Authenticate") == "" || strings.Contains(w.Body.String(), good) {
				t.Errorf("%.40q: %d", tc.headers, w.Code)
			}
			continue
		}
		if want := "client=" + tc.want + " authorization=[] protocols=[]"; w.Body.String() != want {
			t.Errorf("%.40q: %d %s", tc.headers, w.Code, w.Body)
		}
	}
}

func TestWebSocketToken(t *testing.T) {
	g, token := newGuard(t)
	good := token.Reveal()
	for _, tc := range []struct {
		protocols []string
		upgrade   string
		bearer    string
		want      string
	}{
		{[]string{"pi.v1, " + good}, "websocket", "", OwnClient},
		{[]string{"pi.v1," + good}, "WebSocket", "", OwnClient},
		{[]string{"pi.v1", laptopToken}, "websocket", "", "laptop"},
		{[]string{"pi.v1, " + good}, "websocket", good, OwnClient},

		{[]string{"pi.v1, " + good}, "", "", ""}, // not a WebSocket
		{[]string{"pi.v1, " + good}, "websocket", "wrong", ""},
		{[]string{good + ", pi.v1"}, "websocket", "", ""},
		{[]string{good}, "websocket", "", ""},
		{[]string{"pi.v1"}, "websocket", "", ""},
		{[]string{"pi.v1,"}, "websocket", "", ""},
		{[]string{"pi.v2, " + good}, "websocket", "", ""},
		{[]string{"pi.v1, wrong, " + good}, "websocket", "", ""},
		{[]string{"pi.v1, " + good[:20]}, "websocket", "", ""},
	} {
		w := ask(g, "", func(r *http.Request) {
			r.Header.Del("Authorization")
			if tc.bearer != "" {
				r.Header.Set("Authorization", "Bearer "+tc.bearer)
			}
			r.Header[protocolHeader] = tc.protocols
			r.Header.Set("Upgrade", tc.upgrade)
		})
		want := "client=" + tc.want + ` authorization=[] protocols=["pi.v1"]`
		if tc.want == "" && w.Code != 401 || tc.want != "" && w.Body.String() != want {
			t.Errorf("%q %q: %d %s", tc.protocols, tc.upgrade, w.Code, w.Body)
		}
	}
	// A subprotocol that might be a token goes no further, whatever opened the door.
	w := ask(g, good, func(r *http.Request) { r.Header.Set(protocolHeader, "other, "+laptopToken) })
	if want := "client=token authorization=[] protocols=[]"; w.Body.String() != want {
		t.Errorf("%s", w.Body)
	}
}

func TestOpenPaths(t *testing.T) {
	g, _ := newGuard(t)
	for _, tc := range []struct {
		method, path, origin string
		want                 int
	}{
		{"GET", "/healthz", "", 200},
		{"HEAD", "/healthz", "", 200},
		{"POST", "/healthz", "", 401},
		{"GET", "/healthz/", "", 401},
		{"GET", "/healthz/../session", "", 401},
		{"GET", "//healthz", "", 401},
		{"GET", "/HEALTHZ", "", 401},
		{"GET", "/healthz", "https://evil.com", 403},
	} {
		w := ask(g, "wrong", func(r *http.Request) {
			r.Method, r.URL.Path = tc.method, tc.path
			if tc.origin != "" {
				r.Header.Set("Origin", tc.origin)
			}
		})
		if w.Code != tc.want {
			t.Errorf("%+v: %d", tc, w.Code)
		}
	}
}

func TestCORS(t *testing.T) {
	g, token := newGuard(t)
	preflight := func(origin string) http.Header {
		return ask(g, "", func(r *http.Request) {
			r.Method = http.MethodOptions
			r.Header.Del("Authorization")
			r.Header.Set("Origin", origin)
			r.Header.Set("Access-Control-Request-Method", "POST")
			r.Header.Set("Access-Control-Request-Private-Network", "true")
		}).Header()
	}
	h := preflight("https://app.example.com")
	if h.Get("Access-Control-Allow-Origin") != "https://app.example.com" || h.Get("Access-Control-Allow-Methods") != "GET, POST" ||
		h.Get("Access-Control-Allow-Private-Network") != "true" || h.Get("Vary") != "Origin" || h.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("configured origin: %v", h)
	}
	for _, origin := range []string{"https://evil.com", "null", "http://127.0.0.1:7777"} {
		for name := range preflight(origin) {
			if strings.HasPrefix(name, "Access-Control") {
				t.Errorf("%s got %s", origin, name)
			}
		}
	}
	// The page may read why it was refused, and nothing else is let through.
	for tok, want := range map[string]int{token.Reveal(): 200, "wrong": 401} {
		w := ask(g, tok, func(r *http.Request) { r.Header.Set("Origin", "https://app.example.com") })
		if w.Code != want || w.Header().Get("Access-Control-Allow-Origin") != "https://app.example.com" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	}
	if w := ask(g, "wrong", func(r *http.Request) {
		r.Method = http.MethodOptions
		r.Header.Set("Origin", "https://app.example.com")
	}); w.Code != 401 {
		t.Errorf("OPTIONS that is no preflight: %d", w.Code)
	}
}

func TestFailuresAreLimitedAndLockNobodyOut(t *testing.T) {
	_, token := newGuard(t)
	at := time.Unix(0, 0)
	g, err := New(Options{Port: 7777, Token: token, Now: func() time.Time { return at }})
	if err != nil {
		t.Fatal(err)
	}
	codes := map[int]int{}
	for range 100 {
		codes[ask(g, "wrong", func(*http.Request) {}).Code]++
	}
	if codes[401] != burst || codes[429] != 100-burst {
		t.Errorf("answers %v", codes)
	}
	if w := ask(g, token.Reveal(), func(*http.Request) {}); w.Code != 200 {
		t.Errorf("the owner is locked out: %d", w.Code)
	}
	w := ask(g, "wrong", func(*http.Request) {})
	if w.Header().Get("Retry-After") != "1" {
		t.Errorf("headers %v", w.Header())
	}
	at = at.Add(refill)
	if w := ask(g, "wrong", func(*http.Request) {}); w.Code != 401 {
		t.Errorf("after a second: %d", w.Code)
	}
}

func TestNewRefusesAGuardThatChecksNothing(t *testing.T) {
	_, token := newGuard(t)
	for name, o := range map[string]Options{
		"no token":        {Port: 1},
		"no port":         {Token: token},
		"port":            {Token: token, Port: 65536},
		"nameless client": {Token: token, Port: 1, Clients: []Client{{}}},
		"wildcard":        {Token: token, Port: 1, Origins: []string{"*"}},
		"wildcard host":   {Token: token, Port: 1, Origins: []string{"https://*.x"}},
		"null":            {Token: token, Port: 1, Origins: []string{"null"}},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// What Go's own server does with a request line or header that is strange must not open a
// way around the checks, so these go through a real connection.
func TestRawRequests(t *testing.T) {
	_, token := newGuard(t)
	srv := httptest.NewUnstartedServer(nil)
	port := srv.Listener.Addr().(*net.TCPAddr).Port
	g, err := New(Options{Port: port, Token: token})
	if err != nil {
		t.Fatal(err)
	}
	srv.Config.Handler = g.Handler(pass)
	srv.Start()
	defer srv.Close()
	own := srv.Listener.Addr().String()
	auth := "Authorization: Bearer " + token.Reveal() + "\r\n"
	for _, tc := range []struct {
		request string
		want    string
	}{
		{"GET / HTTP/1.1\r\nHost: " + own + "\r\n" + auth, "200"},
		{"GET http://" + own + "/ HTTP/1.1\r\nHost: " + own + "\r\n" + auth, "200"},
		{"GET / HTTP/1.1\r\n" + auth, "400"},
		{"GET / HTTP/1.0\r\n" + auth, "403"},
		{"GET / HTTP/1.1\r\nHost:\r\n" + auth, "403"},
		{"GET / HTTP/1.1\r\nHost: " + own + "\r\nHost: evil.com\r\n" + auth, "400"},
		{"GET http://evil.com/ HTTP/1.1\r\nHost: " + own + "\r\n" + auth, "403"},
		{"GET / HTTP/1.1\r\nHost: evil.com\r\nX-Forwarded-Host: " + own + "\r\nForwarded: host=" + own + "\r\n" + auth, "403"},
		{"GET / HTTP/1.1\r\nHost: " + own + "\r\norigin: null\r\n" + auth, "403"},
		{"GET / HTTP/1.1\r\nHost: " + own + "\r\nOrigin:\r\n" + auth, "403"},
		{"GET / HTTP/1.1\r\nHost: " + own + "\r\n", "401"},
		{"GET /?token=" + token.Reveal() + " HTTP/1.1\r\nHost: " + own + "\r\n", "401"},
	} {
		if got := rawStatus(t, own, tc.request); got != tc.want {
			t.Errorf("%q: %s, want %s", tc.request, got, tc.want)
		}
	}
}

func rawStatus(t *testing.T, addr, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := io.WriteString(conn, request+"Connection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.Fields(line)[1]
}
