package cursortest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire"
)

func TestTLS(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		s := &stub{t: t, scripts: []script{good("safe")}, open: map[string]*exchange{}}
		server := s.server(http2)
		server.StartTLS()
		roots := x509.NewCertPool()
		roots.AddCert(server.Certificate())
		t.Cleanup(server.Close)
		s.url = server.URL
		c := s.client(func(o *Options) {
			o.HTTP2 = http2
			o.TLS = &tls.Config{RootCAs: roots}
		})
		if res := mustRun(t, c, "hi"); res.Text != "safe" {
			t.Errorf("http2 %v: %q", http2, res.Text)
		}
	}
}

// pipes is a network in memory, for tests in simulated time.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func (p pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p pipes) Close() error   { close(p.done); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

func (p pipes) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.conns <- server:
		return client, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

// With the SDK's own times: silence of 30 s is a stall, heartbeats prevent it, and the client's come
// every 5 s. Simulated time needs a network without sockets.
func TestTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stub{t: t, open: map[string]*exchange{}, scripts: []script{
			func(x *exchange) { x.checkpoint(1); <-x.ctx.Done() },
			func(x *exchange) {
				x.checkpoint(2)
				for range 40 {
					time.Sleep(5 * time.Second)
					x.heartbeat()
				}
				x.turnEnded()
			},
		}}
		server := s.server(false)
		network := pipes{make(chan net.Conn), make(chan struct{})}
		done := make(chan struct{})
		go func() { defer close(done); _ = server.Config.Serve(network) }()
		c := New(Options{BaseURL: "http://server", Dial: network.dial, Backoff: time.Second})
		begin := time.Now()
		res, err := c.Run(t.Context(), Prompt{Text: "hi"})
		if took := time.Since(begin); err != nil || !errors.Is(res.Attempts[0].Err, ErrStalled) || took < 232*time.Second || took > 233*time.Second {
			t.Errorf("%v after %v, %v", err, took, res.Attempts[0].Err)
		}
		if res.Attempts[1].Heartbeats != 40 || len(res.Violations) > 0 {
			t.Errorf("%d heartbeats, violations %q", res.Attempts[1].Heartbeats, res.Violations)
		}
		if beats := s.beats(res.Attempts[1].RequestID); beats < 39 {
			t.Errorf("%d heartbeats of the client in 200 s", beats)
		}
		c.Close()
		_ = server.Config.Close()
		<-done
	})
}

// beats counts the client's heartbeats in an attempt.
func (s *stub) beats(requestID string) int {
	return len(slices.DeleteFunc(s.received(), func(a Append) bool {
		return a.RequestID != requestID || a.Message.GetClientHeartbeat() == nil
	}))
}

// A server that refuses is tried again, and its reason is kept.
func TestRefusal(t *testing.T) {
	s := newStub(t, true, good("x")) // speaks HTTP/2 only
	c := s.client(func(o *Options) { o.NoRetry = true })
	if _, err := prompt(t, c, "hi"); err == nil {
		t.Error("no error of a server that speaks another protocol")
	}
	s = newStub(t, false, good("x"))
	s.url += "/elsewhere"
	c = s.client(func(o *Options) { o.Backoff = time.Microsecond })
	res, err := prompt(t, c, "hi")
	e, ok := errors.AsType[*cursorwire.Error](err)
	if !ok || e.Code != cursorwire.Unimplemented || len(res.Attempts) != 4 {
		t.Errorf("%d attempts, %v", len(res.Attempts), err)
	}
}

// A server that dies while it has a request in hand closes the connection without a word. That is no
// clean end of the stream.
func TestCutRequest(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != cursorwire.PathBidiAppend {
			w.Header().Set("Content-Type", cursorwire.Proto.StreamType())
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	}))
	defer server.Close()
	c := New(Options{BaseURL: server.URL, NoRetry: true})
	defer c.Close()
	res, err := c.Run(t.Context(), Prompt{Text: "hi"})
	f, ok := errors.AsType[*Failure](err)
	if !ok || f.Class != TransportError || res.Attempts[0].Err == nil || len(res.Violations) > 0 {
		t.Errorf("%v, attempt %v, violations %q", err, res.Attempts[0].Err, res.Violations)
	}
}
