// Package mcptool gives sessions the tools of MCP servers (Model Context Protocol): programs
// that speak over their standard streams, and streamable HTTP servers. It is a client on the
// official SDK.
//
//	Manager ── one server per name ── at most one link ── SDK session ── stdio | HTTP
//	   │              │ started at its first use, shared by all sessions,
//	   │              │ started again after a crash, later each time
//	   └── Tools: what all servers offer, under names that models take
//
// What a server sends is data and hostile until proven otherwise: it is bounded, cleaned and
// waited for no longer than configured. A server that hangs, floods, dies or talks nonsense
// costs its own tools an error result, and nothing else.
package mcptool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/internal/tool"
)

// ErrClosed means that the manager was closed.
var ErrClosed = errors.New("MCP servers are closed")

// ErrUnknown means that there is no server with a name.
var ErrUnknown = errors.New("no such MCP server")

// Server says how to reach a server. Exactly one of Command and URL is set. A Server with
// anything wrong is one whose start fails.
type Server struct {
	Name    string   // unique
	Command string   // a program, found in PATH unless it is a path
	Args    []string // its arguments
	Env     []string // "NAME=value", besides PATH, HOME, LANG, TMPDIR and USER
	Dir     string   // where it runs; empty for roost's own directory
	URL     string   // an http or https address
	Headers http.Header

	Timeout          time.Duration // of one call; 60 s when not positive
	StartTimeout     time.Duration // from start to the list of tools; 30 s when not positive
	MaxOutput        int           // bytes of text of one result, at most tool.MaxBytes; 32 KiB when not positive
	Tools            []string      // the only tools that are offered, by the server's names; nil for all
	TrustAnnotations bool          // tools are repeatable when the server says that they change nothing
}

const (
	defaultTimeout      = 60 * time.Second
	defaultStartTimeout = 30 * time.Second
	defaultMaxOutput    = 32 << 10

	settleFor = 3 * time.Second // to end a server that did not start in time
)

// Options configure a Manager.
type Options struct {
	Servers []Server
	Logger  *slog.Logger // nil for none
	Version string       // roost's own, told to servers
	DataDir string       // tokens are kept in its folder "mcp", mode 0600; without it HTTP servers cannot ask for authorization

	// Authorize asks a person to open url, where the user agrees to what server may do, and
	// returns the parameters with which the browser then comes to RedirectURL. It may take
	// 10 minutes. Without it, or without RedirectURL, a server that needs authorization is
	// a problem.
	Authorize   func(ctx context.Context, server, url string) (Grant, error)
	RedirectURL string
}

// Problem says why a server, or one of its tools, cannot be used.
type Problem struct {
	Server string
	Err    error // [*AuthorizationError] when a person has to open an address
}

// Manager holds the MCP servers of a process. It is safe for concurrent use.
type Manager struct {
	servers []*server // in the order of the options
	life    *lifetime
	running atomic.Int64 // programs

	mu      sync.Mutex
	changed chan struct{}
}

// New returns a Manager. It starts nothing. Close it.
func New(o Options) *Manager {
	m := &Manager{life: newLifetime(), changed: make(chan struct{})}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	for _, cfg := range o.Servers {
		cfg.Timeout = orDefault(cfg.Timeout, defaultTimeout)
		cfg.StartTimeout = orDefault(cfg.StartTimeout, defaultStartTimeout)
		cfg.MaxOutput = orDefault(cfg.MaxOutput, defaultMaxOutput)
		m.servers = append(m.servers, newServer(m, cfg, &o))
	}
	return m
}

func orDefault[T cmp.Ordered](v, def T) T {
	var zero T
	if v <= zero {
		return def
	}
	return v
}

// Tools returns what the servers offer, sorted by name, and what is wrong. It starts servers
// that do not run, all at once, and waits for each at most for its StartTimeout, and 3 s
// more when it has to be ended then; a server that failed a moment ago is not waited for.
// Tools that a server had are returned even when it is gone: using one starts it again, or
// gives an error result.
func (m *Manager) Tools(ctx context.Context) ([]tool.Tool, []Problem) {
	errs := make([]error, len(m.servers))
	var wg sync.WaitGroup
	for i, s := range m.servers {
		wg.Go(func() {
			limited, cancel := context.WithTimeout(ctx, s.cfg.StartTimeout+settleFor)
			defer cancel()
			_, errs[i] = s.use(limited)
		})
	}
	wg.Wait()
	var (
		tools     []tool.Tool
		problems  []Problem
		taken     = map[string]bool{}
		resources bool
	)
	for i, s := range m.servers {
		if errs[i] != nil {
			problems = append(problems, Problem{s.cfg.Name, errs[i]})
		}
		offer := s.known()
		resources = resources || offer.resources
		for _, t := range offer.tools {
			if taken[t.spec.Name] {
				problems = append(problems, Problem{s.cfg.Name, fmt.Errorf("another tool is called %s already", t.spec.Name)})
				continue
			}
			taken[t.spec.Name] = true
			tools = append(tools, t)
		}
		for _, err := range offer.problems {
			problems = append(problems, Problem{s.cfg.Name, err})
		}
	}
	if resources {
		tools = append(tools, &listResources{m}, &readResource{m})
	}
	slices.SortStableFunc(tools, func(a, b tool.Tool) int { return cmp.Compare(a.Spec().Name, b.Spec().Name) })
	return tools, problems
}

// Changed returns a channel that is closed when what Tools returns may next have changed: a
// server has said that its tools are others, it started late, or a person authorized it.
func (m *Manager) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

func (m *Manager) change() {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.changed)
	m.changed = make(chan struct{})
}

// Running returns how many servers' programs run now.
func (m *Manager) Running() int { return int(m.running.Load()) }

// server returns the server with a name, or [ErrUnknown].
func (m *Manager) server(name string) (*server, error) {
	i := slices.IndexFunc(m.servers, func(s *server) bool { return s.cfg.Name == name })
	if i < 0 {
		return nil, fmt.Errorf("%w: %q", ErrUnknown, tool.Cut(name, 100))
	}
	return m.servers[i], nil
}

// Close ends all servers and waits until nothing of them is left, which takes at most 3 s,
// or until ctx ends. Calls that run get error results. Only the first Close does anything.
func (m *Manager) Close(ctx context.Context) error {
	if !m.life.close() {
		return nil
	}
	select {
	case <-m.life.over():
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close MCP servers: %w", ctx.Err())
	}
}
