package cursor

import (
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// runPoll answers RunPoll, for clients behind proxies that hold streams back. How it is used is not
// known (section 12): that its data are the messages of RunSSE in hex, numbered from 0 in every
// stream, heartbeats included, and that eof precedes a clean end, is assumed. start_request, of which
// nothing is known, is ignored.
func (h *hub) runPoll(w http.ResponseWriter, r *http.Request) {
	codec, ok := cursorwire.StreamCodec(r.Header.Get("Content-Type"))
	if !checkHead(w, r, ok) {
		return
	}
	poll := new(agentv1.BidiPollRequest)
	err := readHead(w, r, codec, poll)
	h.serveLine(w, r, codec.StreamType(), strings.TrimSpace(poll.GetRequestId().GetRequestId()), err,
		&polled{codec: codec, limit: 2*h.opt.MaxMessage + maxHead})
}

// polled encodes for RunPoll.
type polled struct {
	codec cursorwire.Codec
	limit int
	seq   int64 // of the next message
}

func (e *polled) append(dst, data []byte) ([]byte, error) {
	return e.response(dst, &agentv1.BidiPollResponse{Data: hex.EncodeToString(data)})
}

func (e *polled) end(dst []byte, err *cursorwire.Error) []byte {
	if err == nil {
		dst, _ = e.response(dst, &agentv1.BidiPollResponse{Eof: new(true)}) // never fails: it has no text
	}
	return cursorwire.AppendEnd(dst, err)
}

func (e *polled) response(dst []byte, m *agentv1.BidiPollResponse) ([]byte, error) {
	m.Seqno = e.seq
	e.seq++
	return cursorwire.AppendMessage(dst, e.codec, m, e.limit)
}
