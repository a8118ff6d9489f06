package actor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/eventlog/memlog"
	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

// TestSimulation lets clients, providers, tools, the disk and the process do what they may in
// any order, and checks what must always hold: no acknowledged prompt is lost or obeyed
// twice, no text a client saw gets shorter, every tool call has one result and an unsafe one
// never runs twice, what is published is what the log gives, and every run ends.
func TestSimulation(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{rt: rt, ran: make(map[string]int), acked: make(map[string]bool), seen: make(map[session.ItemID]string)}
		for n := rapid.IntRange(1, 12).Draw(rt, "answers"); n > 0; n-- {
			w.answers = append(w.answers, drawAnswer(rt))
		}
		w.steps = rapid.SliceOfN(rapid.SampledFrom([]string{
			"prompt", "prompt", "repeat", "steer", "abort", "wait", "wait", "long wait", "crash", "disk full", "write lost", "ack lost", "watch", "unwatch", "read",
			"allow", "deny", "compact", "rewind", "mode",
		}), 1, 40).Draw(rt, "steps")
		w.pauses = rapid.SliceOfN(rapid.IntRange(1, 3000), len(w.steps), len(w.steps)).Draw(rt, "pauses")
		// The bubble needs a *testing.T; what fails inside is reported through rt afterwards.
		synctest.Test(t, w.run)
		if w.failure != "" {
			rt.Fatal(w.failure)
		}
	})
}

func drawAnswer(rt *rapid.T) answer {
	text := rapid.StringN(0, 5, 20).Draw(rt, "text")
	delay := time.Duration(rapid.IntRange(0, 2000).Draw(rt, "delay")) * time.Millisecond
	var do answer
	switch rapid.SampledFrom([]string{"says", "says", "calls", "breaks", "refuses", "hangs", "cut call"}).Draw(rt, "kind") {
	case "says":
		do = says(text+"1", text+"2", text+"3")
	case "calls":
		do = calls([]string{"safe {}", "unsafe {}", "risky {}", "unsafe {bad"}[:rapid.IntRange(1, 4).Draw(rt, "calls")]...)
	case "breaks":
		do = breaks(provider.FaultNetwork, text)
	case "refuses":
		do = breaks(provider.FaultRequest, text)
	case "hangs":
		inner := hangs(text)
		do = func(ctx context.Context, req *provider.Request, yield func(provider.Part) bool) error {
			ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
			defer cancel()
			if err := inner(ctx, req, yield); !errors.Is(err, context.DeadlineExceeded) {
				return err
			}
			return provider.Errorf(provider.FaultStalled, "silent")
		}
	case "cut call":
		do = func(_ context.Context, _ *provider.Request, yield func(provider.Part) bool) error {
			yield(provider.Part{Kind: provider.CallStart, Name: "unsafe"})
			yield(provider.Part{Kind: provider.CallDelta, Text: `{"a`})
			return provider.Errorf(provider.FaultNetwork, "cut")
		}
	}
	return func(ctx context.Context, req *provider.Request, yield func(provider.Part) bool) error {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return ctx.Err()
		}
		return do(ctx, req, yield)
	}
}

type world struct {
	rt      *rapid.T
	answers []answer
	steps   []string
	pauses  []int
	failure string

	rig     *rig
	id      session.ID
	prompts int
	acked   map[string]bool // prompt ids that were acknowledged
	sub     *live.Subscription
	replica *session.State
	seen    map[session.ItemID]string // the longest text a client saw of each item

	mu  sync.Mutex
	ran map[string]int // how often each unsafe call began
}

func (w *world) fail(format string, args ...any) {
	if w.failure == "" {
		w.failure = fmt.Sprintf(format, args...)
	}
}

func (w *world) tools() []tool.Tool {
	run := func(name string) func(context.Context, tool.Call, func(tool.Progress)) tool.Result {
		return func(ctx context.Context, c tool.Call, progress func(tool.Progress)) tool.Result {
			w.mu.Lock()
			w.ran[name+c.ID]++
			w.mu.Unlock()
			progress(tool.Progress{Text: "began"})
			select {
			case <-time.After(1500 * time.Millisecond):
				return tool.Result{Text: "result"}
			case <-ctx.Done():
				return tool.Result{Text: "stopped", IsError: true}
			}
		}
	}
	return []tool.Tool{
		fakeTool{name: "safe", repeatable: true, run: run("safe")},
		fakeTool{name: "unsafe", run: run("unsafe")},
		fakeTool{name: "risky", run: run("unsafe risky")},
	}
}

func (w *world) run(t *testing.T) {
	w.rig = newRigWith(t, asks, w.tools(), w.answers...)
	defer func() { w.rig.stop() }()
	w.id = w.rig.create()
	for i, step := range w.steps {
		w.step(t, step)
		time.Sleep(time.Duration(w.pauses[i]) * time.Millisecond) // simulated
		w.check(t)
		if w.failure != "" {
			w.failure += fmt.Sprintf(" (at step %d, %s)", i, step)
			break
		}
	}
	w.unwatch()
	w.end(t)
}

func (w *world) step(t *testing.T, step string) {
	switch step {
	case "prompt":
		w.prompts++
		w.prompt(t, w.prompts)
	case "repeat":
		if w.prompts > 0 {
			w.prompt(t, w.prompts)
		}
	case "steer":
		_, _ = w.rig.engine.Do(t.Context(), w.id, session.Steer{Text: "steer"})
	case "abort":
		_, _ = w.rig.engine.Do(t.Context(), w.id, session.Abort{})
	case "long wait":
		time.Sleep(time.Minute) // simulated
	case "crash":
		w.unwatch()
		w.rig.crash()
	case "disk full":
		w.rig.log.Fail(1, memlog.Full)
	case "write lost":
		w.rig.log.Fail(1, memlog.Before)
	case "ack lost":
		w.rig.log.Fail(1, memlog.After)
	case "watch":
		if w.sub == nil {
			w.watch(t)
		}
	case "unwatch":
		w.unwatch()
	case "allow":
		w.answer(t, session.Answer{Allow: true})
	case "deny":
		w.answer(t, session.Answer{})
	case "compact":
		_, _ = w.rig.engine.Do(t.Context(), w.id, session.Compact{})
	case "rewind":
		w.rewind(t)
	case "mode":
		_, _ = w.rig.engine.Do(t.Context(), w.id, session.SetMode{Mode: session.ModeDebug})
	}
}

// answer answers an open query, if there is one.
func (w *world) answer(t *testing.T, a session.Answer) {
	s := w.rig.state(w.id)
	if s.Run == nil {
		return
	}
	for _, item := range s.Run.Batch {
		if item.Query != nil {
			a.Call = item.Call
			_, _ = w.rig.engine.Do(t.Context(), w.id, a)
		}
	}
}

// rewind takes the last prompt away, on purpose.
func (w *world) rewind(t *testing.T) {
	s := w.rig.state(w.id)
	for i, v := range slices.Backward(s.Settled) {
		u, ok := v.(*session.User)
		if !ok || u.Note != session.NoteNone {
			continue
		}
		_, err := w.rig.engine.Do(t.Context(), w.id, session.Rewind{Item: u.ID})
		for _, gone := range s.Settled[i:] { // an error may hide that it was done
			if u, ok := gone.(*session.User); ok && session.AsError(err).Kind != session.Busy {
				delete(w.acked, u.Prompt)
			}
		}
		return
	}
}

func (w *world) prompt(t *testing.T, n int) {
	id := fmt.Sprintf("p%d", n)
	if _, err := w.rig.engine.Do(t.Context(), w.id, session.Prompt{ID: id, Text: id}); err == nil {
		w.acked[id] = true
	}
}

func (w *world) watch(t *testing.T) {
	var from *session.Position
	if w.replica != nil {
		from = &session.Position{Epoch: 1, Seq: w.replica.Seq}
	}
	sub, err := w.rig.engine.Watch(t.Context(), w.id, from)
	if err == nil {
		w.sub = sub
	}
}

func (w *world) unwatch() {
	if w.sub != nil {
		w.sub.Close()
		w.sub = nil
	}
}

// check reads what was published and compares it with what a client must see.
func (w *world) check(t *testing.T) {
	synctest.Wait()
	for w.sub != nil {
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		u, err := w.sub.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			w.unwatch()
			break
		}
		w.update(u)
	}
}

func (w *world) update(u live.Update) {
	if u.Reset {
		w.replica = u.State.Clone()
	}
	for _, r := range u.Records {
		if w.replica == nil || r.Seq != w.replica.Seq+1 {
			w.fail("record %d does not follow", r.Seq)
			return
		}
		w.replica.Apply(r)
	}
	if u.State != nil && tell(w.replica) != tell(u.State) {
		w.fail("records give\n%sthe state is\n%s", tell(w.replica), tell(u.State))
	}
	w.remember(w.replica)
}

func (w *world) remember(s *session.State) {
	for _, i := range s.Transcript() {
		a, ok := i.(*session.Assistant)
		if !ok {
			continue
		}
		text := ""
		for _, b := range a.Blocks {
			text += session.BlockText(b) + "\x00"
		}
		if old := w.seen[a.ID]; len(text) < len(old) {
			w.fail("text of %s shrank from %q to %q", a.ID, old, text)
		}
		w.seen[a.ID] = text
	}
}

func (w *world) end(t *testing.T) {
	for range 5000 { // a run may ask again and again
		synctest.Wait()
		if w.rig.state(w.id).Run == nil {
			break
		}
		w.answer(t, session.Answer{Allow: true})
		time.Sleep(time.Second) // simulated
	}
	s := w.rig.settle(w.id)
	w.remember(s)
	w.rig.replays(s)
	found := make(map[string]int)
	results := make(map[session.CallID]int)
	var calls []session.CallID
	for _, i := range s.Transcript() {
		switch i := i.(type) {
		case *session.User:
			found[i.Prompt]++
		case *session.Assistant:
			for _, c := range i.Calls() {
				calls = append(calls, c.Call)
			}
			if i.Status == session.Streaming {
				w.fail("%s still streams", i.ID)
			}
		case *session.Tool:
			results[i.Call]++
		}
	}
	for id := range w.acked {
		if found[id] != 1 {
			w.fail("acknowledged prompt %s is there %d times", id, found[id])
		}
	}
	for _, c := range calls {
		if results[c] != 1 {
			w.fail("call %s has %d results", c, results[c])
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for call, n := range w.ran {
		if n > 1 && call[:6] == "unsafe" {
			w.fail("%s ran %d times", call, n)
		}
	}
}
