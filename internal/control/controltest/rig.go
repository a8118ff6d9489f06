// Package controltest runs roost's own API for tests: the real engine on a log in memory
// with a scripted model, behind a real HTTP server whose connections are pipes, so that all
// of it works in simulated time and connections can be cut.
package controltest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/actor"
	"github.com/roost-dev/roost/internal/control"
	"github.com/roost-dev/roost/internal/eventlog/memlog"
	"github.com/roost-dev/roost/internal/prompt"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// Rig is a running server. Its methods fail the test when something does not work.
type Rig struct {
	Engine  *actor.Engine
	Client  *client.Client
	Options control.Options

	t      *testing.T
	script *Script
	log    *memlog.Log
	http   *http.Server
	mu     sync.Mutex
	net    *pipes
	ids    int
}

// Start runs a server until the test ends, with the options that change sets.
func Start(t *testing.T, change func(*control.Options), answers ...Answer) *Rig {
	t.Helper()
	r := &Rig{t: t, log: memlog.New(), script: &Script{answers: answers}}
	r.startEngine()
	r.Options = control.Options{
		Engine: r.Engine, Models: List, Blobs: blobs{}, Version: "test", ServerID: "server", DefaultModel: defaultModel,
	}
	if change != nil {
		change(&r.Options)
	}
	r.Up()
	r.Client = r.NewClient(client.Options{})
	t.Cleanup(func() {
		r.Down()
		if err := r.Engine.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *Rig) startEngine() {
	r.t.Helper()
	r.Engine = actor.New(actor.Config{
		Log: r.log, Models: r.script, Blobs: blobs{}, Tools: []tool.Tool{echo{}}, Dir: "/", DefaultModel: defaultModel,
		OutputDir: r.t.TempDir(), Judge: judge, Compaction: prompt.Limits{Keep: 10},
		NewID: func() session.ID { r.ids++; return session.ID(fmt.Sprintf("s%d", r.ids)) },
	})
	if err := r.Engine.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// Crash takes the server away, as if its process had been killed, and starts another one on
// what was in the log.
func (r *Rig) Crash() {
	r.t.Helper()
	r.Down()
	r.log = r.log.Crash()
	if err := r.Engine.Close(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	r.startEngine()
	r.Options.Engine = r.Engine
	r.Up()
}

// NewClient returns another client of the server.
func (r *Rig) NewClient(opt client.Options) *client.Client {
	r.t.Helper()
	opt.Address, opt.Dial = "http://localhost", r.Dial
	c, err := client.New(opt)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.Close)
	return c
}

func defaultModel() session.ModelRef { return Model }

// Up begins to listen.
func (r *Rig) Up() {
	pipes := &pipes{accept: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: control.New(r.Options).Handler(), ReadHeaderTimeout: time.Minute}
	r.mu.Lock()
	r.net, r.http = pipes, server
	r.mu.Unlock()
	go func() { _ = server.Serve(pipes) }()
}

// Down ends every connection and refuses new ones. The engine goes on.
func (r *Rig) Down() {
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.http.Close()
}

// Cut ends every connection.
func (r *Rig) Cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.net.cut()
}

// Dial connects to the server.
func (r *Rig) Dial(ctx context.Context) (net.Conn, error) {
	r.mu.Lock()
	p := r.net
	r.mu.Unlock()
	return p.dial(ctx)
}

// Create makes a session and returns its id.
func (r *Rig) Create() string {
	r.t.Helper()
	res, err := r.Client.Create(r.t.Context(), &roostv1.CreateSessionRequest{})
	if err != nil {
		r.t.Fatal(err)
	}
	return res.Session.Id
}

// Prompt starts a run.
func (r *Rig) Prompt(id, text string) *roostv1.PromptResponse {
	r.t.Helper()
	res, err := r.Client.Prompt(r.t.Context(), id, "", text)
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

// Follow applies the frames of a watch to a view until done says so.
func (r *Rig) Follow(id string, v *client.View, done func(*client.View) bool) {
	r.t.Helper()
	for frame, err := range r.Client.Watch(r.t.Context(), id, client.WatchOptions{From: v.Position}) {
		if err != nil {
			r.t.Fatal(err)
		}
		if v.Apply(frame); done(v) {
			return
		}
	}
}

// Idle waits until a session is idle after a run, and returns its view.
func (r *Rig) Idle(id string) *client.View {
	r.t.Helper()
	v := new(client.View)
	r.Follow(id, v, func(v *client.View) bool { return v.Session.Run == nil && v.Session.LastRun != nil })
	return v
}

// pipes is a network in memory.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
	mu     sync.Mutex
	open   []net.Conn
}

func (p *pipes) dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.accept <- far:
		p.mu.Lock()
		defer p.mu.Unlock()
		p.open = append(p.open, near)
		return near, nil
	case <-p.closed:
		return nil, errors.New("connection refused")
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}

// Accept implements net.Listener.
func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

// Addr implements net.Listener.
func (*pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }

// blobs has one blob.
type blobs struct{}

// Blob is the hash of the one blob there is.
const Blob = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

func (blobs) Put(context.Context, []byte) (string, error) { return Blob, nil }

func (blobs) Get(_ context.Context, hash string) ([]byte, error) {
	if hash != Blob {
		return nil, fs.ErrNotExist
	}
	return []byte("image"), nil
}
