// Package sandbox confines the programs that bash runs: they read the system, write the
// session's directory, and see nothing else of the machine's files. The kernel holds them to
// it (Landlock), so it holds where a judgement about the command line was wrong.
//
//	shelltool ─▶ Wrap ─▶ roost __sandbox OPTIONS -- bash -c … ─▶ Main: restrict itself, become bash
//
// A process cannot be restricted from outside, nor restricted and then freed, so the server
// starts itself again, and that copy becomes the command.
package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// hidden is the entry of the program that Main answers to.
const hidden = "__sandbox"

// exitNotRun is the exit code when the command was not run, as shells use it.
const exitNotRun = 126

// Options say what a command may do. All paths are absolute; those that do not exist are left
// out, but for Dir.
type Options struct {
	Dir       string   // the session's directory: read, write, run
	OutputDir string   // a directory that may be written too; "" for none
	Temp      string   // the directory for temporary files, which may be written; "" for the system's
	Read      []string // more files and directories to read and run programs from
	Write     []string // more directories to write
	// NoNetwork forbids to connect and to listen over TCP, and over UDP where the kernel can
	// (ABI 10). Kernels before 6.7 (ABI 4) cannot; Required then makes Wrap fail. Multipath
	// TCP is not covered by any kernel so far.
	NoNetwork bool
	// Required makes Wrap fail where the kernel cannot confine, instead of going on without.
	Required bool
}

// ErrUnsupported is what Wrap returns when a sandbox is required and cannot be had.
var ErrUnsupported = errors.New("this system cannot confine programs (that takes Linux 5.13 or later with Landlock enabled); change the sandbox setting to run them unconfined")

// ErrNoNetworkRules is what Wrap returns when the kernel can confine files but not the network.
var ErrNoNetworkRules = errors.New("this kernel cannot keep programs from the network (that takes Linux 6.7 or later); allow the network in the sandbox setting, or run them unconfined")

const networkABI = 4 // the first with rules for TCP

// Wrap returns the command line that runs argv confined, and variables, "NAME=value", to add
// to its environment. argv[0] is a path. Where the kernel cannot confine and it is not
// required, argv comes back as it is. The program has to call Main first of all.
func Wrap(o Options, argv []string) (wrapped, env []string, err error) {
	abi, ok := Supported()
	switch {
	case o.Required && !ok:
		return nil, nil, ErrUnsupported
	case o.Required && o.NoNetwork && abi < networkABI:
		return nil, nil, ErrNoNetworkRules
	case !filepath.IsAbs(o.Dir):
		return nil, nil, fmt.Errorf("sandbox: the directory %q is not absolute", o.Dir)
	case len(argv) == 0 || !filepath.IsAbs(argv[0]):
		return nil, nil, errors.New("sandbox: the command has no program, or no absolute path to it")
	}
	if o.Temp != "" {
		env = []string{"TMPDIR=" + o.Temp}
	} else {
		o.Temp = os.TempDir()
	}
	if !ok {
		return argv, env, nil
	}
	raw, err := json.Marshal(o)
	if err != nil {
		return nil, nil, fmt.Errorf("sandbox: %w", err)
	}
	return append([]string{self, hidden, string(raw), "--"}, argv...), env, nil
}

// Main is called first thing in main with os.Args. For any ordinary start it does nothing and
// returns false. For the hidden entry it restricts this process and becomes the command, so it
// returns only if that fails: with the exit code, after telling why on the standard error. A
// command that cannot be confined is never run.
func Main(args []string) (handled bool, code int) {
	if len(args) < 2 || args[1] != hidden {
		return false, 0
	}
	fmt.Fprintln(os.Stderr, "sandbox:", become(args[2:]))
	return true, exitNotRun
}

// become runs the command in place of this process, or returns why not.
func become(args []string) error {
	if len(args) < 3 || args[1] != "--" {
		return errors.New("this entry is for the server's own use")
	}
	var o Options
	if err := json.Unmarshal([]byte(args[0]), &o); err != nil {
		return err
	}
	program, err := exec.LookPath(args[2])
	if err != nil {
		return err
	}
	if err := restrict(o); err != nil {
		return err
	}
	return run(program, args[2:])
}
