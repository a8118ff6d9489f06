package cursortest

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// answers is what the client says of one execution.
type answers struct {
	results []*agentv1.ExecClientMessage
	thrown  string
	closed  bool
	order   []string
}

// ask has the client carry out m and waits until it has closed it, or thrown.
func (x *exchange) ask(m *agentv1.ExecServerMessage) (a answers) {
	x.n++
	m.Id = x.n
	if id := toolCallID(m); id != "" {
		x.started(id)
		defer x.completed(id)
	}
	x.exec(m)
	for {
		in := x.receive()
		control := in.GetExecClientControlMessage()
		switch {
		case in == nil:
			return a
		case in.GetExecClientMessage() != nil:
			a.results = append(a.results, in.GetExecClientMessage())
			a.order = append(a.order, "result")
			if r := in.GetExecClientMessage(); r.GetId() != m.GetId() || r.GetExecId() != "" || r.LocalExecutionTimeMs == nil {
				x.s.t.Errorf("the answer to %d is %v", m.GetId(), r)
			}
		case control.GetThrow() != nil:
			a.thrown = control.GetThrow().GetError()
			a.order = append(a.order, "throw")
			if !strings.HasPrefix(a.thrown, "No handler") {
				return a
			}
		case control.GetStreamClose() != nil:
			a.closed = true
			a.order = append(a.order, "close")
			return a
		}
	}
}

// one is for an execution with one result.
func (x *exchange) one(m *agentv1.ExecServerMessage) *agentv1.ExecClientMessage {
	a := x.ask(m)
	if len(a.results) != 1 || !a.closed {
		x.s.t.Errorf("to %v the client says %v, closed %v", m, a.results, a.closed)
		return nil
	}
	return a.results[0]
}

func play(t *testing.T, edit func(*Options), test func(x *exchange)) (*Client, *Result) {
	t.Helper()
	c := newStub(t, false, within(test)).client(edit)
	return c, mustRun(t, c, "hi")
}

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	c, _ := play(t, func(o *Options) { o.Dir = dir }, func(x *exchange) {
		w := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_WriteArgs{WriteArgs: &agentv1.WriteArgs{
			Path: "sub/a.txt", FileText: "one\ntwo\n", ToolCallId: "w", ReturnFileContentAfterWrite: true,
		}}}).GetWriteResult().GetSuccess()
		if w.GetFileContentAfterWrite() != "one\ntwo\n" || w.GetFileSize() != 8 {
			t.Errorf("write: %v", w)
		}
		w = x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_WriteArgs{WriteArgs: &agentv1.WriteArgs{Path: "b.go", FileText: "two"}}}).GetWriteResult().GetSuccess()
		if w == nil || w.FileContentAfterWrite != nil {
			t.Errorf("write: %v", w)
		}
		r := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_ReadArgs{ReadArgs: &agentv1.ReadArgs{Path: filepath.Join(dir, "sub/a.txt"), ToolCallId: "r"}}}).GetReadResult().GetSuccess()
		if r.GetContent() != "one\ntwo\n" || r.GetTotalLines() != 3 || r.GetFileSize() != 8 {
			t.Errorf("read: %v", r)
		}
		r = x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_ReadArgs{ReadArgs: &agentv1.ReadArgs{Path: "sub/a.txt", Offset: new(int32(2)), Limit: new(uint32(1))}}}).GetReadResult().GetSuccess()
		if r.GetContent() != "two\n" || !r.GetRangeApplied() {
			t.Errorf("range: %v", r)
		}
		l := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_LsArgs{LsArgs: &agentv1.LsArgs{Path: ".", Ignore: []string{"*.go"}}}}).GetLsResult().GetSuccess().GetDirectoryTreeRoot()
		if len(l.GetChildrenFiles()) != 0 || l.GetChildrenDirs()[0].GetChildrenFiles()[0].GetName() != "a.txt" {
			t.Errorf("ls: %v", l)
		}
		d := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_DeleteArgs{DeleteArgs: &agentv1.DeleteArgs{Path: "b.go", ToolCallId: "d"}}}).GetDeleteResult()
		if d.GetSuccess().GetPrevContent() != "two" {
			t.Errorf("delete: %v", d)
		}
		d = x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_DeleteArgs{DeleteArgs: &agentv1.DeleteArgs{Path: "b.go"}}}).GetDeleteResult()
		if d.GetFileNotFound() == nil {
			t.Errorf("delete again: %v", d)
		}
		if g := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_DiagnosticsArgs{DiagnosticsArgs: &agentv1.DiagnosticsArgs{Path: "b.go"}}}).GetDiagnosticsResult(); g.GetFileNotFound() == nil {
			t.Errorf("diagnostics: %v", g)
		}
	})
	if want := map[string]int{"w": 1, "r": 1, "d": 1}; !maps.Equal(c.Ran(), want) {
		t.Errorf("ran %v", c.Ran())
	}
}

func TestGrep(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"a.go": "x\nNeedle\ny\nneedle\n", "sub/b.go": "needle\n", "c.txt": "hay\n", ".git/d.go": "needle\n"} {
		if err := writeFile(filepath.Join(dir, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	grepFor := func(x *exchange, args *agentv1.GrepArgs) *agentv1.GrepUnionResult {
		r := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_GrepArgs{GrepArgs: args}}).GetGrepResult()
		if r.GetSuccess() == nil {
			t.Errorf("grep: %v", r)
		}
		return r.GetSuccess().GetWorkspaceResults()[dir]
	}
	play(t, func(o *Options) { o.Dir = dir }, func(x *exchange) {
		content := grepFor(x, &agentv1.GrepArgs{Pattern: "^needle", ContextBefore: new(int32(1))}).GetContent()
		if len(content.GetMatches()) != 2 || content.GetTotalLines() != 3 || content.GetTotalMatchedLines() != 2 ||
			content.GetMatches()[0].GetMatches()[0].GetContent() != "y" || content.GetMatches()[0].GetMatches()[1].GetLineNumber() != 4 {
			t.Errorf("content: %v", content)
		}
		count := grepFor(x, &agentv1.GrepArgs{Pattern: "needle", CaseInsensitive: new(true), OutputMode: new("count"), Path: new("a.go")})
		if count != nil {
			t.Errorf("the path is the key: %v", count)
		}
		count = grepFor(x, &agentv1.GrepArgs{Pattern: "needle", CaseInsensitive: new(true), OutputMode: new("count")})
		if count.GetCount().GetTotalMatches() != 3 {
			t.Errorf("count: %v", count)
		}
		files := grepFor(x, &agentv1.GrepArgs{Glob: new("*.go"), OutputMode: new("files_with_matches")}).GetFiles()
		if !slices.Equal(files.GetFiles(), []string{"./a.go", "./sub/b.go"}) {
			t.Errorf("glob: %v", files)
		}
		files = grepFor(x, &agentv1.GrepArgs{Glob: new("**/*.{go,txt}"), OutputMode: new("files_with_matches"), HeadLimit: new(int32(1)), Offset: new(int32(1))}).GetFiles()
		if !slices.Equal(files.GetFiles(), []string{"./c.txt"}) || files.GetTotalFiles() != 3 || !files.GetClientTruncated() {
			t.Errorf("limited: %v", files)
		}
	})
}

func shellArgs(command string, timeout int32, behavior agentv1.TimeoutBehavior) *agentv1.ExecServerMessage {
	return &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_ShellStreamArgs{ShellStreamArgs: &agentv1.ShellArgs{
		Command: command, Timeout: timeout, TimeoutBehavior: behavior, ToolCallId: "call-" + newID(),
	}}}
}

func TestShell(t *testing.T) {
	dir := t.TempDir()
	play(t, func(o *Options) { o.Dir = dir }, func(x *exchange) {
		if err := os.Mkdir(filepath.Join(dir, "in"), 0o755); err != nil {
			t.Error(err)
		}
		a := x.ask(shellArgs("echo out; echo err >&2; cd in; exit 3", 0, 0))
		var out, stderr string
		for _, r := range a.results {
			out += r.GetShellStream().GetStdout().GetData()
			stderr += r.GetShellStream().GetStderr().GetData()
		}
		exit := a.results[len(a.results)-1].GetShellStream().GetExit()
		if a.results[0].GetShellStream().GetStart() == nil || out != "out\n" || stderr != "err\n" ||
			exit.GetCode() != 3 || exit.GetCwd() != filepath.Join(dir, "in") || exit.LocalExecutionTimeMs == nil {
			t.Errorf("shell: %v", a.results)
		}
		a = x.ask(shellArgs("sleep 60", 20, agentv1.TimeoutBehavior_TIMEOUT_BEHAVIOR_CANCEL))
		exit = a.results[len(a.results)-1].GetShellStream().GetExit()
		if exit.GetCode() != noExitCode || exit.GetAbortReason() != agentv1.ShellAbortReason_SHELL_ABORT_REASON_TIMEOUT {
			t.Errorf("timeout: %v", exit)
		}
		r := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_ShellArgs{ShellArgs: &agentv1.ShellArgs{Command: "echo plain"}}}).GetShellResult().GetSuccess()
		if r.GetStdout() != "plain\n" {
			t.Errorf("shell_args: %v", r)
		}
	})
}

// The server's abort ends a command.
func TestAbort(t *testing.T) {
	play(t, nil, func(x *exchange) {
		m := shellArgs("sleep 60", 0, 0)
		m.Id = 9
		x.started(toolCallID(m))
		x.exec(m)
		x.receive() // start
		x.send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_ExecServerControlMessage{ExecServerControlMessage: &agentv1.ExecServerControlMessage{
			Message: &agentv1.ExecServerControlMessage_Abort{Abort: &agentv1.ExecServerAbort{Id: 9}},
		}}})
		if exit := x.receive().GetExecClientMessage().GetShellStream().GetExit(); !exit.GetAborted() ||
			exit.GetAbortReason() != agentv1.ShellAbortReason_SHELL_ABORT_REASON_USER_ABORT {
			t.Errorf("exit: %v", exit)
		}
		if x.receive().GetExecClientControlMessage().GetStreamClose().GetId() != 9 {
			t.Error("not closed")
		}
		x.completed(toolCallID(m))
	})
}

// A command in the background goes on after the stream, and its output is in the terminals folder.
func TestBackground(t *testing.T) {
	dir := t.TempDir()
	fifo := filepath.Join(dir, "go")
	c, _ := play(t, func(o *Options) { o.Dir = dir }, func(x *exchange) {
		m := shellArgs("echo early; while [ ! -e go ]; do sleep 0.01; done; echo late", 0, agentv1.TimeoutBehavior_TIMEOUT_BEHAVIOR_BACKGROUND)
		m.Id = 1
		x.started(toolCallID(m))
		x.exec(m)
		for {
			in := x.receive()
			if in == nil {
				return
			}
			if b := in.GetExecClientMessage().GetShellStream().GetBackgrounded(); b != nil {
				if b.GetShellId() != 1 || b.GetPid() == 0 {
					t.Errorf("backgrounded: %v", b)
				}
				break
			}
		}
		x.completed(toolCallID(m))
	})
	if err := os.WriteFile(fifo, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	c.processes.Wait()
	if data, err := os.ReadFile(filepath.Join(c.terminals, "1.txt")); err != nil || string(data) != "early\nlate\n" {
		t.Errorf("%q, %v", data, err)
	}
}

func TestCustomTools(t *testing.T) {
	call := func(provider, tool string) *agentv1.ExecServerMessage {
		return &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_McpArgs{McpArgs: &agentv1.McpArgs{
			ProviderIdentifier: provider, ToolName: tool, Args: map[string]*structpb.Value{"n": structpb.NewNumberValue(2)},
		}}}
	}
	play(t, func(o *Options) {
		o.Tools = []Tool{{Name: "twice", Call: func(_ context.Context, args map[string]any) (string, error) {
			n, ok := args["n"].(float64)
			if !ok {
				return "", fmt.Errorf("n is %v", args["n"])
			}
			return fmt.Sprint(2 * n), nil
		}}}
	}, func(x *exchange) {
		if x.run.GetMcpTools().GetMcpTools()[0].GetName() != "custom-user-tools-twice" {
			t.Errorf("tools: %v", x.run.GetMcpTools())
		}
		if r := x.one(call(customTools, "twice")).GetMcpResult().GetSuccess(); r.GetContent()[0].GetText().GetText() != "4" {
			t.Errorf("mcp: %v", r)
		}
		if r := x.one(call(customTools, "thrice")).GetMcpResult(); !slices.Equal(r.GetToolNotFound().GetAvailableTools(), []string{"twice"}) {
			t.Errorf("no such tool: %v", r)
		}
		if r := x.one(call("other", "twice")).GetMcpResult(); r.GetServerNotFound() == nil {
			t.Errorf("no such server: %v", r)
		}
		rc := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_RequestContextArgs{RequestContextArgs: new(agentv1.RequestContextArgs)}}).GetRequestContextResult().GetSuccess().GetRequestContext()
		if rc.GetTools()[0].GetToolName() != "twice" || !filepath.IsAbs(rc.GetEnv().GetWorkspacePaths()[0]) {
			t.Errorf("context: %v", rc)
		}
	})
}

func TestFetch(t *testing.T) {
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprint(w, "tea")
	}))
	defer site.Close()
	play(t, nil, func(x *exchange) {
		r := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_FetchArgs{FetchArgs: &agentv1.FetchArgs{Url: site.URL}}}).GetFetchResult().GetSuccess()
		if r.GetContent() != "tea" || r.GetStatusCode() != http.StatusTeapot {
			t.Errorf("fetch: %v", r)
		}
	})
}

func TestPiTools(t *testing.T) {
	play(t, nil, func(x *exchange) {
		x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_PiWriteArgs{PiWriteArgs: &agentv1.PiWriteExecArgs{Path: "a", Content: "1\n2\n"}}})
		edit := &agentv1.PiEditExecArgs{Path: "a", Edits: []*agentv1.PiEditReplacement{{OldText: "2", NewText: "3"}}}
		if r := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_PiEditArgs{PiEditArgs: edit}}).GetPiEditResult(); r.GetSuccess() == nil {
			t.Errorf("edit: %v", r)
		}
		if r := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_PiEditArgs{PiEditArgs: edit}}).GetPiEditResult(); r.GetError() == nil {
			t.Errorf("edit again: %v", r)
		}
		if r := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_PiReadArgs{PiReadArgs: &agentv1.PiReadExecArgs{Path: "a"}}}).GetPiReadResult(); r.GetSuccess().GetOutput() != "1\n3\n" {
			t.Errorf("read: %v", r)
		}
		if r := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_PiGrepArgs{PiGrepArgs: &agentv1.PiGrepExecArgs{Pattern: "[3]", Literal: new(true)}}}).GetPiGrepResult(); r.GetSuccess() == nil || r.GetSuccess().GetOutput() != "" {
			t.Errorf("grep: %v", r)
		}
		if r := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_PiGrepArgs{PiGrepArgs: &agentv1.PiGrepExecArgs{Pattern: "[13]", Limit: new(int32(2))}}}).GetPiGrepResult(); r.GetSuccess().GetOutput() != "a:1: 1\na:2: 3" {
			t.Errorf("grep: %v", r)
		}
		if r := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_PiFindArgs{PiFindArgs: &agentv1.PiFindExecArgs{Pattern: "?"}}}).GetPiFindResult(); r.GetSuccess().GetOutput() != "a" {
			t.Errorf("find: %v", r)
		}
		if r := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_PiLsArgs{PiLsArgs: new(agentv1.PiLsExecArgs)}}).GetPiLsResult(); r.GetSuccess().GetOutput() != "a" {
			t.Errorf("ls: %v", r)
		}
		if r := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_PiBashArgs{PiBashArgs: &agentv1.PiBashExecArgs{Command: "cat a; exit 4"}}}).GetPiBashResult(); !strings.Contains(r.GetError().GetError(), "3\n") {
			t.Errorf("bash: %v", r)
		}
	})
}

func TestUnknownKind(t *testing.T) {
	play(t, func(o *Options) { o.Execs = map[string]Handler{"ls_args": nil} }, func(x *exchange) {
		a := x.ask(new(agentv1.ExecServerMessage))
		if a.thrown != "No handler found for server message of type undefined" || !slices.Equal(a.order, []string{"throw", "close"}) {
			t.Errorf("unknown: %+v", a)
		}
		a = x.ask(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_LsArgs{LsArgs: new(agentv1.LsArgs)}})
		if a.thrown != "No handler found for server message of type ls_args" {
			t.Errorf("taken away: %+v", a)
		}
	})
}

// sequence is what the client says about executions, "result 1" and the like, n messages of it.
func (x *exchange) sequence(n int) (said []string) {
	for len(said) < n {
		in := x.receive()
		if in == nil {
			return said
		}
		if r := in.GetExecClientMessage(); r != nil {
			said = append(said, fmt.Sprint("result ", r.GetId()))
		}
		if c := in.GetExecClientControlMessage(); c.GetStreamClose() != nil {
			said = append(said, fmt.Sprint("close ", c.GetStreamClose().GetId()))
		} else if c.GetThrow() != nil {
			said = append(said, fmt.Sprint("throw ", c.GetThrow().GetId()))
		}
	}
	return said
}

func TestOverrides(t *testing.T) {
	release := make(chan struct{})
	close(release)
	list := DefaultHandler("ls_args")
	for name, test := range map[string]struct {
		handler Handler
		execs   uint32
		want    []string
	}{
		"late":        {Late(release, list), 1, []string{"result 1", "close 1"}},
		"twice":       {Twice(list), 1, []string{"result 1", "result 1", "close 1"}},
		"close first": {CloseFirst(list), 1, []string{"close 1", "result 1"}},
		"close only":  {CloseOnly(), 1, []string{"close 1"}},
		"throw":       {Throws("no"), 1, []string{"throw 1"}},
		"never":       {Never(), 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			play(t, func(o *Options) { o.Execs = map[string]Handler{"ls_args": test.handler} }, func(x *exchange) {
				for id := uint32(1); id <= test.execs; id++ {
					x.exec(&agentv1.ExecServerMessage{Id: id, Message: &agentv1.ExecServerMessage_LsArgs{LsArgs: new(agentv1.LsArgs)}})
				}
				if said := x.sequence(len(test.want)); !slices.Equal(said, test.want) {
					t.Errorf("the client said %q", said)
				}
			})
		})
	}
}

func TestReversed(t *testing.T) {
	var finished []string
	play(t, func(o *Options) { o.Execs = map[string]Handler{"ls_args": Reversed(3, DefaultHandler("ls_args"))} }, func(x *exchange) {
		for id := uint32(1); id <= 3; id++ {
			x.exec(&agentv1.ExecServerMessage{Id: id, Message: &agentv1.ExecServerMessage_LsArgs{LsArgs: new(agentv1.LsArgs)}})
		}
		finished = x.sequence(6)
	})
	pairs := 0
	for i := 0; i+1 < len(finished); i += 2 {
		if strings.TrimPrefix(finished[i], "result ") == strings.TrimPrefix(finished[i+1], "close ") {
			pairs++
		}
	}
	if pairs != 3 {
		t.Errorf("the client said %q", finished)
	}
}

func TestExecHeartbeat(t *testing.T) {
	beats := make(chan struct{})
	s := newStub(t, false, within(func(x *exchange) {
		x.exec(&agentv1.ExecServerMessage{Id: 4, Message: &agentv1.ExecServerMessage_LsArgs{LsArgs: new(agentv1.LsArgs)}})
		for m := range x.in {
			if m.GetExecClientControlMessage().GetHeartbeat().GetId() == 4 {
				break
			}
		}
		close(beats)
	}))
	c := s.client(func(o *Options) {
		o.ExecHeartbeat = time.Millisecond
		o.Execs = map[string]Handler{"ls_args": Late(beats, DefaultHandler("ls_args"))}
	})
	mustRun(t, c, "hi")
}

// After a drop the next attempt waits for what still runs; its result is lost.
func TestDropWaitsForTool(t *testing.T) {
	begun, release := make(chan struct{}), make(chan struct{})
	s := newStub(t, false, func(x *exchange) {
		x.checkpoint(1)
		x.exec(&agentv1.ExecServerMessage{Id: 1, Message: &agentv1.ExecServerMessage_LsArgs{LsArgs: new(agentv1.LsArgs)}})
		<-begun
		time.AfterFunc(30*time.Millisecond, func() { close(release) })
		x.drop()
	}, func(x *exchange) {
		select {
		case <-release:
		default:
			t.Error("the next attempt began before the tool was done")
		}
		good("x")(x)
	})
	c := s.client(func(o *Options) {
		o.Execs = map[string]Handler{"ls_args": func(context.Context, *Exec) error { close(begun); <-release; return nil }}
	})
	mustRun(t, c, "hi")
}

func TestSubagent(t *testing.T) {
	var parent string
	s := newStub(t, false, func(x *exchange) {
		parent = x.run.GetRunId()
		within(func(x *exchange) {
			r := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_SubagentArgs{SubagentArgs: &agentv1.SubagentArgs{
				ToolCallId: "task", SubagentType: "explore", Prompt: "look", ModelId: "small", Mode: agentv1.TaskMode_TASK_MODE_PLAN,
			}}}).GetSubagentResult().GetSuccess()
			if r.GetFinalMessage() != "found" || r.GetToolCallCount() != 1 {
				t.Errorf("subagent: %v", r)
			}
			again := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_SubagentArgs{SubagentArgs: &agentv1.SubagentArgs{
				ToolCallId: "more", Prompt: "go on", ResumeAgentId: new(r.GetAgentId()),
			}}}).GetSubagentResult().GetSuccess()
			if again.GetAgentId() != r.GetAgentId() || again.GetFinalMessage() != "still there" {
				t.Errorf("resumed: %v", again)
			}
			lost := x.one(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_SubagentArgs{SubagentArgs: &agentv1.SubagentArgs{
				ToolCallId: "lost", ResumeAgentId: new("agent-nobody"),
			}}}).GetSubagentResult().GetError()
			if lost == nil {
				t.Error("an agent was resumed that never was")
			}
		})(x)
	}, func(x *exchange) {
		m := x.run.GetAction().GetUserMessageAction().GetUserMessage()
		if x.run.GetSubagentTypeName() != "explore" || x.run.GetRequestedModel().GetModelId() != "small" ||
			m.GetText() != "look" || m.GetMode() != agentv1.AgentMode_AGENT_MODE_PLAN {
			t.Errorf("the child runs %v", x.run)
		}
		x.started("c")
		x.completed("c")
		x.text("found")
		x.turnEnded() // and no checkpoint, which counts for the parent
	}, good("still there"))
	c := s.client(nil)
	res, err := prompt(t, c, "hi")
	if err != nil || len(res.Violations) != 1 || !strings.HasPrefix(res.Violations[0], "subagent agent-") {
		t.Errorf("%v, violations %q", err, res.Violations)
	}
	h := s.headers[1]
	if h.Get("X-Parent-Request-Id") != parent || h.Get("X-Root-Parent-Request-Id") != parent || h.Get("X-Parent-Agent-Tool-Call-Id") != "task" {
		t.Errorf("headers: %v", h)
	}
	if len(c.Children()) != 1 {
		t.Errorf("children: %v", c.Children())
	}
}
