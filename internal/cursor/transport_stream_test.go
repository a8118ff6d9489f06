package cursor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// socket is the client's end of a stream. One that is stuck takes nothing until its deadline passes.
type socket struct {
	header http.Header

	onFlush func(sent []byte) // nil for nothing

	mu       sync.Mutex
	status   int
	body     bytes.Buffer
	flushed  int
	longest  int // write
	stuck    bool
	deadline chan struct{}
	timer    *time.Timer
}

func newSocket() *socket {
	return &socket{header: make(http.Header), deadline: make(chan struct{})}
}

func (s *socket) Header() http.Header { return s.header }

func (s *socket) WriteHeader(status int) { s.status = status }

func (s *socket) Write(p []byte) (int, error) {
	s.mu.Lock()
	stuck, deadline := s.stuck, s.deadline
	if !stuck {
		s.body.Write(p)
		s.longest = max(s.longest, len(p))
	}
	s.mu.Unlock()
	if stuck {
		<-deadline
		return 0, errors.New("the deadline has passed")
	}
	return len(p), nil
}

func (s *socket) FlushError() error {
	s.mu.Lock()
	s.flushed = s.body.Len()
	sent := bytes.Clone(s.body.Bytes())
	s.mu.Unlock()
	if s.onFlush != nil {
		s.onFlush(sent)
	}
	return nil
}

func (s *socket) SetWriteDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	if !at.IsZero() {
		deadline := s.deadline
		s.timer = time.AfterFunc(time.Until(at), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.deadline == deadline {
				close(deadline)
				s.deadline = make(chan struct{})
			}
		})
	}
	return nil
}

func (s *socket) stick() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stuck = true
}

// envelopes returns what has left the server.
func (s *socket) envelopes(t *testing.T) (messages [][]byte, end *cursorwire.Error, ended bool) {
	t.Helper()
	s.mu.Lock()
	body := bytes.Clone(s.body.Bytes()[:s.flushed])
	s.mu.Unlock()
	return envelopes(t, bytes.NewReader(body))
}

func envelopes(t *testing.T, body io.Reader) (messages [][]byte, end *cursorwire.Error, ended bool) {
	t.Helper()
	r := cursorwire.NewEnvelopeReader(body, "", 1<<20)
	for {
		e, err := r.Next()
		if err != nil {
			if !errors.Is(err, io.EOF) {
				t.Error(err)
			}
			return messages, end, ended
		}
		if !e.End {
			messages = append(messages, bytes.Clone(e.Data))
			continue
		}
		ended = true
		if end, err = cursorwire.DecodeEnd(e.Data); err != nil {
			t.Error(err)
		}
	}
}

// texts returns what the model has said.
func (s *socket) texts(t *testing.T) string {
	t.Helper()
	messages, _, _ := s.envelopes(t)
	var text strings.Builder
	for _, data := range messages {
		m := new(agentv1.AgentServerMessage)
		if err := proto.Unmarshal(data, m); err != nil {
			t.Error(err)
		}
		text.WriteString(m.GetInteractionUpdate().GetTextDelta().GetText())
	}
	return text.String()
}

// open has a client read a stream, until the channel is closed.
func open(ctx context.Context, s *socket, handler http.HandlerFunc, path string, codec cursorwire.Codec, m proto.Message) <-chan struct{} {
	body, err := cursorwire.AppendMessage(nil, codec, m, 1<<20)
	if err != nil {
		panic(err)
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader(body))
	r.Header.Set("Content-Type", codec.StreamType())
	over := make(chan struct{})
	go func() {
		defer close(over)
		handler(s, r)
	}()
	return over
}

func openSSE(ctx context.Context, h *hub, s *socket, id string) <-chan struct{} {
	return open(ctx, s, h.runSSE, cursorwire.PathRunSSE, cursorwire.Proto, &agentv1.BidiRequestId{RequestId: id})
}

// held is a driver whose link a test uses.
func held(links chan<- link) func(context.Context, link) {
	return func(ctx context.Context, l link) {
		links <- l
		for {
			select {
			case r, ok := <-l.Received():
				if !ok {
					<-ctx.Done()
					return
				}
				r.Done(nil)
			case <-ctx.Done():
				return
			}
		}
	}
}

// A client that hears nothing for 30 s gives its run up: a heartbeat fills every silence of 5 s, from
// the very start (section 1.7).
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := make(chan link, 1)
		h := newHub(hubOptions{Drive: held(links)})
		defer h.Close()
		s := newSocket()
		over := openSSE(t.Context(), h, s, "id")
		count := func() int {
			synctest.Wait()
			messages, _, _ := s.envelopes(t)
			return len(messages)
		}
		post(t.Context(), h, "id", 0, runRequest("go"))
		l := <-links
		for i := range 10 {
			if n := count(); n != i {
				t.Errorf("after %d s: %d", 5*i, n)
			}
			time.Sleep(5 * time.Second)
		}
		for range 20 { // what is said is no silence
			l.Send(textMessage("x"), 0)
			time.Sleep(4 * time.Second)
		}
		if n := count(); n != 10+20 {
			t.Errorf("%d messages", n)
		}
		l.End(nil)
		<-over
	})
}

// A reader whose peer takes nothing does not hold its successor up, and nothing is lost or told twice.
func TestReaderThatIsStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := make(chan link, 1)
		h := newHub(hubOptions{Drive: held(links)})
		defer h.Close()
		first, second, third := newSocket(), newSocket(), newSocket()
		over := openSSE(t.Context(), h, first, "id")
		post(t.Context(), h, "id", 0, runRequest("go"))
		l := <-links
		l.Send(textMessage("a"), 1)
		synctest.Wait()
		first.stick()
		l.Send(textMessage("b"), 2)
		synctest.Wait()
		l.Send(textMessage("c"), 3)
		if n := l.Written(); n != 1 {
			t.Errorf("written up to %d", n)
		}
		begun := time.Now()
		secondOver := openSSE(t.Context(), h, second, "id")
		synctest.Wait()
		thirdOver := openSSE(t.Context(), h, third, "id") // before the second got its turn
		<-secondOver
		if _, end, _ := second.envelopes(t); end == nil || end.Code != cursorwire.Canceled {
			t.Errorf("the second ends with %v", end)
		}
		<-over
		synctest.Wait()
		if waited := time.Since(begun); waited > 3*time.Second {
			t.Errorf("waited %v", waited)
		}
		if a, b := first.texts(t), third.texts(t); a != "a" || b != "bc" || l.Written() != 3 {
			t.Errorf("the first got %q, the third %q, written up to %d", a, b, l.Written())
		}
		if isClosed(l.Gone()) {
			t.Error("the link is gone with the first reader")
		}
		l.End(nil)
		<-thirdOver
	})
}

// A peer that takes nothing, and has no successor, is noticed (W11).
func TestDeadPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := make(chan link, 1)
		stuck := make(chan struct{}, 10)
		h := newHub(hubOptions{Drive: held(links), Stuck: func() { stuck <- struct{}{} }})
		defer h.Close()
		s := newSocket()
		over := openSSE(t.Context(), h, s, "id")
		post(t.Context(), h, "id", 0, runRequest("go"))
		l := <-links
		synctest.Wait()
		s.stick()
		begun := time.Now()
		<-l.Gone()
		if waited := time.Since(begun); waited != 5*time.Second+writeTime {
			t.Errorf("noticed after %v", waited)
		}
		<-over
		if len(stuck) != 1 {
			t.Errorf("Stuck was called %d times", len(stuck))
		}
	})
}

// The client that has left, and the one that never came, are noticed; a run goes on without them.
func TestGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := make(chan link, 1)
		h := newHub(hubOptions{Drive: held(links)})
		defer h.Close()
		ctx, leave := context.WithCancel(t.Context())
		over := openSSE(ctx, h, newSocket(), "left")
		post(t.Context(), h, "left", 0, runRequest("go"))
		l := <-links
		synctest.Wait()
		if isClosed(l.Gone()) || !isClosed(l.Connected()) {
			t.Error("gone or not connected")
		}
		leave()
		<-over
		<-l.Gone()

		post(t.Context(), h, "never came", 0, runRequest("go"))
		l = <-links
		begun := time.Now()
		<-l.Gone()
		if waited := time.Since(begun); waited != 30*time.Second || isClosed(l.Connected()) {
			t.Errorf("after %v, connected %v", waited, isClosed(l.Connected()))
		}
		if status := post(t.Context(), h, "never came", 1, execResult(1)); status != http.StatusOK {
			t.Errorf("status %d", status)
		}
	})
}

// What a client left unread of a run that is over it gets later; after that the id is for the next
// run, however closely the reader follows the end (section 2.4): here it comes before the server knows
// that the end has left.
func TestReaderOfARunThatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(hubOptions{Drive: echo})
		defer h.Close()
		post(t.Context(), h, "id", 0, runRequest("one"))
		post(t.Context(), h, "id", 1, execResult(1))
		time.Sleep(20 * time.Second)
		first, second := newSocket(), newSocket()
		var secondOver <-chan struct{}
		first.onFlush = func(sent []byte) {
			if secondOver == nil && bytes.Contains(sent, []byte("{}")) {
				secondOver = openSSE(t.Context(), h, second, "id")
				time.Sleep(time.Millisecond) // of the bubble's clock: until the second one waits
			}
		}
		<-openSSE(t.Context(), h, first, "id")
		time.Sleep(time.Second)
		post(t.Context(), h, "id", 0, runRequest("two"))
		post(t.Context(), h, "id", 1, execResult(1))
		<-secondOver
		for want, s := range map[string]*socket{"onex": first, "twox": second} {
			if _, end, ended := s.envelopes(t); s.texts(t) != want || end != nil || !ended {
				t.Errorf("got %q, ended %v with %v; want %q", s.texts(t), ended, end, want)
			}
		}
	})
}

// A placeholder whose reader has left is no run's: the next reader gets a new one.
func TestPlaceholderLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := make(chan link, 1)
		h := newHub(hubOptions{Drive: held(links)})
		defer h.Close()
		ctx, leave := context.WithCancel(t.Context())
		over := openSSE(ctx, h, newSocket(), "id")
		synctest.Wait()
		leave()
		<-over
		over = openSSE(t.Context(), h, newSocket(), "id")
		synctest.Wait()
		post(t.Context(), h, "id", 0, runRequest("go"))
		l := <-links
		if isClosed(l.Gone()) {
			t.Error("the link is gone with a reader that had left before")
		}
		l.End(nil)
		<-over
	})
}

// There is no end to ids, but to placeholders; they come free.
func TestTooManyPlaceholders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(hubOptions{Drive: echo})
		defer h.Close()
		var all []<-chan struct{}
		for i := range maxPlaceholders {
			all = append(all, openSSE(t.Context(), h, newSocket(), fmt.Sprint(i)))
		}
		synctest.Wait()
		s := newSocket()
		<-openSSE(t.Context(), h, s, "one more")
		if _, end, ended := s.envelopes(t); !ended || end == nil || end.Code != cursorwire.Unavailable {
			t.Errorf("ended %v with %v", ended, end)
		}
		if status := post(t.Context(), h, "one more", 0, runRequest("go")); status != http.StatusServiceUnavailable {
			t.Errorf("status %d", status)
		}
		for i, over := range all {
			if i%2 == 0 {
				post(t.Context(), h, fmt.Sprint(i), 0, runRequest("go"))
				post(t.Context(), h, fmt.Sprint(i), 1, execResult(1))
				<-over
			}
		}
		synctest.Wait()
		if n := holds(h).placeholders; n != maxPlaceholders/2 {
			t.Errorf("%d placeholders", n)
		}
		time.Sleep(31 * time.Second)
		for _, over := range all {
			<-over
		}
		time.Sleep(31 * time.Second)
		synctest.Wait()
		if left := holds(h); left != (holding{}) {
			t.Errorf("left: %+v", left)
		}
	})
}

// After Close nothing begins, and what comes is told to come back.
func TestClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(hubOptions{Drive: echo})
		h.Close()
		s := newSocket()
		<-openSSE(t.Context(), h, s, "id")
		if _, end, ended := s.envelopes(t); !ended || end == nil || end.Code != cursorwire.Unavailable {
			t.Errorf("ended %v with %v", ended, end)
		}
		if status := post(t.Context(), h, "id", 0, runRequest("go")); status != http.StatusServiceUnavailable {
			t.Errorf("status %d", status)
		}
	})
}

// A fault in one run ends that run, and has its client try again; the others go on.
func TestPanicEndsOneRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(hubOptions{Drive: func(ctx context.Context, l link) {
			if l.RequestID() == "bad" {
				panic("a fault")
			}
			echo(ctx, l)
		}})
		bad, good := newSocket(), newSocket()
		badEnded, goodEnded := openSSE(t.Context(), h, bad, "bad"), openSSE(t.Context(), h, good, "good")
		for _, id := range []string{"bad", "good"} {
			post(t.Context(), h, id, 0, runRequest("go"))
		}
		<-badEnded
		if _, end, ended := bad.envelopes(t); !ended || end == nil || end.Code != cursorwire.Unavailable {
			t.Errorf("ended %v with %v", ended, end)
		}
		synctest.Wait()
		if sent, _, _ := good.envelopes(t); len(sent) == 0 {
			t.Error("the other run does not go on")
		}
		h.Close()
		<-goodEnded
	})
}
