// Package live hands the events of a session to whoever watches it: first what happened
// since the position a watcher comes from, then what happens. It sits between the actor,
// which publishes what is already in the event log, and the front ends, which encode it.
//
// A watcher reads at its own pace and never slows the session. What it has not read yet
// waits in a queue of bounded size; past the limit the queue is dropped and the watcher gets
// the whole state instead.
package live

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/roost-dev/roost/internal/session"
)

// Limit is how many bytes of events may wait for one watcher, counted as their text plus
// what their records cost in memory.
const Limit = 256 << 10

// ErrClosed is the default reason that a subscription has ended.
var ErrClosed = errors.New("subscription is closed")

// ErrRemoved ends the subscriptions of a session that was deleted.
var ErrRemoved = errors.New("session was removed")

// Update is what a watcher learns at once.
type Update struct {
	// Reset says that State replaces everything the watcher knows; Records is empty then.
	Reset bool
	// Records are the next events, without gap or repeat.
	Records []session.Record
	// State is the state after Records, for reading only. It is nil while a watcher that
	// came back with a position is being told what it missed.
	State *session.State
}

// Hub is the set of watchers of one session. The zero Hub is ready. It is safe for
// concurrent use.
type Hub struct {
	mu     sync.Mutex
	subs   map[*Subscription]struct{}
	reason error // why there are no more watchers; nil while there may be
}

// Len returns the number of watchers.
func (h *Hub) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.subs)
}

// Subscribe adds a watcher that knows nothing or, when missed is not nil, everything before
// missed. State is the session's state now: the caller makes sure that nothing is published
// between state and the call. Missed yields the records up to state.Seq; if it yields an
// error, the watcher gets a Reset.
func (h *Hub) Subscribe(state *session.State, missed iter.Seq2[session.Record, error]) *Subscription {
	s := &Subscription{hub: h, ready: make(chan struct{}, 1), state: state}
	if missed == nil {
		s.reset = true
		s.ready <- struct{}{}
	} else {
		s.missed = &history{state: state}
		s.missed.next, s.missed.stop = iter.Pull2(missed)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason != nil {
		s.end(h.reason)
		return s
	}
	if h.subs == nil {
		h.subs = make(map[*Subscription]struct{})
	}
	h.subs[s] = struct{}{}
	return s
}

// Publish hands records, and the state after them, to every watcher. It never blocks. The
// watchers share records and state, so neither may change any more.
func (h *Hub) Publish(records []session.Record, state *session.State) {
	h.mu.Lock()
	defer h.mu.Unlock()
	cost := Cost(records)
	for s := range h.subs {
		s.push(records, state, cost)
	}
}

// Close ends every subscription with err, also those that are made later. The first reason
// stays.
func (h *Hub) Close(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.reason == nil {
		h.reason = err
	}
	for s := range h.subs {
		s.end(err)
	}
	h.subs = nil
}

func (h *Hub) remove(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.subs, s)
}

// Subscription is one watcher's view of a session. Next is called from one goroutine; Close
// may be called from any, any number of times.
type Subscription struct {
	// Earliest is the first position that could have been resumed when the subscription was made. It
	// is set before the subscription is handed to its watcher.
	Earliest session.Seq

	hub     *Hub
	ready   chan struct{} // has room for one signal: something is queued
	onClose []func()
	onSlow  func()
	closed  sync.Once

	missedMu sync.Mutex
	missed   *history // nil once it has been told

	mu      sync.Mutex
	records []session.Record
	state   *session.State
	cost    int
	reset   bool
	fresh   bool // something was published since the last update
	err     error
}

// OnClose has f called once when the watcher closes the subscription, after those of earlier
// calls. It is called before the subscription is handed to its watcher.
func (s *Subscription) OnClose(f func()) { s.onClose = append(s.onClose, f) }

// OnSlow has f called each time the watcher loses its queue because it does not read. F must
// not block, and must not call the subscription. OnSlow is called before the subscription is
// handed to its watcher, and once.
func (s *Subscription) OnSlow(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.onSlow = f
}

func (s *Subscription) push(records []session.Record, state *session.State, cost int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return
	}
	s.state, s.fresh = state, true
	switch {
	case s.reset:
	case s.cost+cost > Limit:
		s.reset, s.records, s.cost = true, nil, 0
		if s.onSlow != nil {
			s.onSlow()
		}
	default:
		s.records = append(s.records, records...)
		s.cost += cost
	}
	s.signal()
}

// Touch makes Next return at once, with the newest state and perhaps no records.
func (s *Subscription) Touch() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh = true
	s.signal()
}

// Err returns why the subscription has ended, nil while it has not.
func (s *Subscription) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *Subscription) end(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err, s.records, s.state = err, nil, nil
	}
	s.signal()
}

func (s *Subscription) signal() {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Next waits for the next update. It returns ctx's error, the reason the session ended the
// subscription, or ErrClosed.
func (s *Subscription) Next(ctx context.Context) (Update, error) {
	if u, ok := s.catchUp(); ok {
		return u, nil
	}
	for {
		if u, ok, err := s.take(); ok || err != nil {
			return u, err
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return Update{}, ctx.Err()
		}
	}
}

func (s *Subscription) take() (Update, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return Update{}, false, s.err
	case s.reset:
		s.reset, s.fresh = false, false
		return Update{Reset: true, State: s.state}, true, nil
	case s.fresh:
		u := Update{Records: s.records, State: s.state}
		s.records, s.cost, s.fresh = nil, 0, false
		return u, true, nil
	}
	return Update{}, false, nil
}

// Close ends the subscription and releases what it holds.
func (s *Subscription) Close() {
	s.closed.Do(func() {
		s.hub.remove(s)
		s.end(ErrClosed)
		s.missedMu.Lock()
		if s.missed != nil {
			s.missed.stop()
			s.missed = nil
		}
		s.missedMu.Unlock()
		for _, f := range s.onClose {
			f()
		}
	})
}

// history is what a watcher missed while it was away.
type history struct {
	next  func() (session.Record, error, bool)
	stop  func()
	state *session.State // at the end of what was missed
}

// catchUp returns the next piece of what the watcher missed, while there is any.
func (s *Subscription) catchUp() (Update, bool) {
	s.missedMu.Lock()
	defer s.missedMu.Unlock()
	if s.missed == nil {
		return Update{}, false
	}
	var u Update
	for cost := 0; cost < Limit/2; {
		r, err, ok := s.missed.next()
		if ok && err == nil && r.Seq <= s.missed.state.Seq {
			u.Records = append(u.Records, r)
			cost += Cost(u.Records[len(u.Records)-1:])
			continue
		}
		s.missed.stop()
		s.missed = nil
		if err != nil {
			s.mu.Lock()
			s.reset, s.records, s.cost = true, nil, 0
			s.mu.Unlock()
		}
		break
	}
	return u, len(u.Records) > 0
}

// recordCost is about what a record takes in memory beside its texts.
const recordCost = 96

// Cost returns about how many bytes records take in memory.
func Cost(records []session.Record) int {
	cost := 0
	for _, r := range records {
		cost += recordCost
		switch e := r.Event.(type) {
		case session.Delta:
			cost += len(e.Text)
		case session.ToolOutput:
			cost += len(e.Text)
		case session.ToolEnded:
			cost += len(e.Output) + len(e.Details)
		}
	}
	return cost
}
