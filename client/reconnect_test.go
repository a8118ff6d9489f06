package client_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/internal/control"
	"github.com/roost-dev/roost/internal/control/controltest"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// Every frame but the last of a deleted session says where it leaves the watcher, so a
// watcher can come back after any of them.
func TestEveryFrameSaysWhereItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := controltest.Start(t, nil, thinkingCalls, controltest.Says(text(50)...))
		id := r.Create()
		var last uint64
		for frame, err := range r.Client.Watch(t.Context(), id, client.WatchOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			at := frame.GetReset_().GetPosition()
			if at != nil {
				r.Prompt(id, "go")
			} else if at = frame.GetEvents().GetPosition(); at == nil {
				at = frame.GetHeartbeat().GetPosition()
			}
			if at.GetEpoch() == 0 || at.Seq < last {
				t.Fatalf("after %d comes %v", last, frame)
			}
			for _, e := range frame.GetEvents().GetEvents() {
				if e.Seq <= last {
					t.Fatalf("event %d comes after %d", e.Seq, last)
				}
				last = e.Seq
			}
			if last > at.Seq {
				t.Fatalf("event %d is in a frame at %d", last, at.Seq)
			}
			if last = at.Seq; frame.GetHeartbeat() != nil {
				break // nothing happens any more
			}
		}
		if last < 10 {
			t.Errorf("the watch ended at %d", last)
		}
	})
}

// Whether a session works and whether a client is connected are two things: a lost
// connection neither ends the run nor looks like its end, and the run does not need clients.
func TestLostConnectionIsNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		r := controltest.Start(t, nil, controltest.Steps(step, "one ", "two ", "three"))
		id := r.Create()
		r.Prompt(id, "go")
		step <- struct{}{}
		ctx, leave := context.WithCancel(t.Context())
		var v client.View
		lost := 0
		for frame, err := range r.Client.Watch(ctx, id, client.WatchOptions{Lost: func(error, time.Duration) {
			lost++
			if v.Session.Run.GetId() != 1 || v.Session.LastRun != nil {
				t.Errorf("without a connection the session looks like %v", v.Session)
			}
		}}) {
			if err != nil {
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				break
			}
			if v.Apply(frame); lost == 0 {
				r.Cut()
				continue
			}
			leave()
		}
		leave()
		if lost != 1 || v.Session.Run.GetId() != 1 {
			t.Errorf("lost %d times; the session is %v", lost, v.Session)
		}
		r.Client.Close()
		r.Cut() // nobody is there any more
		step <- struct{}{}
		step <- struct{}{}
		synctest.Wait()
		end := r.Idle(id)
		if end.Session.LastRun.Outcome != roostv1.Outcome_OUTCOME_COMPLETED || client.BlockText(end.Items[1].GetAssistant().Blocks[0]) != "one two three" {
			t.Errorf("the run ended %v with %v", end.Session.LastRun, end.Items)
		}
	})
}

// idle is a connection through a proxy that ends what is silent for a minute.
type idle struct {
	net.Conn
	timer *time.Timer
}

const proxyIdle = time.Minute

func (c idle) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.timer.Reset(proxyIdle)
	return n, err
}

func (c idle) Close() error {
	c.timer.Stop()
	return c.Conn.Close()
}

// Hours in which nothing happens do not cost the connection.
func TestQuietRunBehindAnIdleProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		step := make(chan struct{})
		r := controltest.Start(t, nil, controltest.Steps(step, "at last"))
		id := r.Create()
		r.Prompt(id, "go")
		c, err := client.New(client.Options{Address: "http://localhost", Dial: func(ctx context.Context) (net.Conn, error) {
			conn, err := r.Dial(ctx)
			if err != nil {
				return nil, err
			}
			return idle{conn, time.AfterFunc(proxyIdle, func() { _ = conn.Close() })}, nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		time.AfterFunc(3*time.Hour, func() { step <- struct{}{} })
		_, lost := gather(t, c, id, &roostv1.Position{Epoch: 1, Seq: 1}, func(int) {})
		if lost != 0 {
			t.Errorf("the connection was lost %d times", lost)
		}
	})
}

// slowly reads little at a time, and rests before each read.
type slowly struct{ net.Conn }

func (c slowly) Read(p []byte) (int, error) {
	time.Sleep(10 * time.Millisecond) // simulated
	return c.Conn.Read(p[:min(len(p), 2000)])
}

// Megabytes that were missed reach a slow client to the last byte, or with an explicit
// reset; they do not get stuck and nothing is left out.
func TestLargeResumeToASlowClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		words := make([]string, 1500)
		for i := range words {
			words[i] = fmt.Sprintf("%04d %s\n", i, strings.Repeat("x", 4<<10))
		}
		r := controltest.Start(t, nil, controltest.Says(words...))
		id := r.Create()
		r.Prompt(id, "go")
		r.Idle(id)
		c, err := client.New(client.Options{Address: "http://localhost", Dial: func(ctx context.Context) (net.Conn, error) {
			conn, err := r.Dial(ctx)
			return slowly{conn}, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		events, lost := gather(t, c, id, &roostv1.Position{Epoch: 1, Seq: 1}, func(int) {})
		var got strings.Builder
		for _, e := range events {
			got.WriteString(e.GetDelta().GetText())
		}
		if want := strings.Join(words, ""); got.String() != want || lost != 0 {
			t.Errorf("got %d bytes, want %d; lost the connection %d times", got.Len(), len(want), lost)
		}
	})
}

// counting counts what a connection brings.
type counting struct {
	net.Conn
	n *atomic.Int64
}

func (c counting) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.n.Add(int64(n))
	return n, err
}

// Tokens that come one at a time, each in a frame of its own, cost at most three times their
// text on the wire.
func TestBytesOnTheWire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const tokens, token = 500, "twenty-one characters"
		step := make(chan struct{})
		list := make([]string, tokens)
		for i := range list {
			list[i] = token
		}
		r := controltest.Start(t, nil, controltest.Steps(step, list...))
		id := r.Create()
		r.Prompt(id, "go")
		var n atomic.Int64
		c, err := client.New(client.Options{Address: "http://localhost", Dial: func(ctx context.Context) (net.Conn, error) {
			conn, err := r.Dial(ctx)
			return counting{conn, &n}, err
		}})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		deltas := 0
		for frame, err := range c.Watch(t.Context(), id, client.WatchOptions{}) {
			if err != nil {
				t.Fatal(err)
			}
			if frame.GetReset_() != nil {
				n.Store(0)
			}
			for _, e := range frame.GetEvents().GetEvents() {
				if e.GetDelta() != nil {
					deltas++
				}
			}
			if deltas == tokens {
				break
			}
			step <- struct{}{}
		}
		each := float64(n.Load()) / tokens
		t.Logf("%.1f bytes for a token of %d", each, len(token))
		if each > 3*float64(len(token)) {
			t.Errorf("a token costs %.1f bytes on the wire", each)
		}
	})
}

// Twenty readers that are stuck in the middle of megabytes cost less than 1 MB each, and
// nothing once they are gone.
func TestStuckReadersCostLittle(t *testing.T) {
	const readers = 20
	measure := func(t *testing.T, readers int) (stuck, gone int64) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			r := controltest.Start(t, func(o *control.Options) { o.WriteTimeout = time.Hour }, controltest.Says(strings.Split(strings.Repeat(strings.Repeat("x", 4000)+" ", 1000), " ")...))
			id := r.Create()
			var conns []net.Conn
			for range readers {
				conns = append(conns, stuckWatch(t, r, id))
			}
			r.Prompt(id, "go")
			v := r.Idle(id)
			synctest.Wait()
			stuck = heap()
			for _, c := range conns {
				_ = c.Close()
			}
			synctest.Wait()
			gone = heap()
			runtime.KeepAlive(r)
			runtime.KeepAlive(v)
		})
		return stuck, gone
	}
	none, _ := measure(t, 0)
	stuck, gone := measure(t, readers)
	t.Logf("%d bytes for each of %d readers, %d once they are gone", (stuck-none)/readers, readers, (gone-none)/readers)
	if each := (stuck - none) / readers; each > 1<<20 {
		t.Errorf("a stuck reader costs %d bytes", each)
	}
	if each := (gone - none) / readers; each > 64<<10 {
		t.Errorf("a reader that is gone costs %d bytes", each)
	}
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// stuckWatch opens a watch and reads nothing of it.
func stuckWatch(t *testing.T, r *controltest.Rig, id string) net.Conn {
	t.Helper()
	conn, err := r.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	body, err := proto.Marshal(&roostv1.WatchRequest{SessionId: id})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "POST /roost.v1.SessionService/Watch HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/connect+proto\r\nContent-Length: %d\r\n\r\n\x00\x00\x00\x00%c%s",
		5+len(body), len(body), body)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}
