package cursor

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire"
)

// append answers BidiAppend. It is acknowledged when what follows from it lasts, and never waits for
// another append; only what is no append is an error, because any error ends the client's run
// (sections 1.5, 1.6 and 2.2).
func (h *hub) append(w http.ResponseWriter, r *http.Request) {
	codec, ok := cursorwire.UnaryCodec(r.Header.Get("Content-Type"))
	if !checkHead(w, r, ok) {
		return
	}
	// Without the deadline of a connection in memory a body is the caller's business.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(readTime))
	a, id, err := h.readAppend(r, codec)
	_ = control.SetReadDeadline(time.Time{})
	if err == nil {
		err = h.deliver(r.Context(), id, a)
	}
	if err != nil {
		wire := appendError(err)
		h.opt.Logger.Warn("an append was refused", slog.String("request", id), slog.Any("error", err))
		writeUnary(w, "application/json", wire.Code.HTTPStatus(), cursorwire.MarshalError(wire))
		return
	}
	var body []byte
	if codec == cursorwire.JSON {
		body = []byte("{}")
	}
	writeUnary(w, codec.UnaryType(), http.StatusOK, body)
}

// checkHead refuses what is no POST, or has a content type that is not ok.
func checkHead(w http.ResponseWriter, r *http.Request, ok bool) bool {
	switch {
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
		return false
	case !ok:
		w.WriteHeader(http.StatusUnsupportedMediaType)
		return false
	}
	return true
}

// appendError is what a client is told of an error: of a driver, of a body, or of a connection that
// broke.
func appendError(err error) *cursorwire.Error {
	if wire, ok := errors.AsType[*cursorwire.Error](err); ok {
		return wire
	}
	if failed, ok := errors.AsType[driverError](err); ok {
		return cursorwire.NewError(cursorwire.Internal, failed.Error())
	}
	return cursorwire.NewError(cursorwire.Canceled, "the body ended early")
}

// driverError is what a driver has said of a message that it could not take.
type driverError struct{ error }

func (e driverError) Unwrap() error { return e.error }

func (h *hub) readAppend(r *http.Request, codec cursorwire.Codec) (*arrival, string, error) {
	body, err := cursorwire.Decompress(r.Header.Get("Content-Encoding"), r.Body)
	if err != nil {
		return nil, "", err
	}
	read, err := cursorwire.ReadAppend(body, codec, h.opt.MaxMessage)
	if err != nil {
		return nil, "", err
	}
	m, err := cursorwire.DecodeClient(cursorwire.Proto, read.Message)
	if err != nil {
		return nil, read.RequestID, err
	}
	return &arrival{
		message: m, data: read.Message, size: len(read.Message), seq: max(0, read.Seq), headers: cursorwire.ReadHeaders(r.Header), done: make(chan struct{}),
	}, read.RequestID, nil
}
