package cursortest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// process is a shell command. It lives as long as its client, unless it is killed.
type process struct {
	c       *Client
	cmd     *exec.Cmd
	dir     string
	cwdFile string
	done    chan struct{} // closed when it has ended and its output is read

	mu   sync.Mutex
	log  bytes.Buffer // all output, until there is a file for it
	file *os.File
}

// start runs command in dir; output gets what it prints, piece by piece, from two goroutines.
func (c *Client) start(command, dir string, output func(stderr bool, text string)) (*process, error) {
	folder, err := c.terminalsFolder()
	if err != nil {
		return nil, err
	}
	p := &process{c: c, dir: c.path(dir), done: make(chan struct{}), cwdFile: filepath.Join(folder, "cwd-"+newID())}
	p.cmd = exec.CommandContext(c.ctx, "sh", "-c", `trap 'pwd > "$CURSORTEST_CWD"' EXIT`+"\n"+command)
	p.cmd.Dir = p.dir
	p.cmd.Env = append(os.Environ(), "CURSORTEST_CWD="+p.cwdFile)
	p.cmd.Cancel = func() error { p.kill(); return nil }
	p.cmd.WaitDelay = time.Second
	p.cmd.Stdout = &chunks{p: p, send: func(text string) { output(false, text) }}
	p.cmd.Stderr = &chunks{p: p, send: func(text string) { output(true, text) }}
	ownGroup(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("run %q: %w", command, err)
	}
	c.processes.Go(func() {
		_ = p.cmd.Wait() // the state says how it ended
		p.mu.Lock()
		if p.file != nil {
			_ = p.file.Close()
		}
		p.mu.Unlock()
		close(p.done)
	})
	return p, nil
}

// kill ends the command and what it has started.
func (p *process) kill() { killGroup(p.cmd.Process) }

// background gives the output a file of its own in the terminals folder, and the shell an id.
func (p *process) background() (shellID uint32, err error) {
	folder, err := p.c.terminalsFolder()
	if err != nil {
		return 0, err
	}
	p.c.mu.Lock()
	p.c.shells++
	id := p.c.shells
	p.c.mu.Unlock()
	file, err := os.Create(filepath.Join(folder, fmt.Sprintf("%d.txt", id)))
	if err != nil {
		return 0, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.file = file
	_, err = file.Write(p.log.Bytes())
	return id, err
}

func (p *process) record(data []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		_, _ = p.file.Write(data) // a test that reads the file sees what is missing
		return
	}
	p.log.Write(data)
}

// code is the exit code, as a signal's is in a shell.
func (p *process) code() uint32 {
	if code := p.cmd.ProcessState.ExitCode(); code >= 0 {
		return uint32(code)
	}
	return 128 + 9
}

// cwd is the directory in which the command ended.
func (p *process) cwd() string {
	if data, err := os.ReadFile(p.cwdFile); err == nil {
		return strings.TrimSuffix(string(data), "\n")
	}
	return p.dir
}

// chunks passes output on as text: a character is never cut in two.
type chunks struct {
	p    *process
	send func(string)
	rest []byte
}

func (w *chunks) Write(data []byte) (int, error) {
	w.p.record(data)
	w.rest = append(w.rest, data...)
	n := len(w.rest)
	for i := 1; i < utf8.UTFMax && i <= len(w.rest); i++ {
		if tail := w.rest[len(w.rest)-i:]; utf8.RuneStart(tail[0]) {
			if !utf8.FullRune(tail) {
				n -= i
			}
			break
		}
	}
	if n > 0 {
		w.send(strings.ToValidUTF8(string(w.rest[:n]), "\uFFFD"))
		w.rest = append(w.rest[:0], w.rest[n:]...)
	}
	return len(data), nil
}
