package mcptool

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/oauth2"
)

// authorizeFor is how long a person may take to open an address and agree.
const authorizeFor = 10 * time.Minute

const maxOAuthAnswer = 1 << 20 // bytes

// Grant is what an authorization server sends back through the browser: the parameters of
// the same names of the redirect, issuer being "iss".
type Grant struct {
	Code   string
	State  string
	Issuer string
}

// AuthorizationError means that a server is waiting for a person to open URL.
type AuthorizationError struct {
	Server string
	URL    string // empty while it is not known yet
}

// Error says what to do.
func (e *AuthorizationError) Error() string {
	if e.URL == "" {
		return "MCP server " + e.Server + " needs authorization"
	}
	return "MCP server " + e.Server + " needs authorization; open " + cleanLine(e.URL, 4<<10)
}

// authorizer obtains a server's access tokens. It outlives connections, because a person
// takes longer than a connection may. It is safe for concurrent use.
type authorizer struct {
	server string
	ask    func(ctx context.Context, server, url string) (Grant, error)
	life   *lifetime
	done   func() // called when a person has agreed
	inner  *auth.AuthorizationCodeHandler

	mu   sync.Mutex
	flow *flow // nil when nobody is being asked
	url  string
}

// flow is one attempt to be authorized, which all requests share.
type flow struct {
	done chan struct{}
	err  error // set before done is closed
}

// newAuthorizer returns nil when the server's headers already hold its credentials, or when
// nobody can be asked and there is nowhere to keep tokens.
func newAuthorizer(s *Server, o *Options, life *lifetime, done func()) (*authorizer, error) {
	if s.URL == "" || s.Headers.Get("Authorization") != "" || o.DataDir == "" || o.RedirectURL == "" {
		return nil, nil
	}
	a := &authorizer{server: s.Name, ask: o.Authorize, life: life, done: done}
	u, err := url.Parse(s.URL)
	if err != nil {
		return nil, errors.New("its url is not an http address")
	}
	client := oauthClient(u.Hostname())
	store := newTokenStore(o.DataDir, s)
	a.inner, err = auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "roost", RedirectURIs: []string{o.RedirectURL}, TokenEndpointAuthMethod: "none",
			GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		}},
		RedirectURL:              o.RedirectURL,
		AuthorizationCodeFetcher: a.fetch,
		RequestRefreshToken:      true,
		AcceptUnadvertisedIss:    true,
		Client:                   client,
		NewTokenSource:           store.source,
		InitialTokenSource:       store.load(client),
	})
	return a, err
}

// TokenSource returns where tokens come from, nil before the first authorization.
func (a *authorizer) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	return a.inner.TokenSource(ctx)
}

// Authorize is called when the server refused a request. It waits for a person only as long
// as the request may take, then says what to open; asking goes on meanwhile.
func (a *authorizer) Authorize(ctx context.Context, req *http.Request, res *http.Response) error {
	a.mu.Lock()
	f := a.flow
	if f == nil {
		f = &flow{done: make(chan struct{})}
		a.flow = f
		if !a.life.start(func(ctx context.Context) { a.run(ctx, f, req, res) }) {
			a.flow = nil
			a.mu.Unlock()
			_ = res.Body.Close()
			return ErrClosed
		}
	} else {
		_ = res.Body.Close()
	}
	a.mu.Unlock()
	select {
	case <-f.done:
		return f.err
	case <-ctx.Done():
		return a.waiting()
	}
}

func (a *authorizer) run(ctx context.Context, f *flow, req *http.Request, res *http.Response) {
	ctx, cancel := context.WithTimeout(ctx, authorizeFor)
	defer cancel()
	f.err = guarded(func() error { return a.inner.Authorize(ctx, req, res) })
	a.mu.Lock()
	a.flow, a.url = nil, ""
	a.mu.Unlock()
	close(f.done)
	if f.err == nil {
		a.done()
	}
}

// fetch asks a person to open an address.
func (a *authorizer) fetch(ctx context.Context, args *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
	if a.ask == nil {
		return nil, fmt.Errorf("%w, and nobody can be asked here", &AuthorizationError{Server: a.server, URL: args.URL})
	}
	a.mu.Lock()
	a.url = args.URL
	a.mu.Unlock()
	g, err := a.ask(ctx, a.server, args.URL)
	if err != nil {
		return nil, fmt.Errorf("authorize: %w", err)
	}
	return &auth.AuthorizationResult{Code: g.Code, State: g.State, Iss: g.Issuer}, nil
}

// waiting returns an [*AuthorizationError] while a person is being asked, else nil.
func (a *authorizer) waiting() error {
	if a == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.flow == nil {
		return nil
	}
	return &AuthorizationError{Server: a.server, URL: a.url}
}

var errInside = errors.New("the server names an address inside the network, which is not followed")

// oauthClient returns the client for the addresses that a server names for authorization.
// It sends none of the configured headers, and a server outside cannot make it reach
// addresses inside.
func oauthClient(server string) *http.Client {
	plain, guarded := newTransport(), newTransport()
	plain.DisableKeepAlives, guarded.DisableKeepAlives = true, true
	guarded.Proxy = nil
	guarded.DialContext = (&net.Dialer{Timeout: dialFor, Control: refuseInside}).DialContext
	return &http.Client{Timeout: 30 * time.Second, Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
		through := guarded
		if proxy, err := plain.Proxy(req); inside(server) || err == nil && proxy != nil {
			through = plain
		}
		res, err := through.RoundTrip(req)
		if err == nil {
			res.Body = &limited{res.Body, maxOAuthAnswer}
		}
		return res, err
	})}
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip calls the function.
func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// inside tells whether a configured host is one of the user's own network.
func inside(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && !public(ip)
}

var carrierGrade = netip.MustParsePrefix("100.64.0.0/10") // RFC 6598

func public(ip netip.Addr) bool {
	ip = ip.Unmap()
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !carrierGrade.Contains(ip)
}

func refuseInside(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil || !public(to.Addr()) {
		return errInside
	}
	return nil
}
