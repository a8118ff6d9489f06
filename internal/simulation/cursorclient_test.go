package simulation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/cursor"
	"github.com/roost-dev/roost/internal/cursor/cursortest"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// cursorClient is a person with a client of Cursor's protocol, which runs its own tools.
type cursorClient struct {
	w       *world
	name    string
	c       *cursortest.Client
	session string
	cancel  context.CancelFunc // of the run, nil without one
	running bool               // guarded by world.facts
}

func (w *world) newCursorClient(name string) *cursorClient {
	p := &cursorClient{w: w, name: name}
	conversation := "conversation-" + name
	p.session = string(cursor.SessionID(conversation))
	o := cursortest.Options{
		BaseURL: "http://roost", Dial: w.dialHTTP, ConversationID: conversation, Model: "model", Dir: w.dir,
		HTTP2: w.rng.IntN(4) == 0, RetryCanceled: true, Backoff: time.Second, Answer: p.answer,
		Tools: []cursortest.Tool{{Name: "deploy", Call: func(ctx context.Context, _ map[string]any) (string, error) {
			rest(ctx, w.drawn(2000))
			return "deployed", nil
		}}},
		Watch: p.watch,
		Execs: map[string]cursortest.Handler{"read_args": p.read, "request_context_args": p.describe},
	}
	if w.rng.IntN(2) == 0 {
		o.Faults = cursortest.Faults{
			Seed: w.rng.Uint64(),
			Reorder: func(r *rand.Rand, _ cursortest.Append) time.Duration {
				return time.Duration(r.IntN(300)) * time.Millisecond
			},
			Duplicate: func(r *rand.Rand, _ cursortest.Append) bool { return r.IntN(5) == 0 },
		}
	}
	p.c = cursortest.New(o)
	w.born(p.session, true)
	return p
}

// watch writes down what the server says.
func (p *cursorClient) watch(request string, m *agentv1.AgentServerMessage) {
	what := fmt.Sprintf("%T", m.GetMessage())
	switch u := m.GetInteractionUpdate().GetMessage().(type) {
	case nil:
	case *agentv1.InteractionUpdate_Heartbeat:
		return
	case *agentv1.InteractionUpdate_TextDelta:
		what = "text " + u.TextDelta.GetText()
	case *agentv1.InteractionUpdate_ToolCallStarted:
		what = "started " + u.ToolCallStarted.GetCallId()
	case *agentv1.InteractionUpdate_ToolCallCompleted:
		what = "completed " + u.ToolCallCompleted.GetCallId()
	default:
		what = fmt.Sprintf("%T", u)
	}
	p.w.note("%s is told in %.4s: %s", p.name, request, strings.ReplaceAll(what, "*agentv1.", ""))
}

func (p *cursorClient) read(ctx context.Context, e *cursortest.Exec) error {
	rest(ctx, p.w.drawn(1500))
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_ReadResult{ReadResult: &agentv1.ReadResult{
		Result: &agentv1.ReadResult_Success{Success: &agentv1.ReadSuccess{
			Path: e.Args.GetReadArgs().GetPath(), Output: &agentv1.ReadSuccess_Content{Content: "content"},
		}},
	}}})
	return nil
}

func (p *cursorClient) describe(_ context.Context, e *cursortest.Exec) error {
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_RequestContextResult{
		RequestContextResult: &agentv1.RequestContextResult{Result: &agentv1.RequestContextResult_Success{
			Success: &agentv1.RequestContextSuccess{RequestContext: &agentv1.RequestContext{
				Env: &agentv1.RequestContextEnv{OsVersion: "linux", WorkspacePaths: []string{p.w.dir}, ProcessWorkingDirectory: new(p.w.dir)},
			}},
		}},
	}})
	return nil
}

func (p *cursorClient) answer(ctx context.Context, q *agentv1.InteractionQuery) *agentv1.InteractionResponse {
	if !rest(ctx, p.w.drawn(20_000)) {
		return nil
	}
	return cursortest.DefaultAnswer(q)
}

// prompt begins a turn, if none is going on.
func (p *cursorClient) prompt() {
	if p.busy() {
		return
	}
	text := p.w.say()
	ctx, cancel := context.WithCancel(p.w.ctx)
	p.cancel = cancel
	p.set(true)
	p.w.open.Go(func() {
		defer p.set(false)
		res, err := p.c.Run(ctx, cursortest.Prompt{Text: text})
		p.w.note("%s turn %q: %v %q attempts=%d", p.name, text, err, res.Text, len(res.Attempts))
		p.w.turned(p, text, res, err)
	})
}

func (p *cursorClient) busy() bool {
	p.w.facts.Lock()
	defer p.w.facts.Unlock()
	return p.running
}

func (p *cursorClient) set(running bool) {
	p.w.facts.Lock()
	defer p.w.facts.Unlock()
	p.running = running
}

// do does something with the turn that is going on.
func (p *cursorClient) do(what string) {
	switch what {
	case "prompt":
		p.prompt()
	case "break":
		_ = p.c.Break()
	case "cancel":
		_ = p.c.Cancel()
	case "stop":
		p.w.open.Go(func() { _ = p.c.Stop("user") })
	case "queue":
		text := p.w.say()
		p.w.note("%s queue %q: %v", p.name, text, p.c.Queue(text, "queued-"+text))
	case "steer":
		text := p.w.say()
		p.w.open.Go(func() {
			state, err := p.c.Steer(p.w.ctx, text)
			p.w.note("%s steer %q: %s %v", p.name, text, state, err)
		})
	}
}

// leave ends the client for good.
func (p *cursorClient) leave() {
	if p.cancel != nil {
		p.cancel()
	}
}
