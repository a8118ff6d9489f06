package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/control"
	"github.com/roost-dev/roost/internal/control/controltest"
	"github.com/roost-dev/roost/internal/provider"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a server on a Unix socket.
type fixture struct {
	*controltest.Rig
	t       *testing.T
	address string
}

func start(t *testing.T, answers ...controltest.Answer) *fixture {
	t.Helper()
	r := controltest.Start(t, nil, answers...)
	socket := filepath.Join(t.TempDir(), "s.http")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: control.New(r.Options).Handler(), ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	return &fixture{Rig: r, t: t, address: "unix:" + socket}
}

// result is what a command did.
type result struct {
	code        int
	out, beside string
}

func (f *fixture) cmd(args ...string) result { return f.cmdWith(f.t.Context(), "", args...) }

func (f *fixture) cmdWith(ctx context.Context, stdin string, args ...string) result {
	f.t.Helper()
	var out, beside bytes.Buffer
	code := Run(ctx, Server{Version: "1.2.3"}, append([]string{"--server", f.address}, args...), strings.NewReader(stdin), &out, &beside)
	return result{code: code, out: out.String(), beside: beside.String()}
}

func (f *fixture) wants(got, want result) {
	f.t.Helper()
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(result{})); diff != "" {
		f.t.Errorf("-want +got:\n%s", diff)
	}
}

func thinkingCalls(ctx context.Context, yield func(provider.Part)) error {
	yield(provider.Part{Kind: provider.ReasoningDelta, Text: "I need "})
	yield(provider.Part{Kind: provider.ReasoningDelta, Text: "a tool."})
	yield(provider.Part{Kind: provider.ReasoningEnd})
	yield(provider.Part{Kind: provider.TextDelta, Text: "Let me look."})
	return controltest.Calls(`echo {"path":  "x"}`, `echo {"fail":1}`)(ctx, yield)
}

func TestRunShowsAll(t *testing.T) {
	f := start(t, thinkingCalls, controltest.Says("All ", "done.\n", "Bye."), controltest.Says("More."))
	f.wants(f.cmd("run", "--cwd", "/", "--name", "n", "--thinking", "high", "hello"), result{
		out: "Let me look.\nAll done.\nBye.\n",
		beside: `session s1
I need a tool.
● echo {"path": "x"}
  {"path": "x"}
  {"path": "x"}
● echo {"fail":1}
  {"fail":1}
  {"fail":1}
`,
	})
	f.wants(f.cmdWith(t.Context(), "from stdin", "run", "--session", "s1", "-"), result{out: "More.\n", beside: "session s1\n"})
	f.wants(f.cmd("sessions", "show", "s1"), result{
		out: "Let me look.\nAll done.\nBye.\nMore.\n",
		beside: `session s1  n /  test/family/model  thinking high  mode agent
> hello
I need a tool.
● echo {"path": "x"}
  {"path": "x"}
  {"path": "x"}
● echo {"fail":1}
  {"fail":1}
  {"fail":1}
> from stdin
`,
	})
}

func TestRunFails(t *testing.T) {
	f := start(t, controltest.Breaks(provider.FaultAuth, "half"))
	f.wants(f.cmd("run", "--cwd", "/", "hello"), result{
		code: ExitFailed, out: "half\n",
		beside: "session s1\nerror: the provider broke\n",
	})
}

// What the model says is not torn apart in a file, however often the stream broke.
func TestRetryLeavesTheTextWhole(t *testing.T) {
	f := start(t, controltest.Breaks(provider.FaultNetwork, "one wo"), controltest.Says("rd\n"))
	got := f.cmd("run", "--cwd", "/", "hello")
	if got.out != "one word\n" || !strings.Contains(got.beside, ": the provider broke\n") || got.code != ExitOK {
		t.Errorf("exit code %d, output %q beside %q", got.code, got.out, got.beside)
	}
}

var (
	times   = regexp.MustCompile(`"at":"[^"]*",?|,"(startedAt|updatedAt|createdAt)":"[^"]*"`)
	prompts = regexp.MustCompile(`"promptId":"[A-Z0-9]{20,}"`)
)

func TestRunJSON(t *testing.T) {
	f := start(t, controltest.Thinks("hm", "Hi."))
	got := f.cmd("run", "--json", "--cwd", "/", "hello")
	got.out = prompts.ReplaceAllString(times.ReplaceAllString(got.out, ""), `"promptId":"P"`)
	for line := range strings.Lines(got.out) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	f.wants(got, result{out: `{"started":{"sessionId":"s1","promptId":"P","run":1}}
{"event":{"seq":"2","runStarted":{"run":1,"item":{"id":"u1","run":1,"user":{"promptId":"P","blocks":[{"text":{"text":"hello"}}]}}}}}
{"event":{"seq":"3","passStarted":{"item":{"id":"a1-1","assistant":{"pass":1,"model":"test/family/model","status":"STATUS_STREAMING"}}}}}
{"event":{"seq":"4","blockStarted":{"block":{"reasoning":{}}}}}
{"event":{"seq":"5","delta":{"text":"hm"}}}
{"event":{"seq":"6","blockEnded":{}}}
{"event":{"seq":"7","blockStarted":{"block":{"text":{}}}}}
{"event":{"seq":"8","delta":{"index":1,"text":"Hi."}}}
{"event":{"seq":"9","passEnded":{"status":"STATUS_COMPLETE","stop":"STOP_REASON_END"}}}
{"event":{"seq":"10","runEnded":{"outcome":"OUTCOME_COMPLETED"}}}
{"result":{"outcome":"OUTCOME_COMPLETED","text":"Hi.","usage":{}}}
`})
}

// lines tells when something is written.
type lines struct {
	mu   sync.Mutex
	b    bytes.Buffer
	want string
	seen func()
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b.Write(p)
	if strings.Contains(l.b.String(), l.want) {
		l.seen()
	}
	return len(p), nil
}

func TestInterruptAborts(t *testing.T) {
	f := start(t, controltest.Hangs("working"))
	ctx, cancel := context.WithCancel(t.Context())
	out := &lines{want: "working", seen: cancel}
	var beside bytes.Buffer
	code := Run(ctx, Server{}, []string{"--server", f.address, "run", "--cwd", "/", "go"}, nil, out, &beside)
	if code != ExitInterrupted || !strings.Contains(beside.String(), "the run was aborted") {
		t.Errorf("exit code %d\n%s", code, &beside)
	}
	if v := f.Idle("s1"); v.Session.LastRun.Outcome != roostv1.Outcome_OUTCOME_ABORTED {
		t.Errorf("the run ended as %v", v.Session.LastRun)
	}
}

func TestSessionsAndModels(t *testing.T) {
	f := start(t)
	f.cmd("run", "--cwd", "/", "hello")
	f.wants(f.cmd("sessions", "rename", "s1", "evil\x1b]0;title\x07"), result{})
	got := f.cmd("sessions")
	got.out = regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d`).ReplaceAllString(got.out, "2026-01-02 15:04")
	f.wants(got, result{out: "ID  UPDATED           STATE  MODEL              NAME OR DIRECTORY\n" +
		"s1  2026-01-02 15:04  idle   test/family/model  evil␛]0;title␇\n"})
	got = f.cmd("sessions", "--json")
	if !json.Valid([]byte(got.out)) || !strings.Contains(got.out, `"id":"s1"`) {
		t.Errorf("sessions --json: %s", got.out)
	}
	f.wants(f.cmd("models"), result{out: "MODEL              KEY  CONTEXT  OUTPUT  $/M IN  $/M OUT  THINKING\n" +
		"test/family/model  yes  100000   100     1.50    3.00     off,high\n"})
	f.wants(f.cmd("sessions", "delete", "s1"), result{})
	f.wants(f.cmd("sessions", "show", "s1"), result{code: ExitFailed, beside: "roost: there is no such session\n"})
}

func TestWatch(t *testing.T) {
	f := start(t, controltest.Says("Hello."))
	id := f.Create()
	ctx, cancel := context.WithCancel(t.Context())
	out := &lines{want: "Hello.", seen: cancel}
	var beside bytes.Buffer
	f.Prompt(id, "hi")
	code := Run(ctx, Server{}, []string{"--server", f.address, "sessions", "watch", id}, nil, out, &beside)
	if code != ExitInterrupted || !strings.Contains(beside.String(), "> hi\n") {
		t.Errorf("exit code %d\n%s", code, &beside)
	}
}

func TestExitCodes(t *testing.T) {
	f := start(t)
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"version"}, ExitOK, ""},
		{[]string{"--help"}, ExitOK, ""},
		{[]string{"nonsense"}, ExitUsage, "nonsense"},
		{[]string{"run"}, ExitUsage, "PROMPT"},
		{[]string{"run", "a", "b"}, ExitUsage, "PROMPT"},
		{[]string{"run", "--nonsense", "x"}, ExitUsage, "nonsense"},
		{[]string{"run", "--session", "s", "--cwd", "/", "x"}, ExitUsage, "cwd"},
		{[]string{"run", "--mode", "odd", "x"}, ExitUsage, "agent, ask, plan, debug"},
		{[]string{"run", "--approve", "odd", "x"}, ExitUsage, "ask, allow, deny, wait"},
		{[]string{"sessions", "answer", "s", "c", "maybe"}, ExitUsage, "allow or deny"},
		{[]string{"sessions", "answer", "s", "c", "allow", "--scope", "ever"}, ExitUsage, "once, session, always"},
		{[]string{"export", "s", "--format", "doc"}, ExitUsage, "md, html, jsonl, pi"},
		{[]string{"run", "--session", "s", "x"}, ExitFailed, "no such session"},
		{[]string{"run", "--model", "no/such", "x"}, ExitFailed, "no model"},
		{[]string{"run", "--cwd", "/", " "}, ExitFailed, "needs a text"},
		{[]string{"--server", "unix:/nonexistent/socket", "models"}, ExitUnreachable, "cannot be reached"},
		{[]string{"--server", "nonsense", "models"}, ExitFailed, "http://HOST:PORT"},
	} {
		got := f.cmd(c.args...)
		if got.code != c.code || !strings.Contains(got.beside, c.says) {
			t.Errorf("%v: exit code %d, want %d:\n%s", c.args, got.code, c.code, got.beside)
		}
	}
	if got := f.cmd("version"); got.out != "roost 1.2.3\n" {
		t.Errorf("version: %q", got.out)
	}
	if got := f.cmd("schema", "pi"); !json.Valid([]byte(got.out)) {
		t.Error("the schema is not JSON")
	}
}

// configuration writes one and returns its path.
func configuration(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "c.yaml")
	text := "providers:\n  demo:\n    api: scripted\nlog:\n  format: json\n  level: error\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// Without a server one is started for the command, and stopped after it.
func TestEmbedded(t *testing.T) {
	f := start(t, controltest.Says("Hello."))
	dir := t.TempDir()
	stopped := 0
	socket := ""
	server := Server{Embedded: func(_ context.Context, opt ServeOptions) (string, func(), error) {
		if opt.Data != dir || opt.Config == nil || opt.Logger == nil || opt.Out == nil {
			t.Errorf("options %+v", opt)
		}
		socket = opt.Socket
		return f.address, func() { stopped++ }, nil
	}}
	var out, beside bytes.Buffer
	args := []string{"--data", dir, "--config", configuration(t), "run", "--cwd", "/", "hi"}
	code := Run(t.Context(), server, args, nil, &out, &beside)
	if code != ExitOK || out.String() != "Hello.\n" || stopped != 1 {
		t.Errorf("exit code %d, output %q, stopped %d times\n%s", code, &out, stopped, &beside)
	}
	if _, err := os.Stat(filepath.Dir(socket)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket's folder is left: %v", err)
	}
	server.Embedded = func(context.Context, ServeOptions) (string, func(), error) {
		return "", nil, errors.New("the data directory is in use")
	}
	beside.Reset()
	if code := Run(t.Context(), server, args, nil, &out, &beside); code != ExitFailed || beside.String() != "roost: the data directory is in use\n" {
		t.Errorf("exit code %d, want %d:\n%s", code, ExitFailed, &beside)
	}
}

func TestServe(t *testing.T) {
	var got ServeOptions
	server := Server{Version: "v", Serve: func(_ context.Context, opt ServeOptions) error {
		got = opt
		opt.Logger.Error("logged")
		return errors.New("broken")
	}}
	dir := t.TempDir()
	var out, beside bytes.Buffer
	code := Run(t.Context(), server, []string{
		"serve", "--config", configuration(t), "--data", dir, "--listen", "l:1", "--tls-cert", "c", "--tls-key", "k",
	}, nil, &out, &beside)
	if code != ExitFailed || got.Data != dir || got.Listen != "l:1" || got.TLSCert != "c" || got.TLSKey != "k" || got.Version != "v" {
		t.Errorf("exit code %d, options %+v", code, got)
	}
	if want := filepath.Join(dir, "run", "roost.sock"); got.Socket != want {
		t.Errorf("socket %s, want %s", got.Socket, want)
	}
	if log, said, _ := strings.Cut(beside.String(), "\n"); !json.Valid([]byte(log)) || said != "roost: broken\n" {
		t.Errorf("said %q", &beside)
	}
	if code := Run(t.Context(), server, []string{"serve", "--config", "/nonexistent.yaml"}, nil, &out, &beside); code != ExitFailed {
		t.Errorf("exit code %d without its configuration", code)
	}
	if code := Run(t.Context(), server, []string{"serve", "--tls-cert", "c"}, nil, &out, &beside); code != ExitUsage {
		t.Errorf("exit code %d with half of TLS", code)
	}
}

func TestOutageIsToldOnce(t *testing.T) {
	var beside bytes.Buffer
	o := outage{err: &terminal{w: &beside}}
	o.back()
	for range 3 {
		o.lost(errors.New("gone\x1b"))
	}
	o.back()
	o.back()
	if got := beside.String(); got != "connection lost, trying again until it is back: gone␛\nconnected again\n" {
		t.Errorf("said %q", got)
	}
}
