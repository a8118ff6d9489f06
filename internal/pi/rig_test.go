package pi_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	client "github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/actor"
	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/eventlog/memlog"
	"github.com/roost-dev/roost/internal/pi"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	testModel  = session.ModelRef{Provider: "test", ID: "model"}
	otherModel = session.ModelRef{Provider: "test", ID: "other"}
)

// answer is what the fake model does in one request.
type answer func(ctx context.Context, yield func(provider.Part) bool) error

// model is a fake provider. It gives its answers in order, then says "done".
type model struct {
	mu      sync.Mutex
	answers []answer
	items   [][]session.Item // of each request
}

func (m *model) then(answers ...answer) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.answers = append(m.answers, answers...)
}

func (m *model) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Part, error] {
	return func(yield func(provider.Part, error) bool) {
		m.mu.Lock()
		m.items = append(m.items, req.Items)
		a := says("done")
		if len(m.answers) > 0 {
			a, m.answers = m.answers[0], m.answers[1:]
		}
		m.mu.Unlock()
		if err := a(ctx, func(p provider.Part) bool { return yield(p, nil) }); err != nil {
			yield(provider.Part{}, err)
		}
	}
}

func (m *model) Find(ref session.ModelRef) (provider.Model, catalog.Model, error) {
	if ref != testModel && ref != otherModel {
		return nil, catalog.Model{}, session.Errorf(session.Invalid, "no model %s", ref)
	}
	return m, describe(ref), nil
}

func describe(ref session.ModelRef) catalog.Model {
	return catalog.Model{
		Ref: ref, Name: "Model", API: "test", ContextWindow: 1000, MaxOutput: 100,
		ThinkingLevels: []session.Thinking{session.ThinkingOff, session.ThinkingHigh},
	}
}

func says(texts ...string) answer {
	return func(_ context.Context, yield func(provider.Part) bool) error {
		for _, t := range texts {
			if !yield(provider.Part{Kind: provider.TextDelta, Text: t}) {
				return nil
			}
		}
		yield(provider.Part{Kind: provider.Finish, Stop: session.StopEnd})
		return nil
	}
}

// hangs says something and then nothing until it is stopped.
func hangs(text string) answer {
	return func(ctx context.Context, yield func(provider.Part) bool) error {
		yield(provider.Part{Kind: provider.TextDelta, Text: text})
		<-ctx.Done()
		return ctx.Err()
	}
}

// until says the second text when go is closed.
func until(goOn <-chan struct{}, first, second string) answer {
	return func(ctx context.Context, yield func(provider.Part) bool) error {
		yield(provider.Part{Kind: provider.TextDelta, Text: first})
		select {
		case <-goOn:
		case <-ctx.Done():
			return ctx.Err()
		}
		return says(second)(ctx, yield)
	}
}

// calls asks for tools, each "name json", the json in two pieces.
func calls(list ...string) answer {
	return func(_ context.Context, yield func(provider.Part) bool) error {
		for i, c := range list {
			name, input, _ := strings.Cut(c, " ")
			yield(provider.Part{Kind: provider.CallStart, Key: i, Name: name})
			yield(provider.Part{Kind: provider.CallDelta, Key: i, Text: input[:len(input)/2]})
			yield(provider.Part{Kind: provider.CallDelta, Key: i, Text: input[len(input)/2:]})
			yield(provider.Part{Kind: provider.CallEnd, Key: i})
		}
		yield(provider.Part{Kind: provider.Finish, Stop: session.StopToolUse})
		return nil
	}
}

func breaks(fault provider.Fault) answer {
	return func(context.Context, func(provider.Part) bool) error { return provider.Errorf(fault, "it broke") }
}

// echo is a tool that shows its input in two steps.
type echo struct{}

func (echo) Spec() tool.Spec {
	return tool.Spec{Name: "echo", Schema: []byte(`{"type":"object"}`), Repeatable: true}
}

func (echo) Run(_ context.Context, c tool.Call, progress func(tool.Progress)) tool.Result {
	progress(tool.Progress{Text: "one "})
	progress(tool.Progress{Text: "two "})
	return tool.Result{Text: string(c.Input)}
}

// stuck is a tool that does not end when it is told to, but at the end of the test.
type stuck struct{ end <-chan struct{} }

func (stuck) Spec() tool.Spec { return tool.Spec{Name: "stuck", Schema: []byte(`{"type":"object"}`)} }

func (s stuck) Run(context.Context, tool.Call, func(tool.Progress)) tool.Result {
	<-s.end
	return tool.Result{}
}

type noBlobs struct{}

func (noBlobs) Put(context.Context, []byte) (string, error) { return strings.Repeat("a", 64), nil }
func (noBlobs) Get(context.Context, string) ([]byte, error) { return []byte("image"), nil }

// lister lets a test hold up the listing of sessions, and other things that an engine does.
type lister struct {
	*actor.Engine
	mu    sync.Mutex
	block <-chan struct{} // a listing waits until it is closed
	fail  error

	panics atomic.Bool // at the next Create
}

func (l *lister) Create(ctx context.Context, c session.Create) (session.ID, error) {
	if l.panics.Swap(false) {
		panic("broken")
	}
	return l.Engine.Create(ctx, c)
}

func (l *lister) set(block <-chan struct{}, fail error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.block, l.fail = block, fail
}

func (l *lister) List(ctx context.Context) iter.Seq2[session.Meta, error] {
	return func(yield func(session.Meta, error) bool) {
		l.mu.Lock()
		block, fail := l.block, l.fail
		l.mu.Unlock()
		if block != nil {
			select {
			case <-block:
			case <-ctx.Done():
				yield(session.Meta{}, session.Errorf(session.Canceled, "canceled"))
				return
			}
		}
		if fail != nil {
			yield(session.Meta{}, fail)
			return
		}
		l.Engine.List(ctx)(yield)
	}
}

// rig is a server on a log in memory, with a fake model.
type rig struct {
	t      testing.TB
	log    *memlog.Log
	model  *model
	engine *lister
	server *pi.Server
	opt    pi.Options
	ids    int
	idMu   sync.Mutex
	quiet  bool // the server is not told of removed sessions
	stop   func()
}

// settle lets simulated time go on until nothing happens by itself any more.
func settle() {
	synctest.Wait()
	time.Sleep(10 * time.Minute)
	synctest.Wait()
}

// newRig starts a server. The options may be changed by with.
func newRig(t testing.TB, with ...func(*pi.Options)) *rig {
	t.Helper()
	r := &rig{t: t, log: memlog.New(), model: &model{}}
	r.opt = pi.Options{
		Models:   func() []catalog.Model { return []catalog.Model{describe(testModel), describe(otherModel)} },
		Images:   func(session.Image) ([]byte, bool) { return []byte("image"), true },
		ServerID: "server",
		Logger:   slog.New(slog.DiscardHandler),
	}
	for _, f := range with {
		f(&r.opt)
	}
	r.start()
	t.Cleanup(func() { r.stop() })
	return r
}

func (r *rig) start() {
	engine := actor.New(actor.Config{
		Log: r.log, Models: r.model, Blobs: noBlobs{}, Tools: []tool.Tool{echo{}, stuck{end: r.t.Context().Done()}}, Dir: "/", OutputDir: r.t.TempDir(),
		DefaultModel: func() session.ModelRef { return testModel }, NewID: r.newID,
	})
	r.engine = &lister{Engine: engine}
	r.opt.Engine = r.engine
	r.server = pi.New(r.opt)
	server := r.server
	cancel := engine.Observe(func(c actor.Change) {
		switch {
		case c.Kind == actor.SessionRemoved && r.quiet:
		case c.Kind == actor.SessionRemoved:
			server.Removed(c.ID)
		case c.Kind == actor.SessionCreated && c.Origin != pi.Origin:
			server.Changed()
		}
	})
	if err := engine.Start(context.Background()); err != nil {
		r.t.Fatal(err)
	}
	r.stop = func() {
		server.Close()
		server.Close() // twice is fine
		cancel()
		if err := engine.Close(context.Background()); err != nil {
			r.t.Error(err)
		}
	}
}

// restart is the death of the process and a new one on the same log.
func (r *rig) restart() {
	r.log = r.log.Crash()
	r.stop()
	r.start()
}

func (r *rig) newID() session.ID {
	r.idMu.Lock()
	defer r.idMu.Unlock()
	r.ids++
	return session.ID(fmt.Sprintf("s%d", r.ids))
}

// create makes a session that no connection is attached to.
func (r *rig) create() string {
	r.t.Helper()
	id, err := r.engine.Create(r.t.Context(), session.Create{Origin: pi.Origin})
	if err != nil {
		r.t.Fatal(err)
	}
	return string(id)
}

func (r *rig) delete(id string) {
	r.t.Helper()
	if err := r.engine.Delete(r.t.Context(), session.ID(id)); err != nil {
		r.t.Fatal(err)
	}
}

// pipe connects to the server.
func (r *rig) pipe() net.Conn {
	a, b := net.Pipe()
	go r.server.ServeConn(b)
	return a
}

// connect returns a strict client, which the test's end closes. It must not have met a
// violation by then.
func (r *rig) connect() *client.Client {
	r.t.Helper()
	return r.connectOver(r.pipe(), nil)
}

func (r *rig) connectOver(nc net.Conn, watch func(piwire.Event)) *client.Client {
	r.t.Helper()
	c, err := client.New(r.t.Context(), nc, watch)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(c.Close)
	return c
}
