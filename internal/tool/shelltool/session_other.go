//go:build !unix

package shelltool

import (
	"os"
	"os/exec"
	"syscall"
)

// ownSession does nothing where there are no sessions.
func ownSession(*exec.Cmd) {}

// signalSession kills the shell; what it has started cannot be found here.
func signalSession(leader *os.Process, _ syscall.Signal) { _ = leader.Kill() }

// sessionAlive says no: signalSession leaves nothing to wait for.
func sessionAlive(*os.Process) bool { return false }
