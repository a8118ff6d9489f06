package cursor

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
)

// maxUnary is the limit in bytes of the body of a call, plain and as it is sent.
const maxUnary = 4 << 20

// unaryRequest is a call of one message whose body was read.
type unaryRequest struct {
	codec cursorwire.Codec
	body  []byte
}

// decode reads the body into m. No body is an empty message in either codec.
func (r unaryRequest) decode(m proto.Message) error {
	if len(r.body) == 0 {
		return nil
	}
	return r.codec.Decode(r.body, m)
}

// message returns m as the reply.
func (r unaryRequest) message(m proto.Message) ([]byte, error) { return r.codec.Append(nil, m) }

// unaryHandler returns the reply to a call, in the codec of the request. An error that is no
// [*cursorwire.Error] is logged, and the client learns only that there was one.
type unaryHandler func(context.Context, unaryRequest) ([]byte, error)

// unary serves a call with a body of at most limit bytes (section 9). The context of h ends when the
// client's own time limit has passed.
func (c *calls) unary(limit int64, h unaryHandler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			http.Error(w, "calls are made with POST", http.StatusMethodNotAllowed)
			return
		}
		codec, ok := cursorwire.UnaryCodec(r.Header.Get("Content-Type"))
		if !ok {
			w.Header().Set("Accept-Post", cursorwire.Proto.UnaryType()+", "+cursorwire.JSON.UnaryType())
			http.Error(w, "send application/proto or application/json", http.StatusUnsupportedMediaType)
			return
		}
		body, err := readUnary(w, r, limit)
		if err != nil {
			c.refuse(w, r, err)
			return
		}
		ctx := r.Context()
		headers := cursorwire.ReadHeaders(r.Header)
		if headers.Timeout > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, headers.Timeout)
			defer cancel()
		}
		reply, err := h(ctx, unaryRequest{codec, body})
		if err != nil {
			c.refuse(w, r, err)
			return
		}
		writeUnary(w, codec.UnaryType(), http.StatusOK, reply)
	}
}

// readUnary reads a whole body, plain or gzip. What is too long is refused before it is in memory.
func readUnary(w http.ResponseWriter, r *http.Request, limit int64) ([]byte, error) {
	plain, err := cursorwire.Decompress(r.Header.Get("Content-Encoding"), http.MaxBytesReader(w, r.Body, limit))
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(plain, limit+1))
	if _, long := errors.AsType[*http.MaxBytesError](err); long || int64(len(body)) > limit {
		return nil, cursorwire.NewError(cursorwire.ResourceExhausted, "the message is too long for this call")
	}
	return body, err
}

// empty answers with an empty message, whatever is sent and however: clients probe with it whether
// there is a network at all (section 9.3).
func (c *calls) empty(w http.ResponseWriter, r *http.Request) {
	// Without the rest of the body the connection could not be used again.
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, maxUnary))
	codec, _ := cursorwire.UnaryCodec(r.Header.Get("Content-Type"))
	var body []byte
	if codec == cursorwire.JSON {
		body = []byte("{}")
	}
	writeUnary(w, codec.UnaryType(), http.StatusOK, body)
}

// refuse answers with an error.
func (c *calls) refuse(w http.ResponseWriter, r *http.Request, err error) {
	known, ok := errors.AsType[*cursorwire.Error](err)
	switch {
	case ok:
	case r.Context().Err() != nil:
		known = cursorwire.NewError(cursorwire.Canceled, "the call was given up")
	case errors.Is(err, context.DeadlineExceeded):
		known = cursorwire.NewError(cursorwire.DeadlineExceeded, "the call took longer than its time limit")
	default:
		c.log.Error("call failed", slog.String("path", r.URL.Path), slog.Any("error", err))
		known = cursorwire.NewError(cursorwire.Internal, "internal error; see the server's log")
	}
	writeUnary(w, cursorwire.JSON.UnaryType(), known.Code.HTTPStatus(), cursorwire.MarshalError(known))
}

// writeUnary writes a whole answer. A client that does not read it has left.
func writeUnary(w http.ResponseWriter, contentType string, status int, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
