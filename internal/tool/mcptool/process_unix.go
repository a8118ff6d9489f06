//go:build unix

package mcptool

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup makes cmd the leader of a session, and so of a process group, of its own: it has
// no terminal to ask on, and what it starts is ended with it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// terminate asks the leader and its group to end. Errors mean that there is nobody.
func terminate(leader *os.Process) { _ = syscall.Kill(-leader.Pid, syscall.SIGTERM) }

// kill ends the leader and its group.
func kill(leader *os.Process) { _ = syscall.Kill(-leader.Pid, syscall.SIGKILL) }

// groupAlive tells whether the group has a process. One that has ended and was not
// collected by its parent counts.
func groupAlive(leader *os.Process) bool { return syscall.Kill(-leader.Pid, 0) == nil }
