package shelltool_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/tool"
)

// limit is the time that a tool has to return after its end was asked for.
const limit = 2 * time.Second

// within fails the test when f takes longer than the limit.
func within(t *testing.T, most time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > most {
		t.Errorf("took %v, at most %v wanted", took, most)
	}
}

// pids returns the processes whose ids the command wrote into a file.
func (s *shell) pids(t *testing.T) []int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(s.dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	var pids []int
	for f := range strings.FieldsSeq(string(data)) {
		pid, err := strconv.Atoi(f)
		if err != nil {
			t.Fatal(err)
		}
		pids = append(pids, pid)
	}
	return pids
}

// running tells whether a process runs; one that has ended and was not collected does not.
func running(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

func (s *shell) wantNoneLeft(t *testing.T, n int) {
	t.Helper()
	pids := s.pids(t)
	if len(pids) != n {
		t.Errorf("the command started %d processes, want %d", len(pids), n)
	}
	for _, pid := range pids {
		if running(pid) {
			t.Errorf("process %d is left", pid)
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}

const (
	plainTree = `echo $$ >pids; sleep 300 & echo $! >>pids; (sleep 300 & echo $! >>pids; wait) & echo $! >>pids; echo ready; wait`
	stubborn  = `trap '' TERM; echo $$ >pids; (trap '' TERM; while :; do sleep 0.05; done) & echo $! >>pids; echo ready; while :; do sleep 0.05; done`
	ownGroups = `set -m; echo $$ >pids; sleep 300 & echo $! >>pids; echo ready; wait`
	detached  = `echo $$ >pids; setsid sh -c 'echo $$ >>pids; echo ready; exec sleep 300'; wait; sleep 300`
	holdsPipe = `echo $$ >pids; (trap '' TERM; exec sleep 300) & echo $! >>pids; echo ready; exec sleep 300`
)

func TestNothingIsLeft(t *testing.T) {
	for _, c := range []struct {
		name, command string
		processes     int
		timeOut       bool // tried with a timeout as well as with an abort
	}{
		{"tree", plainTree, 4, true},
		{"ignores SIGTERM", stubborn, 2, true},
		{"own process groups", ownGroups, 2, false},
		{"own session", detached, 2, false},
		{"keeps the pipe open", holdsPipe, 2, false},
	} {
		t.Run(c.name+" aborted", func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var res tool.Result
			done := make(chan struct{})
			go func() { defer close(done); res = s.run(ctx, t, map[string]any{"command": c.command}) }()
			s.waitReady(t)
			within(t, limit, func() { cancel(); <-done })
			if !res.IsError || !strings.HasPrefix(res.Text, "ready") || !strings.HasSuffix(res.Text, "\n\nCommand aborted") {
				t.Errorf("got %q", res.Text)
			}
			s.wantNoneLeft(t, c.processes)
		})
		if !c.timeOut {
			continue
		}
		t.Run(c.name+" timed out", func(t *testing.T) {
			t.Parallel()
			s := newShell(t)
			within(t, 2*time.Second+limit, func() {
				res := s.run(t.Context(), t, map[string]any{"command": c.command, "timeout": 2})
				if !res.IsError || res.Text != "ready\n\nCommand timed out after 2 seconds" {
					t.Errorf("got %q", res.Text)
				}
			})
			s.wantNoneLeft(t, c.processes)
		})
	}
}

// waitReady waits until the command has written all process ids and says so by its output,
// which is seen in a file that the pipe's reader cannot delay.
func (s *shell) waitReady(t *testing.T) {
	t.Helper()
	deadline := time.After(10 * time.Second)
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	seen := ""
	for stable := 0; stable < 15; {
		select {
		case <-deadline:
			t.Fatal("the command does not start")
		case <-tick.C:
		}
		data, _ := os.ReadFile(filepath.Join(s.dir, "pids"))
		if stable++; string(data) != seen || seen == "" {
			seen, stable = string(data), 0
		}
	}
}

func TestBackgroundProgramDoesNotHoldTheResult(t *testing.T) {
	s := newShell(t)
	within(t, limit, func() {
		res := s.command(t, `sleep 300 & echo $! >pids; echo started`)
		if res.IsError || !strings.HasPrefix(res.Text, "started\n\n[A program in the background") {
			t.Errorf("got %q", res.Text)
		}
	})
	for _, pid := range s.pids(t) {
		if !running(pid) {
			t.Error("the program in the background was ended")
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	res := s.command(t, `sleep 300 >/dev/null 2>&1 & echo $! >pids; echo started`)
	if res.IsError || res.Text != "started" {
		t.Errorf("got %q", res.Text)
	}
	for _, pid := range s.pids(t) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

func TestAbortedBeforeTheStart(t *testing.T) {
	s := newShell(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	res := s.run(ctx, t, `{"command":"sleep 300"}`)
	if !res.IsError || !strings.HasSuffix(res.Text, "Command aborted") {
		t.Errorf("got %q", res.Text)
	}
}
