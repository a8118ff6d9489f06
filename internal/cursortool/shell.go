package cursortool

import (
	"encoding/json"
	"math"
	"strings"
	"time"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const (
	// shellSilence is how long after block_until_ms a command that runs may go without an event
	// until the call is given up. It is a safety net: the client itself moves a command to the
	// background in time.
	shellSilence = 10 * time.Minute
	// shellLook is how often that is looked at.
	shellLook = time.Minute
)

// shellWay is a way to run a command in a client.
type shellWay int

const (
	shellStreamed shellWay = iota // shell_stream_args: output while it runs
	shellPi                       // pi_bash_args
	shellPlain                    // shell_args: one result at the end
)

// shell runs a command (section 5.3). Nothing is timed before the client says that the command has
// begun, since a person may have to agree first (R04).
type shell struct {
	quiet
	call Call
	in   shellInput
	env  *Env
	args *agentv1.ShellArgs

	ways []shellWay // to try, the first one is under way
	n    int        // the request that is under way

	stdout, stderr capture
	both           tail // as they came
	hooks          []*agentv1.HookAdditionalContext

	began bool
	heard bool      // since the last look
	since time.Time // of the last look that found something; zero before the first
}

func beginShell(call Call, args json.RawMessage, env *Env) Machine {
	s := &shell{call: call, env: env}
	err := decode(args, &s.in)
	s.args = s.in.args(call, env)
	switch {
	case err != nil:
		return settled{Outcome: shellFailed(s.args, "Shell error: "+err.Error())}
	case env.PiOnly:
		s.ways = []shellWay{shellPi, shellStreamed, shellPlain}
	case env.NoPi:
		s.ways = []shellWay{shellStreamed, shellPlain}
	default:
		s.ways = []shellWay{shellStreamed, shellPi, shellPlain}
	}
	return s
}

// shellCard is the card of a call that has no result yet, also of one whose input is not complete.
func shellCard(args json.RawMessage) *agentv1.ToolCall {
	var in shellInput
	peek(args, &in)
	return shellToolCall(in.args(Call{}, &Env{}), nil)
}

func shellToolCall(args *agentv1.ShellArgs, res *agentv1.ShellResult) *agentv1.ToolCall {
	c := &agentv1.ShellToolCall{Args: args, Result: res}
	if d := args.GetDescription(); d != "" {
		c.Description = new(d)
	}
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_ShellToolCall{ShellToolCall: c}}
}

// Start asks in the best way that the client is thought to have.
func (s *shell) Start() Step { return Step{Requests: []Request{s.request()}} }

func (s *shell) request() Request {
	r := Request{Message: &agentv1.ExecServerMessage{}, Unsafe: true}
	switch s.ways[0] {
	case shellStreamed:
		r.Message.Message = &agentv1.ExecServerMessage_ShellStreamArgs{ShellStreamArgs: s.args}
	case shellPlain:
		r.Message.Message = &agentv1.ExecServerMessage_ShellArgs{ShellArgs: s.args}
	case shellPi:
		r.Message.Message = &agentv1.ExecServerMessage_PiBashArgs{PiBashArgs: s.in.pi(s.args.WorkingDirectory)}
	}
	return r
}

// pi returns the same command for pi's bash, which has a limit in seconds and no background: a
// command for the background would never return, so it gets the usual time.
func (in *shellInput) pi(dir string) *agentv1.PiBashExecArgs {
	a := &agentv1.PiBashExecArgs{Command: in.Command}
	if in.Dir != "" {
		a.Command = "cd -- '" + strings.ReplaceAll(dir, "'", `'\''`) + "' && {\n" + in.Command + "\n}"
	}
	switch ms := in.block(); {
	case in.Block == nil: // its own limit, if any: it would not go on in the background but die
	case ms == 0:
		a.Timeout = new(float64(shellBlock / 1000))
	default:
		a.Timeout = new(math.Ceil(float64(ms) / 1000))
	}
	return a
}

// Result takes an event of the stream, or a result that comes in its place.
func (s *shell) Result(n int, m *agentv1.ExecClientMessage) Step {
	if n != s.n {
		return Step{}
	}
	s.hooks = append(s.hooks, m.GetHookAdditionalContexts()...)
	var st Step
	switch r := m.GetMessage().(type) {
	case nil: // a notice of hooks, which ends nothing
	case *agentv1.ExecClientMessage_ShellStream:
		st = s.event(r.ShellStream)
	case *agentv1.ExecClientMessage_ShellResult:
		st = s.result(r.ShellResult)
	case *agentv1.ExecClientMessage_MiniSweAgentBashResult:
		st = s.result(r.MiniSweAgentBashResult)
	case *agentv1.ExecClientMessage_PiBashResult:
		st = s.piResult(r.PiBashResult)
	default:
		st = s.fail("The client did not run the command. Its answer was: " + brief(foreign(m)))
	}
	return s.timed(st)
}

// timed starts the clock at the first sign that the command runs.
func (s *shell) timed(st Step) Step {
	s.heard = true
	if st.Done == nil && s.began && s.since.IsZero() && st.Wake == 0 {
		st.Wake = shellLook
	}
	return st
}

func (s *shell) event(e *agentv1.ShellStream) Step {
	switch e := e.GetEvent().(type) {
	case *agentv1.ShellStream_Start:
		s.began = true
		return Step{Live: []*agentv1.InteractionUpdate{shellLive(&agentv1.ShellOutputDeltaUpdate{
			Event: &agentv1.ShellOutputDeltaUpdate_Start{Start: e.Start},
		})}}
	case *agentv1.ShellStream_Stdout:
		return s.output(e.Stdout.GetData(), "")
	case *agentv1.ShellStream_Stderr:
		return s.output("", e.Stderr.GetData())
	case *agentv1.ShellStream_Exit:
		return s.exit(e.Exit)
	case *agentv1.ShellStream_Rejected:
		return s.rejected(e.Rejected)
	case *agentv1.ShellStream_PermissionDenied:
		return s.denied(e.PermissionDenied)
	case *agentv1.ShellStream_SandboxUnsupported:
		return s.unsandboxed(e.SandboxUnsupported)
	case *agentv1.ShellStream_Backgrounded:
		return s.backgrounded(e.Backgrounded)
	case *agentv1.ShellStream_HookContext:
		s.hooks = append(s.hooks, e.HookContext.GetHookAdditionalContexts()...)
	}
	return Step{}
}

// Closed ends the call with what there is: how the command ended is not known.
func (s *shell) Closed(n int) Step {
	if n != s.n {
		return Step{}
	}
	return s.incomplete("The client ended the stream before it said how the command ended: it may be running still, or have been stopped.", nil)
}

// Thrown tries the next way when the client does not have this one.
func (s *shell) Thrown(n int, reason string, unsupported bool) Step {
	switch {
	case n != s.n:
		return Step{}
	case unsupported && !s.began && len(s.ways) > 1:
		s.ways = s.ways[1:]
		s.n++
		return Step{Requests: []Request{s.request()}}
	case s.began:
		return s.incomplete("The client failed while the command ran"+because(reason)+".", nil)
	default:
		return s.fail("Shell error: the client could not run the command" + because(reason) + ".")
	}
}

// Tick looks whether the client has been silent for too long. It is also called for news of other
// commands, so it goes by the time.
func (s *shell) Tick(now time.Time) Step {
	if !s.began {
		return Step{}
	}
	if s.heard || s.since.IsZero() {
		s.heard, s.since = false, now
	}
	limit := time.Duration(s.in.block())*time.Millisecond + shellSilence
	left := limit - now.Sub(s.since)
	if left <= 0 {
		return s.incomplete("Nothing was heard of the command for "+limit.String()+", so it was given up.", []int{s.n})
	}
	return Step{Wake: min(left, shellLook)}
}

// Heard says that the client has given a sign of life for the command, so it is not given up.
func (s *shell) Heard() { s.heard = true }
