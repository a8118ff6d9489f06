package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/control/controltest"
	"github.com/roost-dev/roost/internal/provider"
)

// two runs two prompts in the session s1.
func (f *fixture) two() {
	f.t.Helper()
	f.cmd("run", "--cwd", "/", "--mode", "plan", "first")
	f.cmd("run", "--session", "s1", "second")
}

func TestForkAndRewind(t *testing.T) {
	f := start(t, controltest.Says("one\n"), controltest.Says("two\n"))
	f.two()
	f.wants(f.cmd("sessions", "fork", "s1"), result{out: "s2\n"})
	f.wants(f.cmd("sessions", "fork", "s1", "--before", "u3", "--name", "copy"), result{out: "s3\n"})
	f.wants(f.cmd("sessions", "rewind", "s1", "u3"), result{})
	const note = "note, mode: "
	for id, want := range map[string]result{
		"s1": {out: "one\n", beside: "session s1  /  test/family/model  thinking off  mode plan\n" + note + "\nu2 > first\n"},
		"s2": {out: "one\ntwo\n", beside: "session s2  /  test/family/model  thinking off  mode plan\n" + note + "\nu2 > first\nu3 > second\n"},
		"s3": {out: "one\n", beside: "session s3  copy /  test/family/model  thinking off  mode plan\n" + note + "\nu2 > first\n"},
	} {
		got := f.cmd("sessions", "show", "--ids", id)
		if before, after, ok := strings.Cut(got.beside, note); ok { // what the note says is not ours
			_, after, _ = strings.Cut(after, "\n")
			got.beside = before + note + "\n" + after
		}
		f.wants(got, want)
	}
	f.wants(f.cmd("sessions", "rewind", "s1", "a1-1"), result{
		code: ExitFailed, beside: "roost: there is no message \"a1-1\" of the person to go back to\n",
	})
}

// Who watches sees what takes the place of what was taken away.
func TestWatchSeesARewind(t *testing.T) {
	f := start(t, controltest.Says("one\n"), controltest.Says("two\n"), controltest.Says("three\n"))
	f.cmd("run", "--cwd", "/", "first")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var others sync.WaitGroup
	defer others.Wait()
	out := newPerson(t,
		line{sees: "one\n", do: func() { others.Go(func() { f.cmd("run", "--session", "s1", "second") }) }},
		line{sees: "two\n", do: func() {
			others.Go(func() {
				f.Follow("s1", new(client.View), func(v *client.View) bool { return v.Session.LastRun.GetId() == 2 })
				f.cmd("sessions", "rewind", "s1", "u2")
			})
		}},
		line{sees: "rewound", do: func() { others.Go(func() { f.cmd("run", "--session", "s1", "third") }) }},
		line{sees: "three\n", do: cancel},
	)
	code := Run(ctx, Server{}, []string{"--server", f.address, "sessions", "watch", "s1"}, nil, out, out)
	want := "> first\none\n> second\ntwo\nrewound: what was said last is taken back\n> third\nthree\n"
	if got := out.screen.String(); code != ExitInterrupted || got != want {
		t.Errorf("exit code %d\n%s", code, got)
	}
}

func TestCompact(t *testing.T) {
	f := start(t, controltest.Says(strings.Repeat("long ", 100)), controltest.Says("two"),
		controltest.Breaks(provider.FaultAuth, ""), controltest.Says("Gist."))
	f.two()
	f.wants(f.cmd("sessions", "compact", "s1"), result{
		beside: "compacting: old items are being summarised\nno summary: the provider broke\n",
	})
	f.wants(f.cmd("sessions", "compact", "s1"), result{
		beside: "compacting: old items are being summarised\ncompacted: the model is told a summary of 5 characters instead\n",
	})
	f.wants(f.cmd("sessions", "compact", f.Create()), result{code: ExitFailed, beside: "roost: there is nothing to compact\n"})
	f.wants(f.cmd("sessions", "compact", "nope"), result{code: ExitFailed, beside: "roost: there is no such session\n"})
}

func TestCompactIsInterrupted(t *testing.T) {
	f := start(t, controltest.Says(strings.Repeat("long ", 100)), controltest.Says("two"), controltest.Hangs("Gi"))
	f.two()
	ctx, cancel := context.WithCancel(t.Context())
	beside := &lines{want: "compacting", seen: cancel}
	code := Run(ctx, Server{}, []string{"--server", f.address, "sessions", "compact", "s1"}, nil, new(bytes.Buffer), beside)
	if got := beside.b.String(); code != ExitInterrupted || !strings.HasSuffix(got, "no summary: aborted\nthe run was aborted\n") {
		t.Errorf("exit code %d\n%s", code, got)
	}
}

func TestExportAndImport(t *testing.T) {
	f := start(t, controltest.Says("Hello\x1b[2J."))
	f.cmd("run", "--cwd", "/", "hi")
	got := f.cmd("export", "s1")
	if got.code != ExitOK || !strings.Contains(got.out, "Hello") || !strings.Contains(got.out, "hi") {
		t.Errorf("exit code %d:\n%s%s", got.code, got.out, got.beside)
	}
	if again := f.cmd("sessions", "export", "s1", "--format", "md"); again != got {
		t.Errorf("not the same:\n%v\n%v", got, again)
	}
	path := filepath.Join(t.TempDir(), "s.jsonl")
	f.wants(f.cmd("export", "s1", "--format", "pi", "-o", path), result{})
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f.wants(f.cmdWith(t.Context(), string(file)+"nonsense\n", "import", "--cwd", "/", "--name", "n", "-"), result{
		out: "s2\n", beside: "not taken over: unreadable line, 1 times\n",
	})
	f.wants(f.cmd("sessions", "import", path), result{out: "s3\n"})
	want := f.cmd("sessions", "show", "s1")
	for _, id := range []string{"s2", "s3"} {
		if got := f.cmd("sessions", "show", id); got.out != want.out || !strings.HasSuffix(got.beside, "\n> hi\n") {
			t.Errorf("%s:\n%s%s", id, got.out, got.beside)
		}
	}
	var out bytes.Buffer
	a := &app{out: &terminal{w: &out, tty: true}, err: newTerminal(new(bytes.Buffer))}
	if code := a.run(t.Context(), []string{"--server", f.address, "export", "s1"}); code != ExitOK || strings.Contains(out.String(), "\x1b") {
		t.Errorf("exit code %d, on a screen: %q", code, &out)
	}
	if got := f.cmd("import", filepath.Join(t.TempDir(), "nope")); got.code != ExitFailed || !strings.Contains(got.beside, "no such file") {
		t.Errorf("exit code %d: %s", got.code, got.beside)
	}
}
