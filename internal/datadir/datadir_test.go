package datadir

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// holdDir turns this test binary into a process that holds a data directory.
const holdDir = "ROOST_TEST_HOLD_DIR"

// holdHeir makes that process start a program that inherits the lock and ends after so many seconds.
const holdHeir = "ROOST_TEST_HOLD_HEIR"

func TestMain(m *testing.M) {
	if path := os.Getenv(holdDir); path != "" {
		d, err := Open(path)
		if heir := os.Getenv(holdHeir); heir != "" && err == nil {
			cmd := exec.Command("sleep", heir)
			cmd.ExtraFiles = []*os.File{d.lock}
			err = cmd.Start()
		}
		fmt.Println("open:", err)
		_, _ = bufio.NewReader(os.Stdin).ReadByte() // until the parent ends it
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestOpenMakesADirectoryAndLocksIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "share", "roost")
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if d.Path() != path || d.Join("x") != filepath.Join(path, "x") {
		t.Errorf("path %s", d.Path())
	}
	for name, want := range map[string]os.FileMode{path: 0o700, d.Join("lock"): 0o600} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	_, err = Open(path)
	held, ok := errors.AsType[*InUseError](err)
	if !ok || held.PID != os.Getpid() || held.Dir != path {
		t.Fatalf("second open: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err == nil {
		t.Error("second close succeeded")
	}
}

func TestOpenRefusesWhileAnotherProcessLives(t *testing.T) {
	path := t.TempDir()
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := hold(t, path)
	_, err := Open(path)
	if want := fmt.Sprintf("another roost (pid %d) uses %s", cmd.Process.Pid, path); err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // it was killed
	d, err := Open(path)
	if err != nil {
		t.Fatalf("after the process was killed: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
}

// hold starts a process that has a directory open.
func hold(t *testing.T, path string, env ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(append(os.Environ(), holdDir+"="+path), env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close() })
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "open: <nil>\n" {
		t.Fatalf("%q %v", line, err)
	}
	return cmd
}

// A server that is killed and started again at once finds the dead one not gone yet.
func TestOpenWaitsForAProcessThatIsDying(t *testing.T) {
	path := t.TempDir()
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := hold(t, path)
	time.AfterFunc(50*time.Millisecond, func() { _ = cmd.Process.Kill() }) // while Open waits
	d, err := Open(path)
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
}

// A process that was killed may leave its lock to a program that it was starting. The next one waits for
// that, but not for ever.
func TestOpenWaitsForTheLockOfADeadProcess(t *testing.T) {
	for seconds, free := range map[string]bool{"0.3": true, "5": false} {
		t.Run(seconds, func(t *testing.T) {
			path := t.TempDir()
			if err := os.Chmod(path, 0o700); err != nil {
				t.Fatal(err)
			}
			cmd := hold(t, path, holdHeir+"="+seconds)
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_, _ = cmd.Process.Wait() // it was killed; its heir may have the pipes still
			d, err := Open(path)
			if _, held := errors.AsType[*InUseError](err); free != (err == nil) || !free && !held {
				t.Fatalf("got %v", err)
			}
			if free {
				_ = d.Close()
			}
		})
	}
}

func TestOpenRefusesOthersAccess(t *testing.T) {
	for mode, want := range map[os.FileMode]error{
		0o700: nil, 0o755: ErrPermissions, 0o750: ErrPermissions, 0o770: ErrPermissions, 0o711: ErrPermissions, 0o701: ErrPermissions,
	} {
		path := filepath.Join(t.TempDir(), "data")
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		d, err := Open(path)
		if !errors.Is(err, want) || err != nil && !strings.Contains(err.Error(), "chmod 700 "+path) {
			t.Errorf("mode %o: %v", mode, err)
		}
		if err == nil {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestOpenRefusesFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil {
		t.Fatal("a file was opened as a directory")
	}
}

func TestInUseWithoutPID(t *testing.T) {
	err := &InUseError{Dir: "/data"}
	if !strings.HasPrefix(err.Error(), "another roost uses /data") {
		t.Error(err)
	}
	for content, want := range map[string]int{"": 0, "12\n": 12, "x": 0, "-4": 0, strings.Repeat("9", 30): 0} {
		path := filepath.Join(t.TempDir(), "lock")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := readPID(f); got != want {
			t.Errorf("%q: pid %d", content, got)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFree(t *testing.T) {
	if free, ok := Free(t.TempDir()); ok && free == 0 {
		t.Error("the disk is full, or the answer is wrong")
	}
	if _, ok := Free(filepath.Join(t.TempDir(), "missing")); ok {
		t.Error("a missing directory has room")
	}
}
