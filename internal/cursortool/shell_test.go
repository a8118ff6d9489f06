package cursortool

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// shellEnv is a client of which everything is known.
func shellEnv() *Env {
	return &Env{Root: "/home/dev/project", Terminals: "/home/dev/terminals", Session: "conv", Shells: NewShells()}
}

// execMessage reads a message as the traces of clients have it.
func execMessage(t rapid.TB, text string) *agentv1.ExecClientMessage {
	t.Helper()
	m := &agentv1.ExecClientMessage{}
	if err := protojson.Unmarshal([]byte(text), m); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return m
}

// feed starts a machine and gives it messages for request 0 until it is done.
func feed(t rapid.TB, m Machine, messages ...string) (last Step, output string) {
	t.Helper()
	last = m.Start()
	for _, text := range messages {
		if last.Done != nil {
			t.Fatalf("done before %s", text)
		}
		last = m.Result(0, execMessage(t, text))
		output += last.Output
	}
	return last, output
}

// over checks what holds for every outcome.
func over(t rapid.TB, st Step) *Outcome {
	t.Helper()
	switch {
	case st.Done == nil:
		t.Fatalf("not done: %+v", st)
	case st.Done.Text == "":
		t.Fatal("no text")
	case st.Done.Card.GetTool() == nil:
		t.Fatal("no card")
	}
	if _, err := protojson.Marshal(st.Done.Card); err != nil {
		t.Fatalf("the card cannot be kept: %v", err)
	}
	return st.Done
}

const sleeper = `{"command":"echo out; echo err 1>&2; sleep 0.3; echo late; exit 3","block_until_ms":10000}`

// What real clients sent for one command, and what the model reads.
func TestShellOfClients(t *testing.T) {
	cases := map[string]struct {
		messages []string
		text     string
		isError  bool
		output   string
	}{
		"the SDK": {
			[]string{
				`{"id":1,"shell_stream":{"start":{}},"local_execution_time_ms":45}`,
				`{"id":1,"shell_stream":{"stdout":{"data":"out\n"}},"local_execution_time_ms":1077}`,
				`{"id":1,"shell_stream":{"stderr":{"data":"err\n"}},"local_execution_time_ms":1096}`,
				`{"id":1,"shell_stream":{"stdout":{"data":"late\n"}},"local_execution_time_ms":1428}`,
				`{"id":1,"shell_stream":{"exit":{"code":3,"cwd":"/home/dev","local_execution_time_ms":1383}},"local_execution_time_ms":1446}`,
			},
			"out\nlate\n\nstderr:\nerr\n\nExit code: 3\nWorking directory now: /home/dev", true, "out\nerr\nlate\n",
		},
		"the SDK, aborted": {
			[]string{
				`{"id":1,"shell_stream":{"start":{}}}`,
				`{"id":1,"shell_stream":{"exit":{"code":4294967295,"cwd":"/home/dev/project","aborted":true,"abort_reason":"SHELL_ABORT_REASON_USER_ABORT","local_execution_time_ms":1439}}}`,
			},
			"(no output)\n\nThe user stopped the command.\nExit code: none", true, "",
		},
		"the SDK, out of time": {
			[]string{`{"shell_stream":{"exit":{"code":4294967295,"aborted":true,"abort_reason":"SHELL_ABORT_REASON_TIMEOUT"}}}`},
			"(no output)\n\nThe command was stopped: it took longer than its limit.\nExit code: none", true, "",
		},
		"omp": {
			[]string{
				`{"id":1,"shell_stream":{"start":{}},"exec_id":"exec-1"}`,
				`{"id":1,"shell_stream":{"stdout":{"data":"out\n"}},"exec_id":"exec-1"}`,
				`{"id":1,"shell_stream":{"stdout":{"data":"err\n"}},"exec_id":"exec-1"}`,
				`{"id":1,"shell_stream":{"stdout":{"data":"late\n"}},"exec_id":"exec-1"}`,
				`{"id":1,"shell_stream":{"stdout":{"data":"\n\nWall time: 0.99 seconds\n\nCommand exited with code 3"}},"exec_id":"exec-1"}`,
				`{"id":1,"shell_stream":{"exit":{"code":1,"cwd":"/home/dev/project"}},"exec_id":"exec-1"}`,
			},
			"out\nerr\nlate\n\n\nWall time: 0.99 seconds\n\nCommand exited with code 3\n\nExit code: 1", true,
			"out\nerr\nlate\n\n\nWall time: 0.99 seconds\n\nCommand exited with code 3",
		},
		"omp, its result in place of the exit": {
			[]string{
				`{"id":1,"shell_stream":{"stdout":{"data":"out\n"}}}`,
				`{"id":1,"shell_result":{"failure":{"command":"x","exit_code":1,"stderr":"out\n\nCommand exited with code 1"}}}`,
			},
			"out\n\nExit code: 1", true, "out\n",
		},
		"opencode": {
			[]string{
				`{"id":1,"shell_stream":{"start":{}},"exec_id":"exec-1"}`,
				`{"id":1,"shell_stream":{"stdout":{"data":"out\nlate\nerr\n"}},"exec_id":"exec-1"}`,
				`{"id":1,"shell_stream":{"exit":{}},"exec_id":"exec-1"}`,
			},
			"out\nlate\nerr\n\nExit code: 0", false, "out\nlate\nerr\n",
		},
		"opencode, one call too many at a time": {
			[]string{`{"id":1,"mcp_result":{"error":{"error":"Tool result not provided"}}}`},
			"The client did not run the command. Its answer was: Tool result not provided", true, "",
		},
		"not streamed": {
			[]string{`{"id":1,"shell_result":{"success":{"command":"echo plain","working_directory":"/home/dev/project","stdout":"plain\n","execution_time":1587}}}`},
			"plain\n\nExit code: 0", false, "",
		},
		"only interleaved": {
			[]string{`{"shell_result":{"failure":{"exit_code":2,"interleaved_output":"a\nb\n"}}}`},
			"a\nb\n\nExit code: 2", true, "",
		},
		"stderr only": {
			[]string{`{"shell_stream":{"stderr":{"data":"oops\n"}}}`, `{"shell_stream":{"exit":{"code":0}}}`},
			"stderr:\noops\n\nExit code: 0", false, "oops\n",
		},
		"killed": {
			[]string{`{"shell_result":{"failure":{"signal":"SIGKILL"}}}`},
			"(no output)\n\nSignal: SIGKILL\nExit code: none", true, "",
		},
		"a failure without a code": {
			[]string{`{"shell_result":{"failure":{}}}`}, "(no output)\n\nExit code: 1", true, "",
		},
		"a limit of the client": {
			[]string{`{"shell_result":{"timeout":{"timeout_ms":5000}}}`},
			"(no output)\nThe command was stopped: it took longer than its limit of 5000 ms.\nExit code: none", true, "",
		},
		"spilled": {
			[]string{`{"shell_stream":{"exit":{"code":0,"cwd":"/home/dev/project","output_location":{"file_path":"/t/1.log","size_bytes":"50000","line_count":"7"}}}}`},
			"(no output)\n\nExit code: 0\nAll of the output (50000 bytes, 7 lines) is in /t/1.log", false, "",
		},
		"rejected": {
			[]string{`{"shell_stream":{"rejected":{"command":"x","reason":"not that."}}}`},
			"The command was refused and did not run: not that. Do not run it again as it is: take another way, or ask the user.", true, "",
		},
		"not permitted": {
			[]string{`{"shell_stream":{"permission_denied":{"error":"read only"}}}`},
			"The client does not permit the command, it did not run: read only. Take another way, or ask the user.", true, "",
		},
		"no sandbox": {
			[]string{`{"shell_stream":{"sandbox_unsupported":{"sandbox_policy_type":"x","reason":"no bwrap"}}}`},
			"The command did not run: the client cannot give it the sandbox that its rules demand: no bwrap. Take another way, or ask the user.", true, "",
		},
		"could not start": {
			[]string{`{"shell_result":{"spawn_error":{"error":"no such directory"}}}`},
			"The command could not be started: no such directory.", true, "",
		},
		"hooks, in every way": {
			[]string{
				`{"shell_stream":{"hook_context":{"hook_additional_contexts":[{"hook_event_name":"post","content":"one"}]}}}`,
				`{"hook_additional_contexts":[{"hook_event_name":"post","content":"two"}]}`,
				`{"shell_stream":{"exit":{"code":0}},"hook_additional_contexts":[{"hook_event_name":"post","content":"three"}]}`,
			},
			"(no output)\n\nExit code: 0\n\n[post hook] one\n\n[post hook] two\n\n[post hook] three", false, "",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			st, output := feed(t, beginShell(Call{ID: "c1"}, json.RawMessage(sleeper), shellEnv()), c.messages...)
			o := over(t, st)
			if o.Text != c.text || o.IsError != c.isError || output != c.output {
				t.Errorf("got %q, error %v, output %q; want %q, %v, %q", o.Text, o.IsError, output, c.text, c.isError, c.output)
			}
			if args := o.Card.GetShellToolCall().GetArgs(); args.GetTimeout() != 10000 {
				t.Errorf("the card's arguments are %v", args)
			}
		})
	}
}

func TestShellCardResults(t *testing.T) {
	cases := map[string]string{ // message: the arm of the card's result
		`{"shell_stream":{"exit":{"code":0}}}`:                      "success",
		`{"shell_stream":{"exit":{"code":1}}}`:                      "failure",
		`{"shell_stream":{"exit":{"code":0,"aborted":true}}}`:       "failure",
		`{"shell_stream":{"rejected":{}}}`:                          "rejected",
		`{"shell_stream":{"permission_denied":{}}}`:                 "permission_denied",
		`{"shell_stream":{"sandbox_unsupported":{}}}`:               "permission_denied",
		`{"shell_stream":{"backgrounded":{"shell_id":1}}}`:          "success",
		`{"shell_result":{"timeout":{}}}`:                           "timeout",
		`{"shell_result":{"spawn_error":{}}}`:                       "spawn_error",
		`{"shell_result":{"rejected":{}}}`:                          "rejected",
		`{"shell_result":{"permission_denied":{}}}`:                 "permission_denied",
		`{"shell_result":{}}`:                                       "failure",
		`{"read_result":{}}`:                                        "spawn_error",
		`{"pi_bash_result":{"success":{"output":"x"}}}`:             "success",
		`{"pi_bash_result":{}}`:                                     "failure",
		`{"mini_swe_agent_bash_result":{"success":{"stdout":"x"}}}`: "success",
	}
	for message, want := range cases {
		st, _ := feed(t, beginShell(Call{}, json.RawMessage(sleeper), shellEnv()), message)
		m := over(t, st).Card.GetShellToolCall().GetResult().ProtoReflect()
		if got := m.WhichOneof(m.Descriptor().Oneofs().ByName("result")); got == nil || string(got.Name()) != want {
			t.Errorf("%s: the card's result is %v, want %s", message, got, want)
		}
	}
}

func TestShellIsShownWhileItRuns(t *testing.T) {
	m := beginShell(Call{ID: "c1"}, json.RawMessage(`{"command":"make"}`), shellEnv())
	m.Start()
	start := m.Result(0, execMessage(t, `{"shell_stream":{"start":{}}}`))
	if len(start.Live) != 1 || start.Live[0].GetShellOutputDelta().GetStart() == nil {
		t.Errorf("start: %v", start.Live)
	}
	out := m.Result(0, execMessage(t, `{"shell_stream":{"stdout":{"data":"a"}}}`))
	if len(out.Live) != 2 || out.Live[0].GetShellOutputDelta().GetStdout().GetData() != "a" {
		t.Fatalf("stdout: %v", out.Live)
	}
	delta := out.Live[1].GetToolCallDelta()
	if delta.GetCallId() != "c1" || delta.GetToolCallDelta().GetShellToolCallDelta().GetStdout().GetContent() != "a" {
		t.Errorf("the card shows %v", delta)
	}
	out = m.Result(0, execMessage(t, `{"shell_stream":{"stderr":{"data":"b"}}}`))
	if len(out.Live) != 2 || out.Live[0].GetShellOutputDelta().GetStderr().GetData() != "b" ||
		out.Live[1].GetToolCallDelta().GetToolCallDelta().GetShellToolCallDelta().GetStderr().GetContent() != "b" {
		t.Errorf("stderr: %v", out.Live)
	}
	exit := m.Result(0, execMessage(t, `{"shell_stream":{"exit":{"code":4}}}`))
	if len(exit.Live) != 1 || exit.Live[0].GetShellOutputDelta().GetExit().GetCode() != 4 {
		t.Errorf("exit: %v", exit.Live)
	}
}

// However the streams are cut into pieces and mixed, the model reads the same, and what was shown is
// what was sent.
func TestShellPieces(t *testing.T) {
	text := rapid.OneOf(
		rapid.StringOfN(rapid.RuneFrom([]rune("ab\nö€😀\x00")), 0, 40, -1),
		rapid.Map(rapid.IntRange(shellText-20, 3*shellText), func(n int) string { return "abc"[:n%4] + strings.Repeat("€x", n/4) + "end" }),
	)
	run := func(t *rapid.T, pieces func(t *rapid.T, s string) []string, stdout, stderr string) (*Outcome, string, string) {
		m := beginShell(Call{ID: "c"}, json.RawMessage(sleeper), shellEnv())
		m.Start()
		var sent, shown string
		left := map[bool][]string{true: pieces(t, stdout), false: pieces(t, stderr)}
		for len(left[true])+len(left[false]) > 0 {
			isOut := len(left[false]) == 0 || len(left[true]) > 0 && rapid.Bool().Draw(t, "stdout")
			piece := left[isOut][0]
			left[isOut] = left[isOut][1:]
			e := &agentv1.ShellStream{Event: &agentv1.ShellStream_Stderr{Stderr: &agentv1.ShellStreamStderr{Data: piece}}}
			if isOut {
				e.Event = &agentv1.ShellStream_Stdout{Stdout: &agentv1.ShellStreamStdout{Data: piece}}
			}
			st := m.Result(0, &agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_ShellStream{ShellStream: e}})
			sent, shown = sent+piece, shown+st.Output
		}
		st := m.Result(0, execMessage(t, `{"shell_stream":{"exit":{"code":0}}}`))
		return over(t, st), sent, shown
	}
	rapid.Check(t, func(t *rapid.T) {
		stdout, stderr := text.Draw(t, "out"), text.Draw(t, "err")
		whole, _, _ := run(t, func(_ *rapid.T, s string) []string { return []string{s} }, stdout, stderr)
		cut, sent, shown := run(t, func(t *rapid.T, s string) (pieces []string) {
			for s != "" {
				n := min(len(s), rapid.SampledFrom([]int{1, 2, 3, 7, 4000, 9000, 20000}).Draw(t, "n"))
				if len(s) > 200 {
					n = min(len(s), max(n, 997))
				}
				pieces, s = append(pieces, s[:n]), s[n:]
			}
			return pieces
		}, stdout, stderr)
		if cut.Text != whole.Text || !proto.Equal(cut.Card, whole.Card) {
			t.Fatalf("in pieces: %q\nat once: %q", cut.Text, whole.Text)
		}
		if sent != shown {
			t.Fatalf("sent %q, shown %q", sent, shown)
		}
		if limit := 2*shellText + 300; len(whole.Text) > limit {
			t.Fatalf("%d bytes for the model, at most %d", len(whole.Text), limit)
		}
		if len(stdout) <= shellText && !strings.Contains(whole.Text, strings.TrimRight(clean(stdout), "\n")) {
			t.Fatalf("not all of %q is in %q", stdout, whole.Text)
		}
		if len(stdout) > shellText && !strings.Contains(stderr, "\x00") && strings.Contains(whole.Text, "\uFFFD") {
			t.Fatalf("cut through a character: %q", whole.Text)
		}
	})
}

func TestShellGoesToTheBackground(t *testing.T) {
	st, _ := feed(t, beginShell(Call{ID: "c"}, json.RawMessage(`{"command":"serve","block_until_ms":0}`), shellEnv()),
		`{"shell_stream":{"start":{}}}`,
		`{"shell_stream":{"stdout":{"data":"listening\n"}}}`,
		`{"shell_stream":{"backgrounded":{"shell_id":966297,"command":"serve","working_directory":"/w","pid":28661,"ms_to_wait":0,"reason":"SHELL_BACKGROUND_REASON_TIMEOUT"}}}`)
	o := over(t, st)
	const want = "The command goes on in the background. shell_id: 966297, pid: 28661\nTerminal file: /home/dev/terminals/966297.txt\n" +
		"It has not ended, so there is no exit code yet: wait for it with AwaitShell. Output so far:\nlistening\n"
	if o.Text != want || o.IsError {
		t.Errorf("got %q, error %v; want %q", o.Text, o.IsError, want)
	}
	if sh := o.Shell; sh == nil || sh.ID != 966297 || sh.PID != 28661 || sh.Dir != "/w" || sh.Command != "serve" || sh.File != "/home/dev/terminals/966297.txt" || sh.seed != "listening\n" {
		t.Errorf("the shell is %+v", sh)
	}
	res := o.Card.GetShellToolCall().GetResult()
	if !res.GetIsBackground() || res.GetPid() != 28661 || res.GetTerminalsFolder() != "/home/dev/terminals" || res.GetSuccess().GetShellId() != 966297 {
		t.Errorf("the card says %v", res)
	}

	st, _ = feed(t, beginShell(Call{}, json.RawMessage(`{"command":"serve"}`), &Env{Terminals: `C:\Users\dev\terminals`, Shells: NewShells()}),
		`{"shell_result":{"success":{"shell_id":7,"stdout":"up","background_reason":"SHELL_BACKGROUND_REASON_USER_REQUEST"},"is_background":true,"pid":9}}`)
	if sh := over(t, st).Shell; sh == nil || sh.ID != 7 || sh.PID != 9 || sh.File != `C:\Users\dev\terminals\7.txt` {
		t.Errorf("the shell of a result is %+v", sh)
	}
}

// Nothing is timed until the command has begun: somebody may still be asked (R04).
func TestShellTakesItsTime(t *testing.T) {
	m := beginShell(Call{}, json.RawMessage(`{"command":"make","block_until_ms":60000}`), shellEnv())
	if st := m.Start(); st.Wake != 0 || st.Requests[0].Patience != 0 || !st.Requests[0].Unsafe {
		t.Errorf("the start is timed: %+v", st)
	}
	at := time.Unix(1000, 0)
	if st := m.Tick(at.Add(5 * time.Hour)); st.Done != nil || st.Wake != 0 {
		t.Errorf("news of another shell ended a call that waits for consent: %+v", st)
	}
	if st := m.Result(0, execMessage(t, `{"hook_additional_contexts":[{"content":"asking"}]}`)); st.Wake != 0 {
		t.Errorf("a word of hooks starts the clock: %+v", st)
	}
	st := m.Result(0, execMessage(t, `{"shell_stream":{"start":{}}}`))
	if st.Wake == 0 {
		t.Fatal("nothing watches over the command")
	}
	// It prints something after 10 minutes, then nothing, as the client's signs of life go on.
	for i := range 100 {
		at = at.Add(st.Wake)
		switch {
		case i == 10:
			m.Result(0, execMessage(t, `{"shell_stream":{"stdout":{"data":"."}}}`))
		case i > 10:
			m.(*shell).Heard()
		}
		if st = m.Tick(at); st.Done != nil || st.Wake <= 0 {
			t.Fatalf("after %d looks: %+v", i, st)
		}
	}
	var silent time.Duration
	for st.Done == nil {
		silent += st.Wake
		at = at.Add(st.Wake)
		st = m.Tick(at)
	}
	if want := 11 * time.Minute; silent < want-time.Minute || silent > want+time.Minute {
		t.Errorf("given up after a silence of %v, want about %v", silent, want)
	}
	o := over(t, st)
	if !o.IsError || !strings.Contains(o.Text, "<shell-incomplete>") || !strings.HasPrefix(o.Text, ".\n") || len(st.Abort) != 1 {
		t.Errorf("got %q, abort %v", o.Text, st.Abort)
	}
}

func TestShellWithoutAnEnd(t *testing.T) {
	begin := func() Machine {
		m := beginShell(Call{}, json.RawMessage(sleeper), shellEnv())
		m.Start()
		m.Result(0, execMessage(t, `{"shell_stream":{"stdout":{"data":"half"}}}`))
		return m
	}
	for name, st := range map[string]Step{
		"closed": begin().Closed(0), "thrown": begin().Thrown(0, "boom", false), "not known any more": begin().Thrown(0, "boom", true),
	} {
		o := over(t, st)
		if !o.IsError || !strings.HasPrefix(o.Text, "half\n\n<shell-incomplete>") || !strings.Contains(o.Text, "Exit code: none") {
			t.Errorf("%s: %q", name, o.Text)
		}
	}
}

func TestShellFindsAWay(t *testing.T) {
	way := func(r Request) string {
		m := r.Message.ProtoReflect()
		return string(m.WhichOneof(m.Descriptor().Oneofs().ByName("message")).Name())
	}
	for _, c := range []struct {
		noPi, piOnly bool
		ways         []string
	}{
		{false, false, []string{"shell_stream_args", "pi_bash_args", "shell_args"}},
		{true, false, []string{"shell_stream_args", "shell_args"}},
		{false, true, []string{"pi_bash_args", "shell_stream_args", "shell_args"}},
	} {
		env := shellEnv()
		env.NoPi, env.PiOnly = c.noPi, c.piOnly
		m := beginShell(Call{}, json.RawMessage(sleeper), env)
		st := m.Start()
		for n, want := range c.ways {
			if len(st.Requests) != 1 || way(st.Requests[0]) != want || !st.Requests[0].Unsafe {
				t.Fatalf("%+v: way %d is %+v, want %s", c, n, st.Requests, want)
			}
			st = m.Thrown(n, "No handler found", true)
			if late := m.Closed(n - 1); late.Done != nil {
				t.Fatalf("%+v: the close of what was thrown ended the call", c)
			}
		}
		if o := over(t, st); !o.IsError || !strings.Contains(o.Text, "No handler found") {
			t.Errorf("%+v: %q", c, o.Text)
		}
	}
	m := beginShell(Call{}, json.RawMessage(sleeper), shellEnv())
	m.Start()
	if o := over(t, m.Thrown(0, "disk on fire", false)); !o.IsError || !strings.Contains(o.Text, "disk on fire") {
		t.Errorf("another failure is another way: %q", o.Text)
	}
}

func TestShellOfPi(t *testing.T) {
	env := shellEnv()
	env.PiOnly = true
	for input, want := range map[string]string{
		`{"command":"ls"}`:                                `{"command":"ls"}`,
		`{"command":"ls","block_until_ms":0}`:             `{"command":"ls","timeout":30}`,
		`{"command":"ls","block_until_ms":1500}`:          `{"command":"ls","timeout":2}`,
		`{"command":"ls","working_directory":"/it's"}`:    `{"command":"cd -- '/it'\\''s' && {\nls\n}"}`,
		`{"command":"ls","working_directory":"src"}`:      `{"command":"cd -- '/home/dev/project/src' && {\nls\n}"}`,
		`{"command":"sleep 1","block_until_ms":"120000"}`: `{"command":"sleep 1","timeout":120}`,
	} {
		got := beginShell(Call{}, json.RawMessage(input), env).Start().Requests[0].Message.GetPiBashArgs()
		w := &agentv1.PiBashExecArgs{}
		if err := protojson.Unmarshal([]byte(want), w); err != nil {
			t.Fatal(err)
		}
		if !proto.Equal(got, w) {
			t.Errorf("%s: got %v, want %v", input, got, w)
		}
	}
	for message, want := range map[string]string{
		`{"pi_bash_result":{"success":{"output":"pi\n","full_output_path":"/t/o"}}}`: "pi\n\nExit code: 0\nAll of the output is in /t/o",
		`{"pi_bash_result":{"error":{"error":"x\n\nCommand exited with code 3"}}}`:   "x\n\nCommand exited with code 3\n\nExit code: 3",
		`{"pi_bash_result":{"error":{"error":"x\n\nCommand aborted"}}}`:              "x\n\nCommand aborted\n\nThe command was stopped.\nExit code: none",
		`{"pi_bash_result":{"error":{"error":"Command exited with code 0"}}}`:        "Command exited with code 0\n\nExit code: 1",
	} {
		st, _ := feed(t, beginShell(Call{}, json.RawMessage(`{"command":"ls"}`), env), message)
		if o := over(t, st); o.Text != want {
			t.Errorf("%s: got %q, want %q", message, o.Text, want)
		}
	}
}
