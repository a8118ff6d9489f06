package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

const (
	floodTokens = 100_000
	stuckEach   = 3                 // clients of each protocol that has watchers, in each flood
	stuckFloods = 2                 // whose stuck clients are there at a time
	maxStuck    = 100 * time.Second // longer than the server lets a client take nothing
)

// floodEvery is how often there is a flood, so that as many clients are stuck as ever will be
// once the time for warming up is over.
func (o soakOptions) floodEvery() time.Duration {
	return min(maxStuck, time.Duration(warmUp*float64(o.duration))) / stuckFloods
}

// floods has much said at once, at the start and from time to time, past clients that never read, and then
// deletes the session under them.
func (s *soak) floods(ctx context.Context, stop <-chan struct{}) {
	chance := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	var stuck []net.Conn
	defer func() {
		for _, nc := range stuck {
			_ = nc.Close()
		}
	}()
	for pause := time.Duration(0); wait(stop, pause) == nil; pause = s.floodEvery() {
		more, err := s.flood(ctx, chance)
		stuck = append(stuck, more...)
		if err != nil {
			s.lives.failed(fmt.Errorf("flood: %w", err))
		}
		for ; len(stuck) > 2*stuckEach*stuckFloods; stuck = stuck[1:] {
			_ = stuck[0].Close()
		}
	}
}

func (s *soak) flood(ctx context.Context, chance *rand.Rand) (stuck []net.Conn, err error) {
	o, err := newOwn(s.home, chance)
	if err != nil {
		return nil, err
	}
	defer o.close()
	o.calm = true
	id, err := o.begin(ctx)
	if err != nil {
		return nil, err
	}
	for range stuckEach {
		for _, attach := range []func(context.Context, string) (net.Conn, error){s.stuckPi, s.stuckOwn} {
			nc, err := attach(ctx, id)
			if err != nil {
				return stuck, err
			}
			stuck = append(stuck, nc)
		}
	}
	if err := s.oneTurn(ctx, o, id, task{seed: chance.Uint64(), tokens: floodTokens}); err != nil {
		return stuck, err
	}
	return stuck, s.lives.end(ctx, id)
}

// stuckPi attaches over pi's protocol, and never reads again.
func (s *soak) stuckPi(ctx context.Context, id string) (net.Conn, error) {
	c, err := dial(ctx, s.home.socket())
	if err != nil {
		return nil, err
	}
	return c.nc, c.attach(id)
}

// stuckOwn watches over roost's own API, and never reads.
func (s *soak) stuckOwn(ctx context.Context, id string) (net.Conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "unix", s.home.socket()+".http") // whose buffers are small
	if err != nil {
		return nil, err
	}
	body := fmt.Sprintf(`{"sessionId":%q}`, id)
	_, err = fmt.Fprintf(nc, "POST /roost.v1.SessionService/Watch HTTP/1.1\r\nHost: roost\r\n"+
		"Content-Type: application/connect+json\r\nContent-Length: %d\r\n\r\n\x00\x00\x00\x00%c%s", 5+len(body), len(body), body)
	return nc, err
}
