package cursor

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// encoder writes server messages as a client of one kind of stream expects them. It is for one
// response.
type encoder interface {
	// append appends an encoded AgentServerMessage to dst, in an envelope. When it fails, dst is
	// returned unchanged.
	append(dst, data []byte) ([]byte, error)
	// end appends the end of the stream, a clean one if err is nil.
	end(dst []byte, err *cursorwire.Error) []byte
}

// stream is one response that is being written.
type stream struct {
	hub     *hub
	w       http.ResponseWriter
	control *http.ResponseController
	wire    *wire
	enc     encoder
}

// startStream writes the head of a stream, so that its client knows that it stands.
func startStream(w http.ResponseWriter, contentType string) *http.ResponseController {
	head := w.Header()
	head.Set("Content-Type", contentType)
	head.Set("Cache-Control", "no-cache")
	head.Set("X-Accel-Buffering", "no")
	control := http.NewResponseController(w)
	w.WriteHeader(http.StatusOK)
	_ = control.Flush() // a connection that is lost shows with the first write
	return control
}

// serve writes what is queued on the wire, with heartbeats, until its end (sections 1.3 and 1.7), as
// soon as no other reader does. It reports false, and has written nothing, when another reader has had
// all of it. Whatever happens, the last thing that is written is an end.
func (s *stream) serve(ctx context.Context) bool {
	defer s.hub.reading()()
	me, ok := s.wire.read(ctx, s.control)
	if !ok {
		s.farewell(ctx)
		return true
	}
	if s.wire.out.delivered() {
		s.wire.yield()
		return false
	}
	complete := s.pass(ctx, me)
	s.wire.yield()
	s.wire.part(me)
	if !complete {
		s.farewell(ctx)
	}
	return true
}

// farewell ends the stream of a reader that leaves before its end. One whose context is over may still
// be there: that of a server ends before its streams do.
func (s *stream) farewell(ctx context.Context) {
	end := cursorwire.Stopped("another reader has taken the stream over")
	if ctx.Err() != nil {
		end = errClosing
	}
	_ = s.write(s.enc.end(nil, end), yieldTime)
}

// pass writes until the end is written, and reports false when it was not: the connection is lost, or
// another reader wants to go on.
func (s *stream) pass(ctx context.Context, me *reading) (complete bool) {
	silence := time.NewTimer(s.hub.opt.Heartbeat)
	defer silence.Stop()
	for !isClosed(me.stop) {
		if b, ok := s.wire.out.take(); ok {
			if s.batch(b) != nil {
				return false
			}
			if b.last {
				return true
			}
			silence.Reset(s.hub.opt.Heartbeat)
			continue
		}
		select {
		case <-s.wire.out.news:
		case <-silence.C:
			if s.write(s.encode(nil, heartbeat), writeTime) != nil {
				return false
			}
			silence.Reset(s.hub.opt.Heartbeat)
		case <-me.stop:
		case <-ctx.Done():
			return false
		}
	}
	return false
}

// batch writes b, or leaves it for another reader.
func (s *stream) batch(b batch) error {
	var out []byte
	for _, m := range b.messages {
		out = s.encode(out, m.data)
	}
	if b.last {
		out = s.enc.end(out, b.end)
	}
	if err := s.write(out, writeTime); err != nil {
		s.wire.out.restore(b)
		return err
	}
	s.wire.out.wrote(b)
	return nil
}

func (s *stream) encode(dst, data []byte) []byte {
	out, err := s.enc.append(dst, data)
	if err != nil {
		s.hub.opt.Logger.Error("a message cannot be sent", slog.String("request", s.wire.id), slog.Any("error", err))
	}
	return out
}

// write writes envelopes at once, and has them leave within limit.
func (s *stream) write(envelopes []byte, limit time.Duration) error {
	began := time.Now()
	_ = s.control.SetWriteDeadline(began.Add(limit)) // a writer in memory has none
	_, err := s.w.Write(envelopes)
	if err == nil {
		err = s.control.Flush()
	}
	// What a write beyond its deadline ends with depends on the version of HTTP.
	if err != nil && limit == writeTime && time.Since(began) >= limit && s.hub.opt.Stuck != nil {
		s.hub.opt.Stuck()
	}
	_ = s.control.SetWriteDeadline(time.Time{}) // over HTTP/2 one that passes in a silence ends the stream
	return err
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
