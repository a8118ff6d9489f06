package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	roost "github.com/roost-dev/roost/client"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

const (
	maxTurns = 8               // of one session, before it is deleted and another one made
	turnTime = 3 * time.Minute // after which a run counts as stuck
	maxTold  = 20              // errors that are told one by one
)

// lives is the sessions that there are, and what they should hold. It is safe for concurrent
// use.
type lives struct {
	api *roost.Client

	turns, sessions, deleted, aborted, wrong atomic.Int64
	written                                  atomic.Int64 // bytes of text, ever

	mu   sync.Mutex
	all  map[string]*life
	live int64 // bytes of text in sessions that are there
	peak int64 // the most that live has been
	told []error
}

// life is what was done in a session.
type life struct {
	tasks   []task
	aborted []bool
	content int64 // bytes of text
}

// failed keeps an error for the verdict.
func (s *lives) failed(err error) {
	s.wrong.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.told) < maxTold {
		s.told = append(s.told, err)
	}
}

// did notes a turn of a session.
func (s *lives) did(id string, t task, aborted bool) {
	content := int64(len(t.String()) + len(t.text()) + t.tools*len(soakText))
	s.turns.Add(1)
	s.written.Add(content)
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.all[id]
	if l == nil {
		l = new(life)
		s.all[id] = l
		s.sessions.Add(1)
	}
	l.tasks, l.aborted, l.content = append(l.tasks, t), append(l.aborted, aborted), l.content+content
	s.live += content
	s.peak = max(s.peak, s.live)
	if aborted {
		s.aborted.Add(1)
	}
}

// content returns the bytes of text in sessions that are there, and the most that it has been.
func (s *lives) content() (live, peak int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live, s.peak
}

// end checks a session and deletes it.
func (s *lives) end(ctx context.Context, id string) error {
	if err := s.verify(ctx, id); err != nil {
		return err
	}
	if err := s.api.Delete(ctx, id); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	s.deleted.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live -= s.all[id].content
	delete(s.all, id)
	return nil
}

// verify checks the transcript of a session against what was done in it.
func (s *lives) verify(ctx context.Context, id string) error {
	_, items, err := s.api.Transcript(ctx, id)
	if err != nil {
		return fmt.Errorf("transcript: %w", err)
	}
	s.mu.Lock()
	l := s.all[id]
	s.mu.Unlock()
	texts, calls := turnsOf(items)
	if l == nil || len(texts) != len(l.tasks) {
		return fmt.Errorf("the transcript has %d turns, and should have those of %+v", len(texts), l)
	}
	for i, t := range l.tasks {
		if err := t.check(texts[i], l.aborted[i]); err != nil {
			return fmt.Errorf("transcript: %w", err)
		}
		if calls[i] != t.tools && !l.aborted[i] {
			return fmt.Errorf("transcript: %d calls succeeded of %q", calls[i], t)
		}
	}
	return nil
}

// turnsOf returns the text of each turn of a transcript, and how many calls it has that
// succeeded.
func turnsOf(items []*roostv1.Item) (texts []string, calls []int) {
	for _, i := range items {
		switch {
		case i.GetUser() != nil && i.GetUser().Note == "":
			texts, calls = append(texts, ""), append(calls, 0)
		case len(texts) == 0:
		case i.GetTool().GetStatus() == roostv1.Status_STATUS_COMPLETE:
			calls[len(calls)-1]++
		default:
			texts[len(texts)-1] += spoken(i)
		}
	}
	return texts, calls
}

// verifyAll checks what is left at the end.
func (s *lives) verifyAll(ctx context.Context) {
	s.mu.Lock()
	ids := slices.Sorted(maps.Keys(s.all))
	s.mu.Unlock()
	for _, id := range ids {
		if err := s.verify(ctx, id); err != nil {
			s.failed(fmt.Errorf("session %s: %w", id, err))
		}
	}
}

// live has one session after the other live its life, until stop is closed. Think is how long
// there is between two turns, on average.
func (s *soak) live(ctx context.Context, stop <-chan struct{}, think time.Duration, chance *rand.Rand) {
	for {
		speaker, err := s.speaker(chance)
		if err == nil {
			err = s.oneLife(ctx, stop, speaker, think, chance)
			speaker.close()
		}
		if err != nil {
			s.lives.failed(err)
			err = wait(stop, time.Second)
		} else {
			err = wait(stop, 0)
		}
		if err != nil {
			return
		}
	}
}

// speaker makes a client: of ten, four speak roost's own API, four pi's protocol, two Cursor's.
func (s *soak) speaker(chance *rand.Rand) (speaker, error) {
	switch n := chance.IntN(10); {
	case n < 4:
		return newOwn(s.home, chance)
	case n < 8:
		return newPi(s.home, chance), nil
	}
	return newCursor(s.home, s.url, s.token, chance), nil
}

// oneLife is a session from its creation to its end.
func (s *soak) oneLife(ctx context.Context, stop <-chan struct{}, c speaker, think time.Duration, chance *rand.Rand) error {
	id, err := c.begin(ctx)
	if err != nil {
		return fmt.Errorf("a session cannot be made: %w", err)
	}
	for range 1 + chance.IntN(maxTurns) {
		if wait(stop, time.Duration(chance.Int64N(int64(2*think)))) != nil {
			return nil
		}
		t := task{seed: chance.Uint64(), tokens: 50 + chance.IntN(150), rate: 100}
		if chance.IntN(4) == 0 {
			t.tools = 1 + chance.IntN(2)
		}
		if err := s.oneTurn(ctx, c, id, t); err != nil {
			return fmt.Errorf("%T %s: %w", c, id, err)
		}
	}
	if err := s.lives.end(ctx, id); err != nil {
		return fmt.Errorf("%T %s: %w", c, id, err)
	}
	return nil
}

func (s *soak) oneTurn(ctx context.Context, c speaker, id string, t task) error {
	ctx, cancel := context.WithTimeoutCause(ctx, turnTime, errors.New("the run is stuck"))
	defer cancel()
	aborted, err := c.turn(ctx, t)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	s.lives.did(id, t, aborted)
	return nil
}

var errStopped = errors.New("the soak is over")

// wait waits, and returns errStopped once stop is closed.
func wait(stop <-chan struct{}, d time.Duration) error {
	select {
	case <-stop:
		return errStopped
	default:
	}
	select {
	case <-time.After(d):
		return nil
	case <-stop:
		return errStopped
	}
}
