package pi_test

import (
	"context"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	client "github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/piview"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

// slowConn reads at most chunk bytes at a time, and rests before each read.
type slowConn struct {
	net.Conn
	chunk, rest atomic.Int64
}

func (c *slowConn) pace(chunk int, rest time.Duration) {
	c.chunk.Store(int64(chunk))
	c.rest.Store(int64(rest))
}

func (c *slowConn) Read(b []byte) (int, error) {
	if rest := c.rest.Load(); rest > 0 {
		time.Sleep(time.Duration(rest)) // simulated
	}
	if chunk := int(c.chunk.Load()); chunk > 0 {
		b = b[:min(len(b), chunk)]
	}
	return c.Conn.Read(b)
}

// slow returns a client that reads at full speed until its pace is set.
func (r *rig) slow(watch func(piwire.Event)) (*client.Client, *slowConn) {
	nc := &slowConn{Conn: r.pipe()}
	return r.connectOver(nc, watch), nc
}

// streams says n bytes in pieces, resting before each.
func streams(n, piece int, rest time.Duration) answer {
	return func(ctx context.Context, yield func(provider.Part) bool) error {
		text := strings.Repeat("0123456789abcde\n", piece/16+1)[:piece]
		for range n / piece {
			if rest > 0 {
				time.Sleep(rest) // simulated
			}
			if !yield(provider.Part{Kind: provider.TextDelta, Text: text}) {
				return ctx.Err()
			}
		}
		yield(provider.Part{Kind: provider.Finish, Stop: session.StopEnd})
		return nil
	}
}

func attach(t *testing.T, c *client.Client, id string) {
	t.Helper()
	if _, err := c.Session(t.Context(), &piwire.Attach{SessionID: id}); err != nil {
		t.Fatal(err)
	}
}

// wantView checks that a client shows what there is.
func (r *rig) wantView(c *client.Client, id string) {
	r.t.Helper()
	if got, want := shown(c, id), r.expected(id); got != want {
		r.t.Errorf("the client shows %d bytes, want %d\n%.300s\n%.300s", len(got), len(want), got, want)
	}
}

// shown returns all that a client shows of a session, "" when it is not attached.
func shown(c *client.Client, id string) (text string) {
	c.With(id, func(v *client.View) {
		if v != nil && v.Snapshot != nil {
			text = string(v.Snapshot.Phase) + " " + v.Snapshot.Model.ID + " " + string(v.Snapshot.ThinkingLevel) + "\n" + show(v.Transcript())
		}
	})
	return text
}

// expected returns what a client that came now would show, "" when there is no such session.
func (r *rig) expected(id string) string {
	r.t.Helper()
	s, err := r.engine.State(context.Background(), session.ID(id))
	if err != nil {
		return ""
	}
	snapshot, err := piview.Snapshot(s, true, piwire.MaxFrame, r.opt.Images)
	if err != nil {
		r.t.Error(err)
		return ""
	}
	b, err := piwire.AppendServer(nil, &piwire.SessionSnapshotEvent{Snapshot: snapshot})
	if err != nil {
		r.t.Error(err)
		return ""
	}
	m, err := piwire.DecodeServer(b)
	if err != nil {
		r.t.Error(err)
		return ""
	}
	var v client.View
	v.SetSnapshot(m.(*piwire.SessionSnapshotEvent).Snapshot)
	return string(v.Snapshot.Phase) + " " + v.Snapshot.Model.ID + " " + string(v.Snapshot.ThinkingLevel) + "\n" + show(v.Transcript())
}

// A client that reads a byte a second does not slow the session, and in the end sees all.
func TestSlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size = 4 << 20
		r := newRig(t)
		r.model.then(streams(size, 4096, 0))
		id := r.create()
		fast := r.connect()
		bytes := 0
		slow, nc := r.slow(func(e piwire.Event) {
			if p, ok := e.(*piwire.SessionProgressEvent); ok {
				if d, ok := p.Progress.(*piwire.AssistantDelta); ok {
					bytes += len(d.Delta)
				}
			}
		})
		attach(t, fast, id)
		attach(t, slow, id)
		nc.pace(1, time.Second)
		began := time.Now()
		if _, err := fast.Session(t.Context(), &piwire.Prompt{SessionID: id, Text: "go"}); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the session was slowed: %v", took)
		}
		nc.pace(0, 0)
		settle()
		r.wantView(fast, id)
		r.wantView(slow, id)
		if bytes > 2*live.Limit {
			t.Errorf("%d bytes of deltas waited for the slow client", bytes)
		}
	})
}

// A session is taken back and goes on before a slow client has been told of either. It is never shown the
// new items behind those that are gone.
func TestSlowClientOfARewoundSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.create()
		var said []string // by people, as the client shows it
		add := func(i piwire.Item) {
			if u, ok := i.(*piwire.UserItem); ok {
				said = append(said, u.Content[0].(*piwire.Text).Text)
			}
		}
		slow, nc := r.slow(func(e piwire.Event) {
			switch e := e.(type) {
			case *piwire.SessionSnapshotEvent:
				said = nil
				for _, i := range e.Snapshot.Transcript {
					add(i)
				}
			case *piwire.SessionProgressEvent:
				if p, ok := e.Progress.(*piwire.ItemStarted); ok {
					add(p.Item)
				}
			}
			if len(said) > 1 {
				t.Errorf("the client shows %q", said)
			}
		})
		attach(t, slow, id)
		do := func(c session.Command) {
			t.Helper()
			if _, err := r.engine.Do(t.Context(), session.ID(id), c); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		do(session.Prompt{Text: "first"})
		settle()
		nc.pace(1, time.Second)
		for _, level := range []session.Thinking{session.ThinkingHigh, session.ThinkingOff} { // the second is on its way for a while
			do(session.SetThinking{Thinking: level, Levels: []session.Thinking{level}})
		}
		state, err := r.engine.State(t.Context(), session.ID(id))
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range state.Settled {
			if u, ok := i.(*session.User); ok && u.Note == session.NoteNone {
				do(session.Rewind{Item: u.ID})
				break
			}
		}
		do(session.Prompt{Text: "second"})
		nc.pace(0, 0)
		settle()
		r.wantView(slow, id)
	})
}

// What waits for a client is merged: it costs a message per read, not per token.
func TestDeltasAreMerged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tokens = 10_000
		r := newRig(t)
		r.model.then(streams(10*tokens, 10, time.Millisecond))
		id := r.create()
		deltas := 0
		slow, nc := r.slow(func(e piwire.Event) {
			if p, ok := e.(*piwire.SessionProgressEvent); ok {
				if _, ok := p.Progress.(*piwire.AssistantDelta); ok {
					deltas++
				}
			}
		})
		attach(t, slow, id)
		nc.pace(4096, 100*time.Millisecond)
		if _, err := slow.Session(t.Context(), &piwire.Prompt{SessionID: id, Text: "go"}); err != nil {
			t.Fatal(err)
		}
		settle()
		r.wantView(slow, id)
		if deltas == 0 || deltas > tokens/10 {
			t.Errorf("%d deltas for %d tokens", deltas, tokens)
		}
	})
}

// A client that never reads holds up neither the session nor the server's end.
func TestClientThatNeverReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.model.then(streams(1<<20, 1000, 0))
		id := r.create()
		stuck := r.stuck(id)
		fast := r.connect()
		attach(t, fast, id)
		if _, err := fast.Session(t.Context(), &piwire.Prompt{SessionID: id, Text: "go"}); err != nil {
			t.Fatal(err)
		}
		for range 5000 {
			r.server.Changed()
			r.server.Removed("other")
		}
		r.wantView(fast, id)
		settle()
		if _, err := stuck.Write(frames(t, list)); err == nil {
			t.Error("a client that missed thousands of removals is still connected")
		}
	})
}

// stuck returns a connection that says hello, attaches, and reads nothing but the hello.
func (r *rig) stuck(id string) net.Conn {
	r.t.Helper()
	nc := r.pipe()
	r.t.Cleanup(func() { _ = nc.Close() })
	if _, err := nc.Write(helloFrame); err != nil {
		r.t.Fatal(err)
	}
	if _, err := piwire.NewServerReader(nc, piwire.MaxFrame).Read(); err != nil {
		r.t.Fatal(err)
	}
	if _, err := nc.Write(frames(r.t, &piwire.Request{ID: "1", Command: &piwire.Attach{SessionID: id}})); err != nil {
		r.t.Fatal(err)
	}
	// The first byte of the answer: the connection is attached and its output is blocked.
	if _, err := io.ReadFull(nc, make([]byte, 1)); err != nil {
		r.t.Fatal(err)
	}
	return nc
}

// Connections that come and go while a session streams leave nothing and disturb nobody.
func TestAttachAndDetachInATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.model.then(streams(100_000, 100, time.Millisecond))
		id := r.create()
		stays := r.connect()
		attach(t, stays, id)
		var done sync.WaitGroup
		done.Go(func() {
			if _, err := stays.Session(t.Context(), &piwire.Prompt{SessionID: id, Text: "go"}); err != nil {
				t.Error(err)
			}
		})
		for n := range 5 {
			done.Go(func() {
				for range 20 {
					c := r.connect()
					attach(t, c, id)
					time.Sleep(time.Duration(n) * time.Millisecond) // simulated
					if _, err := c.Do(t.Context(), &piwire.Detach{SessionID: id}); err != nil {
						t.Error(err)
					}
					attach(t, c, id)
					c.Close()
				}
			})
		}
		done.Wait()
		settle()
		r.wantView(stays, id)
		if n := r.server.Attachments(); n != 2 {
			t.Errorf("%d entries for one attachment, want 2", n)
		}
	})
}

// Twenty readers that are stuck in the middle of megabytes cost less than 1 MB each.
func TestStuckReadersCostLittle(t *testing.T) {
	const readers, size = 20, 4 << 20
	var heap int64
	measure := func(t *testing.T, readers int) {
		r := newRig(t)
		r.model.then(streams(size, 1000, 0))
		id := r.create()
		fast := r.connect()
		attach(t, fast, id)
		for range readers {
			r.stuck(id)
		}
		if _, err := fast.Session(t.Context(), &piwire.Prompt{SessionID: id, Text: "go"}); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		runtime.KeepAlive(r)
		heap = int64(m.HeapAlloc)
	}
	t.Run("none", func(t *testing.T) { measure(t, 0) })
	none := heap
	t.Run("some", func(t *testing.T) { measure(t, readers) })
	each := (heap - none) / readers
	t.Logf("%d bytes for each of %d readers", each, readers)
	if each > 1<<20 {
		t.Errorf("a stuck reader costs %d bytes", each)
	}
}
