package cursortest

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Handler carries out one execution. It answers with Exec.Send and returns when it is done: the client
// closes the execution then, or throws if there is an error. Ctx ends when the server aborts the
// execution and when the run ends; a lost connection does not end it, see Exec.Gone.
type Handler func(ctx context.Context, e *Exec) error

// errAborted is the cause of a context that the server's abort has ended, or the end of the run.
var errAborted = errors.New("aborted")

// errUnknownKind makes the client answer as one that has no handler.
var errUnknownKind = errors.New("no handler")

// Execution is what was asked of the client once.
type Execution struct {
	RequestID, Kind, ToolCallID string
	ID                          uint32
	Args                        *agentv1.ExecServerMessage
}

// Exec is one execution that goes on.
type Exec struct {
	Execution
	// Client is the one that carries it out.
	Client *Client
	begun  time.Time
	a      *attempt
	out    func(*agentv1.AgentClientMessage)

	mu    sync.Mutex
	ended bool // closed, thrown, or never to be closed
}

// Gone is closed when the stream is over that the answers go to: nobody takes them any more.
func (e *Exec) Gone() <-chan struct{} { return e.a.gone }

// Send answers. It sets the id and the time, and not the exec_id, as the SDK does.
func (e *Exec) Send(m *agentv1.ExecClientMessage) {
	m.Id = e.ID
	m.LocalExecutionTimeMs = new(e.elapsed())
	e.out(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ExecClientMessage{ExecClientMessage: m}})
}

func (e *Exec) elapsed() int32 { return int32(time.Since(e.begun).Milliseconds()) }

// Close says that nothing more comes. Only the first end of an execution counts.
func (e *Exec) Close() {
	if e.end() {
		e.control(&agentv1.ExecClientControlMessage{Message: &agentv1.ExecClientControlMessage_StreamClose{
			StreamClose: &agentv1.ExecClientStreamClose{Id: e.ID},
		}})
	}
}

// Throw says that the execution failed; no close follows.
func (e *Exec) Throw(text string) {
	if e.end() {
		e.throw(text)
	}
}

// Leave ends the execution without a word.
func (e *Exec) Leave() { e.end() }

func (e *Exec) throw(text string) {
	e.control(&agentv1.ExecClientControlMessage{Message: &agentv1.ExecClientControlMessage_Throw{
		Throw: &agentv1.ExecClientThrow{Id: e.ID, Error: text},
	}})
}

func (e *Exec) end() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := !e.ended
	e.ended = true
	return first
}

func (e *Exec) control(m *agentv1.ExecClientControlMessage) {
	e.out(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ExecClientControlMessage{ExecClientControlMessage: m}})
}

// exec begins an execution.
func (a *attempt) exec(m *agentv1.ExecServerMessage) {
	e := &Exec{
		Execution: Execution{a.record.RequestID, arm(m, "message"), toolCallID(m), m.GetId(), m},
		Client:    a.c, begun: time.Now(), a: a,
		out: func(m *agentv1.AgentClientMessage) { a.stream.send(m, nil) },
	}
	h := a.c.handler(e.Kind)
	ctx, cancel := context.WithCancelCause(a.r.ctx)
	a.mu.Lock()
	a.aborts[e.ID] = cancel
	a.mu.Unlock()
	a.c.mu.Lock()
	a.c.ran = append(a.c.ran, e.Execution)
	a.c.mu.Unlock()
	a.execs.Go(func() {
		defer cancel(nil)
		var beats sync.WaitGroup
		beats.Go(func() { e.beat(ctx) })
		e.carryOut(ctx, h)
		cancel(nil)
		beats.Wait()
	})
}

func (e *Exec) carryOut(ctx context.Context, h Handler) {
	switch err := h(ctx, e); {
	case errors.Is(err, errUnknownKind):
		kind := e.Kind
		if kind == "" {
			kind = "undefined"
		}
		e.throw("No handler found for server message of type " + kind)
		e.Close()
	case err != nil:
		e.Throw(err.Error())
	default:
		e.Close()
	}
}

// beat sends the heartbeats of an execution (section 3.4).
func (e *Exec) beat(ctx context.Context) {
	tick := time.NewTicker(e.Client.o.ExecHeartbeat)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			e.control(&agentv1.ExecClientControlMessage{Message: &agentv1.ExecClientControlMessage_Heartbeat{
				Heartbeat: &agentv1.ExecClientHeartbeat{Id: e.ID},
			}})
		case <-e.a.gone:
			return
		case <-ctx.Done():
			return
		}
	}
}

// abort ends one execution; the client's table knows the newest with an id.
func (a *attempt) abort(id uint32) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.aborts[id]; cancel != nil {
		cancel(errAborted)
	}
}

func (a *attempt) abortAll(cause error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, cancel := range a.aborts {
		cancel(cause)
	}
}

func (c *Client) handler(kind string) Handler {
	h, replaced := c.o.Execs[kind]
	if !replaced {
		h = defaultHandlers[kind]
	}
	if h == nil {
		h = func(context.Context, *Exec) error { return errUnknownKind }
	}
	return h
}

// DefaultHandler is what carries out a kind that Options.Execs does not replace; nil if it is not
// known.
func DefaultHandler(kind string) Handler { return defaultHandlers[kind] }

// Executions is all that was asked of the client so far, in order.
func (c *Client) Executions() []Execution {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Execution(nil), c.ran...)
}

// effects are the kinds that change something, or may.
var effects = map[string]bool{
	"write_args": true, "delete_args": true, "shell_args": true, "shell_stream_args": true,
	"background_shell_spawn_args": true, "mcp_args": true, "subagent_args": true, "write_shell_stdin_args": true,
	"mini_swe_agent_bash_args": true,
}

// Ran says how often each tool call was carried out, by tool_call_id: how many executions of it can
// have had an effect, so that an edit, which reads, writes and reads, ran once; if there was none, how
// many there were. Kinds without a tool_call_id, the pi tools among them, are in Executions only.
func (c *Client) Ran() map[string]int {
	all, effective := map[string]int{}, map[string]int{}
	for _, e := range c.Executions() {
		if e.ToolCallID == "" {
			continue
		}
		all[e.ToolCallID]++
		if effects[e.Kind] {
			effective[e.ToolCallID]++
		}
	}
	maps.Copy(all, effective)
	return all
}
