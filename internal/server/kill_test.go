package server

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/piwire"
)

// words makes the scripted model say N numbered words, 10 ms each.
const words = `
rules:
  - regex: '^words (\d+)$'
    passes:
      - - text: "word "
          repeat: "${1}"
          every: 10ms
`

func assistantText(v *pi.View) string {
	var said strings.Builder
	for _, i := range v.Transcript() {
		if a, ok := i.(*piwire.AssistantItem); ok {
			said.WriteString(text(a.Content))
		}
	}
	return said.String()
}

// Twenty sessions stream while the process is killed. Every acknowledged prompt is there
// afterwards, no text that a client saw is shortened or said twice, and every run ends.
func TestKillWhileTwentySessionsStream(t *testing.T) {
	h := newHome(t, words)
	h.start()
	c := h.dial()
	seen := make(map[string]string)
	for range 20 {
		seen[h.create(c, "words 60")] = ""
	}
	for round := range 2 {
		for id := range seen {
			h.until(c, id, "some words", func(v *pi.View) bool { return len(assistantText(v)) >= 50*(round+1) })
		}
		h.stop(syscall.SIGKILL)
		<-c.Done()
		for id := range seen {
			c.With(id, func(v *pi.View) { seen[id] = assistantText(v) })
		}
		h.start()
		c = h.dial()
		for id, before := range seen {
			h.attach(c, id)
			c.With(id, func(v *pi.View) {
				if now := assistantText(v); !strings.HasPrefix(now, before) {
					t.Errorf("%s said %q and now %q", id, before, now)
				}
			})
		}
	}
	for id := range seen {
		h.until(c, id, "the end of the run", idle)
		c.With(id, func(v *pi.View) {
			want := "user: words 60\nassistant complete: " + strings.Repeat("word ", 60) + "\n"
			if got := tell(v); got != want {
				t.Errorf("%s:\n%swant:\n%s", id, got, want)
			}
		})
	}
}

// Each row of DESIGN section 6 that a pi client can bring about: what was going on when the
// process was killed, and what becomes of it.
func TestKillAtEveryPoint(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		before func(h *home, c *pi.Client, id string) // brings the session to the point
		want   string
	}{
		"a prompt that was accepted is begun": {
			"rules: [{default: true, passes: [[{delay: 100ms}, {text: answer}]]}]",
			func(*home, *pi.Client, string) {},
			"user: go\nassistant complete: answer\n",
		},
		"an answer that has shown nothing is asked for again": {
			"rules: [{default: true, passes: [[{delay: 1s}, {text: answer}]]}]",
			func(h *home, c *pi.Client, id string) {
				h.until(c, id, "the pass", func(v *pi.View) bool { return len(v.Transcript()) == 2 })
			},
			"user: go\nassistant complete: answer\n",
		},
		"a call that was complete in the stream is issued": {
			"rules: [{default: true, passes: [[{tool: {name: bash, input: {command: echo ran}}}, {delay: 1h}], [{text: 'it said ${tool1}'}]]}]",
			func(h *home, c *pi.Client, id string) {
				h.until(c, id, "the call", func(v *pi.View) bool {
					return strings.Contains(tell(v), "call bash") && strings.Contains(fmt.Sprint(inputs(v)), "ran")
				})
			},
			"user: go\nassistant complete: call bash\nbash complete: ran\nassistant complete: it said ran\n",
		},
		"a command that was running has an unknown outcome": {
			"rules: [{default: true, passes: [[{tool: {name: bash, input: {command: 'echo began; echo x >> ran; sleep 100'}}}], [{text: 'well'}]]}]",
			func(h *home, c *pi.Client, id string) {
				h.until(c, id, "output", func(v *pi.View) bool { return strings.Contains(tell(v), "began") })
			},
			"user: go\nassistant complete: call bash\nbash error: began\n\n\nInterrupted: the server was restarted while the tool ran, so its outcome is unknown. Check before you run it again.\nassistant complete: well\n",
		},
		"a queued steer stays queued": {
			"rules: [{contains: steer, passes: [[{text: 'steered'}]]}, {default: true, passes: [[{text: 'one two', every: 500ms}, {delay: 500ms}]]}]",
			func(h *home, c *pi.Client, id string) {
				h.until(c, id, "a word", func(v *pi.View) bool { return strings.Contains(tell(v), "one") })
				h.do(c, &piwire.Steer{SessionID: id, Text: "steer"})
			},
			"user: go\nassistant complete: one two\nuser: steer\nassistant complete: steered\n",
		},
		"a pause before a retry goes on": {
			"rules: [{default: true, passes: [[{text: 'part'}, {error: {fault: overload, message: full, retry_after: 1s}, times: 1}, {text: ' rest'}]]}]",
			func(h *home, c *pi.Client, id string) {
				h.until(c, id, "the pause", func(v *pi.View) bool { return v.Snapshot.Phase == piwire.PhaseRetry })
			},
			"user: go\nassistant complete: part rest\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHome(t, c.script)
			h.start()
			client := h.dial()
			id := h.create(client, "go")
			c.before(h, client, id)
			h.restart()
			client = h.dial()
			h.attach(client, id)
			h.until(client, id, "the end of the run", idle)
			client.With(id, func(v *pi.View) {
				if got := tell(v); got != c.want {
					t.Errorf("transcript:\n%swant:\n%s", got, c.want)
				}
			})
			if ran, err := os.ReadFile(filepath.Join(h.dir, "ran")); err == nil && string(ran) != "x\n" {
				t.Errorf("the command ran %q", ran)
			}
		})
	}
}

func inputs(v *pi.View) []piwire.Value {
	var all []piwire.Value
	for _, i := range v.Transcript() {
		if a, ok := i.(*piwire.AssistantItem); ok {
			for _, b := range a.Content {
				if call, ok := b.(*piwire.ToolCall); ok {
					all = append(all, call.Input)
				}
			}
		}
	}
	return all
}

// SIGTERM ends the process in order: running tools are stopped and their results kept.
func TestTermKeepsWhatToolsSaid(t *testing.T) {
	h := newHome(t, "rules: [{default: true, passes: [[{tool: {name: bash, input: {command: 'echo began; sleep 100'}}}], [{text: 'well'}]]}]")
	h.start()
	c := h.dial()
	id := h.create(c, "go")
	h.until(c, id, "output", func(v *pi.View) bool { return strings.Contains(tell(v), "began") })
	h.stop(syscall.SIGTERM)
	if _, err := os.Lstat(filepath.Join(h.dir, "s")); !os.IsNotExist(err) {
		t.Errorf("the socket is still there: %v", err)
	}
	h.start()
	c = h.dial()
	h.attach(c, id)
	h.until(c, id, "the end of the run", idle)
	c.With(id, func(v *pi.View) {
		if got := tell(v); !strings.Contains(got, "bash error: began") || !strings.HasSuffix(got, "assistant complete: well\n") {
			t.Errorf("transcript:\n%s", got)
		}
	})
}

// Whoever does not want to wait for the end in order asks again: the process ends at once, and nothing is
// lost by it.
func TestSecondTermEndsAtOnce(t *testing.T) {
	h := newHome(t, `rules: [{default: true, passes: [[{tool: {name: bash, input: {command: 'trap "" TERM; echo began; while :; do sleep 0.1; done'}}}], [{text: well}]]}]`)
	h.start()
	c := h.dial()
	id := h.create(c, "go")
	h.until(c, id, "output", func(v *pi.View) bool { return strings.Contains(tell(v), "began") })
	ended := make(chan struct{})
	process, tick := h.cmd.Process, time.NewTicker(20*time.Millisecond)
	defer tick.Stop()
	var asking sync.WaitGroup
	asking.Go(func() { // the tool takes a second to be ended
		for {
			select {
			case <-tick.C:
				_ = process.Signal(syscall.SIGTERM)
			case <-ended:
				return
			}
		}
	})
	err := h.cmd.Wait()
	h.cmd = nil
	close(ended)
	asking.Wait()
	if e, ok := errors.AsType[*exec.ExitError](err); !ok || e.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
		t.Errorf("the process ended with %v", err)
	}
	h.start()
	c = h.dial()
	h.attach(c, id)
	h.until(c, id, "the end of the run", idle)
	c.With(id, func(v *pi.View) {
		if got := tell(v); !strings.Contains(got, "bash error: began") || !strings.HasSuffix(got, "assistant complete: well\n") {
			t.Errorf("transcript:\n%s", got)
		}
	})
}

// A second process on the same data learns who has it.
func TestOneProcessOwnsTheData(t *testing.T) {
	h := newHome(t, words)
	h.start()
	second := &home{t: t, dir: h.dir}
	if err := serveChild(second.dir); err == nil || !strings.Contains(err.Error(), fmt.Sprint(h.cmd.Process.Pid)) {
		t.Errorf("the second process got: %v", err)
	}
}
