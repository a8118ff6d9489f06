// Package actor drives sessions. Each live session has one actor, a goroutine that is the
// only writer of its events: it takes commands, the parts of model answers and the results
// of tools, decides, appends to the event log, applies, and only then publishes. The Engine
// finds or starts the actor of a session; front ends and the command line see nothing else.
package actor

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/prompt"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

// Models finds models. It is safe for concurrent use.
type Models interface {
	// Find returns a model and what is known of it, or an *session.Error of kind Invalid.
	Find(session.ModelRef) (provider.Model, catalog.Model, error)
}

// Blobs keeps large bytes by the hash of their content.
type Blobs interface {
	Put(ctx context.Context, data []byte) (hash string, err error)
	Get(ctx context.Context, hash string) ([]byte, error)
}

// Config is what an Engine is made of. The first group is required.
type Config struct {
	Log    eventlog.Log
	Models Models
	Blobs  Blobs
	Tools  []tool.Tool       // those that every session has
	NewID  func() session.ID // a new id at each call
	Dir    string            // working directory of sessions that name none, absolute

	DefaultModel    func() session.ModelRef                                // of sessions that name none
	DefaultThinking session.Thinking                                       // ThinkingOff when empty
	MoreTools       func(context.Context, *session.State) []tool.Tool      // beside Tools, for one session; may take a while; nil for none
	Judge           func(*session.State, session.ToolCall) session.Verdict // whether a call may run; does no I/O; nil allows all
	Context         func(context.Context, *session.State) prompt.Context   // what the model is told of the project; nil for nothing
	MayWork         func(*session.State) error                             // whether a prompt from anywhere may use the workspace's tools in a session; an *session.Error; nil for always
	Remember        func(dir string, grants []string) error                // keeps what a person has allowed for always in a working directory; nil keeps nothing
	Hooks           Hooks                                                  // nil for none
	Compaction      prompt.Limits                                          // when the context is made smaller, and how far

	Unconfined bool             // file tools may leave the working directory
	OutputDir  string           // for tool outputs too large to return; the system's when empty
	Env        []string         // for programs that tools start, "NAME=value"
	IdleUnload time.Duration    // an idle session that nobody watches leaves memory after it; 0 means 30 s
	MaxLive    int              // sessions in memory at a time; 0 means 10,000
	Logger     *slog.Logger     // nil discards
	Now        func() time.Time // nil means time.Now
}

// Change is something that happened to the index of sessions.
type Change struct {
	ID     session.ID
	Kind   ChangeKind
	Origin string // of a created session
}

// ChangeKind says what a Change is.
type ChangeKind uint8

// The kinds of Change.
const (
	SessionCreated ChangeKind = iota
	SessionUpdated            // its name, model, thinking level or activity
	SessionRemoved
)

// Engine holds the live sessions. It is safe for concurrent use.
type Engine struct {
	cfg         Config
	staticOffer []provider.Tool // of the tools that every session has, to estimate by

	mu       sync.Mutex
	actors   map[session.ID]*actor
	watchers map[int]func(Change)
	nextID   int
	closing  bool
	running  sync.WaitGroup // actors and their restarts
	quit     chan struct{}

	busy       atomic.Bool     // something was appended since Busy was asked
	background context.Context // ends when the engine has closed
	cancel     context.CancelFunc
}

// New returns an engine. Call Start before use and Close after it.
func New(cfg Config) *Engine {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.IdleUnload == 0 {
		cfg.IdleUnload = 30 * time.Second
	}
	if cfg.MaxLive == 0 {
		cfg.MaxLive = 10_000
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.DefaultThinking == "" {
		cfg.DefaultThinking = session.ThinkingOff
	}
	e := &Engine{
		cfg: cfg, staticOffer: offer(cfg.Tools),
		actors: make(map[session.ID]*actor), watchers: make(map[int]func(Change)),
		quit: make(chan struct{}),
	}
	e.background, e.cancel = context.WithCancel(context.Background())
	return e
}

// Start takes up every session that was in the middle of a run when the last process ended.
// One that cannot be read is left alone and logged; the others go on.
func (e *Engine) Start(ctx context.Context) error {
	ids, err := e.cfg.Log.Active(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		a, err := e.acquire(ctx, id)
		if err != nil {
			e.cfg.Logger.Error("session cannot be taken up", slog.String("session", string(id)), slog.Any("error", err))
			continue
		}
		e.release(a)
	}
	return nil
}

// Close stops every session where it is. Tools are stopped and their results kept; answers
// that stream in go on after the next start. It returns once nothing runs any more, or with
// ctx's error.
func (e *Engine) Close(ctx context.Context) error {
	e.mu.Lock()
	if !e.closing {
		e.closing = true
		close(e.quit)
	}
	e.mu.Unlock()
	defer e.cancel() // hooks may take as long as ctx lets them
	done := make(chan struct{})
	go func() {
		e.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Load returns how many sessions are in memory, and how many of them have a run in progress.
func (e *Engine) Load() (sessions, runs int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.actors {
		if a.running.Load() {
			runs++
		}
	}
	return len(e.actors), runs
}

// Busy reports whether a run has begun or gone on since Busy was called last.
func (e *Engine) Busy() bool { return e.busy.Swap(false) }

// Do has a session obey cmd and returns once that is in the event log. Errors are
// *session.Error.
func (e *Engine) Do(ctx context.Context, id session.ID, cmd session.Command) (session.Receipt, error) {
	cmd, err := e.complete(ctx, id, cmd)
	if err != nil {
		return session.Receipt{}, err
	}
	m := &command{cmd: cmd, reply: make(chan commandReply, 1)}
	r, err := deliver(ctx, e, id, m, m.reply)
	if err != nil {
		return session.Receipt{}, err
	}
	if r.err == nil && len(r.forever) > 0 && e.cfg.Remember != nil {
		if err := e.cfg.Remember(r.dir, r.forever); err != nil {
			e.cfg.Logger.Error("a permission cannot be kept", slog.Any("error", err))
		}
	}
	return r.receipt, r.err
}

// maxReloads is how often a message is delivered to a session that fails before it is read.
const maxReloads = 3

// deliver sends m to the actor of a session and returns its reply. A session that failed
// before it read m is loaded again.
func deliver[T any](ctx context.Context, e *Engine, id session.ID, m message, reply <-chan T) (T, error) {
	for n := 1; ; n++ {
		a, err := e.acquire(ctx, id)
		if err != nil {
			var none T
			return none, err
		}
		r, err := ask(ctx, a, m, reply)
		e.release(a)
		if n == maxReloads || !errors.Is(err, errGone) {
			return r, err
		}
	}
}

// complete fills in what a command needs to know of the models.
func (e *Engine) complete(ctx context.Context, id session.ID, cmd session.Command) (session.Command, error) {
	switch c := cmd.(type) {
	case session.SetModel:
		_, m, err := e.cfg.Models.Find(c.Model)
		if err != nil {
			return nil, err
		}
		c.Levels = m.ThinkingLevels
		return c, nil
	case session.SetThinking:
		state, err := e.State(ctx, id)
		if err != nil {
			return nil, err
		}
		_, m, err := e.cfg.Models.Find(state.Model)
		if err != nil {
			return nil, err
		}
		c.Levels = m.ThinkingLevels
		return c, nil
	case session.Prompt:
		return e.completePrompt(ctx, id, c)
	case session.SetMode:
		c.Text = prompt.ModeNote(c.Mode)
		return c, nil
	case session.Compact:
		if c.Through > 0 {
			return c, nil
		}
		state, err := e.State(ctx, id)
		if err != nil {
			return nil, err
		}
		how, _ := policy{engine: e}.Shrink(state, true)
		c.Through = how.Summarize
		return c, nil
	}
	return cmd, nil
}

// State returns a copy of a session's state as of its last durable event.
func (e *Engine) State(ctx context.Context, id session.ID) (*session.State, error) {
	m := &getState{reply: make(chan *session.State, 1)}
	return deliver(ctx, e, id, m, m.reply)
}

// Watch subscribes to a session: from its state now when from is nil, else from the event
// after the position. A position that the event log no longer has begins with a Reset. The
// session stays in memory until the subscription is closed.
func (e *Engine) Watch(ctx context.Context, id session.ID, from *session.Position) (*live.Subscription, error) {
	m := &watch{from: from, reply: make(chan *live.Subscription, 1)}
	// Not ctx: a subscription that was made must not get lost on its way here.
	return deliver(context.WithoutCancel(ctx), e, id, m, m.reply)
}

// Epoch is the incarnation of the event log, a part of every position.
func (e *Engine) Epoch() session.Epoch { return e.cfg.Log.Epoch() }

// List yields every session, the most recently updated first.
func (e *Engine) List(ctx context.Context) iter.Seq2[session.Meta, error] {
	return e.cfg.Log.List(ctx)
}

// Observe has f called after each change of the index, until cancel is called. F must not
// block, and must not call the engine.
func (e *Engine) Observe(f func(Change)) (cancel func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	id := e.nextID
	e.nextID++
	e.watchers[id] = f
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.watchers, id)
	}
}

func (e *Engine) changed(c Change) {
	e.mu.Lock()
	watchers := make([]func(Change), 0, len(e.watchers))
	for _, f := range e.watchers {
		watchers = append(watchers, f)
	}
	e.mu.Unlock()
	for _, f := range watchers {
		f(c)
	}
}

var (
	errGone    = session.Errorf(session.Unavailable, "the session had to be reloaded; try again")
	errClosing = session.Errorf(session.Unavailable, "the server is shutting down")
)

// logError gives an event log's error a kind.
func logError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, eventlog.ErrNotFound):
		return session.Errorf(session.NotFound, "there is no such session")
	case errors.Is(err, eventlog.ErrFull):
		return session.Errorf(session.Unavailable, "the server's disk is full or cannot be written; nothing was changed")
	case errors.Is(err, eventlog.ErrDisk):
		return session.Errorf(session.Unavailable, "the server's disk failed to keep what was written; look at the disk, then restart roost, which finds everything that was acknowledged")
	case errors.Is(err, eventlog.ErrFenced):
		return session.Errorf(session.Locked, "the session is being changed by another process")
	case errors.Is(err, eventlog.ErrClosed):
		return errClosing
	case errors.Is(err, eventlog.ErrCorrupt):
		return &session.Error{Kind: session.Internal, Message: "the session's history is damaged and cannot be read"}
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return session.Errorf(session.Canceled, "the request was canceled")
	}
	return err
}
