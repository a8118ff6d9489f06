// Package shelltool holds the tool bash, which runs a command line in the session's working
// directory and returns the end of what it prints.
//
//	command ─▶ shell, own session ─▶ pipe ─▶ output ─┬─▶ progress
//	                                                 ├─▶ spill file, when large
//	                                                 └─▶ result
package shelltool

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/schema"
)

//go:embed bash.json
var bashSchema []byte

const bashText = "Run a command with bash in the working directory. Standard output and error come back together, their last 2000 lines or 50 KiB; the whole output is kept in a file when it is longer. There is no input and no terminal. To leave a program running, send it to the background and its output to a file."

// Environ returns a function that gives the environment of this process without the
// variables named in hide: those that hold the server's own keys.
func Environ(hide ...string) func() []string {
	hidden := make(map[string]bool, len(hide))
	for _, name := range hide {
		hidden[name] = true
	}
	return func() []string {
		var env []string
		for _, v := range os.Environ() {
			if name, _, _ := strings.Cut(v, "="); !hidden[name] {
				env = append(env, v)
			}
		}
		return env
	}
}

// Options say how bash is run.
type Options struct {
	// Env returns the environment of the programs; a call's own variables come after it.
	Env func() []string
	// Wrap, unless nil, returns the command line to run in place of the shell's, as one that
	// confines it, and variables, "NAME=value", that come after all others. argv[0] is the
	// shell's path. The wrapped command becomes the shell, or else starts it in its own
	// session. An error ends the call as one of bash, with the error's text for the model.
	// Wrap is called from several goroutines.
	Wrap func(call tool.Call, argv []string) (wrapped, env []string, err error)
}

// New returns the tool bash, unconfined: what NewWith returns for env alone.
func New(env func() []string) tool.Tool { return NewWith(Options{Env: env}) }

// NewWith returns the tool bash. It needs bash, or else sh, on the PATH.
func NewWith(o Options) tool.Tool {
	s := schema.MustParse(bashSchema)
	return &bash{Options: o, schema: s, spec: tool.Spec{Name: "bash", Description: bashText, Schema: s.Raw()}}
}

type bash struct {
	Options
	schema *schema.Schema
	spec   tool.Spec
}

type bashParams struct {
	Command string  `json:"command"`
	Timeout float64 `json:"timeout"`
}

// bashDetails goes with a result whose text is not the whole output (SPEC pi 8.1).
type bashDetails struct {
	FullOutputPath string `json:"fullOutputPath"`
}

func (b *bash) Spec() tool.Spec { return b.spec }

func (b *bash) Run(ctx context.Context, call tool.Call, progress func(tool.Progress)) tool.Result {
	var in bashParams
	if err := b.schema.Decode(call.Input, &in); err != nil {
		return tool.Failure("bash: " + err.Error())
	}
	if strings.ContainsRune(in.Command, 0) {
		return tool.Failure("bash: command: it holds a NUL byte, which no program can be given")
	}
	progress(tool.Progress{})
	out := newOutput(call.OutputDir)
	end, err := b.execute(ctx, call, in, out, progress)
	if err != nil {
		return tool.Failure(tool.Clean("bash: " + err.Error()))
	}
	return end.result(out)
}

// command prepares the shell.
func (b *bash) command(call tool.Call, line string) (*exec.Cmd, error) {
	shell, err := exec.LookPath("bash")
	if err != nil {
		if shell, err = exec.LookPath("sh"); err != nil {
			return nil, errors.New("neither bash nor sh is installed")
		}
	}
	if info, err := os.Stat(call.Dir); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("the working directory %s does not exist", call.Dir)
	}
	argv, env := []string{shell, "-c", line}, []string(nil)
	if b.Wrap != nil {
		if argv, env, err = b.Wrap(call, argv); err != nil {
			return nil, err
		}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = call.Dir
	cmd.Env = slices.Concat(b.Env(), []string{"PWD=" + call.Dir}, call.Env, env)
	ownSession(cmd)
	return cmd, nil
}

// ending is how a command ended.
type ending struct {
	code    int           // exit status, or 128 and the signal
	timeout time.Duration // when it was ended for taking so long
	aborted bool
	held    bool // something in the background still had the output
}

func endingOf(state *os.ProcessState) ending {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ending{code: 128 + int(ws.Signal())}
	}
	return ending{code: state.ExitCode()}
}

// result is what the model gets.
func (e ending) result(out *output) tool.Result {
	text, full := out.close()
	if text == "" {
		text = "(no output)"
	}
	res := tool.Result{Text: text, IsError: true}
	if full != "" {
		if d, err := json.Marshal(bashDetails{FullOutputPath: full}); err == nil && len(d) <= tool.MaxDetails {
			res.Details = d
		}
	}
	if e.held {
		res.Text = tool.Notice(res.Text, "A program in the background still holds the output; what it prints from now on is lost. Send its output to a file.")
	}
	switch {
	case e.aborted:
		res.Text += "\n\nCommand aborted"
	case e.timeout > 0:
		res.Text += fmt.Sprintf("\n\nCommand timed out after %v seconds", e.timeout.Seconds())
	case e.code != 0:
		res.Text += fmt.Sprintf("\n\nCommand exited with code %d", e.code)
	default:
		res.IsError = false
	}
	return res
}
