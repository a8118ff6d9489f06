package server

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/cursor/cursortest"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/piwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

// fifo makes a file that a reading command waits for, and returns a function that writes it.
func (h *home) fifo(name string) func(text string) {
	h.t.Helper()
	path := filepath.Join(h.workspace(), name)
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		h.t.Fatal(err)
	}
	return func(text string) {
		h.t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			h.t.Fatal(err)
		}
	}
}

// when is a Watch that opens a latch at the first message that f accepts.
func when(l *latch, f func(*agentv1.AgentServerMessage) bool) func(string, *agentv1.AgentServerMessage) {
	return func(_ string, m *agentv1.AgentServerMessage) {
		if f(m) {
			l.open()
		}
	}
}

func shellStarted(m *agentv1.AgentServerMessage) bool {
	return m.GetInteractionUpdate().GetShellOutputDelta().GetStart() != nil
}

// began runs a prompt in the background.
func (h *home) began(c *cursortest.Client, p cursortest.Prompt) (wait func() (*cursortest.Result, error)) {
	type outcome struct {
		r   *cursortest.Result
		err error
	}
	over := make(chan outcome, 1)
	go func() {
		r, err := c.Run(h.context(), p)
		over <- outcome{r, err}
	}()
	return func() (*cursortest.Result, error) {
		o := <-over
		return o.r, o.err
	}
}

const shellThenSay = `
rules:
  - contains: hurry
    passes: [[{text: " hurried"}]]
  - default: true
    passes:
      - - text: first
        - tool: {name: Shell, input: {command: "cat < fifo"}}
      - - text: " said ${tool1}"
`

func TestCursorSteer(t *testing.T) {
	h := newHome(t, shellThenSay)
	h.start()
	release, started := h.fifo("fifo"), newLatch()
	c := h.editor(cursortest.Options{Watch: when(started, shellStarted)})
	wait := h.began(c, cursortest.Prompt{Text: "go"})
	started.wait(h)
	state := make(chan string, 1)
	go func() {
		s, err := c.Steer(h.context(), "hurry")
		if err != nil {
			t.Error(err)
		}
		state <- s
	}()
	time.AfterFunc(100*time.Millisecond, func() { release("x\n") }) // either order is fine
	r, err := wait()
	if err != nil || len(r.Violations) > 0 {
		t.Fatalf("%v %q %s", err, r.Violations, explain(r))
	}
	if s := <-state; s != "delivered" || r.Text != "first hurried" {
		t.Errorf("the steer was %s; %s", s, explain(r))
	}
	if n := len(r.Checkpoint.GetTurns()); n != 2 {
		t.Errorf("%d turns", n)
	}
}

// A queued message is sent on the stream and again as a run of its own (section 2.4); the model sees
// it once.
func TestCursorQueue(t *testing.T) {
	for name, id := range map[string]string{"with an id": "m-2", "without": ""} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, shellThenSay)
			h.start()
			release, started := h.fifo("fifo"), newLatch()
			c := h.editor(cursortest.Options{Watch: when(started, shellStarted)})
			wait := h.began(c, cursortest.Prompt{Text: "go", MessageID: "m-1"})
			started.wait(h)
			if err := c.Queue("hurry", id); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(100*time.Millisecond, func() { release("x\n") })
			r, err := wait()
			if err != nil || len(r.Violations) > 0 {
				t.Fatalf("%v %q %s", err, r.Violations, explain(r))
			}
			said := h.transcript(c.ConversationID())
			if n := strings.Count(said, "user: hurry\n"); n != 1 || strings.Count(said, "hurried") != 1 || !strings.HasSuffix(said, "hurried\n") {
				t.Errorf("pi sees:\n%s", said)
			}
		})
	}
}

// The user stops the run: what was said stays, the call has a result, and the next turn works.
func TestCursorStop(t *testing.T) {
	h := newHome(t, shellThenSay)
	h.start()
	h.fifo("fifo")
	started := newLatch()
	c := h.editor(cursortest.Options{Watch: when(started, shellStarted)})
	wait := h.began(c, cursortest.Prompt{Text: "go"})
	started.wait(h)
	if err := c.Stop("enough"); err != nil {
		t.Error(err)
	}
	if _, err := wait(); !errors.Is(err, cursortest.ErrStopped) {
		t.Error(err)
	}
	r := h.turn(c, cursortest.Prompt{Text: "hurry"})
	if r.Text != " hurried" {
		t.Error(explain(r))
	}
	said := h.transcript(c.ConversationID())
	if !strings.Contains(said, "first") || !strings.Contains(said, "Shell error") {
		t.Errorf("pi sees:\n%s", said)
	}
}

// The client leaves without a word, as the SDK does to cancel; its next message ends the run.
func TestCursorCancelByLeaving(t *testing.T) {
	h := newHome(t, shellThenSay)
	h.start()
	h.fifo("fifo")
	started := newLatch()
	c := h.editor(cursortest.Options{Watch: when(started, shellStarted)})
	wait := h.began(c, cursortest.Prompt{Text: "go"})
	started.wait(h)
	if err := c.Cancel(); err != nil {
		t.Error(err)
	}
	if _, err := wait(); !errors.Is(err, cursortest.ErrCancelled) {
		t.Error(err)
	}
	if r := h.turn(c, cursortest.Prompt{Text: "hurry"}); r.Text != " hurried" {
		t.Error(explain(r))
	}
}

// The connection breaks in the middle of a text: the client gets the rest and nothing twice.
func TestCursorBrokenConnection(t *testing.T) {
	h := newHome(t, "rules: [{default: true, passes: [[{text: 'one two three four five six seven eight', every: 40ms}]]}]")
	h.start()
	broken := newLatch()
	opt := cursortest.Options{}
	opt.Watch = when(broken, func(m *agentv1.AgentServerMessage) bool {
		return strings.Contains(m.GetInteractionUpdate().GetTextDelta().GetText(), "three")
	})
	c := h.editor(opt)
	wait := h.began(c, cursortest.Prompt{Text: "go"})
	broken.wait(h)
	if err := c.Break(); err != nil {
		t.Fatal(err)
	}
	r, err := wait()
	if err != nil || len(r.Attempts) != 2 {
		t.Fatalf("%v %s", err, explain(r))
	}
	if r.Text != "one two three four five six seven eight" {
		t.Error(explain(r))
	}
}

// A provider's failure that a repetition may cure is retried by the client from its checkpoint, one
// that it cannot is shown at once (section 1.5, R10, R27).
func TestCursorProviderFaults(t *testing.T) {
	h := newHome(t, `
rules:
  - contains: refused
    passes: [[{error: {fault: request, message: no such thing}}]]
  - contains: locked
    passes: [[{error: {fault: auth, message: the key is wrong}}]]
  - default: true
    passes: [[{text: fine}]]
`)
	h.start()
	for text, want := range map[string]aiserverv1.ErrorDetails_Error{
		"refused": aiserverv1.ErrorDetails_ERROR_PROVIDER_ERROR, "locked": aiserverv1.ErrorDetails_ERROR_BAD_USER_API_KEY,
	} {
		c := h.editor(cursortest.Options{})
		h.turn(c, cursortest.Prompt{Text: "hello"})
		r, err := c.Run(h.context(), cursortest.Prompt{Text: text})
		wire, ok := errors.AsType[*cursorwire.Error](err)
		if !ok || wire.Details.GetError() != want || len(r.Attempts) != 1 || wire.Details.GetDetails().GetIsRetryable() {
			t.Errorf("%s: %v in %d attempts", text, err, len(r.Attempts))
		}
		if n := len(r.Checkpoint.GetTurns()); n != 2 {
			t.Errorf("%s: the checkpoint after the error has %d turns", text, n)
		}
		if r := h.turn(c, cursortest.Prompt{Text: "again"}); r.Text != "fine" {
			t.Error(explain(r))
		}
	}
}

func TestCursorModels(t *testing.T) {
	h := newHome(t, "rules: [{default: true, passes: [[{text: fine}]]}]")
	text, err := os.ReadFile(filepath.Join(h.dir, "roost.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	h.write("roost.yaml", string(text)+"aliases: {claude-4.5-sonnet: test/m}\n")
	h.start()
	for _, model := range []string{"test/m", "m", "claude-4.5-sonnet", "default", "auto"} {
		if r := h.turn(h.editor(cursortest.Options{Model: model}), cursortest.Prompt{Text: "go"}); r.Text != "fine" {
			t.Errorf("%s: %s", model, explain(r))
		}
	}
	r, err := h.editor(cursortest.Options{Model: "other"}).Run(h.context(), cursortest.Prompt{Text: "go"})
	wire, ok := errors.AsType[*cursorwire.Error](err)
	if !ok || wire.Details.GetError() != aiserverv1.ErrorDetails_ERROR_BAD_MODEL_NAME || len(r.Attempts) != 1 {
		t.Errorf("%v in %d attempts", err, len(r.Attempts))
	}
}

// A plan is accepted, which ends the turn, and carried out by a run of its own (R39).
func TestCursorPlan(t *testing.T) {
	h := newHome(t, `
rules:
  - contains: Carry out
    passes: [[{text: built}]]
  - default: true
    passes: [[{tool: {name: CreatePlan, input: {name: P, overview: o, plan: "# the plan", todos: []}}}], [{text: never}]]
`)
	h.start()
	c := h.editor(cursortest.Options{})
	r := h.turn(c, cursortest.Prompt{Text: "go", Mode: agentv1.AgentMode_AGENT_MODE_PLAN})
	if r.Text != "" || len(r.Cards) != 1 || r.Checkpoint.GetPlan() == nil || len(r.Checkpoint.GetPlans()) != 1 {
		t.Errorf("%s; plans %v", explain(r), r.Checkpoint.GetPlans())
	}
	r = h.turn(c, cursortest.Prompt{Action: &agentv1.ConversationAction{Action: &agentv1.ConversationAction_ExecutePlanAction{
		ExecutePlanAction: &agentv1.ExecutePlanAction{ExecutionMode: agentv1.AgentMode_AGENT_MODE_AGENT, KickoffMessageId: new("k")},
	}}})
	if r.Text != "built" || r.Checkpoint.GetMode() != agentv1.AgentMode_AGENT_MODE_AGENT {
		t.Errorf("%s; mode %v", explain(r), r.Checkpoint.GetMode())
	}
	if said := h.transcript(c.ConversationID()); !strings.Contains(said, "# the plan") {
		t.Errorf("pi sees:\n%s", said)
	}
}

// The mode changes in the middle of a run, with the consent of the user, and the tools with it.
func TestCursorSwitchMode(t *testing.T) {
	h := newHome(t, `
rules:
  - default: true
    passes:
      - - tool: {name: SwitchMode, input: {target_mode_id: ask}}
      - - tool: {name: Write, input: {path: a, contents: b}}
      - - text: "${tool1}"
`)
	h.start()
	c := h.editor(cursortest.Options{})
	r := h.turn(c, cursortest.Prompt{Text: "go"})
	if r.Checkpoint.GetMode() != agentv1.AgentMode_AGENT_MODE_ASK {
		t.Errorf("mode %v", r.Checkpoint.GetMode())
	}
	if _, err := os.Stat(filepath.Join(h.workspace(), "a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was written in ask mode: %v", err)
	}
}

// A subagent is a conversation of its own on the same server (R11).
func TestCursorSubagent(t *testing.T) {
	h := newHome(t, `
rules:
  - contains: child task
    passes: [[{tool: {name: Write, input: {path: made, contents: x}}}], [{text: child done}]]
  - default: true
    passes: [[{tool: {name: Task, input: {description: d, prompt: child task, subagent_type: generalPurpose}}}], [{text: "parent: ${tool1}"}]]
`)
	h.start()
	c := h.editor(cursortest.Options{})
	r := h.turn(c, cursortest.Prompt{Text: "go"})
	if !strings.HasPrefix(r.Text, "parent: ") || !strings.Contains(r.Text, "child done") {
		t.Error(explain(r))
	}
	if _, err := os.Stat(filepath.Join(h.workspace(), "made")); err != nil {
		t.Error(err)
	}
	for id := range c.Children() {
		if s, err := h.dialAPI().Session(h.context(), id, 0, 0); err != nil || s.Session.Parent != c.ConversationID() {
			t.Errorf("the child: %v, %v", s, err)
		}
	}
}

// The user goes back to an earlier message and sends it anew: what came after is gone (6.8).
func TestCursorEdit(t *testing.T) {
	h := newHome(t, "rules: [{default: true, passes: [[{text: 'answer'}]]}]")
	h.start()
	c := h.editor(cursortest.Options{})
	r1 := h.turn(c, cursortest.Prompt{Text: "one", MessageID: "m1"})
	h.turn(c, cursortest.Prompt{Text: "two", MessageID: "m2"})
	h.turn(c, cursortest.Prompt{Text: "three", MessageID: "m3"})
	c.SetCheckpoint(r1.Checkpoint)
	r := h.turn(c, cursortest.Prompt{Text: "two, better", MessageID: "m2"})
	if n := len(r.Checkpoint.GetTurns()); n != 2 {
		t.Errorf("%d turns", n)
	}
	want := "user: one\nassistant complete: answer\nuser: two, better\nassistant complete: answer\n"
	if said := h.transcript(c.ConversationID()); !strings.HasSuffix(said, want) || strings.Contains(said, "three") {
		t.Errorf("pi sees:\n%s", said)
	}
}

// A fork is a new conversation that begins with the turns of another (R26): also of a fork, and also
// on a server that has never seen them.
func TestCursorFork(t *testing.T) {
	script := "rules: [{default: true, passes: [[{text: 'answer'}]]}]"
	h, other := newHome(t, script), newHome(t, script)
	h.start()
	other.start()
	a := h.editor(cursortest.Options{})
	h.turn(a, cursortest.Prompt{Text: "one"})
	two := h.turn(a, cursortest.Prompt{Text: "two"})
	h.turn(a, cursortest.Prompt{Text: "three"})
	from, state := a, two.Checkpoint
	for i, on := range []*home{h, h, other} {
		fork := on.editor(cursortest.Options{})
		copyBlobs(t, from, fork, state)
		fork.SetCheckpoint(state)
		r := on.turn(fork, cursortest.Prompt{Text: "fork"})
		if n := len(r.Checkpoint.GetTurns()); n != 3+i {
			t.Errorf("fork %d has %d turns", i, n)
		}
		said := on.transcript(fork.ConversationID())
		if strings.Contains(said, "three") || strings.Count(said, "user: ") != 3+i {
			t.Errorf("fork %d:\n%s", i, said)
		}
		from, state = fork, r.Checkpoint
	}
}

// copyBlobs gives a client what a state of another refers to.
func copyBlobs(t *testing.T, from, to *cursortest.Client, s *agentv1.ConversationStateStructure) {
	t.Helper()
	var add func(entry []byte)
	add = func(entry []byte) {
		data, ok := from.Blobs().Get(entry)
		if !ok {
			return
		}
		to.Blobs().Put(data)
		turn := new(agentv1.ConversationTurnStructure)
		if proto.Unmarshal(data, turn) == nil && turn.GetAgentConversationTurn() != nil {
			add(turn.GetAgentConversationTurn().GetUserMessage())
			for _, step := range turn.GetAgentConversationTurn().GetSteps() {
				add(step)
			}
		}
	}
	for _, entry := range s.GetTurns() {
		add(entry)
	}
}

// A pi client prompts a session that a Cursor client has begun and left. The tools of this server are
// used where the directory exists here; otherwise the prompt is refused.
func TestCursorSessionPromptedFromPi(t *testing.T) {
	script := `
rules:
  - contains: from pi
    passes: [[{tool: {name: read, input: {path: f}}}], [{text: "pi: ${tool1}"}]]
  - default: true
    passes: [[{text: fine}]]
`
	h := newHome(t, script)
	h.start()
	if err := os.WriteFile(filepath.Join(h.workspace(), "f"), []byte("content\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := h.editor(cursortest.Options{})
	h.turn(c, cursortest.Prompt{Text: "go"})
	p := h.dial()
	id := c.ConversationID()
	h.attach(p, id)
	h.do(p, &piwire.Prompt{SessionID: id, Text: "from pi"})
	h.until(p, id, "the answer", func(v *pi.View) bool { return idle(v) && strings.Contains(tell(v), "pi: ") })
	r := h.turn(c, cursortest.Prompt{Text: "and now"})
	if n := len(r.Checkpoint.GetTurns()); n != 3 {
		t.Errorf("the Cursor client sees %d turns", n)
	}
	if said := h.transcript(id); !strings.Contains(said, "user: from pi\n") {
		t.Errorf("the turn from pi is gone:\n%s", said)
	}

	if err := os.RemoveAll(h.workspace()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Do(h.context(), &piwire.Prompt{SessionID: id, Text: "from pi"}); err == nil || !strings.Contains(err.Error(), "does not exist here") {
		t.Errorf("a prompt without directory: %v", err)
	}
}
