package mcptool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/roost-dev/roost/internal/tool"
)

const (
	progressEvery = 100 * time.Millisecond
	// A call returns this long after its end even when the SDK still waits for something.
	abandonAfter = time.Second
)

// remote is a tool of a server. It is immutable.
type remote struct {
	server *server
	name   string // the server's own
	spec   tool.Spec
}

// Spec says what the server says about the tool.
func (r *remote) Spec() tool.Spec { return r.spec }

// Run calls the tool, at most for the server's Timeout, starting the server when it does
// not run. Everything that goes wrong is an error result.
func (r *remote) Run(ctx context.Context, call tool.Call, progress func(tool.Progress)) tool.Result {
	input := bytes.TrimSpace(call.Input)
	if len(input) == 0 || bytes.Equal(input, []byte("null")) {
		input = []byte("{}")
	}
	if input[0] != '{' {
		return tool.Failure("invalid input: it must be a JSON object")
	}
	var res *mcp.CallToolResult
	err := r.server.call(ctx, progress, func(ctx context.Context, l *link, token string) error {
		params := &mcp.CallToolParams{Name: r.name, Arguments: json.RawMessage(input)}
		params.SetProgressToken(token)
		var err error
		res, err = l.session.CallTool(ctx, params)
		return err
	})
	if err != nil {
		return tool.Failure(err.Error())
	}
	return callResult(res, r.server.cfg.MaxOutput, call.OutputDir)
}

// request asks a server something and stores the answer. It is given a progress token.
type request func(ctx context.Context, l *link, token string) error

// call makes a request, at most for the server's Timeout. Its error is fit for a model. A
// request that a server cannot have seen, because it has forgotten the session, is made
// again with a new one.
func (s *server) call(ctx context.Context, progress func(tool.Progress), do request) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Timeout, fmt.Errorf("it did not answer within %v", s.cfg.Timeout))
	defer cancel()
	select {
	case s.calls <- struct{}{}:
		defer func() { <-s.calls }()
	case <-ctx.Done():
		return s.explain(ctx, "call", ctx.Err(), nil)
	}
	for again := true; ; again = false {
		l, err := s.use(ctx)
		if err != nil {
			return err
		}
		err = s.on(ctx, l, progress, do)
		if !errors.Is(err, mcp.ErrSessionMissing) {
			return err
		}
		if !again {
			return s.explain(ctx, "call", err, nil)
		}
		select { // the link ends, because the session has
		case <-l.gone:
		case <-ctx.Done():
		}
	}
}

// on makes a request on a link and shows its progress. The request runs in a goroutine of
// its own, because the SDK does not always return when its context ends.
func (s *server) on(ctx context.Context, l *link, progress func(tool.Progress), do request) error {
	inner, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.ctx, cancel)() //nolint:contextcheck // a call ends with its link too
	token, news := l.expect()
	defer l.forget(token)
	done := make(chan error, 1)
	if !s.m.life.start(func(context.Context) {
		done <- guarded(func() error { return do(inner, l, token) })
	}) {
		return ErrClosed
	}
	var (
		wake    = news.wake // nil while it is too early to show more
		pause   <-chan time.Time
		abandon <-chan time.Time
		ended   = inner.Done()
	)
	for {
		select {
		case err := <-done:
			return s.outcome(ctx, l, err)
		case <-wake:
			if progress != nil {
				progress(tool.Progress{Text: news.get(), Replace: true})
			}
			wake, pause = nil, time.After(progressEvery)
		case <-pause:
			wake, pause = news.wake, nil
		case <-ended:
			ended, abandon = nil, time.After(abandonAfter)
		case <-abandon:
			return s.outcome(ctx, l, context.Canceled)
		}
	}
}

// outcome turns what the SDK says into an error for a model.
func (s *server) outcome(ctx context.Context, l *link, err error) error {
	if err == nil || errors.Is(err, mcp.ErrSessionMissing) {
		return err
	}
	if refused, ok := errors.AsType[*jsonrpc.Error](err); ok && ctx.Err() == nil {
		return &serverError{text: "MCP server " + s.cfg.Name + " refused: " + cleanLine(refused.Message, tool.MaxNotice), err: err}
	}
	if ctx.Err() != nil {
		return s.explain(ctx, "call", err, nil)
	}
	if s.m.life.ctx.Err() != nil {
		return ErrClosed
	}
	if l.ctx.Err() == nil && !endsLink(err) {
		return s.explain(ctx, "call", err, nil)
	}
	l.kill() // to know how its program ended
	return s.explain(ctx, "the connection ended during the call", l.why(), l)
}

// endsLink tells whether a call failed because its connection did.
func endsLink(err error) bool {
	return slices.ContainsFunc([]error{io.EOF, io.ErrClosedPipe, mcp.ErrConnectionClosed, errGarbage, errTooLong, errAsking},
		func(target error) bool { return errors.Is(err, target) })
}

// news is the latest progress of a call. It is safe for concurrent use.
type news struct {
	wake chan struct{} // holds a value when there is something new
	mu   sync.Mutex
	text string
}

func (n *news) set(text string) {
	n.mu.Lock()
	n.text = text
	n.mu.Unlock()
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

func (n *news) get() string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.text
}

// progressText is "message (3 of 10)".
func progressText(p *mcp.ProgressNotificationParams) string {
	count := fmt.Sprintf("%g", p.Progress)
	if p.Total > 0 {
		count += fmt.Sprintf(" of %g", p.Total)
	}
	message := cleanLine(p.Message, 1000)
	if message == "" {
		return count
	}
	return strings.TrimSpace(message) + " (" + count + ")"
}
