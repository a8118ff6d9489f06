package sandbox_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/sandbox"
)

func TestMain(m *testing.M) {
	if handled, code := sandbox.Main(os.Args); handled {
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// rig is a session's directory and what is around it.
type rig struct {
	opts    sandbox.Options
	outside string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	base := t.TempDir()
	r := &rig{outside: filepath.Join(base, "outside")}
	r.opts = sandbox.Options{
		Dir: filepath.Join(base, "work"), OutputDir: filepath.Join(base, "out"), Temp: filepath.Join(base, "temp"), Required: true,
	}
	for _, dir := range []string{r.opts.Dir, r.opts.OutputDir, r.opts.Temp, r.outside} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(r.outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	return r
}

// bash runs a command line confined, in the session's directory.
func (r *rig) bash(t *testing.T, line string) (string, error) {
	t.Helper()
	shell, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal(err)
	}
	argv, env, err := sandbox.Wrap(r.opts, []string{shell, "-c", line})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = r.opts.Dir
	cmd.Env = append(append(os.Environ(), "OUTSIDE="+r.outside, "OUT="+r.opts.OutputDir), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func requireLandlock(t *testing.T) int {
	t.Helper()
	abi, ok := sandbox.Supported()
	if !ok {
		if _, _, err := sandbox.Wrap(sandbox.Options{Dir: "/", Required: true}, []string{"/bin/true"}); !errors.Is(err, sandbox.ErrUnsupported) {
			t.Errorf("unsupported, and yet: %v", err)
		}
	}
	return abi
}

func TestAllowed(t *testing.T) {
	if requireLandlock(t) == 0 {
		return
	}
	r := newRig(t)
	for _, line := range []string{
		"echo x > a && cat a && mkdir d && mv a d/b && ln -s b d/c && rm d/b",
		"echo x > $OUT/log", "f=$(mktemp) && echo x > $f && [[ $f == $TMPDIR/* ]] && mv $f moved", "ls /usr/bin > /dev/null", "cat /etc/passwd > /dev/null",
		"printf '#!/bin/sh\\necho ran\\n' > run && chmod +x run && ./run", "git init -q g && git -C g status", "env | sort | head -1 | wc -l",
		"cat <(echo x)", "cat /proc/self/status > /dev/null", "true & wait", "sleep 60 & kill $!",
	} {
		if out, err := r.bash(t, line); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
}

func TestDenied(t *testing.T) {
	if requireLandlock(t) == 0 {
		return
	}
	r := newRig(t)
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"cat $OUTSIDE/secret", "echo x > $OUTSIDE/new", "echo x > $OUTSIDE/secret", "rm $OUTSIDE/secret", "mkdir $OUTSIDE/d", "ls $OUTSIDE", "ln -s $OUTSIDE l && cat l/secret",
		"ln $OUTSIDE/secret hard", "mv $OUTSIDE/secret .", "cd $OUTSIDE && cat secret", "bash -c 'cat $OUTSIDE/secret'", "setsid -w cat $OUTSIDE/secret", "ls " + home, "echo x > /etc/roost-test",
		"echo x > /usr/bin/roost-test", "tr '\\0' '\\n' < /proc/$PPID/environ", "kill -0 $PPID", "cat /proc/$PPID/root" + r.outside + "/secret", "mount -t tmpfs x .",
		"mknod disk b 8 0", "cat /proc/$PPID/maps", "readlink /proc/$PPID/cwd", "unshare -m true", "dmesg",
	} {
		out, err := r.bash(t, line)
		if err == nil || strings.Contains(out, "secret\n") || out == "secret" {
			t.Errorf("%s: it worked: %s", line, out)
		}
	}
	if got, err := os.ReadFile(filepath.Join(r.outside, "secret")); err != nil || string(got) != "secret" {
		t.Errorf("outside: %q, %v", got, err)
	}
	if list, err := os.ReadDir(r.outside); err != nil || len(list) != 1 {
		t.Errorf("outside: %v, %v", list, err)
	}
}

func TestMoreDirectories(t *testing.T) {
	if requireLandlock(t) == 0 {
		return
	}
	r := newRig(t)
	r.opts.Read = []string{filepath.Join(r.outside, "secret"), "/does/not/exist"}
	if out, err := r.bash(t, "cat $OUTSIDE/secret"); err != nil || out != "secret" {
		t.Errorf("read: %q, %v", out, err)
	}
	if out, err := r.bash(t, "echo x > $OUTSIDE/secret"); err == nil {
		t.Errorf("a file to read was written: %s", out)
	}
	r.opts.Write = []string{r.outside}
	if out, err := r.bash(t, "echo x > $OUTSIDE/new && mv $OUTSIDE/new ."); err != nil {
		t.Errorf("write: %s, %v", out, err)
	}
}

func TestWrapRefuses(t *testing.T) {
	if requireLandlock(t) == 0 {
		return
	}
	for _, tt := range []struct {
		dir  string
		argv []string
	}{{"work", []string{"/bin/true"}}, {"/", []string{"true"}}, {"/", nil}} {
		if argv, _, err := sandbox.Wrap(sandbox.Options{Dir: tt.dir}, tt.argv); err == nil {
			t.Errorf("%+v: %q", tt, argv)
		}
	}
}

// What cannot be confined is not run.
func TestMainFails(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{}, {"{}"}, {"{}", "--"}, {"{", "--", "/bin/echo", "ran"}, {`{"Dir":"/does/not/exist"}`, "--", "/bin/echo", "ran"}, {`{"Dir":"/"}`, "--", "/does/not/exist"},
	} {
		out, err := exec.CommandContext(t.Context(), exe, append([]string{"__sandbox"}, args...)...).CombinedOutput()
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok || exit.ExitCode() != 126 || !strings.HasPrefix(string(out), "sandbox: ") || strings.Contains(string(out), "ran\n") {
			t.Errorf("%q: %v\n%s", args, err, out)
		}
	}
	if handled, _ := sandbox.Main([]string{"roost", "serve", "__sandbox"}); handled {
		t.Error("an ordinary start was handled")
	}
}
