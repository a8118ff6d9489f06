package cursortool

import (
	"fmt"
	"strconv"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// output takes a piece of the command's output, which is of one stream. The client is shown it
// twice: its terminal goes by one update, the card of the call by the other (R03).
func (s *shell) output(stdout, stderr string) Step {
	s.began = true
	piece := stdout + stderr
	if piece == "" {
		return Step{}
	}
	s.stdout.add(stdout)
	s.stderr.add(stderr)
	s.both.add(piece, shellAwait)

	live, card := &agentv1.ShellOutputDeltaUpdate{}, &agentv1.ShellToolCallDelta{}
	if stdout != "" {
		live.Event = &agentv1.ShellOutputDeltaUpdate_Stdout{Stdout: &agentv1.ShellStreamStdout{Data: piece}}
		card.Delta = &agentv1.ShellToolCallDelta_Stdout{Stdout: &agentv1.ShellToolCallStdoutDelta{Content: piece}}
	} else {
		live.Event = &agentv1.ShellOutputDeltaUpdate_Stderr{Stderr: &agentv1.ShellStreamStderr{Data: piece}}
		card.Delta = &agentv1.ShellToolCallDelta_Stderr{Stderr: &agentv1.ShellToolCallStderrDelta{Content: piece}}
	}
	return Step{Output: piece, Live: []*agentv1.InteractionUpdate{shellLive(live), {
		Message: &agentv1.InteractionUpdate_ToolCallDelta{ToolCallDelta: &agentv1.ToolCallDeltaUpdate{
			CallId: string(s.call.ID),
			ToolCallDelta: &agentv1.ToolCallDelta{
				Delta: &agentv1.ToolCallDelta_ShellToolCallDelta{ShellToolCallDelta: card},
			},
		}},
	}}}
}

func shellLive(u *agentv1.ShellOutputDeltaUpdate) *agentv1.InteractionUpdate {
	return &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ShellOutputDelta{ShellOutputDelta: u}}
}

// backgrounded ends the call; what the command prints from now on belongs to the conversation's
// Shells.
func (s *shell) backgrounded(b *agentv1.ShellStreamBackgrounded) Step {
	s.began = true
	ok := &agentv1.ShellSuccess{ShellId: new(b.GetShellId()), Pid: b.Pid, MsToWait: b.MsToWait, BackgroundReason: b.Reason}
	return s.goesOn(ok, clean(b.GetWorkingDirectory()))
}

func (s *shell) goesOn(ok *agentv1.ShellSuccess, dir string) Step {
	sh := &Shell{ID: ok.GetShellId(), Command: s.in.Command, Dir: dir, PID: ok.GetPid(), seed: s.both.last(shellAwait)}
	if sh.Dir == "" {
		sh.Dir = s.args.WorkingDirectory
	}
	sh.File = terminalFile(s.env.Terminals, sh.ID)
	ok.Command, ok.WorkingDirectory = s.args.Command, s.args.WorkingDirectory
	ok.Stdout, ok.Stderr = s.stdout.text(), s.stderr.text()
	res := &agentv1.ShellResult{
		Result: &agentv1.ShellResult_Success{Success: ok}, IsBackground: new(true), Pid: ok.Pid,
	}

	var b strings.Builder
	fmt.Fprintf(&b, "The command goes on in the background. shell_id: %d", sh.ID)
	if sh.PID != 0 {
		fmt.Fprintf(&b, ", pid: %d", sh.PID)
	}
	if sh.File != "" {
		fmt.Fprintf(&b, "\nTerminal file: %s", sh.File)
	}
	fmt.Fprintf(&b, "\nIt has not ended, so there is no exit code yet: wait for it with AwaitShell. Output so far:\n%s", s.shown())
	return s.done(Outcome{Text: b.String(), Shell: sh}, res)
}

// terminalFile returns the path of a shell's file in the client's notation.
func terminalFile(folder string, id uint32) string {
	if folder == "" {
		return ""
	}
	sep := "/"
	if windows(folder) && !strings.Contains(folder, "/") {
		sep = `\`
	}
	return strings.TrimRight(folder, sep) + sep + strconv.FormatUint(uint64(id), 10) + ".txt"
}
