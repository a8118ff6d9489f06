// Package pi is the front end of pi's remote session protocol, version 1. It turns messages
// into commands and events into messages, and keeps the state of connections, nothing else:
//
//	bytes ─▶ piwire ─▶ conn ─▶ Engine.Do
//	bytes ◀─ piwire ◀─ piview ◀─ attachment ◀─ Engine.Watch
//
// One connection is one reader, one goroutine for each request that is being obeyed, one for
// news of the server, and one for each attachment, which waits for events, encodes them and
// writes them itself. So nothing piles up behind a slow client but bounded queues.
//
// Locks are taken in this order: conn.writing, which is held while the client is written to;
// then one of conn.mu and Server.mu, held for moments.
package pi

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/piview"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
)

// Engine is what the front end needs of the sessions. Errors are *session.Error.
type Engine interface {
	Create(context.Context, session.Create) (session.ID, error)
	Do(context.Context, session.ID, session.Command) (session.Receipt, error)
	Watch(context.Context, session.ID, *session.Position) (*live.Subscription, error)
	List(context.Context) iter.Seq2[session.Meta, error]
}

// Options is what a Server is made of. Engine, Models and Images are required.
type Options struct {
	Engine Engine
	Models func() []catalog.Model // those on offer; safe for concurrent use
	Images piview.Images

	ServerID         string        // not empty; clients show it
	PromptAccepted   bool          // answer prompt when it is accepted instead of when its run has ended
	HandshakeTimeout time.Duration // 0 means 5 s
	MaxFrame         uint32        // bytes of one message in either direction; 0 means 16 MiB
	MaxConns         int           // connections at a time; 0 means 4096
	MaxRequests      int           // requests of one connection that are being obeyed; 0 means 256
	Logger           *slog.Logger  // nil discards
}

// Origin is the Origin of sessions that are created here.
const Origin = "pi"

// Server serves connections. It is safe for concurrent use.
type Server struct {
	opt Options

	mu       sync.Mutex
	conns    map[*conn]struct{}
	watched  map[session.ID]map[*attachment]struct{}
	revision int64 // of the server snapshot
	pending  int   // changes not yet broadcast
	closed   bool

	changed chan struct{} // has room for one signal: pending grew
	stop    chan struct{}
	running sync.WaitGroup
}

// New returns a server. Call Close after use.
func New(opt Options) *Server {
	if opt.HandshakeTimeout == 0 {
		opt.HandshakeTimeout = 5 * time.Second
	}
	if opt.MaxFrame == 0 {
		opt.MaxFrame = piwire.MaxFrame
	}
	if opt.MaxConns == 0 {
		opt.MaxConns = 4096
	}
	if opt.MaxRequests == 0 {
		opt.MaxRequests = 256
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		opt: opt, conns: make(map[*conn]struct{}), watched: make(map[session.ID]map[*attachment]struct{}),
		changed: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	s.running.Go(s.broadcaster)
	return s
}

// Serve accepts connections until the listener is closed; it then returns nil.
func (s *Server) Serve(l net.Listener) error {
	for wait := 5 * time.Millisecond; ; {
		c, err := l.Accept()
		switch {
		case err == nil:
			wait = 5 * time.Millisecond
			go s.ServeConn(c)
		case errors.Is(err, net.ErrClosed):
			return nil
		default:
			// Most likely no file descriptors are left; some connection will end.
			s.opt.Logger.Warn("accept failed", slog.Any("error", err))
			select {
			case <-time.After(wait):
			case <-s.stop:
				return nil
			}
			wait = min(2*wait, time.Second)
		}
	}
}

// maxRefused is how many connections above the limit are told so at a time; more are closed
// without a word.
const maxRefused = 256

// ServeConn serves one connection until it ends, and closes it.
func (s *Server) ServeConn(nc net.Conn) {
	c := newConn(s, nc)
	s.mu.Lock()
	n := len(s.conns)
	if s.closed || n >= s.opt.MaxConns+maxRefused {
		s.mu.Unlock()
		c.close()
		return
	}
	s.conns[c] = struct{}{}
	s.running.Add(1) // under mu and not closed, so before Close waits
	s.mu.Unlock()
	defer s.running.Done()
	if n < s.opt.MaxConns {
		c.serve()
	} else {
		c.fail(&piwire.ProtocolError{Code: piwire.CodeBusy, Message: "Too many connections"})
	}
	s.mu.Lock()
	delete(s.conns, c)
	s.mu.Unlock()
	if c.isReady() {
		s.Changed()
	}
}

// Close ends every connection and returns when nothing runs any more. The listeners are
// closed by their owner, before. It may be called twice.
func (s *Server) Close() {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.stop)
	}
	conns := slices.Collect(maps.Keys(s.conns))
	s.mu.Unlock()
	for _, c := range conns {
		c.close()
	}
	s.running.Wait()
}

// Changed tells every ready client about the server's sessions and models again.
func (s *Server) Changed() {
	s.mu.Lock()
	s.pending++
	s.mu.Unlock()
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Removed tells every ready client that a session is gone (SPEC 3.5).
func (s *Server) Removed(id session.ID) {
	s.mu.Lock()
	conns := s.ready()
	s.mu.Unlock()
	for _, c := range conns {
		c.removed(id)
	}
	s.Changed()
}

// ready returns the connections that have been told hello. The caller holds mu.
func (s *Server) ready() []*conn {
	conns := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		if c.isReady() {
			conns = append(conns, c)
		}
	}
	return conns
}

// broadcaster makes a server snapshot of each change and hands it to every ready client, one
// after the other, so that revisions arrive in order (SPEC 3.6).
func (s *Server) broadcaster() {
	for {
		select {
		case <-s.changed:
		case <-s.stop:
			return
		}
		for s.takeChange() {
			s.broadcast()
		}
	}
}

func (s *Server) takeChange() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.pending == 0:
		return false
	case s.pending > maxBehind: // of many changes only the last is told
		s.pending = 1
	}
	s.pending--
	return true
}

func (s *Server) broadcast() {
	defer func() {
		if v := recover(); v != nil {
			s.opt.Logger.Error("server snapshot failed", slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
		}
	}()
	// In one step, so that a connection is either told or sees, once it is ready, that the
	// revision is not the one of its hello.
	s.mu.Lock()
	conns := s.ready()
	if len(conns) > 0 {
		s.revision++
	}
	revision := s.revision
	s.mu.Unlock()
	if len(conns) == 0 {
		return
	}
	snapshot, err := s.snapshot(context.Background(), revision)
	if err != nil {
		s.opt.Logger.Error("sessions cannot be listed", slog.Any("error", err))
		return
	}
	frame, err := piwire.AppendServerFrame(nil, &piwire.ServerSnapshotEvent{Snapshot: snapshot}, s.opt.MaxFrame)
	if err != nil {
		s.opt.Logger.Error("server snapshot cannot be sent", slog.Any("error", err))
		return
	}
	for _, c := range conns {
		c.news.snapshot(frame)
	}
}

// snapshot is the server as clients see it. Of more sessions than fit into a message, the
// oldest are left out.
func (s *Server) snapshot(ctx context.Context, revision int64) (*piwire.ServerSnapshot, error) {
	sessions, err := s.sessions(ctx)
	if err != nil {
		return nil, err
	}
	snapshot := &piwire.ServerSnapshot{ServerID: s.opt.ServerID, Revision: revision, Sessions: sessions}
	for _, m := range s.opt.Models() {
		snapshot.Models = append(snapshot.Models, piview.ModelMetadata(m))
	}
	return snapshot, nil
}

func (s *Server) sessions(ctx context.Context) ([]piwire.SessionMetadata, error) {
	var sessions []piwire.SessionMetadata
	room := int(s.opt.MaxFrame) / 2
	for m, err := range s.opt.Engine.List(ctx) {
		if err != nil {
			return nil, err
		}
		w := piview.Metadata(m)
		if room -= 128 + len(w.ID) + len(w.Cwd) + len(w.ParentSessionID) + len(m.Name); room < 0 {
			break
		}
		sessions = append(sessions, w)
	}
	return sessions, nil
}
