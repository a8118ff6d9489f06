package order

import (
	"slices"
	"time"
)

// maxDone bounds the slots that are only marks, which are small.
const maxDone = 1024

// Stream orders the appends of one request id. It is not safe for concurrent use.
type Stream[T any] struct {
	limits  Limits
	starts  [2]start // of this epoch, by number: a client counts from 0, or from 1
	applied int64    // every number up to here is received or given up; -1 before the first
	waiting map[int64]slot[T]
	held    int // of waiting, how many hold a message
	bytes   int // and how much
	lost    ranges
}

// start is a Start that was received.
type start struct {
	seen bool
	hash [32]byte
}

// slot is a number above applied that was received. One that is done was applied at once.
type slot[T any] struct {
	message Message[T]
	arrived time.Time
	done    bool
}

// New returns a Stream that has seen nothing.
func New[T any](limits Limits) *Stream[T] {
	return &Stream[T]{limits: limits, applied: -1, waiting: map[int64]slot[T]{}}
}

// Accept takes a message that arrived at now. A message without a number, and a Free one, is ready at
// once; before the first Start a Free one waits like the others. A Start that differs from the one
// before, with the number with which the epoch began, begins a new epoch.
//
// What overtakes the Start of a later epoch counts as a duplicate from the former one, or is dropped
// with it. Clients do not send such: between the two they have nothing to answer.
func (s *Stream[T]) Accept(m Message[T], now time.Time) Result[T] {
	m.Seq = max(m.Seq, 0)
	if m.Kind == Start && m.Seq <= 1 {
		switch known := s.starts[m.Seq]; {
		case known.seen && known.hash == m.Hash:
			return Result[T]{Duplicate: true}
		case s.begins(m.Seq):
			return s.begin(m)
		}
		s.starts[m.Seq] = start{seen: true, hash: m.Hash}
	}
	switch _, dup := s.waiting[m.Seq]; {
	case m.Seq == 0: // no number
		return Result[T]{Ready: []T{m.Value}}
	case dup:
		return Result[T]{Duplicate: true}
	case m.Seq > s.applied:
		return s.ahead(m, now)
	case s.lost.remove(m.Seq):
		return Result[T]{Ready: []T{m.Value}, Late: true}
	default:
		return Result[T]{Duplicate: true}
	}
}

// begins reports whether a Start that was not received before begins an epoch. A client that counts
// from 0 may send one as its second message.
func (s *Stream[T]) begins(seq int64) bool {
	_, taken := s.waiting[1]
	secondIsOpen := s.starts[0].seen && !taken && s.applied < 1
	return seq == 0 || !secondIsOpen
}

func (s *Stream[T]) begin(m Message[T]) Result[T] {
	r := Result[T]{NewEpoch: true, Ready: []T{m.Value}}
	if s.starts[0].seen || s.starts[1].seen {
		r.Dropped = s.held
		*s = *New[T](s.limits)
	}
	s.starts[m.Seq] = start{seen: true, hash: m.Hash}
	s.lost.remove(m.Seq)
	s.applied = max(s.applied, m.Seq)
	early := s.waiting // what overtook the Start
	s.waiting, s.held, s.bytes = map[int64]slot[T]{}, 0, 0
	for _, e := range sorted(early) {
		if e.done {
			s.waiting[e.message.Seq] = e
			s.advance(&r)
			continue
		}
		r.Ready = append(r.Ready, s.Accept(e.message, e.arrived).Ready...)
	}
	return r
}

// ahead takes a message that is the next one or later.
func (s *Stream[T]) ahead(m Message[T], now time.Time) Result[T] {
	var r Result[T]
	if m.Kind == Free && s.applied >= 0 {
		r.Ready = []T{m.Value}
		m.Value = *new(T)
		s.waiting[m.Seq] = slot[T]{message: m, done: true}
	} else {
		s.waiting[m.Seq] = slot[T]{message: m, arrived: now}
		s.held++
		s.bytes += m.Size
	}
	s.advance(&r)
	for s.held > s.limits.Messages || s.bytes > s.limits.Bytes || len(s.waiting)-s.held > maxDone {
		s.skip(&r)
	}
	return r
}

// advance hands out what follows applied without a gap.
func (s *Stream[T]) advance(r *Result[T]) {
	for {
		next, ok := s.waiting[s.applied+1]
		if !ok {
			return
		}
		s.applied++
		delete(s.waiting, s.applied)
		if !next.done {
			s.held--
			s.bytes -= next.message.Size
			r.Ready = append(r.Ready, next.message.Value)
		}
	}
}

// skip gives up the numbers of the first gap. Something waits behind it.
func (s *Stream[T]) skip(r *Result[T]) {
	next := sorted(s.waiting)[0].message.Seq
	s.lost.add(s.applied+1, next-1)
	r.Skipped += next - 1 - s.applied
	s.applied = next - 1
	s.advance(r)
}

// Deadline returns when Expire has something to do; ok is false while nothing waits. It changes with
// every Accept and Expire.
func (s *Stream[T]) Deadline() (at time.Time, ok bool) {
	for _, e := range s.waiting {
		if due := e.arrived.Add(s.limits.Gap); !e.done && (!ok || due.Before(at)) {
			at, ok = due, true
		}
	}
	return at, ok
}

// Expire gives up what the messages that have waited since Limits.Gap before now are waiting for.
func (s *Stream[T]) Expire(now time.Time) Result[T] {
	var r Result[T]
	for at, ok := s.Deadline(); ok && !now.Before(at); at, ok = s.Deadline() {
		s.skip(&r)
	}
	return r
}

func sorted[T any](slots map[int64]slot[T]) []slot[T] {
	all := make([]slot[T], 0, len(slots))
	for _, e := range slots {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b slot[T]) int {
		if a.message.Seq < b.message.Seq {
			return -1
		}
		return 1
	})
	return all
}
