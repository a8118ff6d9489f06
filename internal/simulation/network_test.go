package simulation

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// network connects clients with the process that is alive. Every connection ends with the process.
type network struct {
	mu    sync.Mutex
	doors map[string]func(net.Conn) // of the process that is alive, by name
	conns map[*conn]struct{}
}

func newNetwork() *network { return &network{conns: make(map[*conn]struct{})} }

var errRefused = errors.New("connect: connection refused")

// dial opens a connection to a door of the server.
func (n *network) dial(door string) (*conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	accept := n.doors[door]
	if accept == nil {
		return nil, errRefused
	}
	a, b := net.Pipe()
	c := &conn{Conn: a, far: b, network: n}
	n.conns[c] = struct{}{}
	accept(b)
	return c, nil
}

// open says which doors there are from now on.
func (n *network) open(doors map[string]func(net.Conn)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.doors = doors
}

// cut ends all connections at once, without a word.
func (n *network) cut() {
	n.mu.Lock()
	conns := n.conns
	n.conns = make(map[*conn]struct{})
	n.mu.Unlock()
	for c := range conns {
		_ = c.Conn.Close()
		_ = c.far.Close()
	}
}

// conn is a client's end of a connection: it can be slow to read.
type conn struct {
	net.Conn
	far         net.Conn
	network     *network
	chunk, rest atomic.Int64
}

// pace makes reads bring at most chunk bytes after a rest. Zeros are full speed.
func (c *conn) pace(chunk int, rest time.Duration) {
	c.chunk.Store(int64(chunk))
	c.rest.Store(int64(rest))
}

func (c *conn) Read(b []byte) (int, error) {
	if rest := c.rest.Load(); rest > 0 {
		time.Sleep(time.Duration(rest)) // simulated
	}
	if chunk := int(c.chunk.Load()); chunk > 0 {
		b = b[:min(len(b), chunk)]
	}
	return c.Conn.Read(b)
}

func (c *conn) Close() error {
	c.network.mu.Lock()
	delete(c.network.conns, c)
	c.network.mu.Unlock()
	return c.Conn.Close()
}

// doorListener is the listener of an HTTP server.
type doorListener struct {
	conns chan net.Conn
	once  sync.Once
	gone  chan struct{}
}

func newDoor() *doorListener {
	return &doorListener{conns: make(chan net.Conn), gone: make(chan struct{})}
}

func (l *doorListener) enter(c net.Conn) {
	go func() {
		select {
		case l.conns <- c:
		case <-l.gone:
			_ = c.Close()
		}
	}()
}

func (l *doorListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.gone:
		return nil, net.ErrClosed
	}
}

func (l *doorListener) Close() error {
	l.once.Do(func() { close(l.gone) })
	return nil
}

func (*doorListener) Addr() net.Addr { return addr{} }

type addr struct{}

func (addr) Network() string { return "simulated" }
func (addr) String() string  { return "127.0.0.1:1" }

// dialHTTP is what an HTTP client dials with.
func (w *world) dialHTTP(context.Context, string, string) (net.Conn, error) {
	return w.net.dial("http")
}
