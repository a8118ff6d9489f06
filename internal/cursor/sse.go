package cursor

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// maxHead bounds the request of a stream in bytes; it holds an id.
const maxHead = 64 << 10

// runSSE answers RunSSE: the server's half of a run (section 1.1).
func (h *hub) runSSE(w http.ResponseWriter, r *http.Request) {
	codec, ok := cursorwire.StreamCodec(r.Header.Get("Content-Type"))
	if !checkHead(w, r, ok) {
		return
	}
	contentType := codec.StreamType()
	if h.opt.EventStream(cursorwire.ReadHeaders(r.Header)) {
		contentType = "text/event-stream"
	}
	id := new(agentv1.BidiRequestId)
	err := readHead(w, r, codec, id)
	h.serveLine(w, r, contentType, strings.TrimSpace(id.GetRequestId()), err, messages{codec, h.opt.MaxMessage})
}

// readHead reads the only message of a request into m, which stays empty if there is none.
func readHead(w http.ResponseWriter, r *http.Request, codec cursorwire.Codec, m proto.Message) error {
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readHeadTime)) // a request in memory has none
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	e, err := cursorwire.NewEnvelopeReader(r.Body, r.Header.Get("Connect-Content-Encoding"), maxHead).Next()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil {
		return err
	}
	if r.ProtoMajor < 2 { // what is left unread here would be read before the answer, without a deadline
		_, _ = io.CopyN(io.Discard, r.Body, maxHead)
	}
	return codec.Decode(e.Data, m)
}

// serveLine lets the client read what its request id leads to, unless bad says that the request has
// none. When the run of that id is over and the client has had all of it, that is the next one
// (section 2.4).
func (h *hub) serveLine(w http.ResponseWriter, r *http.Request, contentType, id string, bad error, enc encoder) {
	if bad == nil && id == "" {
		bad = cursorwire.NewError(cursorwire.InvalidArgument, "the request has no request_id")
	}
	control := startStream(w, contentType)
	s := stream{hub: h, w: w, control: control, enc: enc}
	for {
		err := bad
		if err == nil {
			s.wire, err = h.reads(id)
		}
		if err != nil {
			_ = s.write(enc.end(nil, appendError(err)), writeTime)
			return
		}
		if s.serve(r.Context()) {
			return
		}
	}
}

// reads returns the wire for a new reader of a request id.
func (h *hub) reads(id string) (*wire, error) {
	l, err := h.line(id)
	if err != nil {
		return nil, err
	}
	defer l.mu.Unlock()
	left := l.wire.isPlaceholder() && isClosed(l.wire.gone) // its reader did not wait for the run
	if left || l.wire.out.delivered() {
		if err := h.renew(l, true); err != nil {
			return nil, err
		}
	}
	return l.wire, nil
}

// messages encodes for RunSSE and Run.
type messages struct {
	codec cursorwire.Codec
	limit int
}

func (e messages) append(dst, data []byte) ([]byte, error) {
	m := new(agentv1.AgentServerMessage)
	if e.codec == cursorwire.Proto {
		m.ProtoReflect().SetUnknown(data) // as it is
	} else if err := proto.Unmarshal(data, m); err != nil {
		return dst, err
	}
	return cursorwire.AppendMessage(dst, e.codec, m, e.limit)
}

func (messages) end(dst []byte, err *cursorwire.Error) []byte { return cursorwire.AppendEnd(dst, err) }
