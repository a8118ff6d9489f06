package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/sandbox"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// scripted writes a configuration with a scripted model and more.
func (h *home) scripted(script, more string) {
	h.t.Helper()
	h.write("script.yaml", script)
	h.write("roost.yaml", `
providers:
  test:
    api: scripted
    script: `+filepath.Join(h.dir, "script.yaml")+`
    models: [{id: m}]
default_model: test/m
pi: {prompt_response: accepted}
`+more)
}

// dialAPI is a client of roost's own API.
func (h *home) dialAPI() *client.Client {
	h.t.Helper()
	c, err := client.FromDataDir(filepath.Join(h.dir, "data"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(c.Close)
	return c
}

// watch follows a session until f says that it has seen enough.
func (h *home) watch(c *client.Client, id, what string, f func(*client.View) bool) *client.View {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var v client.View
	for frame, err := range c.Watch(ctx, id, client.WatchOptions{}) {
		if err != nil {
			h.t.Fatalf("%s: %v", what, err)
		}
		v.Apply(frame)
		if v.Session != nil && f(&v) {
			return &v
		}
	}
	h.t.Fatalf("never: %s; items %v", what, v.Items)
	return nil
}

func ended(v *client.View) bool { return v.Session.Run == nil && v.Session.LastRun != nil }

// outputs are the results of a tool, in order.
func outputs(v *client.View, name string) []string {
	var out []string
	for _, i := range v.Items {
		if t := i.GetTool(); t.GetName() == name {
			out = append(out, t.Status.String()+" "+t.Output)
		}
	}
	return out
}

// begin makes a session and prompts it.
func (h *home) begin(c *client.Client, text string) string {
	h.t.Helper()
	created, err := c.Create(h.context(), &roostv1.CreateSessionRequest{Cwd: h.dir})
	if err != nil {
		h.t.Fatal(err)
	}
	h.again(c, created.Session.Id, text)
	return created.Session.Id
}

func (h *home) again(c *client.Client, id, text string) {
	h.t.Helper()
	if _, err := c.Prompt(h.context(), id, client.NewPromptID(), text); err != nil {
		h.t.Fatal(err)
	}
}

// A question that was open when the server was killed is asked again, and another client
// answers it; the answer is taken once, and what it grants holds for the session.
func TestApprovalSurvivesAKill(t *testing.T) {
	h := newHome(t, "")
	h.scripted(`
rules:
  - contains: second
    passes: [[{tool: {name: bash, input: {command: "rm -f one"}}}], [{text: "done"}]]
  - default: true
    passes: [[{tool: {name: bash, input: {command: "rm -f one"}}}], [{text: "done"}]]
`, "")
	h.write("one", "1")
	h.start()
	first := h.dialAPI()
	id := h.begin(first, "remove it")
	asked := func(v *client.View) bool {
		return len(v.Items) > 0 && v.Items[len(v.Items)-1].GetTool().GetQuery() != nil
	}
	h.watch(first, id, "the question", asked)
	h.restart()
	c := h.dialAPI()
	v := h.watch(c, id, "the question again", asked)
	item := v.Items[len(v.Items)-1]
	if item.GetTool().Query.Reason == "" || len(item.GetTool().Query.Grants) == 0 {
		t.Errorf("the question is %v", item.GetTool().Query)
	}
	answer := &roostv1.AnswerRequest{SessionId: id, ItemId: item.Id, Allow: true, Scope: roostv1.Scope_SCOPE_SESSION}
	if _, err := c.Answer(h.context(), answer); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Answer(h.context(), answer); client.KindOf(err) != client.NotFound {
		t.Errorf("the second answer: %v", err)
	}
	h.watch(c, id, "the end", ended)
	if _, err := os.Stat(filepath.Join(h.dir, "one")); !os.IsNotExist(err) {
		t.Errorf("the command did not run: %v", err)
	}
	h.again(c, id, "the second")
	v = h.watch(c, id, "the end of the second run", func(v *client.View) bool { return ended(v) && v.Session.LastRun.Id == 2 })
	if got := outputs(v, "bash"); len(got) != 2 || !strings.HasPrefix(got[1], "STATUS_COMPLETE") {
		t.Errorf("results %q", got)
	}
}

// Without a way to ask, version 1 of pi's protocol follows the configuration.
func TestRiskyCallsOfPiClients(t *testing.T) {
	for without, want := range map[string]string{"deny": "bash error: This call needs the person's permission", "allow": "bash complete"} {
		h := newHome(t, "")
		h.scripted(`rules: [{default: true, passes: [[{tool: {name: bash, input: {command: "rm -f one"}}}], [{text: "done"}]]}]`, "permissions: {without_client: "+without+"}")
		h.start()
		c := h.dial()
		id := h.create(c, "go")
		h.until(c, id, "the end", idle)
		c.With(id, func(v *pi.View) {
			if got := tell(v); !strings.Contains(got, want) {
				t.Errorf("%s:\n%s", without, got)
			}
		})
	}
}

// The configured time limit of questions reaches the session and those who watch it.
func TestUnansweredQuestionIsRefused(t *testing.T) {
	h := newHome(t, "")
	h.scripted(`rules: [{default: true, passes: [[{tool: {name: bash, input: {command: "rm -f one"}}}], [{text: "done"}]]}]`, "permissions: {ask_timeout: 1s}")
	h.start()
	c := h.dialAPI()
	limited := false
	v := h.watch(c, h.begin(c, "go"), "the end", func(v *client.View) bool {
		for _, i := range v.Items {
			limited = limited || i.GetTool().GetQuery().GetUntil() != nil
		}
		return ended(v)
	})
	if got := outputs(v, "bash"); !limited || !strings.Contains(fmt.Sprint(got), "nobody answered in time") {
		t.Errorf("the question said its limit: %v; the tool said %q", limited, got)
	}
}

// The rules of a project are told to the model, changes as well, and neither is shown as
// something that the person said.
func TestProjectRules(t *testing.T) {
	h := newHome(t, "")
	h.scripted(`rules: [{default: true, passes: [[{text: "done"}]]}]`, "")
	h.write("AGENTS.md", "Always use tabs.")
	h.start()
	c := h.dialAPI()
	id := h.begin(c, "one")
	h.watch(c, id, "the end", ended)
	h.write("AGENTS.md", "Always use spaces.")
	h.again(c, id, "two")
	h.watch(c, id, "the end", func(v *client.View) bool { return ended(v) && v.Session.LastRun.Id == 2 })
	h.again(c, id, "three")
	v := h.watch(c, id, "the end", func(v *client.View) bool { return ended(v) && v.Session.LastRun.Id == 3 })
	var notes []string
	for _, i := range v.Items {
		if u := i.GetUser(); u.GetNote() != "" {
			notes = append(notes, client.BlockText(u.Blocks[0]))
		}
	}
	if len(notes) != 2 || !strings.Contains(notes[0], "Always use tabs.") || !strings.Contains(notes[1], "Always use spaces.") || strings.Contains(notes[1], "tabs") {
		t.Errorf("notes %q", notes)
	}
	p := h.dial()
	h.attach(p, id)
	p.With(id, func(v *pi.View) {
		if got := tell(v); strings.Contains(got, "Always") || strings.Count(got, "user: ") != 3 {
			t.Errorf("a pi client sees\n%s", got)
		}
	})
}

func TestHooks(t *testing.T) {
	h := newHome(t, "")
	h.scripted(`rules: [{default: true, passes: [[{tool: {name: bash, input: {command: "echo hi"}}}], [{text: "done"}]]}]`, `
hooks:
  before_prompt:
    - {command: [/bin/sh, -c, "grep -q forbidden && { echo not that >&2; exit 2; }; echo '{\"context\":\"the hook was here\"}'"]}
  before_tool:
    - {match: bash, command: [/bin/sh, -c, "echo no commands today >&2; exit 2"]}
  run_end:
    - {command: [/bin/sh, -c, "cat > ended"]}
`)
	h.start()
	c := h.dialAPI()
	id := h.begin(c, "go")
	v := h.watch(c, id, "the end", ended)
	if got := outputs(v, "bash"); len(got) != 1 || !strings.Contains(got[0], "no commands today") {
		t.Errorf("results %q", got)
	}
	if !strings.Contains(fmt.Sprint(v.Items), "the hook was here") {
		t.Errorf("the model was not told: %v", v.Items)
	}
	if _, err := c.Prompt(h.context(), id, "x", "something forbidden"); client.KindOf(err) != client.Forbidden {
		t.Errorf("a forbidden prompt: %v", err)
	}
	h.stop(syscall.SIGTERM) // waits for the hooks
	if text, err := os.ReadFile(filepath.Join(h.dir, "ended")); err != nil || !strings.Contains(string(text), `"outcome":"completed"`) {
		t.Errorf("run_end: %s %v", text, err)
	}
}

// A subagent is a session of its own. When the server is killed while it works, both go on,
// and it is not started twice.
func TestSubagentSurvivesAKill(t *testing.T) {
	h := newHome(t, "")
	h.scripted(`
rules:
  - contains: count to
    passes: [[{text: "one two three four five six seven eight nine ten", every: 100ms}]]
  - default: true
    passes: [[{tool: {name: task, input: {description: counting, prompt: "count to ten", readonly: true}}}], [{text: "it said ${tool1}"}]]
`, "")
	h.start()
	c := h.dialAPI()
	id := h.begin(c, "have it counted")
	h.watch(c, id, "the child", func(v *client.View) bool {
		return len(v.Items) > 0 && strings.Contains(v.Items[len(v.Items)-1].GetTool().GetOutput(), "session ")
	})
	child := id + "-1-1-0"
	h.watch(c, child, "some words", func(v *client.View) bool { return strings.Contains(fmt.Sprint(v.Items), "three") })
	h.restart()
	c = h.dialAPI()
	v := h.watch(c, id, "the end", ended)
	if got := outputs(v, "task"); len(got) != 1 || got[0] != "STATUS_COMPLETE one two three four five six seven eight nine ten" {
		t.Errorf("results %q", got)
	}
	v = h.watch(c, child, "the child's end", ended)
	if v.Session.Parent != id || v.Session.Mode != "ask" || v.Session.LastRun.Id != 1 {
		t.Errorf("the child is %v", v.Session)
	}
}

// Aborting a session aborts its subagents.
func TestAbortReachesSubagents(t *testing.T) {
	h := newHome(t, "")
	h.scripted(`
rules:
  - contains: wait
    passes: [[{text: "waiting"}, {hang: true}]]
  - default: true
    passes: [[{tool: {name: task, input: {description: waiting, prompt: "wait for ever"}}}], [{text: "done"}]]
`, "")
	h.start()
	c := h.dialAPI()
	id := h.begin(c, "go")
	child := id + "-1-1-0"
	h.watch(c, id, "the child", func(v *client.View) bool {
		return len(v.Items) > 0 && strings.Contains(v.Items[len(v.Items)-1].GetTool().GetOutput(), "session ")
	})
	h.watch(c, child, "its words", func(v *client.View) bool { return strings.Contains(fmt.Sprint(v.Items), "waiting") })
	if _, err := c.Abort(h.context(), id); err != nil {
		t.Fatal(err)
	}
	h.watch(c, id, "the end", ended)
	v := h.watch(c, child, "the child's end", ended)
	if v.Session.LastRun.Outcome != roostv1.Outcome_OUTCOME_ABORTED {
		t.Errorf("the child ended %v", v.Session.LastRun)
	}
}

// MCP servers come from the user's configuration, and from a project only when the user has
// trusted this very content of its file.
func TestMCPServers(t *testing.T) {
	h := newHome(t, "")
	const script = `
rules:
  - contains: project
    passes: [[{tool: {name: mcp__theirs__greet, input: {name: world}}}], [{text: "done"}]]
  - default: true
    passes: [[{tool: {name: mcp__mine__greet, input: {name: world}}}], [{text: "done"}]]
`
	h.scripted(script, `
mcp_servers:
  mine: {command: `+os.Args[0]+`, env: {`+childMCP+`: "1"}}
`)
	project := `{"mcpServers": {"theirs": {"command": "` + os.Args[0] + `", "env": {"` + childMCP + `": "1"}}}}`
	h.write(".mcp.json", project)
	h.start()
	c := h.dialAPI()
	run := func(text string) string {
		id := h.begin(c, text)
		v := h.watch(c, id, "the end", ended)
		return fmt.Sprint(outputs(v, "mcp__mine__greet"), outputs(v, "mcp__theirs__greet"))
	}
	if got := run("mine"); !strings.Contains(got, "STATUS_COMPLETE hello world") {
		t.Errorf("the user's server: %s", got)
	}
	if got := run("the project's"); !strings.Contains(got, "There is no tool") {
		t.Errorf("a server that is not trusted: %s", got)
	}
	names, err := Trust(filepath.Join(h.dir, "data"), h.dir)
	if err != nil || len(names) != 1 || !strings.HasPrefix(names[0], "theirs: "+os.Args[0]) {
		t.Fatalf("trust: %q %v", names, err)
	}
	if got := run("the project's"); !strings.Contains(got, "STATUS_COMPLETE hello world") {
		t.Errorf("a trusted server: %s", got)
	}
	h.write(".mcp.json", project+" ")
	if got := run("the project's"); !strings.Contains(got, "There is no tool") {
		t.Errorf("a server whose file was changed: %s", got)
	}
}

// A confined program writes the session's directory and nothing else.
func TestSandbox(t *testing.T) {
	if _, ok := sandbox.Supported(); !ok {
		t.Log("this kernel has no Landlock: the call must be refused instead")
	}
	h := newHome(t, "")
	outside := t.TempDir()
	h.scripted(`rules: [{default: true, passes: [[{tool: {name: bash, input: {command: "echo in > inside; echo out > `+outside+`/file; echo end"}}}], [{text: "done"}]]}]`,
		"permissions: {sandbox: on, rules: [{tool: bash, action: allow}]}")
	h.start()
	c := h.dialAPI()
	v := h.watch(c, h.begin(c, "go"), "the end", ended)
	if entries, err := os.ReadDir(outside); err != nil || len(entries) > 0 {
		t.Errorf("outside: %v %v", entries, err)
	}
	if _, ok := sandbox.Supported(); ok {
		if text, err := os.ReadFile(filepath.Join(h.dir, "inside")); err != nil || string(text) != "in\n" {
			t.Errorf("inside: %q %v; the tool said %q", text, err, outputs(v, "bash"))
		}
	}
}
