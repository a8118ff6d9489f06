package mcptool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/tool"
)

const (
	maxCalls = 32 // of one server at once; more wait

	// After its first crash a server is started again at once, after the next ones later
	// and later. One that has run for healthyAfter has no crashes behind it.
	backoffFirst = time.Second
	backoffMost  = time.Minute
	healthyAfter = time.Minute

	// A server that changes its tools all the time is asked for them this often.
	refreshEvery = time.Second
)

// server is one configured server: the link to it while there is one, and what it offered.
type server struct {
	cfg    Server
	m      *Manager
	opt    *Options
	log    *slog.Logger
	auth   *authorizer // nil for none
	broken error       // why it can never start
	calls  chan struct{}

	mu       sync.Mutex
	link     *link         // nil while there is none
	starting chan struct{} // closed when the attempt to start it has ended; nil while there is none
	err      error         // why the last attempt failed or the last link ended
	failures int
	retryAt  time.Time
	offer    offer
}

func newServer(m *Manager, cfg Server, o *Options) *server {
	s := &server{cfg: cfg, m: m, opt: o, log: o.Logger.With(slog.String("mcp_server", cfg.Name)), calls: make(chan struct{}, maxCalls)}
	s.auth, s.broken = newAuthorizer(&s.cfg, o, m.life, s.authorized)
	if (cfg.Command == "") == (cfg.URL == "") {
		s.broken = errors.New("it needs either a command or a url")
	}
	return s
}

// known returns what the server offered last.
func (s *server) known() offer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offer
}

// use returns the link to the server and starts it when there is none. All callers wait for
// the same start, each as long as its ctx says; the start goes on without them.
func (s *server) use(ctx context.Context) (*link, error) {
	mayStart := true
	for {
		l, wait, err := s.look(mayStart)
		if wait == nil {
			return l, err
		}
		mayStart = l != nil // what was waited for is no start, but the end of an old link
		select {
		case <-wait:
		case <-ctx.Done():
			if err := s.auth.waiting(); err != nil {
				return nil, err
			}
			return nil, fmt.Errorf("MCP server %s has not started yet: %w", s.cfg.Name, context.Cause(ctx))
		}
	}
}

// look returns the link, or what to wait for, or why there is none. A link together with
// something to wait for is one that is coming to its end. It starts an attempt only if the
// caller has not waited for one already.
func (s *server) look(mayStart bool) (*link, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch wait := time.Until(s.retryAt); {
	case s.broken != nil:
		return nil, nil, fmt.Errorf("MCP server %s: %w", s.cfg.Name, s.broken)
	case s.link != nil && s.link.over():
		return s.link, s.link.gone, nil
	case s.link != nil:
		return s.link, nil, nil
	case s.starting != nil:
		return nil, s.starting, nil
	case s.err != nil && !mayStart:
		return nil, nil, s.err
	case s.err != nil && wait > 0:
		return nil, nil, fmt.Errorf("%w (it is tried again in %v)", s.err, wait.Round(time.Millisecond))
	}
	done := make(chan struct{})
	s.starting = done
	if !s.m.life.start(func(ctx context.Context) { s.start(ctx, done) }) {
		s.starting = nil
		return nil, nil, ErrClosed
	}
	return nil, done, nil
}

// start makes a link, asks what the server offers, and watches the link until it ends.
func (s *server) start(ctx context.Context, done chan struct{}) {
	begun := time.Now()
	l, o, err := s.connect(ctx)
	s.mu.Lock()
	s.starting, s.link, s.err = nil, l, err
	if err != nil {
		s.fail()
	} else {
		s.setOffer(o) // before those that wait go on: to them it is no news
	}
	s.mu.Unlock()
	close(done)
	if err != nil {
		s.log.Warn("MCP server did not start", slog.Any("error", err))
		return
	}
	s.log.Info("MCP server started", slog.Int("tools", len(o.tools)), slog.Duration("took", time.Since(begun)))
	s.watch(ctx, l)
}

// fail takes a failure into account. The caller holds mu.
func (s *server) fail() {
	s.failures++
	s.retryAt = time.Time{}
	if n := s.failures - 2; n >= 0 {
		s.retryAt = time.Now().Add(min(backoffMost, backoffFirst<<min(n, 10)))
	}
}

// connect gives the server its StartTimeout to be of use.
func (s *server) connect(ctx context.Context) (*link, offer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.StartTimeout, fmt.Errorf("it was not ready within %v", s.cfg.StartTimeout))
	defer cancel()
	l, err := s.dial(ctx)
	if err != nil {
		return nil, offer{}, s.explain(ctx, "start", err, l)
	}
	o, err := s.ask(ctx, l)
	if err != nil {
		l.close()
		return nil, offer{}, s.explain(ctx, "list its tools", err, l)
	}
	return l, o, nil
}

// explain says for people what went wrong with the server.
func (s *server) explain(ctx context.Context, what string, err error, l *link) error {
	if waiting := s.auth.waiting(); waiting != nil {
		return waiting
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	said := err
	if at, ok := errors.AsType[*url.Error](err); ok {
		said = at.Err // without the address, whose query may hold a key
	}
	text := cleanLine(said.Error(), tool.MaxNotice)
	if l != nil && l.about() != "" {
		text += "; " + l.about()
	}
	return &serverError{text: fmt.Sprintf("MCP server %s: %s: %s", s.cfg.Name, what, text), err: err}
}

// serverError is an error with a text that is fit to be read.
type serverError struct {
	text string
	err  error
}

// Error returns the text.
func (e *serverError) Error() string { return e.text }

// Unwrap returns the cause.
func (e *serverError) Unwrap() error { return e.err }

// watch asks again when the server says that it offers something else, until the link ends.
func (s *server) watch(ctx context.Context, l *link) {
	begun := time.Now()
	var pause <-chan time.Time // not nil while it is too early to ask again
	for {
		changed := l.changed
		if pause != nil {
			changed = nil
		}
		select {
		case <-l.ended:
		case <-ctx.Done():
		case <-pause:
			pause = nil
			continue
		case <-changed:
			s.refresh(ctx, l)
			pause = time.After(refreshEvery)
			continue
		}
		break
	}
	s.lost(ctx, l, time.Since(begun))
}

// lost takes the end of a link into account.
func (s *server) lost(ctx context.Context, l *link, lived time.Duration) {
	defer close(l.gone)
	l.close()
	err := ErrClosed
	if ctx.Err() == nil {
		err = s.explain(ctx, "the connection ended", l.why(), l)
		s.log.Warn("MCP server is gone", slog.Any("error", err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.err = nil, err
	if lived >= healthyAfter {
		s.failures = 0
	}
	s.fail()
}

// refresh asks again what the server offers. When it does not say, the old offer stays.
func (s *server) refresh(ctx context.Context, l *link) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StartTimeout)
	defer cancel()
	o, err := s.ask(ctx, l)
	if err != nil {
		s.log.Warn("MCP server announced other tools but did not list them", slog.Any("error", err))
		return
	}
	s.mu.Lock()
	s.setOffer(o)
	s.mu.Unlock()
}

// setOffer tells the manager if there is something new. The caller holds mu.
func (s *server) setOffer(o offer) {
	same := s.offer.equal(o)
	s.offer = o
	if !same {
		s.m.change()
	}
}

// authorized makes the server start again at once.
func (s *server) authorized() {
	s.mu.Lock()
	s.failures, s.retryAt = 0, time.Time{}
	s.mu.Unlock()
	s.m.change()
}
