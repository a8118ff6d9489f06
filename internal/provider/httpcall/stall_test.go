package httpcall_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/provider/httpcall"
)

const idle = time.Minute

// paced is a provider without a network: it answers after a delay, and sends each of its
// pieces after another. When they are used up it is silent.
type paced struct {
	delay  time.Duration
	every  time.Duration
	pieces []string
}

func (p *paced) RoundTrip(r *http.Request) (*http.Response, error) {
	_ = r.Body.Close()
	if err := wait(r.Context(), p.delay); err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: &pacedBody{p, r.Context()}, Request: r}, nil
}

type pacedBody struct {
	*paced
	ctx context.Context
}

func (b *pacedBody) Read(to []byte) (int, error) {
	if len(b.pieces) == 0 {
		<-b.ctx.Done()
		return 0, b.ctx.Err()
	}
	if err := wait(b.ctx, b.every); err != nil {
		return 0, err
	}
	n := copy(to, b.pieces[0])
	b.pieces = b.pieces[1:]
	return n, nil
}

func (b *pacedBody) Close() error { return nil }

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ask reads p's answer, taking its time for each part.
func ask(t *testing.T, p *paced, consumer time.Duration) (text string, err error) {
	t.Helper()
	c := httpcall.New(httpcall.Options{Name: "acme", BaseURL: "http://acme", Idle: idle, HTTP: &http.Client{Transport: p}}, "/chat")
	for part, err := range c.Stream(t.Context(), httpcall.Call{Header: header, Decoder: lines{}}) {
		if err != nil {
			return text, err
		}
		text += part.Text
		<-time.After(consumer)
	}
	return text, nil
}

func events(n int, event string) []string {
	return strings.Split(strings.TrimSuffix(strings.Repeat(event+"\n\n#", n), "#"), "#")
}

func TestStall(t *testing.T) {
	for _, tc := range []struct {
		name     string
		provider paced
		text     string
		after    time.Duration
	}{
		{"no answer", paced{delay: time.Hour}, "", idle},
		{"silence after the head", paced{}, "", idle},
		{"silence later", paced{every: idle - 1, pieces: events(5, "data: a")}, "aaaaa", 5*(idle-1) + idle},
		{"pings are silence", paced{every: time.Second, pieces: append(events(2, "data: a"), events(99, "data: ping")...)}, "aa", 2*time.Second + idle},
		{"comments are silence", paced{every: time.Second, pieces: append(events(2, "data: a"), events(99, ": hello")...)}, "aa", 2*time.Second + idle},
		{"single bytes are silence", paced{every: time.Second, pieces: strings.Split("data: "+strings.Repeat("a", 99), "")}, "", idle},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				text, err := ask(t, &tc.provider, 0)
				if f := fault(t, err); f.Fault != provider.FaultStalled || text != tc.text || time.Since(begun) != tc.after {
					t.Errorf("%q, %v after %v, want %q after %v", text, err, time.Since(begun), tc.text, tc.after)
				}
			})
		})
	}
}

// The time that the consumer takes is not the provider's silence.
func TestSlowConsumerIsNoStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text, err := ask(t, &paced{pieces: append(events(3, "data: a"), "data: over\n\n")}, 2*idle)
		if text != "aaa" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// A provider that has stopped but keeps the connection open does not hold the pass up,
// whether it pings or is silent.
func TestSilenceAfterTheStop(t *testing.T) {
	for _, after := range [][]string{nil, events(99, "data: ping"), events(99, "data: stop")} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			text, err := ask(t, &paced{every: time.Second, pieces: append([]string{"data: a\n\ndata: stop\n\n"}, after...)}, 0)
			if text != "a" || err != nil || time.Since(begun) != 6*time.Second {
				t.Errorf("%q, %v after %v", text, err, time.Since(begun))
			}
		})
	}
}

// Parts that come after the stop are given, too.
func TestPartsAfterTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text, err := ask(t, &paced{every: time.Second, pieces: []string{"data: stop\n\n", "data: a\n\n", "data: over\n\n"}}, 0)
		if text != "a" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
}

// The stream is read to its end, because net/http throws a connection away otherwise, but
// not for long if the provider does not end it.
func TestReadsToTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body := &ending{Reader: strings.NewReader("data: a\n\ndata: over\n\n")}
		c := httpcall.New(httpcall.Options{Name: "acme", BaseURL: "http://acme", HTTP: &http.Client{Transport: body}}, "/chat")
		if _, finished, err := read(t.Context(), c); !finished || !body.ended {
			t.Errorf("finished %v, read to the end %v, %v", finished, body.ended, err)
		}
		begun := time.Now()
		if _, err := ask(t, &paced{pieces: []string{"data: over\n\n"}}, 0); err != nil || time.Since(begun) > time.Second {
			t.Errorf("an open end: %v after %v", err, time.Since(begun))
		}
	})
}

// ending is a transport and its answer, which notices when it is read to the end.
type ending struct {
	io.Reader
	ended bool
}

func (e *ending) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: e, Request: r}, nil
}

func (e *ending) Read(to []byte) (int, error) {
	n, err := e.Reader.Read(to)
	e.ended = e.ended || errors.Is(err, io.EOF)
	return n, err
}

func (e *ending) Close() error { return nil }
