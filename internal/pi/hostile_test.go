package pi_test

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"

	client "github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/pi"
	"github.com/roost-dev/roost/internal/piwire"
)

// vector is a line of piwire's test data.
type vector struct {
	Name, Kind, Hex, Category, Error string
}

func vectors(t *testing.T, file string) (all []vector) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "piwire", "testdata", file+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		if v.Kind == "client" {
			all = append(all, v)
		}
	}
	if lines.Err() != nil || len(all) == 0 {
		t.Fatalf("%d vectors, %v", len(all), lines.Err())
	}
	return all
}

// bystander is a client of a session that must not notice what others do. Its check is a turn.
func (r *rig) bystander() (check func()) {
	c := r.connect()
	s, err := c.Session(r.t.Context(), &piwire.Create{})
	if err != nil {
		r.t.Fatal(err)
	}
	return func() {
		r.t.Helper()
		if _, err := c.Session(r.t.Context(), &piwire.Prompt{SessionID: s.ID, Text: "still there?"}); err != nil {
			r.t.Error(err)
		}
		r.wantView(c, s.ID)
	}
}

// Whatever a real decoder refuses ends the connection with its text, first or later, and
// nobody else notices.
func TestNegativeVectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		check := r.bystander()
		for _, v := range vectors(t, "negative") {
			bytes, err := hex.DecodeString(v.Hex)
			if err != nil {
				t.Fatal(err)
			}
			for _, first := range [][]byte{nil, helloFrame} {
				p := r.peer()
				if v.Name != "frame-second-bad" { // which begins with a hello of its own
					p.write(first)
				}
				p.take()
				p.write(bytes)
				if v.Category == "framing" && strings.Contains(v.Error, "Truncated frame") {
					p.wants() // it waits for the rest
					p.close()
					continue
				}
				got := tell(p.take())
				if last := got[len(got)-1]; last != "hello_error invalid_request: "+v.Error || !p.ended() {
					t.Errorf("%s: got %q, want %q", v.Name, got, v.Error)
				}
			}
		}
		check()
		if n := r.server.Connections(); n != 1 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// Valid messages are answered, every one, and end no connection.
func TestPositiveVectors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		for _, file := range []string{"vectors", "lenient"} {
			for _, v := range vectors(t, file) {
				bytes, err := hex.DecodeString(v.Hex)
				if err != nil {
					t.Fatal(err)
				}
				m, err := piwire.DecodeClient(bytes[4:])
				if err != nil {
					t.Fatal(err)
				}
				if _, ok := m.(*piwire.Request); !ok {
					continue
				}
				p := r.ready()
				p.write(bytes)
				answers := 0
				for _, got := range p.take() {
					if _, ok := got.(*piwire.Response); ok {
						answers++
					}
				}
				if answers != 1 || p.ended() {
					t.Errorf("%s: %d answers, closed %v", v.Name, answers, p.ended())
				}
			}
		}
	})
}

func TestNoise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		check := r.bystander()
		random := rand.New(rand.NewPCG(1, 2))
		for range 500 {
			p := r.peer()
			b := make([]byte, 1+random.IntN(200))
			for i := range b {
				b[i] = byte(random.Uint32())
			}
			switch random.IntN(3) {
			case 0:
				p.write(helloFrame)
			case 1: // a whole frame of noise
				p.write(helloFrame)
				b = frame(string(b[:min(len(b), 255)]))
			}
			p.write(b)
			p.take()
			p.close()
		}
		check()
		synctest.Wait()
		if n := r.server.Connections(); n != 1 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// A frame that is announced and not sent costs no memory.
func TestAnnouncedFramesCostNothing(t *testing.T) {
	r := newRig(t)
	check := r.bystander()
	before := heap()
	conns := make([]net.Conn, 0, 200)
	for range cap(conns) {
		nc := r.pipe()
		if _, err := nc.Write(append(slices.Clone(helloFrame), 0x01, 0, 0, 0)); err != nil {
			t.Fatal(err)
		}
		if _, err := piwire.NewServerReader(nc, piwire.MaxFrame).Read(); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, nc)
	}
	if cost := (heap() - before) / int64(len(conns)); cost > 200<<10 {
		t.Errorf("%d bytes for each connection that announces 16 MiB", cost)
	}
	for _, nc := range conns {
		_ = nc.Close()
	}
	check()
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// fds returns how many connections within this process the limit on files allows.
func fds(t *testing.T, want int) int {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	return min(want, int(limit.Cur/2)-200)
}

// Thousands of connections at once are served, and leave nothing behind.
func TestManyConnections(t *testing.T) {
	n := fds(t, 2000)
	r := newRig(t, func(o *pi.Options) { o.MaxConns = n + 10 })
	check := r.bystander()
	path, _ := r.serve()
	goroutines := runtime.NumGoroutine()
	before := heap()
	var all sync.WaitGroup
	hold := make(chan struct{})
	up := make(chan error, n)
	dialing := make(chan struct{}, 500) // more would not fit the listener's queue
	for range n {
		all.Go(func() {
			dialing <- struct{}{}
			c, err := client.Dial(t.Context(), path)
			<-dialing
			if err == nil {
				_, err = c.Do(t.Context(), list.Command)
			}
			up <- err
			<-hold
			if c != nil {
				c.Close()
			}
		})
	}
	for range n {
		if err := <-up; err != nil {
			t.Error(err)
		}
	}
	check()
	close(hold)
	all.Wait()
	for r.server.Connections() > 1 || runtime.NumGoroutine() > goroutines+10 {
		runtime.Gosched()
	}
	if grown := heap() - before; grown > 16<<20 {
		t.Errorf("%d bytes are left of %d connections", grown, n)
	}
	check()
}

// Connections above the limit are told so.
func TestTooManyConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *pi.Options) { o.MaxConns = 3 })
		check := r.bystander()
		a, _ := r.ready(), r.ready()
		const full = "hello_error busy: Too many connections"
		for range 400 {
			r.peer().wants(full, "end")
		}
		a.close()
		synctest.Wait()
		r.ready()
		check()
	})
}

// Refused connections that do not read are limited too, and a server's end does not wait for
// them.
func TestRefusedConnectionsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *pi.Options) { o.MaxConns = 1 })
		r.ready()
		for range 300 {
			nc := r.pipe()
			t.Cleanup(func() { _ = nc.Close() })
		}
		synctest.Wait()
		if n := r.server.Connections(); n != 1+256 {
			t.Errorf("%d connections", n)
		}
		nc := r.pipe()
		if _, err := nc.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("got %v", err)
		}
	})
}
