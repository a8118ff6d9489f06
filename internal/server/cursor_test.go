package server

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/cursor/cursortest"
	"github.com/roost-dev/roost/internal/piwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// workspace is the directory of a Cursor client: not the server's own.
func (h *home) workspace() string {
	dir := filepath.Join(h.dir, "ws")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		h.t.Fatal(err)
	}
	return dir
}

// editor is a scripted Cursor client of the server.
func (h *home) editor(opt cursortest.Options) *cursortest.Client {
	h.t.Helper()
	token, err := os.ReadFile(filepath.Join(h.dir, "data", "token"))
	if err != nil {
		h.t.Fatal(err)
	}
	opt.BaseURL, opt.Token = h.url, strings.TrimSpace(string(token))
	if opt.Model == "" {
		opt.Model = "test/m"
	}
	if opt.Dir == "" {
		opt.Dir = h.workspace()
	}
	c := cursortest.New(opt)
	h.t.Cleanup(c.Close)
	return c
}

// turn runs a prompt, which must succeed without breaking a rule of the protocol.
func (h *home) turn(c *cursortest.Client, p cursortest.Prompt) *cursortest.Result {
	h.t.Helper()
	r, err := c.Run(h.context(), p)
	if err != nil {
		h.t.Fatalf("%v; %s", err, explain(r))
	}
	if len(r.Violations) > 0 {
		h.t.Errorf("violations: %q; %s", r.Violations, explain(r))
	}
	return r
}

func explain(r *cursortest.Result) string {
	if r == nil {
		return "no result"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "text %q", r.Text)
	for _, a := range r.Attempts {
		fmt.Fprintf(&b, "\nattempt %s: %d messages, %d checkpoints, ended %v, error %v, text %q", a.Action, a.Messages, a.Checkpoints, a.TurnEnded, a.Err, a.Text)
	}
	for _, c := range r.Cards {
		fmt.Fprintf(&b, "\ncall %s: %v", c.CallID, c.Completed)
	}
	return b.String()
}

// transcript is what a pi client sees of a session.
func (h *home) transcript(id string) string {
	h.t.Helper()
	c := h.dial()
	h.attach(c, id)
	var said string
	c.With(id, func(v *pi.View) { said = tell(v) })
	return said
}

// transports are the two ways that a client can come.
var transports = map[string]cursortest.Options{"RunSSE": {}, "Run": {HTTP2: true}}

func TestCursorConversation(t *testing.T) {
	for name, opt := range transports {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, `
rules:
  - contains: first
    passes: [[{think: hmm}, {text: one two three, every: 1ms}, {usage: {input: 10, output: 5, cache_read: 3}}]]
  - contains: second
    passes: [[{text: four}]]
`)
			h.start()
			c := h.editor(opt)
			r := h.turn(c, cursortest.Prompt{Text: "first"})
			if r.Text != "one two three" || r.Thinking != "hmm" || len(r.Attempts) != 1 {
				t.Errorf("first turn: %s, thinking %q", explain(r), r.Thinking)
			}
			if u := r.Usage; u.GetInputTokens() != 13 || u.GetCacheReadTokens() != 3 || u.GetOutputTokens() != 5 {
				t.Errorf("usage %v", u)
			}
			r = h.turn(c, cursortest.Prompt{Text: "second"})
			if r.Text != "four" || len(r.Checkpoint.GetTurns()) != 2 {
				t.Errorf("second turn: %s, %d turns", explain(r), len(r.Checkpoint.GetTurns()))
			}
			want := "user: first\nassistant complete: (hmm) one two three\nuser: second\nassistant complete: four\n"
			if got := h.transcript(c.ConversationID()); !strings.HasSuffix(got, want) {
				t.Errorf("in pi:\n%s", got)
			}
		})
	}
}

func TestCursorTools(t *testing.T) {
	for name, opt := range transports {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, `
rules:
  - default: true
    passes:
      - - tool: {name: Write, input: {path: a.txt, contents: "  one\ntwo\n"}}
        - tool: {name: Shell, input: {command: "echo out; echo err >&2; exit 3"}}
      - - tool: {name: PatchEdit, input: {path: a.txt, old_string: two, new_string: three}}
        - tool: {name: PatchEdit, input: {path: a.txt, old_string: one, new_string: zero}}
      - - tool: {name: Read, input: {path: a.txt}}
        - tool: {name: Grep, input: {pattern: thr}}
        - tool: {name: Glob, input: {glob_pattern: "*.txt"}}
        - tool: {name: Ls, input: {path: .}}
        - tool: {name: mcp_custom-user-tools_add, input: {a: 1, b: 2}}
        - tool: {name: TodoWrite, input: {merge: false, todos: [{id: "1", content: do, status: pending}]}}
        - tool: {name: Nonsense, input: {}}
      - - tool: {name: Delete, input: {path: a.txt}}
      - - text: "${tool1}"
`)
			h.start()
			opt.Tools = []cursortest.Tool{{Name: "add", Call: func(_ context.Context, args map[string]any) (string, error) {
				return fmt.Sprint(args["a"].(float64) + args["b"].(float64)), nil
			}}}
			c := h.editor(opt)
			r := h.turn(c, cursortest.Prompt{Text: "go"})
			if len(r.Cards) != 12 {
				t.Errorf("%d calls: %s", len(r.Cards), explain(r))
			}
			for id, n := range c.Ran() {
				if n > 3 {
					t.Errorf("%s ran %d times", id, n)
				}
			}
			if len(r.Checkpoint.GetTodos()) != 1 {
				t.Errorf("todos %q", r.Checkpoint.GetTodos())
			}
			said := h.transcript(c.ConversationID())
			for _, want := range []string{"zero", "three", "a.txt", "Exit code: 3", "There is no tool", "3\n"} {
				if !strings.Contains(said, want) {
					t.Errorf("pi does not see %q in:\n%s", want, said)
				}
			}
			if _, err := os.Stat(filepath.Join(h.workspace(), "a.txt")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the file was not deleted: %v", err)
			}
		})
	}
}

// latch is closed once.
type latch struct {
	once sync.Once
	c    chan struct{}
}

func newLatch() *latch { return &latch{c: make(chan struct{})} }
func (l *latch) open() { l.once.Do(func() { close(l.c) }) }
func (l *latch) wait(h *home) {
	h.t.Helper()
	select {
	case <-l.c:
	case <-time.After(20 * time.Second):
		h.t.Fatal("what was waited for has not come")
	}
}

// The process is killed at each kind of point that a Cursor client can be at; the client comes back
// as the SDK does, and the run is finished as if nothing had happened.
func TestCursorKill(t *testing.T) {
	type point struct {
		script string
		at     func(m *agentv1.AgentServerMessage) bool // the server is killed when this has come
		execs  map[string]cursortest.Handler
		text   string
		pi     string // the end of what pi sees
	}
	for name, p := range map[string]point{
		"text": {
			script: "rules: [{default: true, passes: [[{text: 'one two three four five six seven eight', every: 60ms}]]}]",
			at: func(m *agentv1.AgentServerMessage) bool {
				return strings.Contains(m.GetInteractionUpdate().GetTextDelta().GetText(), "three")
			},
			text: "one two three four five six seven eight",
			pi:   "user: go\nassistant complete: one two three four five six seven eight\n",
		},
		"client tool": {
			script: "rules: [{default: true, passes: [[{tool: {name: Shell, input: {command: 'echo x >> ran; sleep 3'}}}], [{text: done}]]}]",
			at: func(m *agentv1.AgentServerMessage) bool {
				return m.GetInteractionUpdate().GetShellOutputDelta().GetStart() != nil
			},
			text: "done",
			pi:   "assistant complete: done\n",
		},
		"safe client tool": {
			script: "rules: [{default: true, passes: [[{tool: {name: Read, input: {path: f}}}], [{text: 'read ${tool1}'}]]}]",
			at:     func(m *agentv1.AgentServerMessage) bool { return m.GetExecServerMessage().GetReadArgs() != nil },
			text:   "read",
			pi:     "",
		},
		"question": {
			script: "rules: [{default: true, passes: [[{tool: {name: AskQuestion, input: {questions: [{id: q, prompt: which, options: [{id: a, label: A}, {id: b, label: B}]}]}}}], [{text: thanks}]]}]",
			at: func(m *agentv1.AgentServerMessage) bool {
				return m.GetInteractionQuery().GetAskQuestionInteractionQuery() != nil
			},
			text: "thanks",
			pi:   "assistant complete: thanks\n",
		},
		"question before another": {
			script: "rules: [{default: true, passes: [[{tool: {name: AskQuestion, input: {questions: [{id: q, prompt: which, options: [{id: a, label: A}, {id: b, label: B}]}]}}}], [{tool: {name: AskQuestion, input: {questions: [{id: r, prompt: where, options: [{id: c, label: C}, {id: d, label: D}]}]}}}], [{text: 'both, ${tool2}'}]]}]",
			at: func(m *agentv1.AgentServerMessage) bool {
				return m.GetInteractionQuery().GetAskQuestionInteractionQuery() != nil
			},
			text: "both, ",
		},
		"checkpoint": {
			script: "rules: [{default: true, passes: [[{tool: {name: Ls, input: {path: .}}}], [{text: done}]]}]",
			at:     func(m *agentv1.AgentServerMessage) bool { return m.GetKvServerMessage().GetSetBlobArgs() != nil },
			text:   "done",
			pi:     "assistant complete: done\n",
		},
		"nothing shown": {
			script: "rules: [{default: true, passes: [[{delay: 2s}, {text: answer}]]}]",
			at:     func(*agentv1.AgentServerMessage) bool { return true },
			text:   "answer",
			pi:     "user: go\nassistant complete: answer\n",
		},
		"call not issued": {
			script: "rules: [{default: true, passes: [[{tool: {name: Shell, input: {command: 'echo x >> ran'}}}, {delay: 1h}], [{text: done}]]}]",
			at: func(m *agentv1.AgentServerMessage) bool {
				return m.GetInteractionUpdate().GetPartialToolCall() != nil || m.GetInteractionUpdate().GetToolCallStarted() != nil
			},
			text: "done",
			pi:   "assistant complete: done\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, p.script)
			h.start()
			reached := newLatch()
			killed := make(chan struct{})
			opt := cursortest.Options{Execs: p.execs, Backoff: 300 * time.Millisecond}
			first := true
			opt.Watch = func(_ string, m *agentv1.AgentServerMessage) {
				if first && p.at(m) {
					first = false
					reached.open()
					<-killed
				}
			}
			if err := os.WriteFile(filepath.Join(h.workspace(), "f"), []byte("content\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c := h.editor(opt)
			type outcome struct {
				r   *cursortest.Result
				err error
			}
			over := make(chan outcome, 1)
			go func() {
				r, err := c.Run(h.context(), cursortest.Prompt{Text: "go"})
				over <- outcome{r, err}
			}()
			reached.wait(h)
			h.stop(syscall.SIGKILL)
			close(killed)
			h.start()
			o := <-over
			if o.err != nil {
				t.Fatalf("%v; %s", o.err, explain(o.r))
			}
			for _, v := range o.r.Violations {
				if !strings.HasPrefix(v, "attempt 1: ") { // which was cut off
					t.Errorf("violation %q; %s", v, explain(o.r))
				}
			}
			if !strings.Contains(o.r.Text, p.text) || strings.Count(o.r.Text, p.text) != 1 {
				t.Errorf("text: %s", explain(o.r))
			}
			if len(o.r.Attempts) < 2 {
				t.Errorf("the client never had to come back: %s", explain(o.r))
			}
			said := h.transcript(c.ConversationID())
			if !strings.HasSuffix(said, p.pi) || strings.Count(said, "user: go\n") != 1 {
				t.Errorf("pi sees:\n%s", said)
			}
			if ran, err := os.ReadFile(filepath.Join(h.workspace(), "ran")); err == nil && string(ran) != "x\n" {
				t.Errorf("the command ran %q", ran)
			}
		})
	}
}

// A server that is told to end closes what is open at its clients before it goes: none of them sees a
// broken rule.
func TestCursorTerm(t *testing.T) {
	for name, opt := range transports {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, "rules: [{default: true, passes: [[{think: hm}, {tool: {name: mcp_custom-user-tools_wait, input: {}}}], [{text: done}]]}]")
			h.start()
			running, goOn := newLatch(), make(chan struct{})
			opt.Tools = []cursortest.Tool{{Name: "wait", Call: func(context.Context, map[string]any) (string, error) {
				running.open()
				<-goOn
				return "waited", nil
			}}}
			opt.Backoff, opt.RetryCanceled = 300*time.Millisecond, true
			c := h.editor(opt)
			wait := h.began(c, cursortest.Prompt{Text: "go"})
			running.wait(h)
			h.stop(syscall.SIGTERM)
			close(goOn)
			h.start()
			r, err := wait()
			if err != nil || len(r.Violations) > 0 || r.Text != "done" || len(r.Attempts) < 2 {
				t.Errorf("%v, violations %q; %s", err, r.Violations, explain(r))
			}
		})
	}
}

// A pi client watches a session that a Cursor client drives, and steers it.
func TestCursorSessionSteeredFromPi(t *testing.T) {
	h := newHome(t, `
rules:
  - contains: hurry
    passes: [[{text: " hurried"}]]
  - default: true
    passes:
      - - tool: {name: Shell, input: {command: "cat < fifo"}}
      - - text: never
`)
	h.start()
	if err := syscall.Mkfifo(filepath.Join(h.workspace(), "fifo"), 0o600); err != nil {
		t.Fatal(err)
	}
	began := newLatch()
	c := h.editor(cursortest.Options{Watch: func(_ string, m *agentv1.AgentServerMessage) {
		if m.GetInteractionUpdate().GetShellOutputDelta().GetStart() != nil {
			began.open()
		}
	}})
	over := make(chan *cursortest.Result, 1)
	go func() {
		r, err := c.Run(h.context(), cursortest.Prompt{Text: "go"})
		if err != nil {
			t.Errorf("%v; %s", err, explain(r))
		}
		over <- r
	}()
	began.wait(h)
	p := h.dial()
	id := c.ConversationID()
	h.attach(p, id)
	h.do(p, &piwire.Steer{SessionID: id, Text: "hurry"})
	if err := os.WriteFile(filepath.Join(h.workspace(), "fifo"), []byte("x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := <-over
	if r.Text != " hurried" || len(r.Violations) > 0 {
		t.Errorf("violations %q; %s", r.Violations, explain(r))
	}
	appended := false
	for _, u := range r.Updates {
		appended = appended || u.GetUserMessageAppended().GetUserMessage().GetText() == "hurry"
	}
	if !appended {
		t.Error("the Cursor client was not told of the steer")
	}
	h.until(p, id, "the end of the run", idle)
}
