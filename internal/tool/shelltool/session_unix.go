//go:build unix

package shelltool

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// ownSession makes cmd the leader of a session of its own, so that it has no terminal to
// ask a password on, and everything it starts can be found.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// signalSession signals the process group of the leader, and other processes that come from
// it as far as the system tells: those of its session in groups of their own, as "set -m"
// makes them, and its descendants. Errors mean that a process has ended by itself.
func signalSession(leader *os.Process, sig syscall.Signal) {
	found := members(leader.Pid) // first: who loses its parent is no descendant any more
	_ = syscall.Kill(-leader.Pid, sig)
	for _, p := range found {
		if p.group != leader.Pid {
			_ = syscall.Kill(p.pid, sig)
		}
	}
}

// sessionAlive tells whether any process of the session runs.
func sessionAlive(leader *os.Process) bool {
	if syscall.Kill(-leader.Pid, 0) == nil {
		// Those that have ended and wait for their parent count for kill, but not here: a
		// container's first process may never collect them.
		if _, err := os.Stat("/proc/self/stat"); err != nil {
			return true
		}
	}
	return len(members(leader.Pid)) > 0
}

// process is a line of /proc/PID/stat.
type process struct{ pid, parent, group, session int }

// members returns the running processes of a session and their descendants. Without /proc it
// returns none.
func members(session int) []process {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	var all, found []process
	for _, file := range files {
		if p, ok := readProcess(file); ok {
			all = append(all, p)
		}
	}
	in := map[int]bool{session: true}
	for grown := true; grown; {
		grown = false
		for _, p := range all {
			if !in[p.pid] && (p.session == session || in[p.parent]) {
				in[p.pid], grown = true, true
			}
		}
	}
	for _, p := range all {
		if in[p.pid] {
			found = append(found, p)
		}
	}
	return found
}

// readProcess reads "PID (NAME) STATE PARENT GROUP SESSION …". A process that has ended
// counts as none.
func readProcess(file string) (p process, ok bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return p, false
	}
	open, end := bytes.IndexByte(data, '('), bytes.LastIndexByte(data, ')') // a name may hold both
	if open < 0 || end < open {
		return p, false
	}
	fields := bytes.Fields(data[end+1:])
	if len(fields) < 4 || fields[0][0] == 'Z' || fields[0][0] == 'X' {
		return p, false
	}
	for i, to := range []*int{&p.parent, &p.group, &p.session} {
		if *to, err = strconv.Atoi(string(fields[i+1])); err != nil {
			return p, false
		}
	}
	p.pid, err = strconv.Atoi(string(bytes.TrimSpace(data[:open])))
	return p, err == nil
}
