package pi_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	client "github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/pi"
	"github.com/roost-dev/roost/internal/piwire"
)

// web serves WebSocket and dials it.
func (r *rig) web() *websocket.Conn {
	r.t.Helper()
	s := httptest.NewServer(r.server.WebSocket())
	r.t.Cleanup(func() {
		r.server.Close()
		s.Close()
	})
	ws, _, err := websocket.Dial(r.t.Context(), s.URL, &websocket.DialOptions{Subprotocols: []string{pi.Subprotocol}, HTTPClient: s.Client()})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = ws.CloseNow() })
	return ws
}

func TestWebSocketCarriesTheByteStream(t *testing.T) {
	r := newRig(t)
	ws := r.web()
	if ws.Subprotocol() != "pi.v1" {
		t.Errorf("sub-protocol %q", ws.Subprotocol())
	}
	var stream bytes.Buffer
	stream.Write(frames(t, &piwire.Hello{Version: 1}))
	for range 20 {
		stream.Write(frames(t, list))
	}
	for n, piece := range slices.Collect(slices.Chunk(stream.Bytes(), 7)) {
		if err := ws.Write(t.Context(), websocket.MessageBinary, piece); err != nil {
			t.Fatal(n, err)
		}
	}
	messages := piwire.NewServerReader(websocket.NetConn(t.Context(), ws, websocket.MessageBinary), piwire.MaxFrame)
	for n := range 21 {
		if _, err := messages.Read(); err != nil {
			t.Fatal(n, err)
		}
	}
}

func TestClientOverWebSocket(t *testing.T) {
	r := newRig(t)
	r.model.then(streams(1<<20, 1000, 0))
	c, err := client.New(t.Context(), websocket.NetConn(context.WithoutCancel(t.Context()), r.web(), websocket.MessageBinary), nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Session(t.Context(), &piwire.Create{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Session(t.Context(), &piwire.Prompt{SessionID: s.ID, Text: "hi"}); err != nil {
		t.Fatal(err)
	}
	r.wantView(c, s.ID)
	c.Close()
}

func TestPlainHTTPIsToldToUpgrade(t *testing.T) {
	r := newRig(t)
	w := httptest.NewRecorder()
	r.server.WebSocket().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/pi", nil))
	if w.Code != http.StatusUpgradeRequired || w.Header().Get("Upgrade") != "websocket" {
		t.Errorf("%d, %v", w.Code, w.Header())
	}
}

func TestTextMessageEndsAWebSocket(t *testing.T) {
	r := newRig(t)
	ws := r.web()
	if err := ws.Write(t.Context(), websocket.MessageText, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	_, _, err := ws.Read(t.Context())
	if websocket.CloseStatus(err) != websocket.StatusUnsupportedData {
		t.Errorf("got %v", err)
	}
}

// The last message comes through, then a clean close.
func TestProtocolErrorOverWebSocket(t *testing.T) {
	r := newRig(t)
	ws := r.web()
	if err := ws.Write(t.Context(), websocket.MessageBinary, frames(t, list)); err != nil {
		t.Fatal(err)
	}
	messages := piwire.NewServerReader(websocket.NetConn(t.Context(), ws, websocket.MessageBinary), piwire.MaxFrame)
	if m, err := messages.Read(); err != nil || tell([]piwire.ServerMessage{m})[0] != notHello {
		t.Errorf("got %v, %v", m, err)
	}
	if m, err := messages.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, %v", m, err)
	}
}

// pipes is a listener whose connections are made by dial, in simulated time.
type pipes struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	a, b := net.Pipe()
	p.conns <- b
	return a, nil
}

// Pings keep a quiet connection; one whose client does not answer them is closed.
func TestPings(t *testing.T) {
	for name, deaf := range map[string]bool{"answered": false, "not answered": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				l := &pipes{conns: make(chan net.Conn), done: make(chan struct{})}
				web := &http.Server{Handler: r.server.WebSocket(), ReadHeaderTimeout: time.Second}
				go func() { _ = web.Serve(l) }()
				transport := &http.Transport{DialContext: l.dial}
				ws, _, err := websocket.Dial(t.Context(), "http://server", &websocket.DialOptions{HTTPClient: &http.Client{Transport: transport}})
				if err != nil {
					t.Fatal(err)
				}
				stream := websocket.NetConn(context.WithoutCancel(t.Context()), ws, websocket.MessageBinary)
				if _, err := stream.Write(helloFrame); err != nil {
					t.Fatal(err)
				}
				if m, err := piwire.NewServerReader(stream, piwire.MaxFrame).Read(); err != nil || !isHello(m) {
					t.Fatalf("%v, %v", m, err)
				}
				if !deaf {
					go func() { _, _ = stream.Read(make([]byte, 1)) }() // answers pings
				}
				time.Sleep(10 * time.Minute) // simulated
				synctest.Wait()
				if got, want := r.server.Connections(), map[bool]int{false: 1, true: 0}[deaf]; got != want {
					t.Errorf("%d connections, want %d", got, want)
				}
				_ = ws.CloseNow()
				transport.CloseIdleConnections()
				_ = web.Close()
			})
		})
	}
}

// A server that closes waits for no client, not even one that answers nothing.
func TestCloseWithDeafWebSockets(t *testing.T) {
	r := newRig(t)
	for range 20 {
		r.web() // nothing reads from it
	}
	done := make(chan struct{})
	go func() {
		r.server.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-t.Context().Done():
	}
}
