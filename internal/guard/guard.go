// Package guard decides who may speak to the HTTP listener. It stands between the listener
// and every front end, and looks at a request in this order:
//
//	request ─▶ Host ─▶ Origin, Sec-Fetch-Site ─▶ preflight ─▶ token ─▶ front end
//	            403             403                 204        401, 429
//
// A server on loopback is attacked from web pages: they can send requests to it, make a
// name resolve to it (DNS rebinding), and open WebSockets to it. The first two checks stop
// them before anything is read; the token stops every other program that can connect.
// Whatever is missing, double or strange is refused.
package guard

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Times and sizes for the http.Server behind a Guard. There is no limit on the time of a
// whole request, because answers stream for hours.
const (
	HeaderTimeout  = 10 * time.Second  // http.Server.ReadHeaderTimeout
	IdleTimeout    = 120 * time.Second // http.Server.IdleTimeout
	MaxHeaderBytes = 64 << 10          // http.Server.MaxHeaderBytes
)

// strangerTime is how long a request without token may take from now to send its body, which
// the server reads to its end before it answers.
const strangerTime = 2 * time.Second

// Options says what a Guard accepts.
type Options struct {
	Port    int      // the listener's port, for the Host check: 1 to 65535
	Token   Token    // the server's own token; required
	Clients []Client // further tokens; names not empty

	// Hosts are further Host names, "name" for any port or "name:port", in lower case.
	// Loopback names and addresses with Port are always accepted, and the address that the
	// client is connected to: only names can be made to point elsewhere.
	Hosts []string
	// Origins are further web origins, exactly as browsers write them.
	Origins []string
	// Open are paths that GET and HEAD may read without a token, compared exactly.
	Open []string
	// Keep are paths whose handlers see the Authorization header, compared exactly: those that
	// answer with the caller's own token. No path can be in Open as well, because nobody has
	// checked the header there.
	Keep []string

	Now func() time.Time // the clock of the limit on failed attempts; nil for time.Now
}

// Client is a token of which only the digest is known.
type Client struct {
	Name   string
	SHA256 [32]byte
}

// Guard checks requests. It is safe for concurrent use.
type Guard struct {
	port     int
	clients  []Client // the server's own token is the first
	hosts    []string
	origins  []string
	open     []string
	keep     []string
	failures bucket
}

// OwnClient is the name of the client that used the server's own token.
const OwnClient = "token"

// New returns a Guard. An incomplete Options is an error: a guard that would check nothing
// must not exist.
func New(o Options) (*Guard, error) {
	if o.Token.isZero() {
		return nil, errors.New("guard: no token")
	}
	if o.Port < 1 || o.Port > 65535 {
		return nil, fmt.Errorf("guard: port %d", o.Port)
	}
	for _, c := range o.Clients {
		if c.Name == "" || c.Name == OwnClient {
			return nil, fmt.Errorf("guard: a client cannot be called %q", c.Name)
		}
	}
	for _, origin := range o.Origins {
		if !strings.HasPrefix(origin, "http://") && !strings.HasPrefix(origin, "https://") || strings.Contains(origin, "*") {
			return nil, fmt.Errorf("guard: origin %q", origin)
		}
	}
	for _, path := range o.Keep {
		if slices.Contains(o.Open, path) {
			return nil, fmt.Errorf("guard: %s is open, so its handler cannot be given tokens", path)
		}
	}
	now := o.Now
	if now == nil {
		now = time.Now
	}
	return &Guard{
		port:     o.Port,
		clients:  slices.Concat([]Client{{OwnClient, o.Token.Digest()}}, o.Clients),
		hosts:    slices.Clone(o.Hosts),
		origins:  slices.Clone(o.Origins),
		open:     slices.Clone(o.Open),
		keep:     slices.Clone(o.Keep),
		failures: bucket{now: now},
	}, nil
}

// Handler returns a handler that passes on what may pass. What next sees has no token: the
// Authorization header is removed, except on the paths of Options.Keep, and of the offered
// WebSocket subprotocols only "pi.v1" is left, so that nothing behind can log or echo one.
// [ClientName] tells who asks.
func (g *Guard) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		setHeaders(w.Header())
		if !g.hostAllowed(r) {
			g.forbid(w, r, "Host is not allowed; reach roost by a loopback address, or add the name to http.hosts")
			return
		}
		origin, ok := g.originAllowed(r)
		if !ok {
			g.forbid(w, r, "origin is not allowed; add it to http.origins")
			return
		}
		if origin != "" {
			w.Header().Set("Access-Control-Allow-Origin", origin)
			w.Header().Set("Access-Control-Expose-Headers", "*")
			if isPreflight(r) {
				preflight(w, r)
				return
			}
		}
		if g.isOpen(r) {
			hurry(w)
			next.ServeHTTP(w, withClient(r, "", false))
			return
		}
		name, ok := g.authenticate(r)
		if !ok {
			g.unauthenticated(w, r)
			return
		}
		next.ServeHTTP(w, withClient(r, name, slices.Contains(g.keep, r.URL.Path)))
	})
}

// isOpen reports whether r reads a path that needs no token.
func (g *Guard) isOpen(r *http.Request) bool {
	return (r.Method == http.MethodGet || r.Method == http.MethodHead) && slices.Contains(g.open, r.URL.Path)
}

// setHeaders sets what protects the pages that roost serves itself.
func setHeaders(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Add("Vary", "Origin")
}

// hurry keeps a stranger from holding a connection by never sending the body it announced.
func hurry(w http.ResponseWriter) {
	// A writer without deadlines is one in memory, where nothing is waited for.
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(strangerTime))
}

func (g *Guard) forbid(w http.ResponseWriter, r *http.Request, why string) {
	hurry(w)
	refused(r, why, !g.failures.take())
	http.Error(w, why, http.StatusForbidden)
}

// unauthenticated answers a request without a good token. Good tokens never come here, so
// whoever floods the server with bad ones locks nobody out.
func (g *Guard) unauthenticated(w http.ResponseWriter, r *http.Request) {
	const why = "no valid token; send Authorization: Bearer with the token of the data directory"
	hurry(w)
	w.Header().Set("WWW-Authenticate", `Bearer realm="roost"`)
	if !g.failures.take() {
		refused(r, why, true)
		w.Header().Set("Retry-After", strconv.Itoa(int(refill/time.Second)))
		http.Error(w, "too many failed attempts", http.StatusTooManyRequests)
		return
	}
	refused(r, why, false)
	http.Error(w, why, http.StatusUnauthorized)
}

type clientKey struct{}

// withClient returns r without its tokens, on behalf of a client. keepToken leaves it the one in
// the Authorization header.
func withClient(r *http.Request, name string, keepToken bool) *http.Request {
	accepted(r, name)
	r = r.WithContext(context.WithValue(r.Context(), clientKey{}, name))
	r.Header = r.Header.Clone()
	if !keepToken {
		r.Header.Del("Authorization")
	}
	speaksPi := slices.Contains(offeredProtocols(r), Subprotocol)
	r.Header.Del(protocolHeader)
	if speaksPi {
		r.Header.Set(protocolHeader, Subprotocol)
	}
	return r
}

// ClientName returns the name of the client whose token came with a request: a name of the
// configuration or [OwnClient]. It is empty on open paths and on listeners without a Guard.
func ClientName(ctx context.Context) string {
	name, _ := ctx.Value(clientKey{}).(string)
	return name
}
