package mcptool_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/tool/mcptool"
)

const redirect = "http://127.0.0.1:1/callback"

// guarded is an MCP server that wants a token, and its authorization server.
type guarded struct {
	t   *testing.T
	url string

	mu        sync.Mutex
	challenge string // of the authorization that is going on
	tokens    int    // handed out; the last one is valid
	refreshed int
	expires   int // seconds, of the next token
}

func newGuarded(t *testing.T) *guarded {
	t.Helper()
	g := &guarded{t: t, expires: 3600}
	mux := http.NewServeMux()
	inner := streamable(t, nil)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		ok := g.tokens > 0 && r.Header.Get("Authorization") == fmt.Sprint("Bearer token", g.tokens)
		g.mu.Unlock()
		if !ok {
			w.Header().Set("WWW-Authenticate", `Bearer resource_metadata="`+g.url+`/.well-known/oauth-protected-resource/mcp"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		inner.ServeHTTP(w, r)
	})
	reply := func(status int, v func() map[string]any) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			if err := json.NewEncoder(w).Encode(v()); err != nil {
				t.Error(err)
			}
		}
	}
	mux.HandleFunc("/.well-known/oauth-protected-resource/mcp", reply(200, func() map[string]any {
		return map[string]any{"resource": g.url + "/mcp", "authorization_servers": []string{g.url}}
	}))
	mux.HandleFunc("/.well-known/oauth-authorization-server", reply(200, func() map[string]any {
		return map[string]any{
			"issuer": g.url, "authorization_endpoint": g.url + "/authorize", "token_endpoint": g.url + "/token",
			"registration_endpoint": g.url + "/register", "response_types_supported": []string{"code"},
			"code_challenge_methods_supported": []string{"S256"},
		}
	}))
	mux.HandleFunc("/register", reply(201, func() map[string]any {
		return map[string]any{"client_id": "client", "redirect_uris": []string{redirect}, "token_endpoint_auth_method": "none"}
	}))
	mux.HandleFunc("/token", g.token)
	g.url = listen(t, mux).URL
	return g
}

// token exchanges a code, if who asks is who was authorized, or a refresh token.
func (g *guarded) token(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	switch r.FormValue("grant_type") {
	case "authorization_code":
		if r.FormValue("code") != "agreed" || base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge || r.FormValue("resource") != g.url+"/mcp" {
			g.t.Errorf("token request %v", r.Form)
		}
	case "refresh_token":
		if r.FormValue("refresh_token") != "again" {
			g.t.Errorf("token request %v", r.Form)
		}
		g.refreshed++
	}
	g.tokens++
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":"token%d","token_type":"Bearer","refresh_token":"again","expires_in":%d}`, g.tokens, g.expires)
}

// agree is the person and the browser.
func (g *guarded) agree(_ context.Context, _, address string) (mcptool.Grant, error) {
	u, err := url.Parse(address)
	if err != nil {
		return mcptool.Grant{}, err
	}
	q := u.Query()
	if q.Get("client_id") != "client" || q.Get("redirect_uri") != redirect || q.Get("code_challenge_method") != "S256" {
		g.t.Errorf("authorization request %s", address)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.challenge = q.Get("code_challenge")
	return mcptool.Grant{Code: "agreed", State: q.Get("state")}, nil
}

func (g *guarded) options(dir string, ask func(context.Context, string, string) (mcptool.Grant, error)) mcptool.Options {
	return mcptool.Options{Servers: []mcptool.Server{httpServer(g.url + "/mcp")}, DataDir: dir, RedirectURL: redirect, Authorize: ask}
}

func neverAsked(t *testing.T) func(context.Context, string, string) (mcptool.Grant, error) {
	t.Helper()
	return func(context.Context, string, string) (mcptool.Grant, error) {
		t.Error("a person was asked")
		return mcptool.Grant{}, errors.New("no")
	}
}

func TestAuthorization(t *testing.T) {
	g, dir := newGuarded(t), t.TempDir()
	g.expires = 1 // the library refreshes tokens 10 s before their end
	m := managerWith(t, g.options(dir, g.agree))
	if res := run(t, find(t, m, "mcp__web__echo"), `{"text":"x"}`); res.Text != "said x" {
		t.Errorf("%+v", res)
	}
	files, err := filepath.Glob(filepath.Join(dir, "mcp", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	info, err := os.Stat(files[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if info, err := os.Stat(filepath.Dir(files[0])); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}

	// Another process uses the token, and refreshes it, without asking anybody.
	g.mu.Lock()
	g.refreshed, g.expires = 0, 3600
	g.mu.Unlock()
	m = managerWith(t, g.options(dir, neverAsked(t)))
	if res := run(t, find(t, m, "mcp__web__echo"), `{"text":"y"}`); res.Text != "said y" {
		t.Errorf("%+v", res)
	}
	data, err := os.ReadFile(files[0])
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refreshed != 1 || err != nil || !strings.Contains(string(data), fmt.Sprintf(`"token%d"`, g.tokens)) {
		t.Errorf("refreshed %d times, file %s, %v", g.refreshed, data, err)
	}
}

// A person may take longer than a start: the problem says what to open, and when the person
// has agreed the server starts.
func TestSlowPerson(t *testing.T) {
	g := newGuarded(t)
	agreed, asked := make(chan struct{}), make(chan struct{})
	o := g.options(t.TempDir(), func(ctx context.Context, name, address string) (mcptool.Grant, error) {
		close(asked)
		select {
		case <-agreed:
			return g.agree(ctx, name, address)
		case <-ctx.Done():
			return mcptool.Grant{}, ctx.Err()
		}
	})
	o.Servers[0].StartTimeout = time.Second
	m := managerWith(t, o)
	_, problems := m.Tools(t.Context())
	<-asked
	if len(problems) != 1 {
		t.Fatalf("problems %v", problems)
	}
	wait, ok := errors.AsType[*mcptool.AuthorizationError](problems[0].Err)
	if !ok || !strings.HasPrefix(wait.URL, g.url+"/authorize?") {
		t.Errorf("problem %v", problems[0].Err)
	}
	changed := m.Changed()
	close(agreed)
	select {
	case <-changed:
	case <-time.After(5 * time.Second):
		t.Fatal("no change was told")
	}
	find(t, m, "mcp__web__echo")
}

func TestNoAuthorization(t *testing.T) {
	g := newGuarded(t)
	wrongState := func(context.Context, string, string) (mcptool.Grant, error) {
		return mcptool.Grant{Code: "agreed", State: "forged"}, nil
	}
	refuses := func(context.Context, string, string) (mcptool.Grant, error) {
		return mcptool.Grant{}, errors.New("the person said no")
	}
	for _, c := range []struct {
		name, want string
		change     func(o *mcptool.Options)
	}{
		{"nobody to ask", "nobody can be asked", func(o *mcptool.Options) { o.Authorize = nil }},
		{"forged answer", "state mismatch", func(o *mcptool.Options) { o.Authorize = wrongState }},
		{"refused", "the person said no", func(o *mcptool.Options) { o.Authorize = refuses }},
		{"nowhere to keep tokens", "Unauthorized", func(o *mcptool.Options) { o.DataDir = "" }},
		{"own credentials", "Unauthorized", func(o *mcptool.Options) {
			o.Servers[0].Headers = http.Header{"Authorization": {"Bearer wrong"}}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := g.options(t.TempDir(), neverAsked(t))
			c.change(&o)
			_, problems := managerWith(t, o).Tools(t.Context())
			if len(problems) != 1 || !strings.Contains(problems[0].Err.Error(), c.want) {
				t.Errorf("problems %v, want %q", problems, c.want)
			}
		})
	}
	if g.tokens != 0 {
		t.Errorf("%d tokens were handed out", g.tokens)
	}
}

// Closing ends an authorization that nobody answers.
func TestCloseDuringAuthorization(t *testing.T) {
	g := newGuarded(t)
	o := g.options(t.TempDir(), func(ctx context.Context, _, _ string) (mcptool.Grant, error) {
		<-ctx.Done()
		return mcptool.Grant{}, ctx.Err()
	})
	o.Servers[0].StartTimeout = 500 * time.Millisecond
	m := managerWith(t, o)
	m.Tools(t.Context())
	within(t, 3*time.Second, func() {
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
