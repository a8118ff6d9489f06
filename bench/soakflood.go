package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"time"
)

const (
	floodEvery  = 45 * time.Second
	floodTokens = 100_000
	stuckFor    = 100 * time.Second // longer than the server lets one of them take nothing
	stuckEach   = 3                 // of each protocol that has watchers
)

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
	for pause := time.Duration(0); wait(stop, pause) == nil; pause = floodEvery {
		more, err := s.flood(ctx, chance)
		stuck = append(stuck, more...)
		if err != nil {
			s.lives.failed(fmt.Errorf("flood: %w", err))
		}
		for keep := 2 * stuckEach * int(stuckFor/floodEvery+1); len(stuck) > keep; stuck = stuck[1:] {
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
	host := strings.TrimPrefix(s.url, "http://")
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	tcp, ok := nc.(*net.TCPConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("a connection to %s is a %T", host, nc), nc.Close())
	}
	if err := tcp.SetReadBuffer(4096); err != nil { // so that it is full soon
		return nil, errors.Join(err, nc.Close())
	}
	body := fmt.Sprintf(`{"sessionId":%q}`, id)
	_, err = fmt.Fprintf(nc, "POST /roost.v1.SessionService/Watch HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"+
		"Content-Type: application/connect+json\r\nContent-Length: %d\r\n\r\n\x00\x00\x00\x00%c%s", host, s.token, 5+len(body), len(body), body)
	return nc, err
}
