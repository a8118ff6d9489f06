package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	roost "github.com/roost-dev/roost/client"
)

const (
	soakUnload = 20 * time.Second // until an idle session leaves memory
	soakFile   = "notes.txt"      // what tools read
	settleTime = 3 * time.Minute  // for the server to forget everyone once they have left
)

// soakText is what is in the file that tools read.
var soakText = strings.Repeat("A note of forty bytes, which tools read.\n", 30)

// soakOptions says how long and how much.
type soakOptions struct {
	duration time.Duration
	sessions int
	rate     float64 // turns a second, in all
}

func (o soakOptions) check() error {
	if o.duration < time.Minute || o.sessions < 1 || o.rate <= 0 {
		return fmt.Errorf("a soak takes a minute or more, and has sessions and a rate: %+v", o)
	}
	return nil
}

// think is how long a session rests between two turns, on average.
func (o soakOptions) think() time.Duration {
	return time.Duration(float64(o.sessions) / o.rate * float64(time.Second))
}

// every is how often the server is looked at.
func (o soakOptions) every() time.Duration {
	return min(time.Minute, max(2*time.Second, o.duration/30))
}

// soak is a server under load for a long time.
type soak struct {
	soakOptions
	home    *home
	server  *process
	url     string // of the HTTP listener
	token   string
	lives   *lives
	samples []sample
}

// work is where sessions work.
func (h *home) work() string { return filepath.Join(h.dir, "work") }

// soak has clients of all three protocols come and go, and writes what became of the server.
// The error says that it did not stay as it should.
func (l *lab) soak(ctx context.Context, o soakOptions, out io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	h, err := l.newHome(soakUnload)
	if err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(h.work(), 0o700), os.WriteFile(filepath.Join(h.work(), soakFile), []byte(soakText), 0o600)); err != nil {
		return errors.Join(err, h.remove())
	}
	s := &soak{soakOptions: o, home: h}
	return errors.Join(s.run(ctx, out), h.remove())
}

func (s *soak) run(ctx context.Context, out io.Writer) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	defer func() { s.server.kill() }()
	defer s.lives.api.Close()
	fmt.Fprintf(out, "%d sessions for %s, %s turns/s in all; a sample every %s.\n\n", s.sessions, s.duration, number(s.rate), s.every())
	before, err := s.sample(ctx)
	if err != nil {
		return err
	}
	if err := s.load(ctx, out); err != nil {
		return err
	}
	s.lives.verifyAll(ctx)
	after, err := s.settle(ctx, before)
	if err != nil {
		return err
	}
	// What is there must be there in another process too.
	server := s.server
	server.kill()
	if s.server, err = s.home.start(ctx); err != nil {
		return errors.Join(err, said(server))
	}
	s.lives.verifyAll(ctx)
	return s.verdict(out, before, after, server.errors.String())
}

// start starts the server and a client that looks.
func (s *soak) start(ctx context.Context) (err error) {
	if s.server, err = s.home.start(ctx); err != nil {
		return err
	}
	for word := range strings.FieldsSeq(s.server.line) {
		if url, ok := strings.CutPrefix(word, "http="); ok {
			s.url = url
		}
	}
	if s.token, err = roost.ReadToken(s.home.data()); err != nil {
		return err
	}
	api, err := roost.New(roost.Options{Address: "unix:" + s.home.socket() + ".http"})
	s.lives = &lives{api: api, all: make(map[string]*life)}
	return err
}

// load has everyone live until the time is over, and samples meanwhile.
func (s *soak) load(ctx context.Context, out io.Writer) error {
	stop := make(chan struct{})
	var living sync.WaitGroup
	for i := range s.sessions {
		chance := rand.New(rand.NewPCG(uint64(i), 1)) //nolint:gosec // no secret
		living.Go(func() { s.live(ctx, stop, s.think(), chance) })
	}
	living.Go(func() { s.floods(ctx, stop) })
	err := s.watch(ctx, out)
	close(stop)
	living.Wait()
	return err
}

// watch samples until the time is over.
func (s *soak) watch(ctx context.Context, out io.Writer) error {
	sampleHeader(out)
	tick := time.NewTicker(s.every())
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < s.duration; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
		x, err := s.sample(ctx)
		if err != nil {
			return err
		}
		x.at = time.Since(began)
		s.samples = append(s.samples, x)
		x.write(out)
	}
	return nil
}

// settle waits until the server has forgotten its clients, or should have.
func (s *soak) settle(ctx context.Context, before sample) (after sample, err error) {
	for began := time.Now(); time.Since(began) < settleTime; {
		if after, err = s.sample(ctx); err != nil || after.gone(before) {
			return after, err
		}
		if err := pause(ctx, time.Second); err != nil {
			return after, err
		}
	}
	return after, nil
}
