package server

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/config"
	"github.com/roost-dev/roost/internal/piwire"
)

// open starts a server in this process, with the demo model.
func open(t *testing.T) Endpoint {
	t.Helper()
	cfg, err := config.FromEnv(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "roost") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s, err := Open(t.Context(), Options{Config: cfg, DataDir: filepath.Join(dir, "data"), Socket: filepath.Join(dir, "s"), Listen: "127.0.0.1:0", Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s.Endpoint()
}

// The HTTP listener lets in who has the token and comes from nowhere strange; everyone else
// is turned away before anything is done.
func TestHTTPDoor(t *testing.T) {
	e := open(t)
	const list = "/roost.v1.SessionService/ListSessions"
	for name, c := range map[string]struct {
		path    string
		headers map[string]string
		want    int
	}{
		"with the token":             {list, map[string]string{"Authorization": "Bearer " + e.Token}, 200},
		"health needs none":          {"/healthz", nil, 200},
		"without":                    {list, nil, 401},
		"metrics":                    {metricsPath, map[string]string{"Authorization": "Bearer " + e.Token}, 200},
		"metrics without":            {metricsPath, nil, 401},
		"metrics, from a web page":   {metricsPath, map[string]string{"Authorization": "Bearer " + e.Token, "Origin": "https://evil.example"}, 403},
		"with another":               {list, map[string]string{"Authorization": "Bearer " + strings.Repeat("x", len(e.Token))}, 401},
		"with the token in the URL":  {list + "?token=" + e.Token, nil, 401},
		"from a web page":            {list, map[string]string{"Authorization": "Bearer " + e.Token, "Origin": "https://evil.example"}, 403},
		"from a sandboxed page":      {list, map[string]string{"Authorization": "Bearer " + e.Token, "Origin": "null"}, 403},
		"to a rebound name":          {list, map[string]string{"Authorization": "Bearer " + e.Token, "Host": "evil.example"}, 403},
		"a form of another site":     {list, map[string]string{"Content-Type": "text/plain", "Origin": "https://evil.example"}, 403},
		"pi without the token":       {"/pi/v1", map[string]string{"Connection": "Upgrade", "Upgrade": "websocket"}, 401},
		"pi without an upgrade":      {"/pi/v1", map[string]string{"Authorization": "Bearer " + e.Token}, 426},
		"pi from a web page":         {"/pi/v1", map[string]string{"Connection": "Upgrade", "Upgrade": "websocket", "Origin": "http://evil.example"}, 403},
		"nothing is there, unasked":  {"/etc/passwd", nil, 401},
		"nothing is there":           {"/etc/passwd", map[string]string{"Authorization": "Bearer " + e.Token}, 404},
		"a body that is far too big": {list, map[string]string{"Authorization": "Bearer " + e.Token, "big": "1"}, 400},
	} {
		t.Run(name, func(t *testing.T) {
			body := "{}"
			if c.headers["big"] != "" {
				body = `{"page_token":"` + strings.Repeat("x", 17<<20) + `"}`
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.URL+c.path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			if c.path != list {
				r.Method, r.Body = http.MethodGet, http.NoBody
			}
			r.Header.Set("Content-Type", "application/json")
			for k, v := range c.headers {
				if k == "Host" {
					r.Host = v
					continue
				}
				r.Header.Set(k, v)
			}
			resp, err := new(http.Transport).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			if resp.StatusCode != c.want && (c.want != 400 || resp.StatusCode < 400) {
				t.Errorf("got %d %s, want %d", resp.StatusCode, text, c.want)
			}
			if strings.Contains(string(text), e.Token) {
				t.Errorf("the token is in the answer: %s", text)
			}
		})
	}
}

// pi's protocol over WebSocket: a browser cannot set headers, so the token is its second
// sub-protocol; it is never echoed.
func TestPiOverWebSocket(t *testing.T) {
	e := open(t)
	for name, o := range map[string]*websocket.DialOptions{
		"bearer":       {HTTPHeader: http.Header{"Authorization": {"Bearer " + e.Token}}, Subprotocols: []string{"pi.v1"}},
		"sub-protocol": {Subprotocols: []string{"pi.v1", e.Token}},
	} {
		t.Run(name, func(t *testing.T) {
			ws, resp, err := websocket.Dial(t.Context(), strings.Replace(e.URL, "http", "ws", 1)+"/pi/v1", o)
			if err != nil {
				t.Fatal(err)
			}
			if got := resp.Header.Get("Sec-WebSocket-Protocol"); got != "pi.v1" {
				t.Errorf("the sub-protocol is %q", got)
			}
			c, err := pi.New(t.Context(), websocket.NetConn(t.Context(), ws, websocket.MessageBinary), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			s, err := c.Session(t.Context(), &piwire.Create{})
			if err != nil {
				t.Fatal(err)
			}
			s, err = c.Session(t.Context(), &piwire.Prompt{SessionID: s.ID, Text: "hello"})
			if err != nil || s.Phase != piwire.PhaseIdle || len(s.Transcript) != 2 {
				t.Errorf("the prompt gave %+v, %v", s, err)
			}
		})
	}
}
