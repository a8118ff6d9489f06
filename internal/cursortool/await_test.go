package cursortool

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// ticker drives a machine with a simulated clock.
type ticker struct {
	t    *testing.T
	m    Machine
	now  time.Time
	wake time.Time // zero for none
	last Step
	asks int // requests made
}

func newTicker(t *testing.T, m Machine) *ticker {
	t.Helper()
	k := &ticker{t: t, m: m, now: time.Unix(5000, 0)}
	k.take(m.Start())
	return k
}

func (k *ticker) take(st Step) {
	k.last = st
	k.asks += len(st.Requests)
	if st.Wake > 0 {
		k.wake = k.now.Add(st.Wake)
	}
}

// pass lets time go by, with the ticks that were asked for. It stops when the call is done.
func (k *ticker) pass(d time.Duration) {
	k.t.Helper()
	end := k.now.Add(d)
	for n := 0; k.last.Done == nil && !k.wake.IsZero() && !k.wake.After(end); n++ {
		if n > 10_000 {
			k.t.Fatal("the machine spins")
		}
		k.now, k.wake = k.wake, time.Time{}
		k.take(k.m.Tick(k.now))
	}
	if k.last.Done == nil {
		k.now = end
	}
}

// news is a Tick that the clock did not ask for.
func (k *ticker) news() { k.take(k.m.Tick(k.now)) }

func (k *ticker) result(text string) {
	k.t.Helper()
	k.take(k.m.Result(k.asks-1, execMessage(k.t, text)))
}

// stillWaits fails when the call is over.
func (k *ticker) stillWaits() {
	k.t.Helper()
	if k.last.Done != nil {
		k.t.Fatalf("over: %q", k.last.Done.Text)
	}
}

func awaitEnv() *Env {
	env := shellEnv()
	env.Shells.Add(Shell{ID: 7, Exec: 3, File: "/home/dev/terminals/7.txt", seed: "starting\n"})
	return env
}

func stdout(t *testing.T, env *Env, text string) {
	t.Helper()
	b, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	env.Shells.Result(3, execMessage(t, `{"shell_stream":{"stdout":{"data":`+string(b)+`}}}`))
}

const heading = "Terminal file: /home/dev/terminals/7.txt\nOutput:\n"

// A wait ends with the command, not before and no later (R05), whatever the type of its id.
func TestAwaitExit(t *testing.T) {
	for _, id := range []string{`7`, `"7"`, `7.0`} {
		env := awaitEnv()
		k := newTicker(t, beginAwait(Call{ID: "c"}, json.RawMessage(`{"shell_id":`+id+`,"block_until_ms":60000}`), env))
		k.pass(10 * time.Second)
		stdout(t, env, "more\n")
		k.news()
		k.pass(10 * time.Second)
		k.stillWaits()
		env.Shells.Result(3, execMessage(t, `{"shell_stream":{"exit":{"code":2}}}`))
		k.news()
		o := over(t, k.last)
		if want := "Shell 7 has ended. Exit code: 2\n" + heading + "starting\nmore"; o.Text != want || o.IsError || k.asks != 0 {
			t.Errorf("%s: got %q, want %q", id, o.Text, want)
		}
		c := o.Card.GetAwaitToolCall()
		if got := c.GetResult().GetComplete(); c.GetArgs().GetTaskId() != "7" || c.GetArgs().GetBlockUntilMs() != 60000 ||
			got.GetExitCode() != 2 || got.ExitCode == nil || got.GetRuntimeMs() < 19_000 || got.GetRuntimeMs() > 20_000 || got.GetOutputLength() != 14 {
			t.Errorf("%s: the card says %v", id, c)
		}
	}
}

func TestAwaitTimesOut(t *testing.T) {
	env := awaitEnv()
	k := newTicker(t, beginAwait(Call{}, json.RawMessage(`{"shell_id":7}`), env))
	k.pass(29 * time.Second)
	k.stillWaits()
	k.pass(2 * time.Second)
	o := over(t, k.last)
	if want := "Shell 7 still runs after 30000 ms of waiting\n" + heading + "starting"; o.Text != want || o.IsError {
		t.Errorf("got %q, want %q", o.Text, want)
	}
	if got := o.Card.GetAwaitToolCall().GetResult().GetStillRunning(); got.GetRuntimeMs() != 30_000 || got.GetWakeReason() != "timeout" {
		t.Errorf("the card says %v", got)
	}
	if waited := k.now.Sub(time.Unix(5000, 0)); waited > 30*time.Second+10*time.Millisecond {
		t.Errorf("waited %v", waited)
	}
}

func TestAwaitLooks(t *testing.T) {
	env := awaitEnv()
	begin := func(input string) *Outcome {
		return over(t, beginAwait(Call{}, json.RawMessage(input), env).Start())
	}
	if o := begin(`{"shell_id":7,"block_until_ms":0}`); o.Text != "Shell 7 still runs\n"+heading+"starting" {
		t.Errorf("a look that only looks: %q", o.Text)
	}
	if o := begin(`{"shell_id":7,"pattern":"^start"}`); !strings.HasPrefix(o.Text, "Shell 7 still runs; its output matches the pattern: start\n") {
		t.Errorf("a pattern that matched before: %q", o.Text)
	}
	env.Shells.Result(3, execMessage(t, `{"shell_result":{"spawn_error":{}}}`))
	if o := begin(`{"shell_id":7}`); !strings.HasPrefix(o.Text, "Shell 7 has ended. Its exit code is not known\n") {
		t.Errorf("an end without a code: %q", o.Text)
	}
}

func TestAwaitPattern(t *testing.T) {
	env := awaitEnv()
	k := newTicker(t, beginAwait(Call{}, json.RawMessage(`{"shell_id":7,"block_until_ms":600000,"pattern":"^ready on \\d+$"}`), env))
	for _, text := range []string{"not ready on 80\n", "ready", " on 80"} {
		k.pass(time.Minute)
		k.stillWaits()
		stdout(t, env, text)
		k.news()
	}
	o := over(t, k.last)
	if !strings.HasPrefix(o.Text, "Shell 7 still runs; its output matches the pattern: ready on 80\n") || !strings.HasSuffix(o.Text, "not ready on 80\nready on 80") {
		t.Errorf("got %q", o.Text)
	}
	got := o.Card.GetAwaitToolCall()
	if r := got.GetResult().GetStillRunning(); r.GetRegexMatch() != "ready on 80" || !r.GetRegexRequested() || got.GetArgs().GetRegex() != `^ready on \d+$` {
		t.Errorf("the card says %v", got)
	}
}

func TestAwaitSleeps(t *testing.T) {
	k := newTicker(t, beginAwait(Call{}, json.RawMessage(`{"block_until_ms":2000}`), shellEnv()))
	k.news() // of some shell
	k.pass(1500 * time.Millisecond)
	k.news()
	k.stillWaits()
	k.pass(time.Second)
	if o := over(t, k.last); o.Text != "Slept for 2000 ms." || o.Card.GetAwaitToolCall().GetResult().GetComplete().GetRuntimeMs() != 2000 {
		t.Errorf("got %q, %v", o.Text, o.Card)
	}
}

func TestAwaitRefuses(t *testing.T) {
	env := shellEnv()
	env.Terminals = ""
	long := strings.Repeat("x", 1001)
	for input, want := range map[string]string{
		`{"block_until_ms":0}`:                    "give a shell_id",
		`{"pattern":"x"}`:                         "needs the shell_id",
		`{"shell_id":"first"}`:                    "is not a shell_id",
		`{"shell_id":1,"pattern":"("}`:            "missing closing )",
		`{"shell_id":1,"pattern":"a{1001}"}`:      "invalid repeat count",
		`{"shell_id":1,"pattern":"` + long + `"}`: "longer than",
		`{"shell_id":1}`:                          "no shell 1",
	} {
		o := over(t, beginAwait(Call{}, json.RawMessage(input), env).Start())
		if !o.IsError || !strings.Contains(o.Text, want) || o.Card.GetAwaitToolCall().GetResult().GetError().GetError() != o.Text {
			t.Errorf("%s: got %q, want %q", input, o.Text, want)
		}
	}
}

func fileResult(t *testing.T, content string) string {
	t.Helper()
	b, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	return `{"read_result":{"success":{"content":` + string(b) + `,"total_lines":9,"file_size":"99"}}}`
}

// A shell of which nothing is streamed any more is looked up in its file, again and again.
func TestAwaitReadsTheFile(t *testing.T) {
	env := shellEnv()
	k := newTicker(t, beginAwait(Call{ID: "c"}, json.RawMessage(`{"shell_id":"8","block_until_ms":20000}`), env))
	req := k.last.Requests[0]
	if got := req.Message.GetReadArgs(); got.GetPath() != "/home/dev/terminals/8.txt" || req.Unsafe || req.Patience == 0 || got.GetToolCallId() != "c" {
		t.Fatalf("asked for %v", req)
	}
	k.pass(200 * time.Millisecond)
	k.result(fileResult(t, "---\npid: 5\n---\nbuilding\n"))
	for range 4 {
		before := k.asks
		k.pass(1600 * time.Millisecond)
		if k.asks != before+1 {
			t.Fatalf("%d readings in 1.6 s, want 1", k.asks-before)
		}
		k.news() // does not make it read more often
		k.result(fileResult(t, "---\npid: 5\n---\nbuilding\nexit_code: 7\n"))
		k.news()
		k.stillWaits()
		if k.asks != before+1 {
			t.Fatal("news made it read again")
		}
	}
	k.pass(1600 * time.Millisecond)
	k.result(fileResult(t, "---\npid: 5\n---\nbuilding\ndone\n\n---\nexit_code: 3\nelapsed_ms: 5000\n---\n"))
	o := over(t, k.last)
	if want := "Shell 8 has ended. Exit code: 3\nTerminal file: /home/dev/terminals/8.txt\nOutput:\n---\npid: 5\n---\nbuilding\ndone"; o.Text != want {
		t.Errorf("got %q, want %q", o.Text, want)
	}
}

func TestAwaitFileInTime(t *testing.T) {
	k := newTicker(t, beginAwait(Call{}, json.RawMessage(`{"shell_id":8,"block_until_ms":5000}`), shellEnv()))
	k.pass(100 * time.Millisecond)
	k.result(fileResult(t, "half"))
	k.pass(10 * time.Second) // the next reading is not answered
	o := over(t, k.last)
	if !strings.HasPrefix(o.Text, "Shell 8 still runs after 5000 ms of waiting\n") || len(k.last.Abort) != 1 || k.last.Abort[0] != k.asks-1 {
		t.Errorf("got %q, abort %v", o.Text, k.last.Abort)
	}

	// The first reading may take longer than the time.
	k = newTicker(t, beginAwait(Call{}, json.RawMessage(`{"shell_id":8,"block_until_ms":0}`), shellEnv()))
	k.pass(5 * time.Second)
	k.stillWaits()
	k.result(fileResult(t, "half"))
	k.pass(time.Second)
	if o := over(t, k.last); !strings.HasPrefix(o.Text, "Shell 8 still runs\n") || k.asks != 1 {
		t.Errorf("got %q after %d readings", o.Text, k.asks)
	}

	k = newTicker(t, beginAwait(Call{}, json.RawMessage(`{"shell_id":8,"pattern":"h.lf"}`), shellEnv()))
	k.result(fileResult(t, "half"))
	if o := over(t, k.last); !strings.Contains(o.Text, "matches the pattern: half") {
		t.Errorf("got %q", o.Text)
	}
}

func TestAwaitFileThatCannotBeRead(t *testing.T) {
	begin := func() Machine {
		m := beginAwait(Call{}, json.RawMessage(`{"shell_id":8}`), shellEnv())
		m.Start()
		return m
	}
	for name, st := range map[string]Step{
		"not there": begin().Result(0, execMessage(t, `{"read_result":{"file_not_found":{"path":"x"}}}`)),
		"refused":   begin().Result(0, execMessage(t, `{"read_result":{"rejected":{"reason":"no"}}}`)),
		"closed":    begin().Closed(0), "thrown": begin().Thrown(0, "x", true),
	} {
		if o := over(t, st); !o.IsError || !strings.Contains(o.Text, "could not be read") {
			t.Errorf("%s: %q", name, o.Text)
		}
	}
	m := begin()
	for name, st := range map[string]Step{"empty": m.Result(0, execMessage(t, `{}`)), "another": m.Closed(4), "of another": m.Result(2, execMessage(t, fileResult(t, "---\nexit_code: 0")))} {
		if st.Done != nil {
			t.Errorf("%s ends the wait: %q", name, st.Done.Text)
		}
	}
}

// When the client is lost during a wait, the rest of the wait goes by the file; a long one is read
// from its end.
func TestAwaitLosesTheStream(t *testing.T) {
	env := awaitEnv()
	k := newTicker(t, beginAwait(Call{}, json.RawMessage(`{"shell_id":7,"block_until_ms":60000}`), env))
	k.pass(3 * time.Second)
	env.Shells.Lost()
	k.news()
	if k.asks != 1 || k.last.Requests[0].Message.GetReadArgs().GetPath() != "/home/dev/terminals/7.txt" {
		t.Fatalf("asked %+v", k.last)
	}
	k.result(`{"read_result":{"success":{"content":"head","total_lines":3,"truncated":true}}}`)
	k.pass(2 * time.Second)
	if got := k.last.Requests; len(got) != 1 || got[0].Message.GetReadArgs().Offset != nil {
		t.Fatalf("asked %+v", k.last)
	}
	k.result(`{"read_result":{"success":{"content":"head","total_lines":5000,"truncated":true}}}`)
	k.pass(2 * time.Second)
	if got := k.last.Requests; len(got) != 1 || got[0].Message.GetReadArgs().GetOffset() != 5000-terminalLines {
		t.Fatalf("asked %+v", k.last)
	}
	k.result(fileResult(t, "tail\n---\nexit_code: 0\n---"))
	if o := over(t, k.last); !strings.HasPrefix(o.Text, "Shell 7 has ended. Exit code: 0\n") {
		t.Errorf("got %q", o.Text)
	}
}

func TestTerminalView(t *testing.T) {
	for content, want := range map[string]struct {
		output string
		code   string
	}{
		"":                                     {"", "runs"},
		"---\npid: 1\n---\n":                   {"---\npid: 1\n---\n", "runs"},
		"a\n---\nexit_code: 0\n---\n":          {"a\n", "ended 0"},
		"a\n---\nexit_code: -1\nelapsed_ms: 3": {"a\n", "ended -1"},
		"a\r\n---\r\nelapsed_ms: 3\r\nexit_code: 12\r\n":    {"a\n", "ended 12"},
		"a\n---\nexit_code: unknown\n---":                   {"a\n", "ended"},
		"a\nexit_code: 0\n":                                 {"a\nexit_code: 0\n", "runs"},
		"a\n---\nexit_code: 0\n---\nb\n":                    {"a\n---\nexit_code: 0\n---\nb\n", "runs"},
		"a\n---\nlast_exit_code: 0\n---\n":                  {"a\n---\nlast_exit_code: 0\n---\n", "runs"},
		strings.Repeat("x\n", 9000) + "---\nexit_code: 5\n": {strings.Repeat("x\n", 9000), "ended 5"},
	} {
		v, got := terminalView(content), "runs"
		if v.ended {
			got = "ended"
		}
		if v.code != nil {
			got += " " + jsonOf(t, *v.code)
		}
		if got != want.code || v.output != want.output {
			t.Errorf("%.40q: %s, %.40q; want %s, %.40q", content, got, v.output, want.code, want.output)
		}
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAwaitShowsTheEnd(t *testing.T) {
	env := awaitEnv()
	stdout(t, env, strings.Repeat("x", 100<<10)+"end")
	o := over(t, beginAwait(Call{}, json.RawMessage(`{"shell_id":7,"block_until_ms":0}`), env).Start())
	if !strings.Contains(o.Text, "The end of its output:\nxxx") || !strings.HasSuffix(o.Text, "end") || len(o.Text) > awaitText+300 {
		t.Errorf("%d bytes: %.200q", len(o.Text), o.Text)
	}
}
