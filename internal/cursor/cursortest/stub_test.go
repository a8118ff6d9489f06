package cursortest

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
	aiserverv1 "github.com/roost-dev/roost/proto/aiserver/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is what the server does in one attempt. The stream ends cleanly when it returns.
type script func(x *exchange)

// stub is a server that follows scripts, one for each stream that opens; the last one repeats.
type stub struct {
	t       *testing.T
	url     string
	scripts []script

	mu      sync.Mutex
	streams int
	open    map[string]*exchange
	headers []http.Header
	appends []Append
}

// received are the appends so far. Late ones may still come when a run is over.
func (s *stub) received() []Append {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.appends)
}

// exchange is one stream as the server sees it.
type exchange struct {
	s     *stub
	in    chan *agentv1.AgentClientMessage
	w     http.ResponseWriter
	ctx   context.Context
	run   *agentv1.AgentRunRequest
	n     uint32
	ended bool

	mu   sync.Mutex
	next int64
	held map[int64]*agentv1.AgentClientMessage
}

func newStub(t *testing.T, http2 bool, scripts ...script) *stub {
	t.Helper()
	s := &stub{t: t, scripts: scripts, open: map[string]*exchange{}}
	server := s.server(http2)
	server.Start()
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// server is one that is not started yet.
func (s *stub) server(http2 bool) *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc(cursorwire.PathRunSSE, s.runSSE)
	mux.HandleFunc(cursorwire.PathBidiAppend, s.bidiAppend)
	mux.HandleFunc(cursorwire.PathRun, s.runBidi)
	server := httptest.NewUnstartedServer(mux)
	var protocols http.Protocols
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	protocols.SetUnencryptedHTTP2(http2)
	server.Config.Protocols = &protocols
	server.EnableHTTP2 = http2
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // dropped connections are on purpose
	return server
}

// exchange returns that of a request id, which either half may bring first.
func (s *stub) exchange(id string) *exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	x := s.open[id]
	if x == nil {
		x = &exchange{s: s, in: make(chan *agentv1.AgentClientMessage, 1000), held: map[int64]*agentv1.AgentClientMessage{}}
		s.open[id] = x
	}
	return x
}

func (s *stub) bidiAppend(w http.ResponseWriter, r *http.Request) {
	body, err := cursorwire.Decompress(r.Header.Get("Content-Encoding"), r.Body)
	if err != nil {
		s.t.Error(err)
		return
	}
	a, err := cursorwire.ReadAppend(body, cursorwire.Proto, cursorwire.MaxMessage)
	if err != nil {
		s.t.Error(err)
		return
	}
	m, err := cursorwire.DecodeClient(cursorwire.Proto, a.Message)
	if err != nil {
		s.t.Error(err)
		return
	}
	s.mu.Lock()
	s.appends = append(s.appends, Append{a.RequestID, a.Seq, m})
	s.mu.Unlock()
	s.exchange(a.RequestID).take(a.Seq, m)
	w.Header().Set("Content-Type", cursorwire.Proto.UnaryType())
}

// take puts a message into its place.
func (x *exchange) take(seq int64, m *agentv1.AgentClientMessage) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if seq < x.next {
		return
	}
	x.held[seq] = m
	for m := x.held[x.next]; m != nil; m = x.held[x.next] {
		delete(x.held, x.next)
		x.next++
		x.in <- m
	}
}

func (s *stub) runSSE(w http.ResponseWriter, r *http.Request) {
	e, err := cursorwire.NewEnvelopeReader(r.Body, "", cursorwire.MaxMessage).Next()
	id := new(aiserverv1.BidiRequestId)
	if err != nil || proto.Unmarshal(e.Data, id) != nil {
		s.t.Errorf("RunSSE: %v", err)
		return
	}
	s.serve(s.exchange(id.GetRequestId()), id.GetRequestId(), w, r)
}

func (s *stub) runBidi(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get("X-Request-Id")
	x := s.exchange(id)
	x.w, x.ctx = w, r.Context()
	var reading sync.WaitGroup
	defer func() { _ = r.Body.Close(); reading.Wait() }()
	envelopes := cursorwire.NewEnvelopeReader(r.Body, r.Header.Get("Connect-Content-Encoding"), cursorwire.MaxMessage)
	reading.Go(func() {
		for seq := int64(0); ; seq++ {
			e, err := envelopes.Next()
			if err != nil {
				return
			}
			m, err := cursorwire.DecodeClient(cursorwire.Proto, e.Data)
			if err != nil {
				s.t.Error(err)
				return
			}
			x.take(seq, m)
		}
	})
	s.serve(x, id, w, r)
}

func (s *stub) serve(x *exchange, id string, w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	play := s.scripts[min(s.streams, len(s.scripts)-1)]
	s.streams++
	s.headers = append(s.headers, r.Header.Clone())
	s.mu.Unlock()
	w.Header().Set("Content-Type", cursorwire.Proto.StreamType())
	_ = http.NewResponseController(w).Flush()
	x.w, x.ctx = w, r.Context()
	if m := x.receive(); m != nil {
		x.run = m.GetRunRequest()
		if x.run == nil {
			s.t.Errorf("the first message is %v", m)
			return
		}
		play(x)
	}
	s.mu.Lock()
	delete(s.open, id)
	s.mu.Unlock()
	if !x.ended {
		_, _ = w.Write(cursorwire.AppendEnd(nil, nil))
	}
}

// receive returns the next message of the client but heartbeats, or nil when the client has gone.
func (x *exchange) receive() *agentv1.AgentClientMessage {
	for {
		select {
		case m := <-x.in:
			if m.GetClientHeartbeat() == nil && m.GetExecClientControlMessage().GetHeartbeat() == nil {
				return m
			}
		case <-x.ctx.Done():
			return nil
		case <-time.After(20 * time.Second):
			x.s.t.Error("the client says nothing")
			return nil
		}
	}
}

func (x *exchange) send(m *agentv1.AgentServerMessage) {
	data, err := cursorwire.AppendMessage(nil, cursorwire.Proto, m, cursorwire.MaxMessage)
	if err != nil {
		x.s.t.Error(err)
	}
	_, _ = x.w.Write(data)
	_ = http.NewResponseController(x.w).Flush()
}

func (x *exchange) update(u *agentv1.InteractionUpdate) {
	x.send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_InteractionUpdate{InteractionUpdate: u}})
}

func (x *exchange) text(s string) {
	x.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TextDelta{TextDelta: &agentv1.TextDeltaUpdate{Text: s}}})
}

func (x *exchange) think(s string) {
	x.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ThinkingDelta{ThinkingDelta: &agentv1.ThinkingDeltaUpdate{Text: s}}})
}

func (x *exchange) thought() {
	x.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ThinkingCompleted{ThinkingCompleted: new(agentv1.ThinkingCompletedUpdate)}})
}

func (x *exchange) heartbeat() {
	x.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_Heartbeat{Heartbeat: new(agentv1.HeartbeatUpdate)}})
}

func (x *exchange) turnEnded() {
	x.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TurnEnded{TurnEnded: &agentv1.TurnEndedUpdate{InputTokens: new(int64(10)), OutputTokens: new(int64(5))}}})
}

func (x *exchange) state(s *agentv1.ConversationStateStructure) {
	x.send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_ConversationCheckpointUpdate{ConversationCheckpointUpdate: s}})
}

// checkpoint sends a checkpoint without blobs, which says n.
func (x *exchange) checkpoint(n uint32) {
	x.state(&agentv1.ConversationStateStructure{SelfSummaryCount: n})
}

func card(id string) *agentv1.ToolCall {
	return &agentv1.ToolCall{ToolCallId: new(id), Tool: &agentv1.ToolCall_ReadToolCall{ReadToolCall: new(agentv1.ReadToolCall)}}
}

func (x *exchange) started(id string) {
	x.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ToolCallStarted{ToolCallStarted: &agentv1.ToolCallStartedUpdate{CallId: id, ToolCall: card(id)}}})
}

func (x *exchange) completed(id string) {
	x.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ToolCallCompleted{ToolCallCompleted: &agentv1.ToolCallCompletedUpdate{CallId: id, ToolCall: card(id)}}})
}

func (x *exchange) exec(m *agentv1.ExecServerMessage) {
	m.ExecId = "exec-" + newID()
	x.send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_ExecServerMessage{ExecServerMessage: m}})
}

func (x *exchange) setBlob(id, data []byte) {
	x.n++
	x.send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_KvServerMessage{KvServerMessage: &agentv1.KvServerMessage{
		Id: x.n, Message: &agentv1.KvServerMessage_SetBlobArgs{SetBlobArgs: &agentv1.SetBlobArgs{BlobId: id, BlobData: data}},
	}}})
}

// put has the client store a blob, and waits until it has.
func (x *exchange) put(m proto.Message) []byte {
	id, data, err := cursorwire.EncodeBlob(m)
	if err != nil {
		x.s.t.Error(err)
	}
	x.setBlob(id.Bytes(), data)
	if reply := x.receive(); reply.GetKvClientMessage().GetSetBlobResult() == nil {
		x.s.t.Errorf("for a blob the client says %v", reply)
	}
	return id.Bytes()
}

// fail ends the stream with an error.
func (x *exchange) fail(err *cursorwire.Error) {
	_, _ = x.w.Write(cursorwire.AppendEnd(nil, err))
	x.ended = true
}

// noEnd ends the stream without an end envelope.
func (x *exchange) noEnd() { x.ended = true }

// drop breaks the connection.
func (x *exchange) drop() { panic(http.ErrAbortHandler) }

// client makes one for the stub with short times.
func (s *stub) client(edit func(*Options)) *Client {
	o := Options{BaseURL: s.url, Token: "secret", Dir: s.t.TempDir()}
	if edit != nil {
		edit(&o)
	}
	c := New(o)
	s.t.Cleanup(c.Close)
	return c
}

func prompt(t *testing.T, c *Client, text string) (*Result, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	return c.Run(ctx, Prompt{Text: text})
}

// mustRun is for a run that ends well and in which the server breaks no rule.
func mustRun(t *testing.T, c *Client, text string) *Result {
	t.Helper()
	res, err := prompt(t, c, text)
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Violations) > 0 {
		t.Fatalf("violations: %q", res.Violations)
	}
	return res
}
