//go:build !unix

package mcptool

import (
	"os"
	"os/exec"
)

// ownGroup does nothing where there are no process groups.
func ownGroup(*exec.Cmd) {}

// terminate kills the program; what it has started cannot be found here.
func terminate(leader *os.Process) { _ = leader.Kill() }

// kill kills the program.
func kill(leader *os.Process) { _ = leader.Kill() }

// groupAlive says no: terminate leaves nothing to wait for.
func groupAlive(*os.Process) bool { return false }
