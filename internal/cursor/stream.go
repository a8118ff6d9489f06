package cursor

import (
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// writeTime is how long a client may take to take what is written at once.
const writeTime = time.Minute

// encoder appends an encoded server message to dst, in an envelope.
type encoder func(dst, data []byte) []byte

// streamCodec checks the head of a request for a stream.
func streamCodec(w http.ResponseWriter, r *http.Request) (cursorwire.Codec, bool) {
	codec, ok := cursorwire.StreamCodec(r.Header.Get("Content-Type"))
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return codec, false
	case !ok:
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return codec, false
	}
	return codec, true
}

// messages returns the encoder of a codec.
func (h *hub) messages(codec cursorwire.Codec) encoder {
	return func(dst, data []byte) []byte {
		m := new(agentv1.AgentServerMessage)
		if codec == cursorwire.Proto {
			m.ProtoReflect().SetUnknown(data) // as it is
		} else if proto.Unmarshal(data, m) != nil {
			return dst
		}
		out, err := cursorwire.AppendMessage(dst, codec, m, h.opt.MaxMessage)
		if err != nil {
			h.opt.Logger.Error("a message cannot be sent", slog.Any("error", err))
		}
		return out
	}
}

// runSSE answers RunSSE: the server's half of a run (section 1.1).
func (h *hub) runSSE(w http.ResponseWriter, r *http.Request) {
	codec, ok := streamCodec(w, r)
	if !ok {
		return
	}
	id := new(agentv1.BidiRequestId)
	if err := readFirst(r, codec, id); err != nil || strings.TrimSpace(id.GetRequestId()) == "" {
		h.refuse(w, codec, cursorwire.NewError(cursorwire.InvalidArgument, "the request has no request_id"))
		return
	}
	h.serveLine(w, r, codec, strings.TrimSpace(id.GetRequestId()), h.messages(codec))
}

// runPoll answers RunPoll, for clients behind proxies that hold streams back. That its data are the
// messages of RunSSE in hex is an assumption (section 12).
func (h *hub) runPoll(w http.ResponseWriter, r *http.Request) {
	codec, ok := streamCodec(w, r)
	if !ok {
		return
	}
	poll := new(agentv1.BidiPollRequest)
	if err := readFirst(r, codec, poll); err != nil || strings.TrimSpace(poll.GetRequestId().GetRequestId()) == "" {
		h.refuse(w, codec, cursorwire.NewError(cursorwire.InvalidArgument, "the request has no request_id"))
		return
	}
	seq := int64(-1)
	h.serveLine(w, r, codec, strings.TrimSpace(poll.GetRequestId().GetRequestId()), func(dst, data []byte) []byte {
		seq++
		out, err := cursorwire.AppendMessage(dst, codec, &agentv1.BidiPollResponse{Seqno: seq, Data: hex.EncodeToString(data)}, 2*h.opt.MaxMessage)
		if err != nil {
			h.opt.Logger.Error("a message cannot be sent", slog.Any("error", err))
		}
		return out
	})
}

// readFirst reads the only message of a request.
func readFirst(r *http.Request, codec cursorwire.Codec, m proto.Message) error {
	e, err := cursorwire.NewEnvelopeReader(r.Body, r.Header.Get("Connect-Content-Encoding"), 1<<20).Next()
	if err != nil {
		return err
	}
	return codec.Decode(e.Data, m)
}

// serveLine lets the client read what its request id leads to. When the run of that id is over and
// the client has had all of it, that is the next one (section 2.4).
func (h *hub) serveLine(w http.ResponseWriter, r *http.Request, codec cursorwire.Codec, id string, enc encoder) {
	l, err := h.line(id)
	if err != nil {
		wire, _ := errors.AsType[*cursorwire.Error](err)
		h.refuse(w, codec, wire)
		return
	}
	l.mu.Lock()
	if l.wire.out.delivered() {
		h.renew(l)
	}
	wire := l.wire
	l.mu.Unlock()
	h.serve(w, r, wire, codec, enc)
}

// refuse ends a stream that has not begun.
func (h *hub) refuse(w http.ResponseWriter, codec cursorwire.Codec, err *cursorwire.Error) {
	w.Header().Set("Content-Type", codec.StreamType())
	_, _ = w.Write(cursorwire.AppendEnd(nil, err))
}

// serve writes what is queued on a wire, with heartbeats, until its end (sections 1.3 and 1.7).
func (h *hub) serve(w http.ResponseWriter, r *http.Request, l *wire, codec cursorwire.Codec, enc encoder) {
	head := w.Header()
	head.Set("Content-Type", codec.StreamType())
	if h.opt.EventStream(cursorwire.ReadHeaders(r.Header)) {
		head.Set("Content-Type", "text/event-stream")
	}
	head.Set("Cache-Control", "no-cache")
	head.Set("X-Accel-Buffering", "no")
	s := stream{hub: h, w: w, control: http.NewResponseController(w), wire: l, enc: enc}
	replaced := l.read()
	if s.write(nil, false, nil) != nil {
		l.leave()
		return
	}
	timer := time.NewTimer(h.opt.Heartbeat)
	defer timer.Stop()
	for {
		queue, ended, end := l.out.take()
		if len(queue) > 0 || ended {
			if err := s.write(queue, ended, end); err != nil {
				l.out.restore(queue)
				l.leave()
				return
			}
			l.out.wrote(queue, ended)
			if ended {
				l.leave()
				return
			}
			timer.Reset(h.opt.Heartbeat)
		}
		select {
		case <-l.out.news:
		case <-timer.C:
			if s.write([]outgoing{{data: heartbeat}}, false, nil) != nil {
				l.leave()
				return
			}
			timer.Reset(h.opt.Heartbeat)
		case <-replaced:
			_ = s.write(nil, true, cursorwire.Stopped("another reader has taken the stream over"))
			return
		case <-r.Context().Done():
			l.leave()
			return
		}
	}
}

// heartbeat is what is written into a silence.
var heartbeat = func() []byte {
	data, err := proto.Marshal(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_InteractionUpdate{
		InteractionUpdate: &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_Heartbeat{Heartbeat: &agentv1.HeartbeatUpdate{}}},
	}})
	if err != nil {
		panic(err)
	}
	return data
}()

// stream is one response that is being written.
type stream struct {
	hub     *hub
	w       http.ResponseWriter
	control *http.ResponseController
	wire    *wire
	enc     encoder
}

// write writes messages, and the end, at once, and has them leave.
func (s *stream) write(queue []outgoing, ended bool, end *cursorwire.Error) error {
	var out []byte
	for _, m := range queue {
		out = s.enc(out, m.data)
	}
	if ended {
		out = cursorwire.AppendEnd(out, end)
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTime)) // a writer in memory has none
	if _, err := s.w.Write(out); err != nil {
		return err
	}
	return s.control.Flush()
}

// run answers Run: both halves of a run on one request, over HTTP/2 only.
func (h *hub) run(w http.ResponseWriter, r *http.Request) {
	codec, ok := streamCodec(w, r)
	if !ok {
		return
	}
	if r.ProtoMajor < 2 {
		h.refuse(w, codec, cursorwire.NewError(cursorwire.Unimplemented, "Run needs HTTP/2; over HTTP/1.1 use RunSSE and BidiAppend"))
		return
	}
	head := cursorwire.ReadHeaders(r.Header)
	id := head.RequestID
	if id == "" {
		id = newRequestID()
	}
	l := newWire(id)
	waiting := time.AfterFunc(h.opt.Placeholder, func() {
		if !l.isStarted() {
			l.End(cursorwire.Interrupted("no run has come on this stream; try again"))
		}
	})
	defer waiting.Stop()
	h.mu.Lock()
	closed := h.closed
	h.wires[l] = true
	h.mu.Unlock()
	if closed {
		h.refuse(w, codec, cursorwire.Interrupted("the server is shutting down"))
		return
	}
	reading := make(chan struct{})
	go func() { //nolint:contextcheck // a run outlives the request that begins it
		defer close(reading)
		h.readRun(r, l, codec, head)
	}()
	h.serve(w, r, l, codec, h.messages(codec))
	h.mu.Lock()
	if !l.isStarted() {
		delete(h.wires, l)
	}
	h.mu.Unlock()
	_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // so that the reading ends
	<-reading
}

// readRun reads the client's half. Its end is no more than that: the run goes on.
func (h *hub) readRun(r *http.Request, l *wire, codec cursorwire.Codec, head cursorwire.Headers) {
	envelopes := cursorwire.NewEnvelopeReader(r.Body, r.Header.Get("Connect-Content-Encoding"), h.opt.MaxMessage)
	var seq int64
	for ; ; seq++ {
		e, err := envelopes.Next()
		if err != nil || e.End {
			if l.isStarted() {
				l.in.close()
			}
			if wire, ok := errors.AsType[*cursorwire.Error](err); ok && !errors.Is(err, io.EOF) {
				l.End(wire)
			} else if !l.isStarted() {
				l.End(cursorwire.NewError(cursorwire.InvalidArgument, "the stream has no message"))
			}
			return
		}
		m, err := cursorwire.DecodeClient(codec, e.Data)
		if err != nil {
			wire, _ := errors.AsType[*cursorwire.Error](err)
			l.End(wire)
			if l.isStarted() {
				l.in.close()
			}
			return
		}
		if !l.isStarted() {
			if m.GetRunRequest() == nil && m.GetPrewarmRequest() == nil {
				continue // nothing can be done with it before there is a run
			}
			h.drive(l, head, nil)
		}
		l.in.put(received{Message: m, Seq: seq, Done: func(error) {}})
		l.in.wait()
	}
}
