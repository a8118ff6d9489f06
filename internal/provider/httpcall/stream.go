package httpcall

import (
	"bytes"
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/provider/sse"
)

// Progress is how far an answer has come.
type Progress uint8

// The stages of an answer.
const (
	Open    Progress = iota // more is to come; an end here is a broken answer
	Stopped                 // the model has said why it stopped; only figures may follow
	Over                    // the last event
)

// Decoder turns the events of one answer into parts. It is used by one goroutine.
type Decoder interface {
	// Decode appends the parts that an event gives. An event without parts is no sign of
	// life. The event's data must not be kept. An error is a *provider.Error.
	Decode(e sse.Event, parts []provider.Part) ([]provider.Part, Progress, error)
	// End appends what ends a complete answer; the last part is Finish.
	End(parts []provider.Part) []provider.Part
}

// Call is one request: the body, the dialect's own headers for a key, and the decoder of
// the answer.
type Call struct {
	Body    []byte
	Header  func(key string) http.Header
	Decoder Decoder
}

const (
	afterStop = 5 * time.Second // how long figures may take to follow the model's stop
	maxAnswer = 64 << 20        // bytes of one answer's event stream

	drainTime  = 50 * time.Millisecond // a provider that keeps the stream open loses the connection
	drainBytes = 4 << 10
)

// Stream sends a call and yields its parts as [provider.Model] demands. The connection is
// closed, or back in the pool, when the loop is left.
func (c *Client) Stream(ctx context.Context, call Call) iter.Seq2[provider.Part, error] {
	return func(yield func(provider.Part, error) bool) {
		key, err := c.askKey(ctx)
		if err != nil {
			yield(provider.Part{}, err)
			return
		}
		own, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		idle := newWatch(c.idle, func() { cancel(errStalled) })
		defer idle.stop()

		res, err := c.send(own, c.header(call.Header(key)), call.Body)
		if err != nil {
			yield(provider.Part{}, c.fault(ctx, own, err, key))
			return
		}
		defer func() { _ = res.Body.Close() }() // the answer is complete or given up
		a := answer{decoder: call.Decoder, idle: idle, yield: yield}
		err = a.run(io.LimitReader(res.Body, maxAnswer))
		if err != nil && !errors.Is(err, errLeft) {
			yield(provider.Part{}, c.fault(ctx, own, err, key))
		}
	}
}

func (c *Client) askKey(ctx context.Context) (string, error) {
	if c.badBase != nil {
		return "", c.fault(ctx, ctx, c.badBase, "")
	}
	if c.key == nil {
		return "", nil
	}
	key, err := c.key(ctx)
	if err != nil {
		return "", c.fault(ctx, ctx, provider.Errorf(provider.FaultAuth, "no API key: %s", oneLine(err.Error())), "")
	}
	return string(bytes.TrimSpace([]byte(key))), nil
}

func (c *Client) post(ctx context.Context, url string, header http.Header, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = header
	return c.http.Do(req)
}

// errLeft says that the consumer has left the loop, so that nothing may be yielded.
var errLeft = errors.New("the consumer left")

// answer is one event stream on its way to the consumer.
type answer struct {
	decoder Decoder
	idle    *watch
	yield   func(provider.Part, error) bool
	stage   Progress
}

// run yields the parts of a stream. It returns nil after Finish, errLeft, or what broke.
func (a *answer) run(body io.Reader) error {
	var parts []provider.Part
	broken := io.ErrUnexpectedEOF
	for e, err := range sse.Events(body) {
		if err != nil {
			broken = err
			break
		}
		var stage Progress
		parts, stage, err = a.decoder.Decode(e, parts[:0])
		if left := a.give(parts); left != nil {
			return left
		}
		if err != nil {
			return err
		}
		a.stage = max(a.stage, stage)
		if a.stage == Over {
			break
		}
		a.idle.wait(len(parts) > 0, a.stage)
	}
	switch {
	case a.stage != Open: // a break after the stop loses nothing but figures
		return a.finish(body)
	case errors.Is(broken, sse.ErrTooLong):
		return provider.Errorf(provider.FaultProtocol, "it sent an event over 8 MiB")
	}
	return broken
}

// finish yields the end, and reads the few bytes behind the last event, without which
// net/http would throw the connection away.
func (a *answer) finish(body io.Reader) error {
	err := a.give(a.decoder.End(nil))
	if a.stage == Over {
		a.idle.timer.Reset(drainTime)
		_, _ = io.CopyN(io.Discard, body, drainBytes) // only the pool cares
	}
	return err
}

// give yields parts. The time that the consumer takes is not the provider's silence.
func (a *answer) give(parts []provider.Part) error {
	if len(parts) == 0 {
		return nil
	}
	a.idle.pause()
	for _, p := range parts {
		if !a.yield(p, nil) {
			return errLeft
		}
	}
	return nil
}

// watch calls stalled when nothing happens for the limit. It is used by one goroutine.
type watch struct {
	limit    time.Duration
	timer    *time.Timer
	deadline time.Time // of the figures; zero before the stop
}

func newWatch(limit time.Duration, stalled func()) *watch {
	return &watch{limit: limit, timer: time.AfterFunc(limit, stalled)}
}

func (w *watch) stop()  { w.timer.Stop() }
func (w *watch) pause() { w.timer.Stop() }

// wait goes on waiting for the next event; alive says that the last one was a sign of
// life. After the stop there is one deadline for everything that may follow.
func (w *watch) wait(alive bool, stage Progress) {
	if stage == Open {
		if alive {
			w.timer.Reset(w.limit)
		}
		return
	}
	if w.deadline.IsZero() {
		w.deadline = time.Now().Add(min(w.limit, afterStop))
	}
	w.timer.Reset(time.Until(w.deadline))
}
