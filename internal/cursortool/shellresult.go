package cursortool

import (
	"regexp"
	"strconv"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// result takes the result of a command that was not streamed, or one that a client sends in place
// of the end of a stream.
func (s *shell) result(r *agentv1.ShellResult) Step {
	switch v := r.GetResult().(type) {
	case *agentv1.ShellResult_Success:
		return s.success(r, v.Success)
	case *agentv1.ShellResult_Failure:
		f := v.Failure
		s.receive(f.GetStdout(), f.GetStderr(), f.GetInterleavedOutput())
		code := f.GetExitCode()
		switch { // 0 may stand for none, and a failure is one whatever the code says
		case code == 0 && (f.GetAborted() || f.GetSignal() != ""):
			code = -1
		case code == 0:
			code = 1
		}
		return s.ended(shellEnd{
			code: code, signal: clean(f.GetSignal()), file: cleanFile(f.GetOutputLocation()), ms: f.GetLocalExecutionTimeMs(),
			aborted: f.GetAborted(), reason: f.AbortReason,
		})
	case *agentv1.ShellResult_Timeout:
		return s.timeout(v.Timeout)
	case *agentv1.ShellResult_Rejected:
		return s.rejected(v.Rejected)
	case *agentv1.ShellResult_SpawnError:
		return s.fail("The command could not be started" + because(v.SpawnError.GetError()) + ".")
	case *agentv1.ShellResult_PermissionDenied:
		return s.denied(v.PermissionDenied)
	}
	return s.incomplete("The client ended the call without a result.", nil)
}

func (s *shell) success(r *agentv1.ShellResult, ok *agentv1.ShellSuccess) Step {
	s.receive(ok.GetStdout(), ok.GetStderr(), ok.GetInterleavedOutput())
	if ok.ShellId != nil && (r.GetIsBackground() || ok.BackgroundReason != nil) {
		bg := &agentv1.ShellSuccess{ShellId: ok.ShellId, Pid: ok.Pid, MsToWait: ok.MsToWait, BackgroundReason: ok.BackgroundReason}
		if bg.Pid == nil {
			bg.Pid = r.Pid
		}
		return s.goesOn(bg, "")
	}
	return s.ended(shellEnd{
		code: ok.GetExitCode(), signal: clean(ok.GetSignal()), file: cleanFile(ok.GetOutputLocation()), ms: ok.GetLocalExecutionTimeMs(),
	})
}

// receive takes the output that a result carries, unless it was streamed before.
func (s *shell) receive(stdout, stderr, both string) {
	if s.stdout.total+s.stderr.total > 0 {
		return
	}
	if stdout == "" && stderr == "" {
		stdout = both
	}
	s.stdout.add(stdout)
	s.stderr.add(stderr)
	s.both.add(stdout+stderr, shellAwait)
}

func (s *shell) timeout(t *agentv1.ShellTimeout) Step {
	text := s.shown() + "The command was stopped: it took longer than its limit of " + strconv.Itoa(int(t.GetTimeoutMs())) + " ms.\nExit code: none"
	return s.done(Outcome{Text: text, IsError: true}, &agentv1.ShellResult{
		Result: &agentv1.ShellResult_Timeout{Timeout: &agentv1.ShellTimeout{
			Command: s.args.Command, WorkingDirectory: s.args.WorkingDirectory, TimeoutMs: t.GetTimeoutMs(),
		}},
	})
}

// piCode finds the exit code that pi's bash writes below the output of a command that failed.
var piCode = regexp.MustCompile(`Command exited with code (-?\d{1,9})\s*$`)

func (s *shell) piResult(r *agentv1.PiBashExecResult) Step {
	switch v := r.GetResult().(type) {
	case *agentv1.PiBashExecResult_Success:
		s.receive(v.Success.GetOutput(), "", "")
		return s.ended(shellEnd{file: piFile(v.Success.GetFullOutputPath())})
	case *agentv1.PiBashExecResult_Error:
		text := v.Error.GetError()
		s.receive(text, "", "")
		e := shellEnd{code: -1, file: piFile(v.Error.GetFullOutputPath())}
		if m := piCode.FindStringSubmatch(text[max(0, len(text)-200):]); m != nil {
			if code, err := strconv.Atoi(m[1]); err == nil {
				e.code = int32(code)
			}
		}
		if e.code == 0 {
			e.code = 1
		}
		e.aborted = strings.Contains(text[max(0, len(text)-200):], "Command aborted")
		return s.ended(e)
	}
	return s.incomplete("The client ended the call without a result.", nil)
}

func piFile(path string) *agentv1.OutputLocation {
	if path == "" {
		return nil
	}
	return &agentv1.OutputLocation{FilePath: clean(path)}
}
