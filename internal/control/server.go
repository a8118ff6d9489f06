// Package control is the front end of roost's own API, roost.v1. It turns requests into
// commands and events into frames, and keeps the state of streams, nothing else:
//
//	request ─▶ Server ─▶ Engine.Do
//	frames  ◀─ controlview ◀─ watch ◀─ Engine.Watch
//
// Each call is one goroutine of the HTTP server. A watch waits for events, encodes them and
// writes them itself, so nothing piles up behind a slow client but the bounded queue of its
// subscription.
package control

import (
	"context"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/proto/roost/v1/roostv1connect"
)

// Engine is what the front end needs of the sessions. Errors are *session.Error.
type Engine interface {
	Create(context.Context, session.Create) (session.ID, error)
	Do(context.Context, session.ID, session.Command) (session.Receipt, error)
	State(context.Context, session.ID) (*session.State, error)
	Watch(context.Context, session.ID, *session.Position) (*live.Subscription, error)
	Fork(ctx context.Context, id session.ID, before session.ItemID, name string) (session.ID, error)
	Import(context.Context, session.Create, []session.Item) (session.ID, error)
	Delete(context.Context, session.ID) error
	List(context.Context) iter.Seq2[session.Meta, error]
	Epoch() session.Epoch
}

// Blobs keeps bytes by the hex SHA-256 of their content. The error of Get is an
// *session.Error or wraps fs.ErrNotExist when there is no such blob.
type Blobs interface {
	Get(ctx context.Context, hash string) ([]byte, error)
	Put(ctx context.Context, data []byte) (hash string, err error)
}

// Options is what a Server is made of. Engine, Models and Blobs are required.
type Options struct {
	Engine Engine
	Models func() []catalog.Model // those on offer; safe for concurrent use
	Blobs  Blobs

	Version      string // of this program
	ServerID     string
	DefaultModel func() session.ModelRef // nil when there is none; safe for concurrent use

	Heartbeat    time.Duration // between frames of a watch in which nothing happens; 0 means 10 s
	WriteTimeout time.Duration // for one frame of a watch to be taken by its client; 0 means 1 min
	CallTimeout  time.Duration // for any other call; 0 means 1 min
	Stuck        func()        // called when a watch is given up whose client has not taken a frame in WriteTimeout; must not block; nil for nothing
	MaxRequest   int           // bytes of a request other than an import or a prompt; 0 means 2 MiB
	Logger       *slog.Logger  // nil discards
}

// Origin is the Origin of sessions that are created here.
const Origin = "roost"

// compressFrom is from which size, in bytes, an answer is worth compressing.
const compressFrom = 4 << 10

// Server answers calls. It is safe for concurrent use, and has nothing to close: its streams
// end with their requests, and when the engine closes.
type Server struct {
	opt     Options
	handler http.Handler
}

var _ roostv1connect.SessionServiceHandler = (*Server)(nil)

// Pattern is where [Server.Handler] belongs in an http.ServeMux.
const Pattern = "/" + roostv1connect.SessionServiceName + "/"

// New returns a server.
func New(opt Options) *Server {
	if opt.Heartbeat == 0 {
		opt.Heartbeat = 10 * time.Second
	}
	if opt.WriteTimeout == 0 {
		opt.WriteTimeout = time.Minute
	}
	if opt.CallTimeout == 0 {
		opt.CallTimeout = time.Minute
	}
	if opt.MaxRequest == 0 {
		opt.MaxRequest = 2 << 20
	}
	if opt.Logger == nil {
		opt.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{opt: opt}
	calls := connect.NewServer(s.protect)
	roostv1connect.RegisterSessionServiceHandler(calls, s)
	mux := http.NewServeMux()
	connecthttp.Mount(mux, calls,
		connecthttp.WithReadMaxBytes(opt.MaxRequest), connecthttp.WithCompressors(compressors...), connecthttp.WithCompressMinBytes(compressFrom),
		connecthttp.WithConditionalOptions(largeRequests))
	mux.HandleFunc(EventsPattern, s.events)
	s.handler = withWriter(mux)
	return s
}

// Handler returns the HTTP handler of the API. It serves the paths below [Pattern] in the
// protocols Connect, gRPC and gRPC-Web, and [EventsPattern] as server-sent events. Watches stream for as long as their clients like, so
// the http.Server around it has no WriteTimeout. It checks no token: that is the guard's.
func (s *Server) Handler() http.Handler { return s.handler }

// writerKey finds the writer of a request's answer in its context.
type writerKey struct{}

// withWriter lets a call set deadlines for what it writes.
func withWriter(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := context.WithValue(r.Context(), writerKey{}, http.NewResponseController(w))
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// allowWrite gives the client time to take what is written next. Without it one that never
// reads would hold its stream for ever.
func (s *Server) allowWrite(ctx context.Context) {
	if w, ok := ctx.Value(writerKey{}).(*http.ResponseController); ok {
		// A writer without deadlines is one in memory, which takes everything.
		_ = w.SetWriteDeadline(time.Now().Add(s.opt.WriteTimeout))
	}
}
