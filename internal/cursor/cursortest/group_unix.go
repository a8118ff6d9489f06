//go:build unix

package cursortest

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup lets killGroup reach what cmd starts.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
