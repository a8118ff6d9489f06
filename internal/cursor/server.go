package cursor

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/prompt"
	"github.com/roost-dev/roost/internal/session"
)

// Origin is the Origin of sessions that are born as conversations of a Cursor client.
const Origin = "cursor"

// Engine is what the front end needs of the sessions. Errors are *session.Error.
type Engine interface {
	Create(context.Context, session.Create) (session.ID, error)
	Do(context.Context, session.ID, session.Command) (session.Receipt, error)
	State(context.Context, session.ID) (*session.State, error)
	Watch(context.Context, session.ID, *session.Position) (*live.Subscription, error)
	Context(context.Context, session.ID, prompt.Context) (session.Context, error)
	Epoch() session.Epoch
}

// Blobs keeps bytes by the hex SHA-256 of their content. The error of Get wraps fs.ErrNotExist when
// there is no such blob.
type Blobs interface {
	Get(ctx context.Context, hash string) ([]byte, error)
	Put(ctx context.Context, data []byte) (hash string, err error)
}

// Options is what a Server is made of. Engine, Models, Default and Blobs are required.
type Options struct {
	Engine  Engine
	Models  func() []catalog.Model  // those on offer; safe for concurrent use
	Default func() session.ModelRef // for clients that ask for none; safe for concurrent use
	Aliases map[string]session.ModelRef
	Blobs   Blobs

	Thinking session.Thinking // for clients that ask for no effort; ThinkingOff when empty
	// Fetch and Search reach the web from this server. Without Fetch a client does it, without
	// Search nobody does.
	Fetch, Search func(ctx context.Context, input string) (text string, isError bool)
	// Ask makes one short request to a model, for titles and the like; nil for never.
	Ask func(ctx context.Context, model session.ModelRef, system, text string) (string, error)
	// EventStreamClients are the client types whose RunSSE is answered with the content type
	// text/event-stream (section 1.3).
	EventStreamClients []string
	Logger             *slog.Logger // nil discards
	// Stuck is called when a client is given up that has not taken what was written for a minute. It
	// is called from many goroutines and must not block; nil for nothing.
	Stuck func()
}

// Server serves Cursor's agent protocol. It is safe for concurrent use.
type Server struct {
	opt   Options
	names modelNames
	hub   *hub
	calls *calls

	mu      sync.Mutex
	driving map[session.ID]*driver // the newest of each session
}

// New returns a server. Register its routes, and Close it at the end.
func New(opt Options) *Server {
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	if opt.Thinking == "" {
		opt.Thinking = session.ThinkingOff
	}
	s := &Server{opt: opt, driving: make(map[session.ID]*driver)}
	s.names = newModelNames(opt)
	s.hub = newHub(hubOptions{Drive: s.drive, EventStream: s.eventStream, Logger: opt.Logger, Stuck: opt.Stuck})
	s.calls = newCalls(s.callsOptions())
	return s
}

// Register adds the routes of the protocol to mux.
func (s *Server) Register(mux *http.ServeMux) {
	s.hub.register(mux)
	s.calls.register(mux)
}

// Close ends every stream with an error that has its client try again, and returns when no driver
// runs any more.
func (s *Server) Close() { s.hub.Close() }

// SessionID is the id of the session that a conversation is: its own, unless that is too long.
func SessionID(conversation string) session.ID {
	if id := session.ID(conversation); id.Valid() {
		return id
	}
	sum := sha256.Sum256([]byte(conversation))
	return session.ID("c" + hex.EncodeToString(sum[:20]))
}

// drive is what the transport calls for each link.
func (s *Server) drive(ctx context.Context, l link) {
	d := &driver{server: s, link: l, taken: make(chan struct{}), over: make(chan struct{})}
	d.log = s.opt.Logger.With(slog.String("request", l.RequestID()))
	defer close(d.over)
	d.drive(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.driving[d.id] == d {
		delete(s.driving, d.id)
	}
}

// takeTimeout is how long the driver before may take to step back.
const takeTimeout = 5 * time.Second

// take makes d the driver of its session. One that was there before steps back: a client's tools
// and questions belong to its newest attempt (section 7.6).
func (s *Server) take(d *driver) {
	s.mu.Lock()
	old := s.driving[d.id]
	s.driving[d.id] = d
	s.mu.Unlock()
	if old == nil {
		return
	}
	close(old.taken)
	select {
	case <-old.over:
	case <-time.After(takeTimeout):
	}
}

// parent returns the session whose run a request id belongs to, empty when none is known.
func (s *Server) parent(request string) session.ID {
	if request == "" {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, d := range s.driving {
		if d.link.RequestID() == request || d.identity() == request {
			return id
		}
	}
	return ""
}
