package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/piwire"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// api returns a client of roost's own API.
func (h *home) api() *client.Client {
	h.t.Helper()
	c, err := client.FromDataDir(filepath.Join(h.dir, "data"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(c.Close)
	return c
}

// newSession makes a session through roost's own API.
func (h *home) newSession(c *client.Client) string {
	h.t.Helper()
	s, err := c.Create(h.context(), &roostv1.CreateSessionRequest{Cwd: h.dir})
	if err != nil {
		h.t.Fatal(err)
	}
	return s.Session.Id
}

func (h *home) promptAs(c *client.Client, id, promptID, text string) *roostv1.PromptResponse {
	h.t.Helper()
	p, err := c.Prompt(h.context(), id, promptID, text)
	if err != nil {
		h.t.Fatal(err)
	}
	return p
}

// follow applies what a watch brings until done says so.
func (h *home) follow(c *client.Client, id string, done func(*client.View) bool) *client.View {
	h.t.Helper()
	v, err := follow(h.context(), c, id, new(client.View), done)
	if err != nil {
		h.t.Fatalf("%v; the session is %v", err, v.Session)
	}
	return v
}

// follow goes on from where v is.
func follow(ctx context.Context, c *client.Client, id string, v *client.View, done func(*client.View) bool) (*client.View, error) {
	for frame, err := range c.Watch(ctx, id, client.WatchOptions{From: v.Position}) {
		if err != nil {
			return v, err
		}
		if v.Apply(frame); done(v) {
			return v, nil
		}
	}
	return v, ctx.Err()
}

// over is a session that has run and is idle.
func over(v *client.View) bool { return v.Session.Run == nil && v.Session.LastRun != nil }

// toolOf returns the last call of a tool, or nil.
func toolOf(v *client.View) *roostv1.Tool {
	for _, i := range slices.Backward(v.Items) {
		if tool := i.GetTool(); tool != nil {
			return tool
		}
	}
	return nil
}

// answerOf returns the text of the last item, if that is an answer.
func answerOf(v *client.View) string {
	var said strings.Builder
	if len(v.Items) == 0 {
		return ""
	}
	for _, b := range v.Items[len(v.Items)-1].GetAssistant().GetBlocks() {
		said.WriteString(client.BlockText(b))
	}
	return said.String()
}

// flood makes the scripted model say N words as fast as they are taken.
const flood = `
rules:
  - regex: '^flood (\d+)$'
    passes:
      - - text: "word "
          repeat: "${1}"
  - default: true
    passes: [[{text: hello}]]
`

// Fifty sessions of 2,000 tokens each, at the same time, on one connection of pi's protocol
// and on one client of roost's own API: every token arrives, in order, and no stream ends.
func TestFiftySessionsOnOneSubscriber(t *testing.T) {
	const sessions, tokens = 50, 2000
	h := newHome(t, flood)
	h.start()
	c, one := h.api(), h.dial()
	want := strings.Repeat("word ", tokens)
	ctx := h.context()
	var all sync.WaitGroup
	var ids []string
	for range sessions {
		id := h.newSession(c)
		ids = append(ids, id)
		h.attach(one, id)
	}
	for _, id := range ids {
		all.Go(func() {
			lost := 0
			var got strings.Builder
			for frame, err := range c.Watch(ctx, id, client.WatchOptions{From: &roostv1.Position{Epoch: 1, Seq: 1}, Lost: func(error, time.Duration) { lost++ }}) {
				if err != nil || frame.GetReset_() != nil {
					t.Errorf("watch: %v %v", frame, err)
					return
				}
				for _, e := range frame.GetEvents().GetEvents() {
					got.WriteString(e.GetDelta().GetText())
					if e.GetRunEnded() != nil {
						if got.String() != want || lost != 0 {
							t.Errorf("got %d bytes, want %d; lost the connection %d times", got.Len(), len(want), lost)
						}
						return
					}
				}
			}
		})
	}
	for _, id := range ids {
		all.Go(func() {
			if _, err := c.Prompt(ctx, id, "", fmt.Sprintf("flood %d", tokens)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for _, id := range ids {
		h.until(one, id, "the end of the run", func(v *pi.View) bool { return idle(v) && len(v.Transcript()) == 2 })
		one.With(id, func(v *pi.View) {
			if got := assistantText(v); got != want {
				t.Errorf("pi: %d bytes, want %d", len(got), len(want))
			}
		})
	}
}

// A hundred sessions are made and prompted for the first time at the same moment, through
// both protocols, in one directory. Each gets its answer, and nothing is said of locks.
func TestHundredFirstPromptsAtOnce(t *testing.T) {
	const each = 50
	h := newHome(t, flood)
	h.start()
	c := h.api()
	ctx := h.context()
	start := make(chan struct{})
	var all sync.WaitGroup
	for range each {
		all.Go(func() {
			<-start
			s, err := c.Create(ctx, &roostv1.CreateSessionRequest{Cwd: h.dir})
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := c.Prompt(ctx, s.Session.Id, "", "hi"); err != nil {
				t.Error(err)
				return
			}
			if v, err := follow(ctx, c, s.Session.Id, new(client.View), over); err != nil || answerOf(v) != "hello" {
				t.Errorf("%v: %v", err, v.Items)
			}
		})
		all.Go(func() {
			<-start
			c, err := pi.Dial(ctx, filepath.Join(h.dir, "s"))
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			s, err := c.Session(ctx, &piwire.Create{Cwd: h.dir})
			if err == nil {
				_, err = c.Do(ctx, &piwire.Prompt{SessionID: s.ID, Text: "hi"})
			}
			if err == nil {
				err = c.Until(ctx, s.ID, func(v *pi.View) bool { return idle(v) && assistantText(v) == "hello" })
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	close(start)
	all.Wait()
	log, err := os.ReadFile(filepath.Join(h.dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"locked", "busy", "level=ERROR", "panic"} {
		if strings.Contains(string(log), bad) {
			t.Errorf("the log speaks of %q:\n%.2000s", bad, log)
		}
	}
}

// read returns a file of the directory, empty when there is none.
func (h *home) read(name string) string {
	h.t.Helper()
	text, err := os.ReadFile(filepath.Join(h.dir, name))
	if err != nil && !os.IsNotExist(err) {
		h.t.Fatal(err)
	}
	return string(text)
}
