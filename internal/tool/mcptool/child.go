package mcptool

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/internal/tool"
)

// How a program is ended: all together takes less than 2 s.
const (
	ownFor   = 100 * time.Millisecond // for one that is about to end by itself
	closeFor = 300 * time.Millisecond // from the end of its input to SIGTERM
	termFor  = time.Second            // from SIGTERM to SIGKILL
	killFor  = 300 * time.Millisecond // from SIGKILL to giving up on a process that the kernel holds
	drainFor = 300 * time.Millisecond // for output still in the pipes after the program has ended
)

// maxStderr is how much of the end of a program's standard error is kept.
const maxStderr = 4 << 10

// inherited are the variables of roost's own environment that programs get. All others stay
// away from them: keys of providers are among them.
var inherited = []string{"PATH", "HOME", "LANG", "TMPDIR", "USER"}

// child is a program that runs as a server, and its pipes. Its methods are safe for
// concurrent use, apart from reading its output.
type child struct {
	cmd    *exec.Cmd
	in     *os.File // its standard input
	out    *os.File // its standard output
	stderr *tail

	exited chan struct{} // closed when the program itself has ended
	ending sync.Once
	ended  atomic.Bool // by roost
}

// startChild starts a server's program in a process group of its own.
func startChild(s *Server) (*child, error) {
	cmd := exec.Command(s.Command, s.Args...)
	cmd.Dir = s.Dir
	cmd.Env = environment(s.Env)
	ownGroup(cmd)
	c := &child{cmd: cmd, stderr: new(tail), exited: make(chan struct{})}
	var theirs []*os.File
	pipe := func(write bool) *os.File {
		r, w, err := os.Pipe()
		if err != nil {
			return nil
		}
		if write {
			r, w = w, r // ours first
		}
		theirs = append(theirs, w)
		return r
	}
	c.in, c.out = pipe(true), pipe(false)
	errOut := pipe(false)
	defer closeFiles(&theirs)
	if c.in == nil || c.out == nil || errOut == nil {
		closeFiles(&[]*os.File{c.in, c.out, errOut})
		return nil, errors.New("no more files can be opened; raise the limit of open files")
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if err := cmd.Start(); err != nil {
		closeFiles(&[]*os.File{c.in, c.out, errOut})
		return nil, fmt.Errorf("%w; check its command", err)
	}
	go c.wait(errOut)
	return c, nil
}

func closeFiles(files *[]*os.File) {
	for _, f := range *files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// environment returns the small base and what is configured, which wins.
func environment(configured []string) []string {
	var env []string
	for _, name := range inherited {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return append(env, configured...)
}

// wait collects the program, and makes reading its output end soon after: something that it
// started may hold the pipes open.
func (c *child) wait(errOut *os.File) {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		_, _ = io.Copy(c.stderr, errOut) // ends with the pipe or the deadline below
	}()
	_ = c.cmd.Wait() // how it ended is in ProcessState
	deadline := time.Now().Add(drainFor)
	_ = c.out.SetReadDeadline(deadline)
	_ = errOut.SetReadDeadline(deadline)
	<-drained
	_ = errOut.Close()
	close(c.exited)
}

// end ends the program and its group, politely if it obeys within a second, and returns
// when they are gone, after at most 2 s. It may be called more than once.
func (c *child) end() {
	c.ending.Do(func() {
		c.ended.Store(!c.gone(ownFor))
		_ = c.in.Close()
		if !c.gone(closeFor) {
			terminate(c.cmd.Process)
			if !c.gone(termFor) {
				kill(c.cmd.Process)
				c.gone(killFor)
			}
		}
		_ = c.out.Close()
	})
}

// gone waits until the program and its group have ended, at most for limit.
func (c *child) gone(limit time.Duration) bool {
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	select {
	case <-c.exited:
	case <-deadline.C:
		return false
	}
	for groupAlive(c.cmd.Process) {
		select {
		case <-tick.C:
		case <-deadline.C:
			return false
		}
	}
	return true
}

// String says how the program has ended, if it has by itself, and what it wrote to its standard error.
func (c *child) String() string {
	text := ""
	select {
	case <-c.exited:
		if c.ended.Load() {
			break
		}
		text = "the program has ended: " + c.cmd.ProcessState.String()
	default:
	}
	if said := c.stderr.text(); said != "" {
		if text != "" {
			text += "; "
		}
		text += "it wrote: " + said
	}
	return text
}

// tail keeps the end of what is written to it. It is safe for concurrent use.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// Write never fails.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-maxStderr):]...)
	if over := len(t.kept) - maxStderr; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return cleanLine(string(t.kept[max(0, len(t.kept)-tool.MaxNotice/2):]), tool.MaxNotice)
}
