package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strconv"

	"connectrpc.com/connect/v2"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// EventsPattern is where [Server.Handler] belongs in an http.ServeMux besides [Pattern]: the events of a
// session as server-sent events, for programs without a client.
const EventsPattern = "/v1/sessions/{id}/events"

// retryAfter is how long a client that has lost its stream should wait, in milliseconds.
const retryAfter = 1000

// events serves a feed as server-sent events. The id of every event is a position; a client that comes
// back with it, in Last-Event-ID, gets exactly the rest. Whatever is wrong is said before any event, as
// JSON with a status of its own.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			s.opt.Logger.Error("call failed", slog.String("call", EventsPattern), slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
		}
	}()
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed, session.Errorf(session.Invalid, "use GET"))
		return
	}
	f, err := s.eventFeed(r)
	if err != nil {
		refuse(w, statusOf(err), err)
		return
	}
	stream := &eventStream{w: w, control: http.NewResponseController(w), encoding: acceptedEncoding(r.Header)}
	f.write = stream.send
	err = f.run(r.Context())
	if stream.begun {
		stream.end()
		return
	}
	if status := statusOf(err); status != http.StatusInternalServerError {
		refuse(w, status, err)
		return
	}
	if r.Context().Err() == nil {
		s.opt.Logger.Error("call failed", slog.String("call", EventsPattern), slog.Any("error", err))
	}
	refuse(w, http.StatusInternalServerError, session.Errorf(session.Internal, "internal error"))
}

// eventFeed reads a request.
func (s *Server) eventFeed(r *http.Request) (*feed, error) {
	query := r.URL.Query()
	transcript, err := strconv.ParseUint(query.Get("transcript"), 10, 32)
	if err != nil && query.Get("transcript") != "" {
		return nil, session.Errorf(session.Invalid, "transcript is a number of items")
	}
	limit, err := pageSize(uint32(transcript))
	if err != nil {
		return nil, err
	}
	f := &feed{server: s, id: session.ID(r.PathValue("id")), strict: true, limit: limit}
	last := r.Header.Get("Last-Event-ID") // newer than what the address said when the stream was first asked for
	if last == "" {
		last = query.Get("after")
	}
	if last != "" {
		f.from, err = parsePosition(last)
	}
	return f, err
}

// statusOf says each kind of error in HTTP's words.
func statusOf(err error) int {
	if e, ok := errors.AsType[*positionError](err); ok && e.fault != roostv1.PositionFault_POSITION_FAULT_MALFORMED {
		return http.StatusGone
	}
	if status, ok := statuses[session.AsError(err).Kind]; ok {
		return status
	}
	return http.StatusInternalServerError
}

var statuses = map[session.Kind]int{
	session.Invalid:         http.StatusBadRequest,
	session.NotFound:        http.StatusNotFound,
	session.Busy:            http.StatusConflict,
	session.Locked:          http.StatusConflict,
	session.Unauthenticated: http.StatusUnauthorized,
	session.Forbidden:       http.StatusForbidden,
	session.TooLarge:        http.StatusRequestEntityTooLarge,
	session.Unavailable:     http.StatusServiceUnavailable,
	session.Provider:        http.StatusBadGateway,
}

// refusal is an error as JSON.
type refusal struct {
	Kind     string           `json:"kind"`
	Message  string           `json:"message"`
	Retry    bool             `json:"retry,omitempty"`
	Position *refusedPosition `json:"position,omitempty"`
}

type refusedPosition struct {
	Fault    string `json:"fault"`              // malformed, other_epoch, foreign or gone
	Earliest string `json:"earliest,omitempty"` // the first and the last position that could be resumed
	Latest   string `json:"latest,omitempty"`
}

var faultNames = map[roostv1.PositionFault]string{
	roostv1.PositionFault_POSITION_FAULT_MALFORMED:   "malformed",
	roostv1.PositionFault_POSITION_FAULT_OTHER_EPOCH: "other_epoch",
	roostv1.PositionFault_POSITION_FAULT_FOREIGN:     "foreign",
	roostv1.PositionFault_POSITION_FAULT_GONE:        "gone",
}

func refuse(w http.ResponseWriter, status int, err error) {
	e := session.AsError(err)
	body := refusal{Kind: e.Kind.String(), Message: e.Message, Retry: e.Retry}
	if p, ok := errors.AsType[*positionError](err); ok {
		body.Position = &refusedPosition{Fault: faultNames[p.fault]}
		if p.earliest != nil {
			body.Position.Earliest, body.Position.Latest = formatPosition(*p.earliest), formatPosition(*p.latest)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]refusal{"error": body}) // the client may be gone
}

// eventStream writes frames as server-sent events, each as soon as it is there.
type eventStream struct {
	w        http.ResponseWriter
	control  *http.ResponseController
	encoding connect.Compressor // nil for none
	begun    bool
	packed   io.WriteCloser // compresses to w; nil without
	line     bytes.Buffer
}

func (e *eventStream) begin() error {
	e.begun = true
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no") // proxies that would gather the events
	h.Add("Vary", "Accept-Encoding")
	if e.encoding != nil {
		packed, err := e.encoding.Compress(e.w)
		if err != nil {
			return err
		}
		e.packed = packed
		h.Set("Content-Encoding", e.encoding.Name())
	}
	fmt.Fprintf(&e.line, "retry: %d\n", retryAfter)
	return nil
}

// send writes a frame, with the position after it as its id.
func (e *eventStream) send(frame *roostv1.WatchResponse, at session.Position) error {
	e.line.Reset()
	if !e.begun {
		if err := e.begin(); err != nil {
			return err
		}
	}
	name, m := eventOf(frame)
	data, err := protojson.Marshal(m) // without line breaks
	if err != nil {
		return err
	}
	fmt.Fprintf(&e.line, "id: %s\nevent: %s\ndata: %s\n\n", formatPosition(at), name, data)
	if e.packed == nil {
		if _, err := e.w.Write(e.line.Bytes()); err != nil {
			return err
		}
		return e.control.Flush()
	}
	if _, err := e.packed.Write(e.line.Bytes()); err != nil {
		return err
	}
	if f, ok := e.packed.(interface{ Flush() error }); ok {
		if err := f.Flush(); err != nil {
			return err
		}
	}
	return e.control.Flush()
}

// eventOf is the name and the data of a frame.
func eventOf(frame *roostv1.WatchResponse) (string, proto.Message) {
	switch f := frame.Frame.(type) {
	case *roostv1.WatchResponse_Reset_:
		return "reset", f.Reset_
	case *roostv1.WatchResponse_Events:
		return "events", f.Events
	case *roostv1.WatchResponse_Heartbeat:
		return "heartbeat", f.Heartbeat
	case *roostv1.WatchResponse_Ended:
		return "ended", f.Ended
	}
	return "unknown", frame
}

func (e *eventStream) end() {
	if e.packed != nil {
		_ = e.packed.Close() // nobody may be there to read the end
	}
}
