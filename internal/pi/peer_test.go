package pi_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/roost-dev/roost/internal/piwire"
)

// peer is a client that writes what it is told to and notes what it gets, word for word. It
// is for tests in a bubble.
type peer struct {
	t    testing.TB
	nc   net.Conn
	over chan struct{}

	mu  sync.Mutex
	got []piwire.ServerMessage
	end error // why the stream ended
}

func (r *rig) peer() *peer {
	p := &peer{t: r.t, nc: r.pipe(), over: make(chan struct{})}
	go p.read()
	r.t.Cleanup(p.close)
	return p
}

// ready returns a peer that has said hello and been answered.
func (r *rig) ready() *peer {
	p := r.peer()
	p.send(&piwire.Hello{Version: 1})
	got := p.take()
	if len(got) == 0 || !isHello(got[0]) || slices.ContainsFunc(got[1:], func(m piwire.ServerMessage) bool { return !isServerSnapshot(m) }) {
		r.t.Fatalf("hello answered with %v", tell(got))
	}
	return p
}

// isServerSnapshot is for what others may cause at any time.
func isServerSnapshot(m piwire.ServerMessage) bool {
	_, ok := m.(*piwire.ServerSnapshotEvent)
	return ok
}

func isHello(m piwire.ServerMessage) bool { _, ok := m.(*piwire.ServerHello); return ok }

// attached returns a peer that is attached to sessions and has been told all about it.
func (r *rig) attached(ids ...string) *peer {
	p := r.ready()
	for _, id := range ids {
		p.ask("attach-"+id, &piwire.Attach{SessionID: id})
	}
	p.take()
	return p
}

func (p *peer) read() {
	defer close(p.over)
	messages := piwire.NewServerReader(p.nc, piwire.MaxFrame)
	for {
		m, err := messages.Read()
		p.mu.Lock()
		if err != nil {
			p.end = err
		} else {
			p.got = append(p.got, m)
		}
		p.mu.Unlock()
		if err != nil {
			_ = p.nc.Close()
			return
		}
	}
}

func (p *peer) close() {
	_ = p.nc.Close()
	<-p.over
}

func frames(t testing.TB, messages ...piwire.ClientMessage) []byte {
	t.Helper()
	var b []byte
	for _, m := range messages {
		var err error
		if b, err = piwire.AppendClientFrame(b, m, piwire.MaxFrame); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// send writes messages in one piece.
func (p *peer) send(messages ...piwire.ClientMessage) { p.write(frames(p.t, messages...)) }

func (p *peer) write(b []byte) {
	p.t.Helper()
	if _, err := p.nc.Write(b); err != nil && !errors.Is(err, io.ErrClosedPipe) {
		p.t.Fatal(err)
	}
}

func (p *peer) ask(id string, cmd piwire.Command) { p.send(&piwire.Request{ID: id, Command: cmd}) }

// take returns what has come since the last call, once nothing happens any more.
func (p *peer) take() []piwire.ServerMessage {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	got := p.got
	p.got = nil
	return got
}

// ended reports whether the server has closed the connection, cleanly.
func (p *peer) ended() bool {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Is(p.end, io.EOF)
}

// wants checks what has come since the last look, and whether the connection is over: "end".
func (p *peer) wants(want ...string) {
	p.t.Helper()
	got := tell(p.take())
	if p.ended() {
		got = append(got, "end")
	}
	if !slices.Equal(got, want) {
		p.t.Errorf("got  %q\nwant %q", got, want)
	}
}

// tell says each message in a few words. Progress is left out.
func tell(messages []piwire.ServerMessage) []string {
	out := []string{}
	for _, m := range messages {
		switch m := m.(type) {
		case *piwire.ServerHello:
			out = append(out, fmt.Sprintf("hello %d", m.Snapshot.Revision))
		case *piwire.HelloError:
			out = append(out, fmt.Sprintf("hello_error %s: %s", m.Error.Code, m.Error.Message))
		case *piwire.Response:
			out = append(out, "answer "+m.ID+" "+tellAnswer(m))
		case *piwire.ServerSnapshotEvent:
			out = append(out, fmt.Sprintf("server %d", m.Snapshot.Revision))
		case *piwire.SessionSnapshotEvent:
			out = append(out, "session "+tellSession(m.Snapshot))
		case *piwire.SessionRemovedEvent:
			out = append(out, "removed "+m.SessionID)
		case *piwire.SessionProgressEvent:
		}
	}
	return out
}

func tellAnswer(m *piwire.Response) string {
	if m.Error != nil {
		return fmt.Sprintf("%s: %s", m.Error.Code, m.Error.Message)
	}
	switch r := m.Result.(type) {
	case *piwire.SessionResult:
		return fmt.Sprintf("%s %s", r.Command, tellSession(r.Session))
	case *piwire.DetachResult:
		return "detach " + r.SessionID
	case *piwire.ListResult:
		return fmt.Sprintf("list of %d", len(r.Sessions))
	}
	return "?"
}

func tellSession(s *piwire.SessionSnapshot) string {
	text := s.ID + " " + string(s.Phase)
	if s.QueuedSteerCount > 0 {
		text += fmt.Sprintf(" queue=%d", s.QueuedSteerCount)
	}
	if !s.Attached {
		text += " detached"
	}
	return text
}

// distinct removes repetitions of neighbours: how often a snapshot is told again is free.
func distinct(list []string) []string { return slices.Compact(list) }

func answerOf(t testing.TB, messages []piwire.ServerMessage, id string) *piwire.Response {
	t.Helper()
	var found *piwire.Response
	for _, m := range messages {
		if r, ok := m.(*piwire.Response); ok && r.ID == id {
			if found != nil {
				t.Fatalf("request %s has two answers", id)
			}
			found = r
		}
	}
	return found
}

// show prints a transcript with everything a client can see.
func show(items []piwire.Item) string {
	var b bytes.Buffer
	for _, i := range items {
		raw, err := piwire.AppendItem(nil, i)
		fmt.Fprintf(&b, "%q %v\n", raw, err)
	}
	return b.String()
}
