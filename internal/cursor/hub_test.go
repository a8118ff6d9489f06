package cursor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

// reader is a client that reads a stream.
type reader struct {
	*httptest.ResponseRecorder
	mu   sync.Mutex
	over chan struct{}
}

func (r *reader) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ResponseRecorder.Write(p)
}

// read opens a RunSSE for a request id.
func read(h *hub, id string) *reader {
	body, err := cursorwire.AppendMessage(nil, cursorwire.Proto, &agentv1.BidiRequestId{RequestId: id}, 1<<20)
	if err != nil {
		panic(err)
	}
	req := httptest.NewRequest(http.MethodPost, cursorwire.PathRunSSE, bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/connect+proto")
	r := &reader{ResponseRecorder: httptest.NewRecorder(), over: make(chan struct{})}
	go func() {
		defer close(r.over)
		h.runSSE(r, req)
	}()
	return r
}

// got returns the kinds of messages that have come, and how the stream ended.
func (r *reader) got(t *testing.T) (texts []string, beats int, end *cursorwire.Error, ended bool) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	body := bytes.Clone(r.Body.Bytes())
	r.mu.Unlock()
	envelopes := cursorwire.NewEnvelopeReader(bytes.NewReader(body), "", 1<<20)
	for {
		e, err := envelopes.Next()
		if errors.Is(err, io.EOF) {
			return texts, beats, end, ended
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.End {
			if end, err = cursorwire.DecodeEnd(e.Data); err != nil {
				t.Fatal(err)
			}
			ended = true
			continue
		}
		m := new(agentv1.AgentServerMessage)
		if err := proto.Unmarshal(e.Data, m); err != nil {
			t.Fatal(err)
		}
		if m.GetInteractionUpdate().GetHeartbeat() != nil {
			beats++
			continue
		}
		texts = append(texts, m.GetInteractionUpdate().GetTextDelta().GetText())
	}
}

// send appends a message, and returns its status once it is acknowledged.
func send(h *hub, id string, seq int64, m *agentv1.AgentClientMessage) (status func() int) {
	data, err := proto.Marshal(m)
	if err != nil {
		panic(err)
	}
	body, err := proto.Marshal(&aiserverv1.BidiAppendRequest{RequestId: &aiserverv1.BidiRequestId{RequestId: id}, AppendSeqno: seq, DataBinary: data})
	if err != nil {
		panic(err)
	}
	req := httptest.NewRequest(http.MethodPost, cursorwire.PathBidiAppend, bytes.NewReader(body))
	req.Header.Set("Content-Type", "application/proto")
	rec := httptest.NewRecorder()
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.append(rec, req)
	}()
	return func() int {
		synctest.Wait()
		select {
		case <-done:
			return rec.Code
		default:
			return 0
		}
	}
}

func runRequest(text string) *agentv1.AgentClientMessage {
	return &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_RunRequest{RunRequest: &agentv1.AgentRunRequest{
		ConversationId: new("c"), CustomSystemPrompt: new(text),
	}}}
}

func execResult(id uint32) *agentv1.AgentClientMessage {
	return &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ExecClientMessage{ExecClientMessage: &agentv1.ExecClientMessage{
		Id: id, Message: &agentv1.ExecClientMessage_LsResult{LsResult: &agentv1.LsResult{}},
	}}}
}

func textMessage(text string) *agentv1.AgentServerMessage {
	return &agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_InteractionUpdate{InteractionUpdate: &agentv1.InteractionUpdate{
		Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: text}},
	}}}
}

// echo is a driver that acknowledges and says what it gets.
func echo(_ context.Context, l link) {
	for r := range l.Received() {
		r.Done(nil)
		if run := r.Message.GetRunRequest(); run != nil {
			l.Send(textMessage(run.GetCustomSystemPrompt()), 1)
		} else {
			l.Send(textMessage("x"), 2)
			l.End(nil)
			return
		}
	}
}

// Either half of a run may come first (section 2.3), and an id may be used again (section 2.4, R01).
func TestHalvesMeet(t *testing.T) {
	for _, first := range []int64{0, 1} {
		synctest.Test(t, func(t *testing.T) {
			h := newHub(hubOptions{Drive: echo})
			defer h.Close()
			for _, what := range []string{"one", "two", "three"} {
				var r *reader
				if what == "two" {
					r = read(h, "id")
					synctest.Wait()
				}
				start := send(h, "id", first, runRequest(what))
				again := send(h, "id", first, runRequest(what)) // a lost reply
				if start() != 200 || again() != 200 {
					t.Fatalf("%s: %d, %d", what, start(), again())
				}
				if r == nil {
					r = read(h, "id")
				}
				if end := send(h, "id", first+1, execResult(1)); end() != 200 {
					t.Fatal(end())
				}
				<-r.over
				texts, _, err, ended := r.got(t)
				if len(texts) != 2 || texts[0] != what || texts[1] != "x" || err != nil || !ended {
					t.Errorf("%s: %q, %v, %v", what, texts, err, ended)
				}
			}
		})
	}
}

// A reader whose run never comes is told so, instead of being kept for ever (W05), with heartbeats
// until then.
func TestPlaceholderEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(hubOptions{Drive: echo})
		defer h.Close()
		r := read(h, "id")
		time.Sleep(29 * time.Second) // of the bubble's clock
		if _, beats, _, ended := r.got(t); beats != 5 || ended {
			t.Errorf("%d heartbeats, ended %v", beats, ended)
		}
		time.Sleep(2 * time.Second)
		if _, _, end, _ := r.got(t); end == nil || end.Code != cursorwire.Unavailable || !end.Details.GetDetails().GetIsRetryable() {
			t.Errorf("ended with %v", end)
		}
		late := send(h, "other", 3, execResult(1)) // of a run that this server does not know
		time.Sleep(31 * time.Second)
		if late() != 200 {
			t.Errorf("a late append: %d", late())
		}
	})
}

// A message that overtakes others is acknowledged once it is kept, or else when it is applied, after
// 10 s at the latest (W03).
func TestOvertaking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept := make(chan int64, 1)
		h := newHub(hubOptions{Drive: func(_ context.Context, l link) {
			for r := range l.Received() {
				r.Done(nil)
				if r.Message.GetExecClientMessage().GetId() == 9 {
					l.SetJournal(func(seq int64, _ []byte) error { kept <- seq; return nil })
				}
			}
		}})
		defer h.Close()
		send(h, "id", 0, runRequest("go"))
		overtaking := send(h, "id", 2, execResult(9))
		if overtaking() != 0 {
			t.Error("acknowledged before it was applied or kept")
		}
		time.Sleep(11 * time.Second)
		if overtaking() != 200 {
			t.Error("still waiting for a lost one")
		}
		if next := send(h, "id", 5, execResult(1)); next() != 200 || <-kept != 5 {
			t.Error("not kept")
		}
	})
}

// However a driver ends, its stream has an end: a client takes anything else for a lost connection.
func TestEveryStreamEnds(t *testing.T) {
	for name, drive := range map[string]func(context.Context, link){
		"panics":      func(context.Context, link) { panic("fault") },
		"returns":     func(context.Context, link) {},
		"is shut out": func(ctx context.Context, _ link) { <-ctx.Done() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHub(hubOptions{Drive: drive})
				r, waiting := read(h, "id"), read(h, "no run")
				synctest.Wait()
				if status := send(h, "id", 0, runRequest("go")); name != "is shut out" && status() != 200 {
					t.Errorf("status %d", status())
				}
				h.Close()
				<-r.over
				if _, _, end, ended := r.got(t); !ended || end == nil || end.Code != cursorwire.Unavailable {
					t.Errorf("ended %v with %v", ended, end)
				}
				<-waiting.over
				if _, _, end, _ := waiting.got(t); end == nil || end.Code != cursorwire.Unavailable {
					t.Errorf("the placeholder ended with %v", end)
				}
			})
		})
	}
}

// Whoever reads a stream after another takes it over.
func TestSecondReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHub(hubOptions{Drive: echo})
		defer h.Close()
		first := read(h, "id")
		send(h, "id", 0, runRequest("go"))()
		second := read(h, "id")
		<-first.over
		if texts, _, end, _ := first.got(t); len(texts) != 1 || end == nil || end.Code != cursorwire.Canceled {
			t.Errorf("the first: %q, %v", texts, end)
		}
		send(h, "id", 1, execResult(1))()
		<-second.over
		if texts, _, end, ended := second.got(t); len(texts) != 1 || texts[0] != "x" || end != nil || !ended {
			t.Errorf("the second: %q, %v", texts, end)
		}
	})
}

// A client that reads nothing loses its link, and nothing else.
func TestClientThatDoesNotRead(t *testing.T) {
	w := newWire("id")
	for range maxQueuedMessages + 1 {
		w.Send(textMessage("x"), 0)
	}
	select {
	case <-w.Gone():
	default:
		t.Error("the link is still there")
	}
}
