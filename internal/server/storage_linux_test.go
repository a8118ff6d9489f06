package server

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// ordinary starts a process that modes of files bind also if root runs the tests.
func ordinary(cmd *exec.Cmd) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		err := unix.Capget(&header, &data[0])
		for _, c := range []uintptr{unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH} {
			data[0].Effective &^= 1 << c
			data[0].Permitted &^= 1 << c
			data[0].Inheritable &^= 1 << c
			if err == nil && os.Geteuid() == 0 {
				err = unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
			}
		}
		if err == nil {
			err = unix.Capset(&header, &data[0])
		}
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	return <-started
}

// A server whose data directory may not be written to says so and ends; nothing in it has changed, and once
// it may, every session is there.
func TestReadOnlyDataDirectory(t *testing.T) {
	h := newHome(t, "rules: [{default: true, passes: [[{text: hello}]]}]")
	h.start()
	api := h.api()
	id := h.newSession(api)
	h.promptAs(api, id, "", "go")
	h.follow(api, id, over)
	h.stop(syscall.SIGKILL)
	data := filepath.Join(h.dir, "data")
	files, err := filepath.Glob(filepath.Join(data, "*"))
	if err != nil {
		t.Fatal(err)
	}
	before := make(map[string]string)
	for _, name := range files {
		if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
			before[name] = h.read(strings.TrimPrefix(name, h.dir+"/"))
			if err := os.Chmod(name, 0o400); err != nil {
				t.Fatal(err)
			}
		}
	}
	mode := func(data os.FileMode, file os.FileMode) {
		t.Helper()
		if err := os.Chmod(filepath.Join(h.dir, "data"), data); err != nil {
			t.Fatal(err)
		}
		for name := range before {
			if err := os.Chmod(name, file); err != nil {
				t.Fatal(err)
			}
		}
	}
	mode(0o500, 0o400)
	t.Cleanup(func() { _ = os.Chmod(data, 0o700) })
	said, ready := h.try(ordinary)
	if last := lastLine(said); ready || !strings.Contains(last, data) || strings.Contains(said, "panic") {
		t.Errorf("ready %v, and the server says %q", ready, said)
	}
	mode(0o700, 0o600)
	for name, was := range before {
		if now := h.read(strings.TrimPrefix(name, h.dir+"/")); now != was {
			t.Errorf("%s has changed", name)
		}
	}
	h.start()
	if v := h.follow(h.api(), id, over); answerOf(v) != "hello" {
		t.Errorf("afterwards: %v", v.Items)
	}
}
