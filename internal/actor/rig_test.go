package actor

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/memlog"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testModel = session.ModelRef{Provider: "test", ID: "model"}

// answer is what the fake model does in one request: it yields parts until it returns.
type answer func(ctx context.Context, req *provider.Request, yield func(provider.Part) bool) error

// model is a fake provider that gives its answers in order, and remembers the requests.
type model struct {
	mu       sync.Mutex
	answers  []answer
	requests []*provider.Request
}

func (m *model) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Part, error] {
	return func(yield func(provider.Part, error) bool) {
		m.mu.Lock()
		n := len(m.requests)
		m.requests = append(m.requests, req)
		a := says("done")
		if n < len(m.answers) {
			a = m.answers[n]
		}
		m.mu.Unlock()
		if err := a(ctx, req, func(p provider.Part) bool { return yield(p, nil) }); err != nil {
			yield(provider.Part{}, err)
		}
	}
}

func (m *model) Find(ref session.ModelRef) (provider.Model, catalog.Model, error) {
	if ref != testModel {
		return nil, catalog.Model{}, session.Errorf(session.Invalid, "no model %s", ref)
	}
	return m, catalog.Model{
		Ref: ref, ContextWindow: 100_000, MaxOutput: 100,
		ThinkingLevels: []session.Thinking{session.ThinkingOff, session.ThinkingHigh},
	}, nil
}

func (m *model) asked(n int) *provider.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.requests[n]
}

func (m *model) count() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.requests)
}

func says(texts ...string) answer {
	return func(_ context.Context, _ *provider.Request, yield func(provider.Part) bool) error {
		for _, t := range texts {
			if !yield(provider.Part{Kind: provider.TextDelta, Text: t}) {
				return nil
			}
		}
		yield(provider.Part{Kind: provider.Finish, Stop: session.StopEnd})
		return nil
	}
}

// calls asks for tools, each "name json".
func calls(list ...string) answer {
	return func(_ context.Context, _ *provider.Request, yield func(provider.Part) bool) error {
		for i, c := range list {
			name, input, _ := strings.Cut(c, " ")
			yield(provider.Part{Kind: provider.CallStart, Key: i, Name: name})
			if input != "" {
				yield(provider.Part{Kind: provider.CallDelta, Key: i, Text: input})
			}
			yield(provider.Part{Kind: provider.CallEnd, Key: i})
		}
		yield(provider.Part{Kind: provider.Finish, Stop: session.StopToolUse})
		return nil
	}
}

// breaks says something and fails.
func breaks(fault provider.Fault, text string) answer {
	return func(_ context.Context, _ *provider.Request, yield func(provider.Part) bool) error {
		if text != "" {
			yield(provider.Part{Kind: provider.TextDelta, Text: text})
		}
		return provider.Errorf(fault, "it broke")
	}
}

// hangs says something and then nothing until it is stopped.
func hangs(text string) answer {
	return func(ctx context.Context, _ *provider.Request, yield func(provider.Part) bool) error {
		if text != "" {
			yield(provider.Part{Kind: provider.TextDelta, Text: text})
		}
		<-ctx.Done()
		return ctx.Err()
	}
}

// fakeTool runs a function.
type fakeTool struct {
	name       string
	repeatable bool
	run        func(ctx context.Context, c tool.Call, progress func(tool.Progress)) tool.Result
}

func (f fakeTool) Spec() tool.Spec {
	return tool.Spec{Name: f.name, Schema: []byte(`{"type":"object"}`), Repeatable: f.repeatable}
}

func (f fakeTool) Run(ctx context.Context, c tool.Call, progress func(tool.Progress)) tool.Result {
	return f.run(ctx, c, progress)
}

type noBlobs struct{}

func (noBlobs) Put(context.Context, []byte) (string, error) { return strings.Repeat("a", 64), nil }
func (noBlobs) Get(context.Context, string) ([]byte, error) { return []byte("image"), nil }

// rig is an engine on a log in memory, with a fake model and tools.
type rig struct {
	t      *testing.T
	log    *memlog.Log
	model  *model
	tools  []tool.Tool
	engine *Engine
	ids    int
	change func(*Config)
}

func newRig(t *testing.T, tools []tool.Tool, answers ...answer) *rig {
	t.Helper()
	return newRigWith(t, nil, tools, answers...)
}

// newRigWith is newRig with a configuration that change has changed.
func newRigWith(t *testing.T, change func(*Config), tools []tool.Tool, answers ...answer) *rig {
	t.Helper()
	r := &rig{t: t, log: memlog.New(), model: &model{answers: answers}, tools: tools, change: change}
	r.start()
	return r
}

func (r *rig) start() {
	r.t.Helper()
	cfg := Config{
		Log: r.log, Models: r.model, Blobs: noBlobs{}, Tools: r.tools, Dir: "/", DefaultModel: func() session.ModelRef { return testModel },
		OutputDir: r.t.TempDir(),
		NewID:     func() session.ID { r.ids++; return session.ID(fmt.Sprintf("s%d", r.ids)) },
	}
	if r.change != nil {
		r.change(&cfg)
	}
	r.engine = New(cfg)
	if err := r.engine.Start(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) stop() {
	r.t.Helper()
	if err := r.engine.Close(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// crash takes the process away: what is not in the log has never been.
func (r *rig) crash() {
	r.t.Helper()
	r.log = r.log.Crash()
	r.stop() // to the old log, which is closed
	r.start()
}

func (r *rig) create() session.ID {
	r.t.Helper()
	id, err := r.engine.Create(r.t.Context(), session.Create{})
	if err != nil {
		r.t.Fatal(err)
	}
	return id
}

func (r *rig) do(id session.ID, cmd session.Command) session.Receipt {
	r.t.Helper()
	receipt, err := r.engine.Do(r.t.Context(), id, cmd)
	if err != nil {
		r.t.Fatalf("%#v: %v", cmd, err)
	}
	return receipt
}

func (r *rig) refused(id session.ID, cmd session.Command, kind session.Kind) {
	r.t.Helper()
	if _, err := r.engine.Do(r.t.Context(), id, cmd); session.AsError(err).Kind != kind || err == nil {
		r.t.Fatalf("%#v: got %v, want kind %v", cmd, err, kind)
	}
}

func (r *rig) state(id session.ID) *session.State {
	r.t.Helper()
	s, err := r.engine.State(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// settle waits, in simulated time, until nothing happens by itself any more.
func (r *rig) settle(id session.ID) *session.State {
	r.t.Helper()
	for range 1000 {
		synctest.Wait()
		if s := r.state(id); s.Run == nil {
			return s
		}
		time.Sleep(time.Second) // simulated
	}
	r.t.Fatal("the session does not become idle")
	return nil
}

// tell is a transcript in one line for each item.
func tell(s *session.State) string {
	var b strings.Builder
	for _, i := range s.Transcript() {
		switch i := i.(type) {
		case *session.User:
			fmt.Fprintf(&b, "user %q\n", session.BlockText(i.Blocks[0]))
		case *session.Assistant:
			fmt.Fprintf(&b, "assistant %s", []string{"streaming", "complete", "failed", "aborted"}[i.Status])
			for _, block := range i.Blocks {
				switch block := block.(type) {
				case session.Text:
					fmt.Fprintf(&b, " %q", block.Text)
				case session.Reasoning:
					fmt.Fprintf(&b, " thinks %q", block.Text)
				case session.ToolCall:
					fmt.Fprintf(&b, " calls %s(%s)", block.Name, block.Input)
				case session.Image:
				}
			}
			if i.Error != "" {
				fmt.Fprintf(&b, " error %q", i.Error)
			}
			b.WriteString("\n")
		case *session.Tool:
			fmt.Fprintf(&b, "tool %s %s %q\n", i.Name, []string{"running", "ok", "error", ""}[i.Status], i.Output)
		}
	}
	return b.String()
}

func (r *rig) wants(id session.ID, lines ...string) *session.State {
	r.t.Helper()
	s := r.settle(id)
	if got, want := tell(s), strings.Join(lines, "\n")+"\n"; got != want {
		r.t.Errorf("transcript:\n%swant:\n%s", got, want)
	}
	r.replays(s)
	return s
}

// replays checks that the log alone gives the state that the actor has.
func (r *rig) replays(want *session.State) {
	r.t.Helper()
	got, err := eventlog.Restore(r.t.Context(), r.log, want.ID)
	if err != nil {
		r.t.Fatal(err)
	}
	if tell(got) != tell(want) || got.Seq != want.Seq {
		r.t.Errorf("replay gives seq %d:\n%swant %d:\n%s", got.Seq, tell(got), want.Seq, tell(want))
	}
}

func simulate(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}
