package cursortool

import (
	"fmt"
	"strconv"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// shellEnd is how a command ended.
type shellEnd struct {
	code    int32 // as a shell knows it; negative when there is none
	signal  string
	cwd     string // "" when it is not known
	file    *agentv1.OutputLocation
	ms      int32 // it took
	aborted bool
	reason  *agentv1.ShellAbortReason
	note    string // for the model, before the rest
}

func (s *shell) exit(e *agentv1.ShellStreamExit) Step {
	s.began = true
	st := s.ended(shellEnd{
		code: int32(e.GetCode()), cwd: clean(e.GetCwd()), file: cleanFile(e.GetOutputLocation()),
		ms: e.GetLocalExecutionTimeMs(), aborted: e.GetAborted(), reason: e.AbortReason,
	})
	st.Live = []*agentv1.InteractionUpdate{shellLive(&agentv1.ShellOutputDeltaUpdate{
		Event: &agentv1.ShellOutputDeltaUpdate_Exit{Exit: e},
	})}
	return st
}

// ended makes the outcome of a command that is over.
func (s *shell) ended(e shellEnd) Step {
	res := &agentv1.ShellResult{}
	stdout, stderr := s.stdout.text(), s.stderr.text()
	ok := e.code == 0 && !e.aborted && e.signal == ""
	if ok {
		res.Result = &agentv1.ShellResult_Success{Success: &agentv1.ShellSuccess{
			Command: s.args.Command, WorkingDirectory: s.args.WorkingDirectory, Stdout: stdout, Stderr: stderr,
			ExecutionTime: e.ms, LocalExecutionTimeMs: new(e.ms), OutputLocation: e.file,
		}}
	} else {
		res.Result = &agentv1.ShellResult_Failure{Failure: &agentv1.ShellFailure{
			Command: s.args.Command, WorkingDirectory: s.args.WorkingDirectory, Stdout: stdout, Stderr: stderr,
			ExitCode: e.code, Signal: e.signal, Aborted: e.aborted, AbortReason: e.reason,
			ExecutionTime: e.ms, LocalExecutionTimeMs: new(e.ms), OutputLocation: e.file,
		}}
	}
	return s.done(Outcome{Text: s.text(&e), IsError: !ok}, res)
}

// text is what the model reads: the output, then how it ended, the exit code always (W30).
func (s *shell) text(e *shellEnd) string {
	lines := []string{s.shown()}
	if e.note != "" {
		lines = append(lines, e.note)
	}
	if e.aborted {
		lines = append(lines, abortText(e.reason))
	}
	if e.signal != "" {
		lines = append(lines, "Signal: "+e.signal)
	}
	if e.code >= 0 {
		lines = append(lines, "Exit code: "+strconv.Itoa(int(e.code)))
	} else {
		lines = append(lines, "Exit code: none")
	}
	if e.cwd != "" && e.cwd != s.args.WorkingDirectory {
		lines = append(lines, "Working directory now: "+e.cwd)
	}
	if f := e.file; f.GetFilePath() != "" {
		size := ""
		if f.GetSizeBytes() > 0 {
			size = fmt.Sprintf(" (%d bytes, %d lines)", f.GetSizeBytes(), f.GetLineCount())
		}
		lines = append(lines, "All of the output"+size+" is in "+f.GetFilePath())
	}
	return strings.Join(lines, "\n")
}

// shown is the output as the model reads it.
func (s *shell) shown() string {
	out, err := strings.TrimRight(s.stdout.text(), "\n"), strings.TrimRight(s.stderr.text(), "\n")
	switch {
	case out == "" && err == "":
		return "(no output)\n"
	case err == "":
		return out + "\n"
	case out == "":
		return "stderr:\n" + err + "\n"
	default:
		return out + "\n\nstderr:\n" + err + "\n"
	}
}

func abortText(r *agentv1.ShellAbortReason) string {
	if r != nil && *r == agentv1.ShellAbortReason_SHELL_ABORT_REASON_TIMEOUT {
		return "The command was stopped: it took longer than its limit."
	}
	if r != nil && *r == agentv1.ShellAbortReason_SHELL_ABORT_REASON_USER_ABORT {
		return "The user stopped the command."
	}
	return "The command was stopped."
}

// incomplete ends a call of which the end of the command is not known.
func (s *shell) incomplete(why string, abort []int) Step {
	st := s.ended(shellEnd{code: -1, aborted: false, note: "<shell-incomplete>" + why + " Look at what it has done before you run it again.</shell-incomplete>"})
	st.Abort = abort
	return st
}

// fail ends a call whose command did not run.
func (s *shell) fail(text string) Step {
	o := shellFailed(s.args, text)
	return s.done(o, o.Card.GetShellToolCall().GetResult())
}

func shellFailed(args *agentv1.ShellArgs, text string) Outcome {
	return Outcome{Text: text, IsError: true, Card: shellToolCall(args, &agentv1.ShellResult{
		Result: &agentv1.ShellResult_SpawnError{SpawnError: &agentv1.ShellSpawnError{
			Command: args.Command, WorkingDirectory: args.WorkingDirectory, Error: text,
		}},
	})}
}

func (s *shell) rejected(r *agentv1.ShellRejected) Step {
	text := "The command was refused and did not run" + because(r.GetReason()) + ". Do not run it again as it is: take another way, or ask the user."
	return s.done(Outcome{Text: text, IsError: true}, &agentv1.ShellResult{
		Result: &agentv1.ShellResult_Rejected{Rejected: &agentv1.ShellRejected{
			Command: s.args.Command, WorkingDirectory: s.args.WorkingDirectory, Reason: brief(r.GetReason()), IsReadonly: r.GetIsReadonly(),
		}},
	})
}

func (s *shell) denied(r *agentv1.ShellPermissionDenied) Step {
	text := "The client does not permit the command, it did not run" + because(r.GetError()) + ". Take another way, or ask the user."
	return s.notPermitted(text, r.GetError(), r.GetIsReadonly())
}

func (s *shell) unsandboxed(r *agentv1.ShellSandboxUnsupported) Step {
	text := "The command did not run: the client cannot give it the sandbox that its rules demand" + because(r.GetReason()) + ". Take another way, or ask the user."
	return s.notPermitted(text, r.GetReason(), r.GetIsReadonly())
}

func (s *shell) notPermitted(text, reason string, readonly bool) Step {
	return s.done(Outcome{Text: text, IsError: true}, &agentv1.ShellResult{
		Result: &agentv1.ShellResult_PermissionDenied{PermissionDenied: &agentv1.ShellPermissionDenied{
			Command: s.args.Command, WorkingDirectory: s.args.WorkingDirectory, Error: brief(reason), IsReadonly: readonly,
		}},
	})
}

// done ends the call with a card, and with what hooks have to say.
func (s *shell) done(o Outcome, res *agentv1.ShellResult) Step {
	if s.env.Terminals != "" {
		res.TerminalsFolder = new(s.env.Terminals)
	}
	o.Card = shellToolCall(s.args, res)
	o.addHooks(s.hooks)
	return Step{Done: &o}
}

// because returns ": reason", or nothing when there is none.
func because(reason string) string {
	reason = strings.TrimRight(brief(reason), ".")
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// brief is what is kept of a text in which a client explains itself.
func brief(reason string) string { return cutMiddle(strings.TrimSpace(clean(reason)), 2<<10) }

func cleanFile(f *agentv1.OutputLocation) *agentv1.OutputLocation {
	if f == nil {
		return nil
	}
	return &agentv1.OutputLocation{FilePath: clean(f.FilePath), SizeBytes: f.SizeBytes, LineCount: f.LineCount}
}
