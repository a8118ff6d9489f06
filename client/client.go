// Package client speaks roost's own API: it finds a server, calls it, and watches sessions
// over lost connections and restarts of the server.
//
//	Client.Watch ──frames──▶ View: a session and its transcript, as they are now
//
// Messages are those of package roostv1, which describes them.
package client

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"github.com/roost-dev/roost/proto/roost/v1/roostv1connect"
)

// Files of a server's data directory that tell clients how to reach it.
const (
	// EndpointFile holds the address of the running server, as in Options.
	EndpointFile = "endpoint"
	// TokenFile holds the token of its HTTP listener.
	TokenFile = "token"
)

// maxAnswer bounds one message of the server, in bytes. The server keeps pages far below it;
// a blob may need it.
const maxAnswer = 64 << 20

// Options says how to reach a server.
type Options struct {
	// Address is "http://HOST:PORT", "https://HOST:PORT" or "unix:PATH" for a Unix socket
	// that speaks HTTP, which is the server's socket path with ".http" added.
	Address string
	// Token opens an HTTP listener; a Unix socket needs none.
	Token string
	// Dial, if set, makes the connections, whatever the host and port of Address.
	Dial func(context.Context) (net.Conn, error)

	Silence  time.Duration // after which a watch that brings no frame counts as lost; 0 means 35 s
	RetryFor time.Duration // how long prompts and steers are repeated while the server cannot be reached; 0 means 30 s
}

// Client calls one server. It is safe for concurrent use.
type Client struct {
	opt     Options
	service roostv1connect.SessionServiceClient
	http    *http.Client
}

// New returns a client. It does not connect yet.
func New(opt Options) (*Client, error) {
	if opt.Silence == 0 {
		opt.Silence = 35 * time.Second
	}
	if opt.RetryFor == 0 {
		opt.RetryFor = 30 * time.Second
	}
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableCompression: true,
		MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second, ForceAttemptHTTP2: true,
	}
	base, err := baseURL(opt.Address, transport)
	if err != nil {
		return nil, err
	}
	if opt.Dial != nil {
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) { return opt.Dial(ctx) }
	}
	c := &Client{opt: opt, http: &http.Client{
		Transport: transport,
		// A redirect would carry the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	calls := connecthttp.NewTransport(c.http, base,
		connecthttp.WithReadMaxBytes(maxAnswer), connecthttp.WithCompressors())
	c.service = roostv1connect.NewSessionServiceClient(connect.NewClient(calls, authorize(opt.Token)))
	return c, nil
}

// baseURL reads an address, and makes the transport dial a Unix socket when it is one.
func baseURL(address string, transport *http.Transport) (string, error) {
	if path, ok := strings.CutPrefix(address, "unix:"); ok && path != "" {
		transport.Proxy = nil
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}
		return "http://localhost", nil
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "", &Error{Kind: Invalid, Message: fmt.Sprintf("server address %q: write it as http://HOST:PORT, https://HOST:PORT or unix:PATH", address)}
	}
	return u.Scheme + "://" + u.Host, nil
}

// authorize adds a token to every call.
func authorize(token string) connect.ClientInterceptor {
	return func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			if info, ok := connect.CallInfoForClientContext(ctx); ok && token != "" {
				info.RequestHeader().Set("Authorization", "Bearer "+token)
			}
			return next(ctx, spec)
		}
	}
}

// FromDataDir returns a client of the server whose data is in dir, as its endpoint and token
// files say. When there is no endpoint, no server runs there: the error's kind is
// Unreachable.
func FromDataDir(dir string) (*Client, error) {
	endpoint, err := os.ReadFile(filepath.Join(dir, EndpointFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{Kind: Unreachable, Message: "no server runs on " + dir, Retry: true}
	case err != nil:
		return nil, fmt.Errorf("read the server's address: %w", err)
	}
	token, err := ReadToken(dir)
	if err != nil {
		return nil, err
	}
	return New(Options{Address: strings.TrimSpace(string(endpoint)), Token: token})
}

// ReadToken returns the token in a server's data directory, empty when there is none.
func ReadToken(dir string) (string, error) {
	token, err := os.ReadFile(filepath.Join(dir, TokenFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the server's token: %w", err)
	}
	return strings.TrimSpace(string(token)), nil
}

// Close releases idle connections. Calls that are under way go on.
func (c *Client) Close() { c.http.CloseIdleConnections() }
