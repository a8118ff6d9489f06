package httpcall

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/internal/provider"
)

// DefaultIdle is how long an answer may say nothing before it counts as stalled.
const DefaultIdle = 180 * time.Second

const (
	connectTimeout = 30 * time.Second
	pingAfter      = 15 * time.Second // of silence on an HTTP/2 connection, to find dead ones
	idleConn       = 60 * time.Second // shorter than the idle limits of usual load balancers
	hostConns      = 256              // idle connections kept for a provider: as many as parallel runs
)

// Options describe one provider. Name and BaseURL are required.
type Options struct {
	Name    string // of the provider, for error messages
	BaseURL string // with or without a version such as /v1, and with or without the path

	// Key returns the API key. It is asked before every request, so that a changed file or
	// an expired token is noticed. Nil and "" mean: send none.
	Key func(ctx context.Context) (string, error)

	Headers map[string]string // added to every request; may replace those of the dialect
	Idle    time.Duration     // how long an answer may say nothing; 0 means DefaultIdle
	HTTP    *http.Client      // nil means NewHTTP(); its CheckRedirect is replaced
}

// Client sends requests to one provider. It is safe for concurrent use.
type Client struct {
	name    string
	key     func(ctx context.Context) (string, error)
	headers map[string]string
	idle    time.Duration
	http    *http.Client
	urls    []string
	known   atomic.Int32 // 1 + the index in urls that the provider answered on; 0 while unknown
	badBase error
}

// NewHTTP returns an HTTP client for providers: it connects within 30 s, has no limit for
// a whole answer, honours the proxy variables of the environment (never for loopback
// addresses), and does not ask for compression, which would hold tokens back.
func NewHTTP() *http.Client {
	dialer := &net.Dialer{Timeout: connectTimeout, KeepAlive: pingAfter}
	return &http.Client{Transport: &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dialer.DialContext,
		TLSHandshakeTimeout: connectTimeout,
		ForceAttemptHTTP2:   true,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingAfter},
		MaxIdleConns:        2 * hostConns,
		MaxIdleConnsPerHost: hostConns,
		IdleConnTimeout:     idleConn,
		DisableCompression:  true,
	}}
}

// New returns a client for a dialect whose requests go to path, for example
// "/chat/completions". An unusable base URL is reported by every Stream.
func New(o Options, path string) *Client {
	c := &Client{name: o.Name, key: o.Key, headers: o.Headers, idle: o.Idle}
	c.urls, c.badBase = endpoints(o.BaseURL, path)
	if c.idle <= 0 {
		c.idle = DefaultIdle
	}
	h := o.HTTP
	if h == nil {
		h = NewHTTP()
	}
	own := *h
	own.CheckRedirect = sameHost
	c.http = &own
	return c
}

// maxRedirects bounds redirects within a host.
const maxRedirects = 3

// sameHost allows only redirects that keep the host, the scheme and the method: a request
// carries a key and the whole conversation, which are for the configured host alone.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	if req.URL.Host != first.URL.Host || req.URL.Scheme != first.URL.Scheme {
		return provider.Errorf(provider.FaultRequest, "it redirects to another host (%s), which roost does not follow with a key; correct the base URL", req.URL.Host)
	}
	if req.Method != first.Method || len(via) > maxRedirects {
		return provider.Errorf(provider.FaultRequest, "it answers with redirects; correct the base URL")
	}
	return nil
}

// send posts body and returns the first answer that is not a refusal. On 404 it tries the
// base URL's other form, and remembers which one worked.
func (c *Client) send(ctx context.Context, header http.Header, body []byte) (*http.Response, error) {
	if known := c.known.Load(); known > 0 {
		res, err := c.post(ctx, c.urls[known-1], header, body)
		return accept(res, err)
	}
	var first error
	for i, u := range c.urls {
		res, err := c.post(ctx, u, header, body)
		absent := err == nil && (res.StatusCode == http.StatusNotFound || res.StatusCode == http.StatusMethodNotAllowed)
		if err == nil && !absent {
			c.known.Store(int32(i) + 1)
		}
		res, err = accept(res, err)
		if !absent {
			return res, err
		}
		if first == nil {
			first = err // of the more likely form
		}
	}
	return nil, first
}

// accept turns everything but an event stream into an error, and closes its body.
func accept(res *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, err
	}
	if fault := refusal(res); fault != nil {
		_ = res.Body.Close() // nothing more is wanted from it
		return nil, fault
	}
	return res, nil
}

func (c *Client) header(h http.Header) http.Header {
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "text/event-stream")
	h.Set("User-Agent", "roost")
	for name, value := range c.headers {
		h.Set(name, value)
	}
	// An empty entry is not sent, and tells net/http to repeat the request on a fresh
	// connection when a pooled one turns out to be dead before any byte of an answer.
	h["Idempotency-Key"] = nil
	return h
}

// secrets are the strings that must not appear in an error.
func (c *Client) secrets(key string) []string {
	s := []string{key}
	for _, v := range c.headers {
		s = append(s, v)
	}
	return s
}

// named puts the provider's name before a fault's message and takes secrets out of it.
func (c *Client) named(fault *provider.Error, key string) *provider.Error {
	message := fault.Message
	for _, s := range c.secrets(key) {
		if len(s) >= minSecret {
			message = strings.ReplaceAll(message, s, "[redacted]")
		}
	}
	named := *fault
	named.Message = c.name + ": " + message
	return &named
}

// minSecret is the length from which a configured value is taken out of messages; shorter
// ones are no keys, and would tear holes into ordinary words.
const minSecret = 6

var errStalled = errors.New("silence for longer than the limit")

// fault translates a broken exchange. The end of the caller's context is no fault.
func (c *Client) fault(caller, own context.Context, err error, key string) error {
	if caller.Err() != nil {
		return caller.Err()
	}
	if fault, ok := errors.AsType[*provider.Error](err); ok {
		return c.named(fault, key)
	}
	if errors.Is(context.Cause(own), errStalled) {
		return c.named(provider.Errorf(provider.FaultStalled, "no answer for %v", c.idle), key)
	}
	return c.named(network(err), key)
}
