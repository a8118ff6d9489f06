package mcptool

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// versions are the protocol versions that are tried, each with a connection of its own.
// Most servers only know the handshake of the first, and some end when they are sent
// anything else; a server without a handshake refuses that and is asked again in the way of
// the newest version.
var versions = []string{"2025-11-25", ""}

// goodbyeFor is how long an HTTP server may take to be told of the end.
const goodbyeFor = time.Second

// The notices of a server that are listened to.
const (
	noticeProgress  = "notifications/progress"
	noticeTools     = "notifications/tools/list_changed"
	noticeResources = "notifications/resources/list_changed"
	noticePrompts   = "notifications/prompts/list_changed"
	noticeCancelled = "notifications/cancelled"
)

func wanted(method string) bool {
	return slices.Contains([]string{noticeProgress, noticeTools, noticeResources, noticePrompts, noticeCancelled}, method)
}

// answered are the questions of a server that the SDK answers; others get an error.
var answered = []string{"ping", "roots/list"}

// link is a connection to a server that has said hello. It is safe for concurrent use.
type link struct {
	session *mcp.ClientSession
	ctx     context.Context // calls end with the link
	cancel  context.CancelFunc
	kill    func()        // ends the connection by force, within 2 s
	grace   time.Duration // before that, for saying goodbye
	about   func() string // what is known about the other side

	changed chan struct{} // holds a value when the server offers something else
	ended   chan struct{} // closed when the connection has ended
	err     error         // why, set before ended is closed
	gone    chan struct{} // closed when the server has no link, or another one

	token    atomic.Int64
	mu       sync.Mutex
	progress map[string]*news // by token
	closing  sync.Once
}

// dial makes a connection. When it fails the connection has ended, and a link, if there is
// one, only tells about it.
func (s *server) dial(ctx context.Context) (*link, error) {
	var (
		l   *link
		err error
	)
	for _, version := range versions {
		if l, err = s.dialVersion(ctx, version); err == nil || !refusesHandshake(err) {
			break
		}
	}
	return l, err
}

// refusesHandshake tells whether a server does not know the handshake that it was sent.
func refusesHandshake(err error) bool {
	refused, ok := errors.AsType[*jsonrpc.Error](err)
	return ok && slices.Contains([]int64{
		jsonrpc.CodeMethodNotFound, jsonrpc.CodeInvalidParams, jsonrpc.CodeInvalidRequest, mcp.CodeUnsupportedProtocolVersion,
	}, refused.Code)
}

func (s *server) dialVersion(ctx context.Context, version string) (*link, error) {
	l := &link{changed: make(chan struct{}, 1), ended: make(chan struct{}), gone: make(chan struct{}), progress: map[string]*news{}}
	l.ctx, l.cancel = context.WithCancel(context.WithoutCancel(ctx))
	transport, err := s.transport(ctx, l)
	if err != nil {
		l.cancel()
		return nil, err
	}
	client := s.client(l)
	stop := context.AfterFunc(ctx, l.kill) // the SDK may wait for an answer while it closes
	err = guarded(func() error {
		var err error
		l.session, err = client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
		return err
	})
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		l.cancel()
		l.kill()
		return l, err
	}
	go func() {
		l.err = l.session.Wait()
		close(l.ended)
	}()
	return l, nil
}

// transport makes the way to the server and says how it is ended.
func (s *server) transport(ctx context.Context, l *link) (mcp.Transport, error) {
	if s.cfg.Command != "" {
		c, err := startChild(&s.cfg)
		if err != nil {
			return nil, err
		}
		s.m.running.Add(1)
		conn := newStdio(c)
		var once sync.Once
		l.about = conn.String
		l.kill = func() {
			_ = conn.Close()
			once.Do(func() { s.m.running.Add(-1) })
		}
		return conn, nil
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx)) // the connection outlives its start
	client, w, err := newWire(ctx, &s.cfg)
	if err != nil {
		cancel()
		return nil, err
	}
	l.about, l.grace = func() string { return "" }, goodbyeFor
	l.kill = func() {
		cancel()
		w.base.CloseIdleConnections()
	}
	t := &mcp.StreamableClientTransport{Endpoint: s.cfg.URL, HTTPClient: client, MaxRetries: 3, MaxEventSize: maxMessage}
	if s.auth != nil {
		t.OAuthHandler = s.auth
	}
	return t, nil
}

// client returns the SDK's client for one link.
func (s *server) client(l *link) *mcp.Client {
	signal := func() {
		select {
		case l.changed <- struct{}{}:
		default:
		}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "roost", Version: s.opt.Version}, &mcp.ClientOptions{
		Capabilities:                &mcp.ClientCapabilities{}, // nothing that a server could ask of a person or a model
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { signal() },
		ResourceListChangedHandler:  func(context.Context, *mcp.ResourceListChangedRequest) { signal() },
		PromptListChangedHandler:    func(context.Context, *mcp.PromptListChangedRequest) { signal() },
		ProgressNotificationHandler: func(_ context.Context, req *mcp.ProgressNotificationClientRequest) { l.tell(req.Params) },
	})
	client.AddReceivingMiddleware(onlyExpected)
	return client
}

// onlyExpected keeps what the server sends on its own away from the SDK, but for what is
// listened to, and from panicking there.
func onlyExpected(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (res mcp.Result, err error) {
		if strings.HasPrefix(method, "notifications/") && !wanted(method) {
			return nil, nil
		}
		if !strings.HasPrefix(method, "notifications/") && !slices.Contains(answered, method) {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "roost does not answer " + method}
		}
		return res, guarded(func() error {
			var err error
			res, err = next(ctx, method, req)
			return err
		})
	}
}

// why returns the error that ended the link.
func (l *link) why() error {
	<-l.ended
	if l.err == nil {
		return mcp.ErrConnectionClosed
	}
	return l.err
}

// over tells whether the link has ended.
func (l *link) over() bool {
	select {
	case <-l.ended:
		return true
	default:
		return false
	}
}

// close ends the link and its calls, and returns when nothing of it is left.
func (l *link) close() {
	l.closing.Do(func() {
		l.cancel()
		// A program is ended at once, for the SDK would wait until it has read its answers;
		// an HTTP server is told of the end.
		timer := time.AfterFunc(l.grace, l.kill)
		_ = l.session.Close()
		timer.Stop()
		l.kill()
	})
	<-l.ended
}

// expect registers interest in the progress of a call.
func (l *link) expect() (token string, n *news) {
	token = strconv.FormatInt(l.token.Add(1), 10)
	n = &news{wake: make(chan struct{}, 1)}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.progress[token] = n
	return token, n
}

func (l *link) forget(token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.progress, token)
}

// tell hands progress to the call that it is about.
func (l *link) tell(p *mcp.ProgressNotificationParams) {
	if p == nil {
		return
	}
	token, ok := p.ProgressToken.(string)
	if !ok {
		return
	}
	l.mu.Lock()
	n := l.progress[token]
	l.mu.Unlock()
	if n != nil {
		n.set(progressText(p))
	}
}
