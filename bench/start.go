package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// measureStart is from the start of the process until clients can connect, with nothing to
// look after.
func measureStart(ctx context.Context, l *lab) ([]row, error) {
	var took []float64
	for range 10 {
		err := l.with(ctx, func(_ *home, server *process) error {
			took = append(took, ms(server.ready.Sub(server.began)))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return []row{atMost("start to ready, empty, p50 of 10", 60, figure{value: median(took), unit: "ms"})}, nil
}

const (
	idleSessions = 9900
	cutRuns      = 100
)

// measureRecover is the same with 10,000 sessions, of which 100 were in the middle of an
// answer when the process died.
func measureRecover(ctx context.Context, l *lab) ([]row, error) {
	h, err := l.newHome(time.Minute)
	if err != nil {
		return nil, err
	}
	rows, err := h.recoverOften(ctx, l.pick(1, 5))
	return rows, errors.Join(err, h.remove())
}

func (h *home) recoverOften(ctx context.Context, rounds int) ([]row, error) {
	if err := h.fill(ctx, idleSessions, cutRuns); err != nil {
		return nil, err
	}
	var ready, streaming, hello []float64
	for range rounds {
		fresh, err := h.copy()
		if err != nil {
			return nil, err
		}
		err = fresh.serve(ctx, func(_ *home, server *process) error {
			ready = append(ready, ms(server.ready.Sub(server.began)))
			newest, err := h.lab.streaming(ctx, cutRuns)
			streaming = append(streaming, ms(newest.Sub(server.began)))
			if err != nil {
				return err
			}
			took, err := fresh.hello(ctx)
			hello = append(hello, took)
			return err
		})
		if err := errors.Join(err, fresh.remove()); err != nil {
			return nil, err
		}
	}
	const name = "with 10,000 sessions and 100 runs to recover, "
	return []row{
		atMost(name+"start to ready", 500, figure{value: median(ready), unit: "ms"}),
		noLimit(name+"start until all 100 stream", figure{value: median(streaming), unit: "ms"}),
		noLimit("pi's handshake with 10,000 sessions", figure{value: median(hello), unit: "ms"}),
	}, nil
}

// hello is how long a handshake takes, in milliseconds.
func (h *home) hello(ctx context.Context) (float64, error) {
	began := time.Now()
	c, err := dial(ctx, h.socket())
	if err != nil {
		return 0, err
	}
	took := ms(time.Since(began))
	c.close()
	return took, nil
}

// streaming waits until so many answers have begun since the last call, and returns when
// the last of them did.
func (l *lab) streaming(ctx context.Context, n int64) (time.Time, error) {
	for range 1000 {
		t, err := l.tally(ctx, "")
		if err != nil {
			return time.Time{}, err
		}
		if t.Streaming >= n {
			_, err := l.tally(ctx, "?reset")
			return time.Unix(0, t.Newest), err
		}
		if err := pause(ctx, 10*time.Millisecond); err != nil {
			return time.Time{}, err
		}
	}
	return time.Time{}, fmt.Errorf("fewer than %d answers have begun within 10 s", n)
}

func (l *lab) tally(ctx context.Context, query string) (tally, error) {
	var t tally
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+"/tally"+query, http.NoBody)
	if err != nil {
		return t, err
	}
	res, err := l.direct.http.Do(req)
	if err != nil {
		return t, err
	}
	defer res.Body.Close()
	return t, json.NewDecoder(res.Body).Decode(&t)
}
