package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// process is a child that has said its first line.
type process struct {
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	errors *strings.Builder
	began  time.Time
	ready  time.Time
	line   string // the one that matters
}

// startProcess starts a program and waits for a line that begins with a word.
func startProcess(ctx context.Context, word, name string, args ...string) (*process, error) {
	p := &process{cmd: exec.CommandContext(ctx, name, args...), errors: &strings.Builder{}}
	p.cmd.Stderr = p.errors
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.began = time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if strings.HasPrefix(lines.Text(), word) {
			p.ready, p.line = time.Now(), lines.Text()
			return p, nil
		}
	}
	p.kill()
	return nil, errors.Join(lines.Err(), fmt.Errorf("%s ended before it was ready: %s", name, p.errors))
}

// kill ends the process without a word, and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.stdin.Close()
	_ = p.cmd.Wait() // its status is that of the kill
}

// cpu is the processor time that the process has used.
func (p *process) cpu() (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	return parseCPU(string(text))
}

// memory is what the process has in memory, and had at most.
func (p *process) memory() (memory, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return memory{}, err
	}
	return parseMemory(string(text))
}

// quiet waits until the process does nothing any more, so that what it puts off is counted
// too, and returns its processor time.
func (p *process) quiet(ctx context.Context) (time.Duration, error) {
	const step, enough, limit = 50 * time.Millisecond, 4, 100
	last, same := time.Duration(-1), 0
	for range limit {
		now, err := p.cpu()
		if err != nil {
			return 0, err
		}
		if same++; now != last {
			same = 0
		}
		if last = now; same == enough {
			break
		}
		if err := pause(ctx, step); err != nil {
			return 0, err
		}
	}
	return last, nil
}

func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
