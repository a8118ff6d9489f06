package shelltool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/roost-dev/roost/internal/tool"
)

const (
	progressEvery = 100 * time.Millisecond
	// Output that is still in the pipe when the shell has ended is read for so long. Only a
	// program in the background makes it wait that long: without one the pipe ends at once.
	drainFor = 500 * time.Millisecond
	termFor  = time.Second            // from SIGTERM to SIGKILL
	killFor  = 300 * time.Millisecond // from SIGKILL to giving up on a process that the kernel holds
)

// execute runs the command to its end. When it returns, nobody writes to out any more, and
// after an abort or a timeout no process of the command is left.
func (b *bash) execute(ctx context.Context, call tool.Call, in bashParams, out *output, progress func(tool.Progress)) (ending, error) {
	cmd, err := b.command(call, in.Command)
	if err != nil {
		return ending{}, err
	}
	read, err := start(cmd)
	if err != nil {
		return ending{}, err
	}
	drained := make(chan error, 1)
	go func() {
		_, err := io.Copy(out, read) // ends with the pipe, or with the deadline below
		drained <- err
	}()
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // how it ended is in ProcessState
	}()

	w := watch{leader: cmd.Process, exited: exited, show: shower{out: out, progress: progress}}
	end := w.until(ctx, in.Timeout)
	if err := read.SetReadDeadline(time.Now().Add(drainFor)); err != nil {
		return ending{}, errors.Join(err, read.Close())
	}
	copyErr := <-drained
	if !end.aborted && end.timeout == 0 {
		end = endingOf(cmd.ProcessState)
		end.held = errors.Is(copyErr, os.ErrDeadlineExceeded)
	}
	return end, read.Close()
}

// start starts cmd and returns the end of the pipe that its output comes out of.
func start(cmd *exec.Cmd) (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	cmd.Stdout, cmd.Stderr = write, write // one file, so that the order is kept
	err = cmd.Start()
	if errors.Is(err, syscall.E2BIG) {
		err = errors.New("the command is too long for the system; write it to a file and run that")
	}
	if err = errors.Join(err, write.Close()); err != nil {
		return nil, errors.Join(err, read.Close())
	}
	return read, nil
}

// watch waits for the end of a command.
type watch struct {
	leader *os.Process
	exited <-chan struct{}
	show   shower
}

// until waits until the shell has ended by itself, or ends it and all it started.
func (w *watch) until(ctx context.Context, timeout float64) ending {
	limit := time.Duration(timeout * float64(time.Second))
	var late <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-w.exited:
			return ending{}
		case <-tick.C:
			w.show.next()
		case <-late:
			w.end()
			return ending{timeout: limit}
		case <-ctx.Done():
			w.end()
			return ending{aborted: true}
		}
	}
}

// end ends the shell's session: politely, then by force.
func (w *watch) end() {
	signalSession(w.leader, syscall.SIGTERM)
	if w.gone(termFor, func() {}) {
		return
	}
	// Again and again, because a process may start another between two looks.
	kill := func() { signalSession(w.leader, syscall.SIGKILL) }
	kill()
	w.gone(killFor, kill)
}

// gone waits until no process of the session is left, at most for limit, and calls again
// after each look that finds one.
func (w *watch) gone(limit time.Duration, again func()) bool {
	const look = 10 * time.Millisecond
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(look)
	defer tick.Stop()
	exited := false
	for {
		select {
		case <-w.exited:
			exited = true
		default:
		}
		if exited && !sessionAlive(w.leader) {
			return true
		}
		select {
		case <-tick.C:
			again()
		case <-deadline.C:
			return false
		}
	}
}
