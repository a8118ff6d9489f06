package actor

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

// follower is a watcher that takes a few updates, leaves, and comes back where it was.
type follower struct {
	at   session.Position
	text strings.Builder
	over bool
}

// visit takes at most n updates. Every record must be the next one.
func (f *follower) visit(ctx context.Context, e *Engine, id session.ID, n int) error {
	sub, err := e.Watch(ctx, id, &f.at)
	if err != nil {
		return err
	}
	defer sub.Close()
	for range n {
		u, err := sub.Next(ctx)
		if err != nil {
			return err
		}
		if u.Reset {
			return errors.New("the watcher was reset")
		}
		for _, r := range u.Records {
			if r.Seq != f.at.Seq+1 {
				return fmt.Errorf("event %d follows %d", r.Seq, f.at.Seq)
			}
			f.at.Seq = r.Seq
			switch e := r.Event.(type) {
			case session.Delta:
				f.text.WriteString(e.Text)
			case session.RunEnded:
				f.over = true
				return nil
			}
		}
	}
	return nil
}

// Watchers come and go at every moment of a run, on real threads. None misses an event, gets
// one twice, or sees a number skipped.
func TestWatchersJoinDuringARun(t *testing.T) {
	const words, watchers = 3000, 8
	var want strings.Builder
	r := newRig(t, nil, func(_ context.Context, _ *provider.Request, yield func(provider.Part) bool) error {
		for i := range words {
			yield(provider.Part{Kind: provider.TextDelta, Text: fmt.Sprintf("word%d ", i)})
			runtime.Gosched()
		}
		yield(provider.Part{Kind: provider.Finish, Stop: session.StopEnd})
		return nil
	})
	defer r.stop()
	for i := range words {
		fmt.Fprintf(&want, "word%d ", i)
	}
	id := r.create()
	start := session.Position{Epoch: r.engine.Epoch(), Seq: r.state(id).Seq}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var joined sync.WaitGroup
	for n := range watchers {
		joined.Go(func() {
			f := follower{at: start}
			for !f.over {
				if err := f.visit(ctx, r.engine, id, 1+n%3); err != nil {
					t.Error(err)
					return
				}
			}
			if f.text.String() != want.String() {
				t.Errorf("watcher %d got %d bytes, want %d", n, f.text.Len(), want.Len())
			}
		})
	}
	r.do(id, session.Prompt{Text: "go"})
	joined.Wait()
}

// A watcher that never reads holds nobody up: not the session, not the other watchers.
func TestStuckWatcherHarmsNobody(t *testing.T) {
	simulate(t, func(t *testing.T) {
		text := strings.Repeat("x", 4<<10)
		r := newRig(t, nil, func(_ context.Context, _ *provider.Request, yield func(provider.Part) bool) error {
			for range 1000 {
				yield(provider.Part{Kind: provider.TextDelta, Text: text})
				time.Sleep(100 * time.Microsecond) // simulated: whoever reads has read by then
			}
			yield(provider.Part{Kind: provider.Finish, Stop: session.StopEnd})
			return nil
		})
		defer r.stop()
		id := r.create()
		stuck, err := r.engine.Watch(t.Context(), id, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer stuck.Close()
		reads := follower{at: session.Position{Epoch: r.engine.Epoch(), Seq: 1}}
		var reading sync.WaitGroup
		reading.Go(func() {
			for !reads.over && !t.Failed() {
				if err := reads.visit(t.Context(), r.engine, id, 1); err != nil {
					t.Error(err)
				}
			}
		})
		began := time.Now()
		r.do(id, session.Prompt{Text: "go"})
		reading.Wait()
		if took := time.Since(began); took > time.Second {
			t.Errorf("the run took %v", took)
		}
		if want := strings.Repeat(text, 1000); reads.text.String() != want {
			t.Errorf("the watcher that reads got %d bytes, want %d", reads.text.Len(), len(want))
		}
		u, err := stuck.Next(t.Context())
		if err != nil || !u.Reset || len(u.Records) != 0 || u.State.Run != nil {
			t.Errorf("the stuck watcher gets %d records, reset %v, %v; want the state at the end", len(u.Records), u.Reset, err)
		}
	})
}

// A session in which something runs stays in memory although nobody watches.
func TestWorkKeepsASessionInMemory(t *testing.T) {
	simulate(t, func(t *testing.T) {
		long := fakeTool{name: "long", run: func(ctx context.Context, _ tool.Call, _ func(tool.Progress)) tool.Result {
			select {
			case <-time.After(time.Hour): // simulated
				return tool.Result{Text: "finished"}
			case <-ctx.Done():
				return tool.Result{Text: "stopped", IsError: true}
			}
		}}
		r := newRig(t, []tool.Tool{long}, calls("long"), says("ok"))
		defer r.stop()
		id := r.create()
		r.do(id, session.Prompt{Text: "go"})
		time.Sleep(30 * time.Minute) // simulated
		r.engine.mu.Lock()
		loaded := len(r.engine.actors)
		r.engine.mu.Unlock()
		if loaded != 1 {
			t.Error("a session with a running tool left memory")
		}
		time.Sleep(31 * time.Minute) // simulated
		if got := tell(r.state(id)); !strings.Contains(got, `tool long ok "finished"`) || !strings.Contains(got, `"ok"`) {
			t.Errorf("after the hour:\n%s", got)
		}
	})
}

// maxEvent is more than any event may take on disk: what is larger goes elsewhere or is cut.
const maxEvent = 256 << 10

// A tool that says 40 MB while it runs and returns 40 MB, and a model that says much at
// once, make no large event, and an abort gets through.
func TestHugeOutputsAreBounded(t *testing.T) {
	huge := strings.Repeat("0123456789abcde\n", 40<<20/16)
	flood := func(progress func(tool.Progress)) {
		for from := 0; from < len(huge); from += 1 << 20 {
			progress(tool.Progress{Text: huge[from : from+1<<20]})
		}
	}
	simulate(t, func(t *testing.T) {
		returns := fakeTool{name: "returns", run: func(_ context.Context, _ tool.Call, progress func(tool.Progress)) tool.Result {
			flood(progress)
			return tool.Result{Text: huge, Details: []byte(`"` + strings.Repeat("x", len(huge)) + `"`)}
		}}
		floods := fakeTool{name: "floods", run: func(ctx context.Context, _ tool.Call, progress func(tool.Progress)) tool.Result {
			for ctx.Err() == nil {
				flood(progress)
				time.Sleep(100 * time.Millisecond) // simulated
			}
			return tool.Result{Text: huge, IsError: true}
		}}
		r := newRig(t, []tool.Tool{returns, floods}, calls("returns"), says(huge[:128<<10]), calls("floods"))
		defer r.stop()
		id := r.create()
		largest := func() (size int) {
			snapshot, err := r.log.Load(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for record, err := range r.log.Read(t.Context(), id, snapshot.Head.Seq) {
				if err != nil {
					t.Fatal(err)
				}
				b, err := eventlog.AppendRecord(nil, record)
				if err != nil {
					t.Fatal(err)
				}
				size = max(size, len(b))
			}
			return size
		}
		r.do(id, session.Prompt{Text: "go"})
		r.settle(id)
		if size := largest(); size > maxEvent || size == 0 {
			t.Errorf("an event takes %d bytes", size)
		}
		r.do(id, session.Prompt{Text: "again"})
		time.Sleep(time.Second) // simulated
		synctest.Wait()
		if r.state(id).Run == nil {
			t.Fatal("the tool does not run")
		}
		began := time.Now()
		r.do(id, session.Abort{})
		if s := r.settle(id); s.LastOutcome != session.RunAborted {
			t.Errorf("the run ended %v", s.LastOutcome)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the abort took %v", took)
		}
		if size := largest(); size > maxEvent || size == 0 {
			t.Errorf("an event takes %d bytes", size)
		}
	})
}
