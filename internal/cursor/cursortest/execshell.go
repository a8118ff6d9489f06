package cursortest

import (
	"context"
	"strings"
	"sync"
	"time"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// noExitCode is the exit code of an aborted command.
const noExitCode = 1<<32 - 1

// shellCall is a shell command of which every event is told.
type shellCall struct {
	e    *Exec
	args *agentv1.ShellArgs
	p    *process
}

// streamShell runs a command and streams it (section 5.3): start, output, then exit, or backgrounded
// when the time is over, after which output and exit go on coming while there is a stream.
func streamShell(ctx context.Context, e *Exec) error {
	s := &shellCall{e: e, args: e.Args.GetShellStreamArgs()}
	s.event(&agentv1.ShellStream{Event: &agentv1.ShellStream_Start{Start: new(agentv1.ShellStreamStart)}})
	p, err := e.Client.start(s.args.GetCommand(), s.args.GetWorkingDirectory(), s.output)
	if err != nil {
		return err
	}
	s.p = p
	background := s.args.GetTimeoutBehavior() == agentv1.TimeoutBehavior_TIMEOUT_BEHAVIOR_BACKGROUND
	limit := time.Duration(s.args.GetTimeout()) * time.Millisecond
	if s.args.GetIsBackground() || background && limit <= 0 {
		return s.follow(ctx)
	}
	switch waitFor(ctx, p, limit) {
	case timedOut:
		if background {
			return s.follow(ctx)
		}
		s.aborted(agentv1.ShellAbortReason_SHELL_ABORT_REASON_TIMEOUT)
	case interrupted:
		s.aborted(agentv1.ShellAbortReason_SHELL_ABORT_REASON_USER_ABORT)
	case finished:
		s.exit(&agentv1.ShellStreamExit{Code: p.code()})
	}
	return nil
}

// waited is why waiting for a process is over.
type waited int

const (
	finished waited = iota
	timedOut
	interrupted
)

func waitFor(ctx context.Context, p *process, limit time.Duration) waited {
	var over <-chan time.Time
	if limit > 0 {
		t := time.NewTimer(limit)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-p.done:
		return finished
	case <-over:
		return timedOut
	case <-ctx.Done():
		return interrupted
	}
}

// follow puts the command into the background. It goes on there when the stream is over.
func (s *shellCall) follow(ctx context.Context) error {
	id, err := s.p.background()
	if err != nil {
		return err
	}
	s.event(&agentv1.ShellStream{Event: &agentv1.ShellStream_Backgrounded{Backgrounded: &agentv1.ShellStreamBackgrounded{
		ShellId: id, Command: s.args.GetCommand(), WorkingDirectory: s.p.dir, Pid: new(uint32(s.p.cmd.Process.Pid)),
		MsToWait: new(s.args.GetTimeout()), Reason: new(agentv1.ShellBackgroundReason_SHELL_BACKGROUND_REASON_TIMEOUT),
	}}})
	select {
	case <-s.p.done:
		s.exit(&agentv1.ShellStreamExit{Code: s.p.code()})
		return nil
	case <-s.e.Gone():
	case <-ctx.Done():
	}
	select {
	case <-s.e.Gone():
	default:
		s.aborted(agentv1.ShellAbortReason_SHELL_ABORT_REASON_USER_ABORT)
	}
	return nil
}

func (s *shellCall) output(stderr bool, text string) {
	if stderr {
		s.event(&agentv1.ShellStream{Event: &agentv1.ShellStream_Stderr{Stderr: &agentv1.ShellStreamStderr{Data: text}}})
	} else {
		s.event(&agentv1.ShellStream{Event: &agentv1.ShellStream_Stdout{Stdout: &agentv1.ShellStreamStdout{Data: text}}})
	}
}

func (s *shellCall) aborted(reason agentv1.ShellAbortReason) {
	s.p.kill()
	<-s.p.done
	s.exit(&agentv1.ShellStreamExit{Code: noExitCode, Aborted: true, AbortReason: new(reason)})
}

func (s *shellCall) exit(m *agentv1.ShellStreamExit) {
	m.Cwd, m.LocalExecutionTimeMs = s.p.cwd(), new(s.e.elapsed())
	s.event(&agentv1.ShellStream{Event: &agentv1.ShellStream_Exit{Exit: m}})
}

func (s *shellCall) event(m *agentv1.ShellStream) {
	s.e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_ShellStream{ShellStream: m}})
}

// collected is what a command printed.
type collected struct {
	mu            sync.Mutex
	out, err, all strings.Builder
}

func (c *collected) add(stderr bool, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all.WriteString(text)
	if stderr {
		c.err.WriteString(text)
	} else {
		c.out.WriteString(text)
	}
}

// collect runs a command to its end; it is killed if the time is over or ctx ends.
func (c *Client) collect(ctx context.Context, command, dir string, limit time.Duration) (*collected, *process, waited, error) {
	out := new(collected)
	p, err := c.start(command, dir, out.add)
	if err != nil {
		return nil, nil, interrupted, err
	}
	how := waitFor(ctx, p, limit)
	if how != finished {
		p.kill()
		<-p.done
	}
	return out, p, how, nil
}

// shell runs a command and tells of it when it has ended.
func shell(ctx context.Context, e *Exec) error {
	args := e.Args.GetShellArgs()
	out, p, how, err := e.Client.collect(ctx, args.GetCommand(), args.GetWorkingDirectory(), time.Duration(args.GetTimeout())*time.Millisecond)
	if err != nil {
		return err
	}
	result := new(agentv1.ShellResult)
	if code := p.code(); how == finished && code == 0 {
		result.Result = &agentv1.ShellResult_Success{Success: &agentv1.ShellSuccess{
			Command: args.GetCommand(), WorkingDirectory: p.dir, Stdout: out.out.String(), Stderr: out.err.String(),
			ExecutionTime: e.elapsed(), LocalExecutionTimeMs: new(e.elapsed()),
		}}
	} else {
		result.Result = &agentv1.ShellResult_Failure{Failure: &agentv1.ShellFailure{
			Command: args.GetCommand(), WorkingDirectory: p.dir, Stdout: out.out.String(), Stderr: out.err.String(),
			ExitCode: int32(code), Aborted: how != finished, ExecutionTime: e.elapsed(), LocalExecutionTimeMs: new(e.elapsed()),
		}}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_ShellResult{ShellResult: result}})
	return nil
}

// spawnShell starts a command in the background.
func spawnShell(_ context.Context, e *Exec) error {
	args := e.Args.GetBackgroundShellSpawnArgs()
	p, err := e.Client.start(args.GetCommand(), args.GetWorkingDirectory(), func(bool, string) {})
	if err != nil {
		return err
	}
	id, err := p.background()
	if err != nil {
		return err
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_BackgroundShellSpawnResult{
		BackgroundShellSpawnResult: &agentv1.BackgroundShellSpawnResult{Result: &agentv1.BackgroundShellSpawnResult_Success{
			Success: &agentv1.BackgroundShellSpawnSuccess{
				ShellId: id, Command: args.GetCommand(), WorkingDirectory: p.dir, Pid: new(uint32(p.cmd.Process.Pid)),
			},
		}},
	}})
	return nil
}
