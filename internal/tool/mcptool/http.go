package mcptool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// quietGet is how long a server may keep the request for its notices unanswered, when a
// server that answers does so at once.
const quietGet = 5 * time.Second

const (
	maxRedirects = 5
	dialFor      = 15 * time.Second
)

var errRedirect = errors.New("the server sends to another address, which is not followed; if it is right, configure it as url")

// wire carries the requests of one connection to an HTTP server. It keeps them within the
// connection's life, adds the configured headers, and bounds what comes back.
type wire struct {
	ctx     context.Context // the connection's life, which requests cannot outlive
	base    *http.Transport
	scheme  string
	host    string
	headers http.Header
}

// newWire returns a client for the server at address, a URL that was checked.
func newWire(ctx context.Context, s *Server) (*http.Client, *wire, error) {
	u, err := url.Parse(s.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, nil, errors.New("its url is not an http address")
	}
	w := &wire{ctx: ctx, base: newTransport(), scheme: u.Scheme, host: u.Host, headers: s.Headers}
	client := &http.Client{Transport: w, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if !w.own(req.URL) || len(via) > maxRedirects {
			return fmt.Errorf("%w: %s", errRedirect, cleanLine(req.URL.Scheme+"://"+req.URL.Host, 200))
		}
		return nil
	}}
	return client, w, nil
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        8,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: dialFor,
	}
}

// own tells whether an address is the server's own.
func (w *wire) own(u *url.URL) bool {
	return u.Scheme == w.scheme && strings.EqualFold(u.Host, w.host)
}

// RoundTrip sends a request to the server, and to nobody else.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if !w.own(req.URL) {
		return nil, errRedirect
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	stop := context.AfterFunc(w.ctx, func() { cancel(context.Cause(w.ctx)) }) //nolint:contextcheck // a request ends with its connection too
	end := func() { stop(); cancel(nil) }
	req = req.Clone(ctx)
	maps.Copy(req.Header, w.headers)
	res, err := w.send(req, cancel)
	if err != nil {
		end()
		return nil, err
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		res.Body = &paced{ReadCloser: res.Body, done: ctx.Done()}
	} else {
		res.Body = &limited{res.Body, maxMessage}
	}
	res.Body = &ending{res.Body, end}
	return res, nil
}

// errQuiet means that nobody answered in time.
var errQuiet = errors.New("no answer")

// send sends the request. The one for notices waits for its answer while the connection is
// made, so a server that does not answer it counts as one that has no notices.
func (w *wire) send(req *http.Request, cancel context.CancelCauseFunc) (*http.Response, error) {
	if req.Method != http.MethodGet {
		return w.base.RoundTrip(req)
	}
	timer := time.AfterFunc(quietGet, func() { cancel(errQuiet) })
	res, err := w.base.RoundTrip(req)
	timer.Stop()
	if err != nil && errors.Is(context.Cause(req.Context()), errQuiet) {
		return &http.Response{
			Status: "405 Method Not Allowed", StatusCode: http.StatusMethodNotAllowed, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
			Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil)), Request: req,
		}, nil
	}
	return res, err
}

// ending is a body that frees what its request held.
type ending struct {
	io.ReadCloser
	end func()
}

// Close closes the body.
func (e *ending) Close() error {
	err := e.ReadCloser.Close()
	e.end()
	return err
}
