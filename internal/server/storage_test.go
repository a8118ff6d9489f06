package server

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
)

// try starts the server, and returns what it has said if it does not become ready.
func (h *home) try(start func(*exec.Cmd) error) (said string, ready bool) {
	h.t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+h.dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := start(cmd); err != nil {
		h.t.Fatal(err)
	}
	hung := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer hung.Stop()
	line := make([]byte, 5)
	if n, _ := out.Read(line); string(line[:n]) == "ready" {
		_ = cmd.Process.Signal(syscall.SIGKILL)
		_ = cmd.Wait()
		return "", true
	}
	if err := cmd.Wait(); err == nil {
		h.t.Error("a server that cannot start ends with 0")
	}
	if token, err := os.ReadFile(filepath.Join(h.dir, "data", "token")); err == nil && len(token) > 0 && strings.Contains(log.String(), strings.TrimSpace(string(token))) {
		h.t.Error("the server has told its token")
	}
	return log.String(), false
}

// lastLine is the error that a process has ended with.
func lastLine(said string) string {
	said = strings.TrimSpace(said)
	return said[strings.LastIndexByte(said, '\n')+1:]
}

// Files that are damaged while no server runs end in a refusal that says what to do, or in a server whose
// other sessions are whole.
func TestDamagedFiles(t *testing.T) {
	const sessions = 8
	file := func(suffix string) string { return filepath.Join("data", sqlitelog.FileName+suffix) }
	edit := func(name string, f func(b []byte) []byte) func(t *testing.T, h *home) {
		return func(t *testing.T, h *home) {
			path := filepath.Join(h.dir, name)
			b, err := os.ReadFile(path)
			if err == nil {
				err = os.WriteFile(path, f(b), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	remove := func(names ...string) func(t *testing.T, h *home) {
		return func(t *testing.T, h *home) {
			for _, name := range names {
				if err := os.Remove(filepath.Join(h.dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
		}
	}
	for name, c := range map[string]struct {
		kill   bool // instead of an orderly end, so that there is a write-ahead log
		damage func(t *testing.T, h *home)
		says   string // how the refusal names what is wrong; empty for a server that starts
		whole  int    // sessions at least
	}{
		"the database is missing":                 {false, remove(file(""), file("-wal"), file("-shm")), "missing", 0},
		"the database is empty":                   {false, edit(file(""), func([]byte) []byte { return nil }), "restore", 0},
		"the database is cut to half":             {false, edit(file(""), func(b []byte) []byte { return b[:len(b)/2] }), "restore", 0},
		"the database has another beginning":      {false, edit(file(""), func(b []byte) []byte { copy(b, "not a database at all"); return b }), "restore", 0},
		"a page of the database is noise":         {false, edit(file(""), noise), "", sessions - 2},
		"the write-ahead log is cut":              {true, edit(file("-wal"), func(b []byte) []byte { return b[:len(b)*3/4] }), "", 0},
		"the write-ahead log is noise at its end": {true, edit(file("-wal"), func(b []byte) []byte { clear(b[len(b)-1000:]); return b }), "", sessions - 1},
		"the shared memory is missing":            {true, remove(file("-shm")), "", sessions},
		"the token is empty":                      {false, edit(filepath.Join("data", "token"), func([]byte) []byte { return nil }), "token", 0},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, "rules: [{default: true, passes: [[{text: 'an answer of some length. ', repeat: 400}]]}]")
			h.start()
			api := h.api()
			before := make(map[string]string)
			for n := range sessions {
				id := h.newSession(api)
				h.promptAs(api, id, "", fmt.Sprint("question ", n))
				before[id] = answerOf(h.follow(api, id, over))
			}
			signal := syscall.SIGTERM
			if c.kill {
				signal = syscall.SIGKILL
			}
			h.stop(signal)
			c.damage(t, h)
			said, ready := h.try((*exec.Cmd).Start)
			if c.says != "" {
				if last := lastLine(said); ready || !strings.Contains(last, c.says) || strings.Contains(said, "panic") {
					t.Errorf("ready %v, and the server says %q", ready, last)
				}
				return
			}
			if !ready {
				t.Fatalf("the server does not start: %s", said)
			}
			h.start()
			api = h.api()
			whole := 0
			for id, answer := range before {
				s, items, err := api.Transcript(h.context(), id)
				switch {
				case err != nil:
					if kind := client.KindOf(err); kind != client.Internal && kind != client.NotFound {
						t.Errorf("session %s: %v", id, err)
					}
				case s.Run == nil && answerOf(&client.View{Session: s, Items: items}) == answer:
					whole++
				}
			}
			if whole < c.whole {
				t.Errorf("%d sessions are whole, want %d", whole, c.whole)
			}
			id := h.newSession(api) // it goes on
			h.promptAs(api, id, "", "go")
			h.follow(api, id, over)
			if log := h.read("log"); strings.Contains(log, "panic") {
				t.Errorf("the server panicked: %s", log)
			}
		})
	}
}

// noise overwrites a page in the middle of a file, one of those with events.
func noise(b []byte) []byte {
	const page = 4096
	at := len(b) / page / 2 * page
	for i := range page {
		b[at+i] = byte(i*7 + i>>8)
	}
	return b
}
