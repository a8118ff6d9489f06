package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/control"
	"github.com/roost-dev/roost/internal/control/controltest"
	"github.com/roost-dev/roost/internal/provider"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// joined returns events with adjacent deltas of a block as one, since how they are cut is
// free.
func joined(events []*roostv1.Event) []*roostv1.Event {
	var out []*roostv1.Event
	for _, e := range events {
		e = proto.CloneOf(e)
		if d := e.GetDelta(); d != nil && len(out) > 0 {
			if last := out[len(out)-1]; last.GetDelta() != nil && last.GetDelta().Index == d.Index {
				last.Seq, last.At = e.Seq, e.At
				last.GetDelta().Text += d.Text
				continue
			}
		}
		out = append(out, e)
	}
	return out
}

// gather returns the events after a position until the run ends, and how often the
// connection was lost.
func gather(t *testing.T, c *client.Client, id string, from *roostv1.Position, each func(n int)) (events []*roostv1.Event, lost int) {
	t.Helper()
	for frame, err := range c.Watch(t.Context(), id, client.WatchOptions{From: from, Lost: func(error, time.Duration) { lost++ }}) {
		if err != nil {
			t.Fatal(err)
		}
		if frame.GetReset_() != nil {
			t.Fatalf("reset: %v", frame.GetReset_().Reason)
		}
		events = append(events, frame.GetEvents().GetEvents()...)
		if n := len(events); n > 0 && events[n-1].GetRunEnded() != nil {
			return events, lost
		}
		each(len(events))
	}
	t.Fatal("the watch ended by itself")
	return nil, 0
}

func text(n int) []string {
	var words []string
	for i := range n {
		words = append(words, fmt.Sprintf("word%d ", i))
	}
	return words
}

// A stream that is cut in the middle of a turn, again and again, brings the same bytes as
// one that is not.
func TestCutStreamsBringEveryByteOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const words, drops = 200, 20
		step := make(chan struct{})
		r := controltest.Start(t, nil,
			thinkingCalls, controltest.Breaks(provider.FaultNetwork, "so "), controltest.Steps(step, text(words)...))
		id := r.Create()
		start := &roostv1.Position{Epoch: 1, Seq: 1}
		r.Prompt(id, "go")
		cuts := 0
		cut, lost := gather(t, r.Client, id, start, func(n int) {
			if n > 0 && cuts < drops && n > cuts*words/drops {
				r.Cut()
				cuts++
			}
			synctest.Wait()
			select {
			case step <- struct{}{}:
			default:
			}
		})
		if lost != drops {
			t.Fatalf("lost the connection %d times, want %d", lost, drops)
		}
		whole, _ := gather(t, r.Client, id, start, func(int) {})
		if diff := cmp.Diff(joined(whole), joined(cut), protocmp.Transform()); diff != "" {
			t.Errorf("events (-whole +cut):\n%s", diff)
		}
		want := "so " + strings.Join(text(words), "")
		if v := r.Idle(id); !strings.Contains(v.Items[len(v.Items)-1].String(), want) {
			t.Errorf("the last item is %v", v.Items[len(v.Items)-1])
		}
	})
}

func thinkingCalls(ctx context.Context, yield func(provider.Part)) error {
	yield(provider.Part{Kind: provider.ReasoningDelta, Text: "hm"})
	yield(provider.Part{Kind: provider.ReasoningEnd, Signature: controltest.Signature})
	return controltest.Calls(`echo {"x":1}`, `echo {"fail":1}`)(ctx, yield)
}

// Resuming after any event brings exactly the rest.
func TestResumeAfterAnyEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil, thinkingCalls, controltest.Breaks(provider.FaultNetwork, "so "), controltest.Says("a", "b", "c"))
		id := r.Create()
		head := first(t, r.Client, id, nil)
		r.Prompt(id, "go")
		r.Idle(id)
		all, _ := gather(t, r.Client, id, &roostv1.Position{Epoch: 1, Seq: 1}, func(int) {})
		last := all[len(all)-1].Seq
		for seq := uint64(1); seq < last; seq++ {
			rest, _ := gather(t, r.Client, id, &roostv1.Position{Epoch: 1, Seq: seq}, func(int) {})
			if rest[len(rest)-1].Seq != last {
				t.Fatalf("after %d the rest ends at %d", seq, rest[len(rest)-1].Seq)
			}
			a, b := new(client.View), new(client.View)
			a.Apply(proto.CloneOf(head))
			b.Apply(proto.CloneOf(head))
			events := func(list []*roostv1.Event) *roostv1.WatchResponse {
				return proto.CloneOf(&roostv1.WatchResponse{Frame: &roostv1.WatchResponse_Events{Events: &roostv1.Events{Events: list}}})
			}
			var before []*roostv1.Event
			for _, e := range all {
				if e.Seq <= seq {
					before = append(before, e)
				}
			}
			if n := len(before); seq > 1 && (n == 0 || before[n-1].Seq != seq) {
				continue // within deltas that were told as one
			}
			a.Apply(events(all))
			b.Apply(events(append(before, rest...)))
			if diff := cmp.Diff(a.Items, b.Items, protocmp.Transform()); diff != "" || len(a.Items) != 5 {
				t.Fatalf("after %d:\n%s", seq, diff)
			}
		}
	})
}

func first(t *testing.T, c *client.Client, id string, from *roostv1.Position) *roostv1.WatchResponse {
	t.Helper()
	for frame, err := range c.Watch(t.Context(), id, client.WatchOptions{From: from}) {
		if err != nil {
			t.Fatal(err)
		}
		return frame
	}
	t.Fatal("no frame")
	return nil
}

func TestPositionsThatCannotBeResumedAreReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil)
		id := r.Create()
		for range 3 { // the newest run keeps its events, older ones are compacted
			r.Prompt(id, "go")
			r.Idle(id)
		}
		for _, c := range []struct {
			name string
			from *roostv1.Position
			want roostv1.ResetReason
		}{
			{"none", nil, roostv1.ResetReason_RESET_REASON_START},
			{"compacted", &roostv1.Position{Epoch: 1, Seq: 2}, roostv1.ResetReason_RESET_REASON_GONE},
			{"future", &roostv1.Position{Epoch: 1, Seq: 1 << 60}, roostv1.ResetReason_RESET_REASON_FOREIGN},
			{"older epoch", &roostv1.Position{Epoch: 7, Seq: 2}, roostv1.ResetReason_RESET_REASON_OTHER_EPOCH},
		} {
			if got := first(t, r.Client, id, c.from).GetReset_().GetReason(); got != c.want {
				t.Errorf("%s: got %v, want %v", c.name, got, c.want)
			}
		}
		for _, err := range r.Client.Watch(t.Context(), id, client.WatchOptions{From: &roostv1.Position{Seq: 2}}) {
			if client.KindOf(err) != client.Invalid {
				t.Errorf("position without epoch: got %v, want invalid", err)
			}
		}
		v := r.Idle(id)
		if f := first(t, r.Client, id, v.Position); f.GetHeartbeat() == nil || !proto.Equal(f.GetHeartbeat().Position, v.Position) {
			t.Errorf("the newest position: got %v, want a heartbeat at once", f)
		}
	})
}

func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, func(o *control.Options) { o.Heartbeat = 4 * time.Second })
		id := r.Create()
		began, beats := time.Now(), 0
		var at *roostv1.Position
		for frame, err := range r.Client.Watch(t.Context(), id, client.WatchOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if reset := frame.GetReset_(); reset != nil {
				at = reset.Position
				continue
			}
			if !proto.Equal(frame.GetHeartbeat().GetPosition(), at) {
				t.Fatalf("got %v, want a heartbeat at %v", frame, at)
			}
			if beats++; beats == 3 {
				break
			}
		}
		if took := time.Since(began); took != 12*time.Second {
			t.Errorf("3 heartbeats took %v, want 12s", took)
		}
	})
}

// A server that says nothing for too long is taken for lost.
func TestSilenceReconnects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, func(o *control.Options) { o.Heartbeat = time.Hour })
		c := r.NewClient(client.Options{Silence: 5 * time.Second})
		id := r.Create()
		ctx, cancel := context.WithCancel(t.Context())
		lost := 0
		for _, err := range c.Watch(ctx, id, client.WatchOptions{Lost: func(err error, _ time.Duration) {
			if client.KindOf(err) != client.Unreachable {
				t.Errorf("lost by %v", err)
			}
			if lost++; lost == 3 {
				cancel()
			}
		}}) {
			if err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		cancel()
		if lost != 3 {
			t.Errorf("lost %d times, want 3", lost)
		}
	})
}

// The watch outlives any absence of the server.
func TestWatchWaitsForTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil)
		id := r.Create()
		var v client.View
		r.Follow(id, &v, func(*client.View) bool { return true })
		r.Down()
		time.AfterFunc(24*time.Hour, func() {
			r.Up()
			r.Prompt(id, "go")
		})
		began := time.Now()
		r.Follow(id, &v, func(v *client.View) bool { return v.Session.LastRun != nil })
		if took := time.Since(began); took < 24*time.Hour || took > 24*time.Hour+time.Minute {
			t.Errorf("the watch went on after %v", took)
		}
	})
}

func TestWatchEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil, controltest.Hangs("x"))
		id := r.Create()
		r.Prompt(id, "go")
		deleted, ended := false, false
		for frame, err := range r.Client.Watch(t.Context(), id, client.WatchOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if !deleted {
				deleted = true
				if err := r.Client.Delete(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			ended = frame.GetEnded().GetReason() == roostv1.EndReason_END_REASON_DELETED
		}
		if !ended {
			t.Error("the last frame does not say that the session was deleted")
		}
		for _, err := range r.Client.Watch(t.Context(), id, client.WatchOptions{}) {
			if client.KindOf(err) != client.NotFound {
				t.Errorf("got %v, want not_found", err)
			}
		}
	})
}

// A reader that does not read gets the state instead of what it missed, once it reads; the
// session does not wait for it.
func TestSlowWatcherIsReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		big := strings.Repeat("x", 60<<10)
		r := controltest.Start(t, nil, controltest.Says(big, big, big, big, big, big, big, big, big, big, big, big, big, big, big, big))
		id := r.Create()
		var v client.View
		var reasons []roostv1.ResetReason
		for frame, err := range r.Client.Watch(t.Context(), id, client.WatchOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if reset := frame.GetReset_(); reset != nil {
				reasons = append(reasons, reset.Reason)
			}
			if v.Apply(frame); v.Session.Run == nil && v.Session.LastRun != nil {
				break
			}
			if v.Session.LastRun == nil && len(reasons) == 1 {
				if v.Session.Run == nil {
					r.Prompt(id, "go")
				}
				synctest.Wait() // the run goes to its end while this reader holds a frame
			}
		}
		if !slices.Contains(reasons, roostv1.ResetReason_RESET_REASON_SLOW) {
			t.Errorf("resets: %v, want one because the reader was slow", reasons)
		}
		if got := client.BlockText(v.Items[1].GetAssistant().Blocks[0]); got != strings.Repeat(big, 16) {
			t.Errorf("the answer has %d bytes, want %d", len(got), 16*len(big))
		}
	})
}

// A reader that never reads loses its stream after a while, and so no longer holds the
// session in memory.
func TestStuckWatcherIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{}, 10)
		r := controltest.Start(t, func(o *control.Options) {
			o.WriteTimeout, o.Stuck = 3*time.Second, func() { stuck <- struct{}{} }
		})
		id := r.Create()
		for _, err := range r.Client.Watch(t.Context(), id, client.WatchOptions{Lost: func(error, time.Duration) {}}) {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		conn, err := r.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		body := `{"sessionId":"` + id + `"}`
		fmt.Fprintf(conn, "POST /roost.v1.SessionService/Watch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/connect+json\r\nContent-Length: %d\r\n\r\n\x00\x00\x00\x00%c%s",
			5+len(body), len(body), body)
		time.Sleep(10 * time.Second) // simulated
		if n, err := conn.Read(make([]byte, 1)); err == nil {
			t.Errorf("read %d bytes from a stream that was stuck for too long", n)
		}
		if len(stuck) != 1 {
			t.Errorf("Stuck was called %d times, not for the one watch that was stuck", len(stuck))
		}
	})
}
