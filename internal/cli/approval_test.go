package cli

import (
	"bytes"
	"context"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/control/controltest"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// person sits at a terminal: once the screen shows what a line waits for, the line is typed.
type person struct {
	mu     sync.Mutex
	screen bytes.Buffer
	plan   []line
	typed  chan string
}

// line is typed when sees is on the screen, below what was there for the line before. Instead
// of being typed, do may be called; "^D" ends the input.
type line struct {
	sees, types string
	do          func()
}

func newPerson(t *testing.T, plan ...line) *person {
	t.Helper()
	p := &person{plan: plan, typed: make(chan string, len(plan)+1)}
	t.Cleanup(func() { p.typed <- "^D" })
	return p
}

// Read implements io.Reader.
func (p *person) Read(b []byte) (int, error) {
	s := <-p.typed
	if s == "^D" {
		return 0, io.EOF
	}
	return copy(b, s+"\n"), nil
}

// Write implements io.Writer.
func (p *person) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.screen.Len()
	p.screen.Write(b)
	if len(p.plan) == 0 || !strings.Contains(p.screen.String()[max(0, before-100):], p.plan[0].sees) {
		return len(b), nil
	}
	next := p.plan[0]
	p.plan = p.plan[1:]
	if next.do != nil {
		next.do()
	} else {
		p.typed <- next.types
	}
	return len(b), nil
}

// sits runs a command at a terminal.
func (f *fixture) sits(p *person, args ...string) result {
	f.t.Helper()
	var out bytes.Buffer
	a := &app{stdin: p, out: newTerminal(&out), err: newTerminal(p), person: true}
	code := a.run(f.t.Context(), append([]string{"--server", f.address}, args...))
	if len(p.plan) > 0 {
		f.t.Errorf("the person still waits for %q", p.plan[0].sees)
	}
	return result{code: code, out: out.String(), beside: p.screen.String()}
}

const lastKey = "behind the n\n" // the end of a question

func risky(n string) controltest.Answer { return controltest.Calls(`echo {"risky":` + n + `}`) }

func TestThePersonIsAsked(t *testing.T) {
	const asks = `? echo {"risky":1}
  it is risky
`
	const offers = `  y  allow it this once
  s  allow for this session: echo risky
  a  allow always: echo risky
  n  do not allow it; the model is told what you write behind the n
`
	const begins, ran = "session s1\n● echo {\"risky\":1}\n" + asks + offers, "  {\"risky\":1}\n  {\"risky\":1}\n"
	for name, c := range map[string]struct {
		plan   []line
		beside string
	}{
		"yes":               {[]line{{sees: lastKey, types: "y"}}, begins + ran},
		"always":            {[]line{{sees: lastKey, types: " A "}}, begins + ran},
		"no":                {[]line{{sees: lastKey, types: "n"}}, begins + "  The person did not allow it.\n"},
		"no, with a reason": {[]line{{sees: lastKey, types: "n use sed "}}, begins + "  The person did not allow it. use sed\n"},
		"something else":    {[]line{{sees: lastKey, types: "yes"}, {sees: lastKey, types: ""}, {sees: lastKey, types: "y"}}, begins + offers + offers + ran},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, risky("1"), controltest.Says("Well.\n"))
			f.wants(f.sits(newPerson(t, c.plan...), "run", "--cwd", "/", "go"), result{out: "Well.\n", beside: c.beside})
		})
	}
}

// The person is asked one question at a time, and what is allowed for the session is not asked
// again.
func TestOneQuestionAtATime(t *testing.T) {
	f := start(t, controltest.Calls(`echo {"risky":1}`, `echo {"risky":2}`), risky("3"), controltest.Says("Well.\n"))
	got := f.sits(newPerson(t, line{sees: lastKey, types: "n"}, line{sees: lastKey, types: "s"}), "run", "--cwd", "/", "go")
	first, second := strings.Index(got.beside, "? echo {\"risky\":1}"), strings.Index(got.beside, "? echo {\"risky\":2}")
	if got.code != ExitOK || first < 0 || second < first || strings.Count(got.beside, "? echo") != 2 {
		t.Errorf("exit code %d\n%s", got.code, got.beside)
	}
	if !strings.HasSuffix(got.beside, "● echo {\"risky\":3}\n  {\"risky\":3}\n  {\"risky\":3}\n") {
		t.Errorf("the third call:\n%s", got.beside)
	}
}

func TestSomebodyElseAnswers(t *testing.T) {
	f := start(t, risky("1"), controltest.Says("Well.\n"))
	elsewhere := func() {
		if got := f.cmd("sessions", "answer", "s1", "call1-1-0", "deny", "--reason", "No."); got.code != ExitOK {
			t.Errorf("exit code %d: %s", got.code, got.beside)
		}
	}
	got := f.sits(newPerson(t, line{sees: lastKey, do: elsewhere}), "run", "--cwd", "/", "go")
	if got.code != ExitOK || !strings.Contains(got.beside, "The person did not allow it. No.\n") || !strings.HasSuffix(got.beside, notOpen+"\n") {
		t.Errorf("exit code %d\n%s", got.code, got.beside)
	}
	f.wants(f.cmd("sessions", "answer", "s1", "call1-1-0", "allow"), result{
		code: ExitFailed, beside: "roost: there is no open question about call1-1-0; it may have been answered already\n",
	})
}

// Both answer, and the other one was faster.
func TestALateAnswerIsNoError(t *testing.T) {
	f := start(t, risky("1"), controltest.Says("Well.\n"))
	p := newPerson(t)
	p.plan = []line{{sees: lastKey, do: func() {
		_, err := f.Client.Answer(t.Context(), &roostv1.AnswerRequest{SessionId: "s1", ItemId: "call1-1-0", Allow: true})
		if err != nil {
			t.Error(err)
		}
		p.typed <- "n"
	}}}
	got := f.sits(p, "run", "--cwd", "/", "go")
	if got.code != ExitOK || strings.Count(got.beside, notOpen) != 1 || !strings.Contains(got.beside, "  {\"risky\":1}\n") {
		t.Errorf("exit code %d\n%s", got.code, got.beside)
	}
}

// With the end of the input the question stays open, and the screen says how to answer it.
func TestThePersonLeaves(t *testing.T) {
	f := start(t, risky("1"), controltest.Says("Well.\n"))
	answer := func() {
		_, err := f.Client.Answer(t.Context(), &roostv1.AnswerRequest{SessionId: "s1", ItemId: "call1-1-0", Allow: true})
		if err != nil {
			t.Error(err)
		}
	}
	got := f.sits(newPerson(t, line{sees: lastKey, types: "^D"}, line{sees: "sessions answer s1 call1-1-0 allow|deny\n", do: answer}),
		"run", "--cwd", "/", "go")
	if got.code != ExitOK || got.out != "Well.\n" {
		t.Errorf("exit code %d\n%s", got.code, got.beside)
	}
}

func TestApprove(t *testing.T) {
	const begins, ran = "session s1\n● echo {\"risky\":1}\n", "  {\"risky\":1}\n  {\"risky\":1}\n"
	const asks = "? echo {\"risky\":1}\n  it is risky\n"
	const denied = "  The person did not allow it. Nobody was there to ask.\n"
	for name, c := range map[string]struct {
		args   []string
		beside string
	}{
		"nothing said": {nil, begins + asks + "  denied, because nobody can be asked here; --approve allow or --approve wait does otherwise\n" + denied},
		"deny":         {[]string{"--approve", "deny"}, begins + asks + denied},
		"allow":        {[]string{"--approve", "allow"}, begins + ran},
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, risky("1"), controltest.Says("Well.\n"))
			got := f.cmd(append([]string{"run", "--cwd", "/", "go"}, c.args...)...)
			f.wants(got, result{out: "Well.\n", beside: c.beside})
		})
	}
}

func TestApproveWaits(t *testing.T) {
	f := start(t, risky("1"), controltest.Says("Well.\n"))
	p := newPerson(t, line{sees: "sessions answer s1 call1-1-0 allow|deny\n", do: func() {
		f.wants(f.cmd("sessions", "answer", "s1", "call1-1-0", "allow", "--scope", "session"), result{})
	}})
	f.wants(f.sits(p, "run", "--cwd", "/", "--approve", "wait", "go"), result{out: "Well.\n", beside: `session s1
● echo {"risky":1}
? echo {"risky":1}
  it is risky
  answer it with: roost sessions answer s1 call1-1-0 allow|deny
  {"risky":1}
  {"risky":1}
`})
}

func TestApproveInJSON(t *testing.T) {
	f := start(t, risky("1"), controltest.Says("Well."))
	got := f.cmd("run", "--json", "--approve", "allow", "--cwd", "/", "go")
	for _, want := range []string{
		`"toolStarted":{"itemId":"call1-1-0","host":"HOST_WORKSPACE","query":{"reason":"it is risky","grants":["echo risky"]}}`,
		`"queryAnswered":{"itemId":"call1-1-0","allow":true}`,
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("no %s in:\n%s", want, got.out)
		}
	}
	if got.code != ExitOK || got.beside != "" {
		t.Errorf("exit code %d, beside it %q", got.code, got.beside)
	}
}

// An interrupted person is asked nothing more: the run is aborted.
func TestInterruptWhileAsking(t *testing.T) {
	f := start(t, risky("1"))
	ctx, cancel := context.WithCancel(t.Context())
	p := newPerson(t, line{sees: lastKey, do: cancel})
	var out bytes.Buffer
	a := &app{stdin: p, out: newTerminal(&out), err: newTerminal(p), person: true}
	code := a.run(ctx, []string{"--server", f.address, "run", "--cwd", "/", "go"})
	if code != ExitInterrupted || strings.Count(p.screen.String(), "? echo") != 1 || !strings.HasSuffix(p.screen.String(), "the run was aborted\n") {
		t.Errorf("exit code %d\n%s", code, &p.screen)
	}
	if v := f.Idle("s1"); v.Session.LastRun.Outcome != roostv1.Outcome_OUTCOME_ABORTED {
		t.Errorf("the run ended as %v", v.Session.LastRun)
	}
}

func TestParseAnswer(t *testing.T) {
	bare, full := &roostv1.Query{}, &roostv1.Query{Grants: []string{"x"}}
	for _, c := range []struct {
		line  string
		query *roostv1.Query
		ok    bool
	}{
		{"y", bare, true},
		{"Y", full, true},
		{"n because", bare, true},
		{"s", full, true},
		{"a", full, true},
		{"s", bare, false},
		{"a", bare, false},
		{"y please", full, false},
		{"", full, false},
		{"yn", full, false},
		{"no", full, false},
	} {
		if got, ok := parseAnswer(c.line, c.query); ok != c.ok {
			t.Errorf("%q: %v, %v", c.line, got, ok)
		}
	}
}

// A question is harmless on a screen, and says so when it does not show all.
func TestQuestionShowsAll(t *testing.T) {
	screen := &terminal{tty: true}
	item := func(input string) *roostv1.Item {
		return &roostv1.Item{Id: "c", Kind: &roostv1.Item_Tool{Tool: &roostv1.Tool{
			Name: "bash\x1b[2J", Input: input, Query: &roostv1.Query{Reason: "why\r\nnot"},
		}}}
	}
	got := strings.Join(question(screen, item(`{"command":"ls `+strings.Repeat("x", 3000)+` # end"}`)), "\n")
	if !strings.Contains(got, "# end") || strings.Contains(got, "\x1b") || !strings.HasSuffix(got, "\n  why not") {
		t.Errorf("got %q", got)
	}
	got = strings.Join(question(screen, item(`{"a\u0062":"\u0072\u006d \u0026\u0026 x\u001b[2J\n","n":12345678901234567890}`)), "\n")
	if want := `{"ab":"rm && x\u001b[2J\n","n":12345678901234567890}`; !strings.Contains(got, want) {
		t.Errorf("got %q, want %q in it", got, want)
	}
	got = strings.Join(question(screen, item(strings.Repeat("x", shownQuestion+7))), "\n")
	if !strings.Contains(got, "7 characters that are not shown") {
		t.Errorf("got %q", got)
	}
}

// A question in a watched session is shown once, whichever way the view learns of it.
func TestWatchShowsQuestions(t *testing.T) {
	f := start(t, risky("1"))
	id := f.Create()
	f.Prompt(id, "go")
	f.Follow(id, new(client.View), func(v *client.View) bool { return len(v.Queries()) > 0 })
	ctx, cancel := context.WithCancel(t.Context())
	beside := &lines{want: "allow|deny\n", seen: cancel}
	code := Run(ctx, Server{}, []string{"--server", f.address, "sessions", "watch", id}, nil, io.Discard, beside)
	if got := beside.b.String(); code != ExitInterrupted || got != `> go
● echo {"risky":1}
? echo {"risky":1}
  it is risky
  answer it with: roost sessions answer s1 call1-1-0 allow|deny
` {
		t.Errorf("exit code %d\n%s", code, got)
	}
}
