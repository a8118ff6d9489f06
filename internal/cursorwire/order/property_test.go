package order_test

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire/order"
)

// packet is one arrival of an append.
type packet struct {
	at      time.Duration
	message order.Message[int64]
}

const messages = 120

// client sends messages with 16 in flight: each arrives in any order within its window, some twice,
// some after the gap, some never. It returns the arrivals, and which messages arrive in time.
func client(r *rand.Rand, begin time.Duration, hash byte, lossy bool) (packets []packet, inTime, arrives map[int64]bool) {
	inTime, arrives = map[int64]bool{}, map[int64]bool{}
	for seq := range int64(messages) {
		m := order.Message[int64]{Seq: seq, Hash: [32]byte{hash}, Size: 100, Value: seq}
		switch {
		case seq == 0:
			m.Kind = order.Start
		case r.IntN(4) == 0:
			m.Kind = order.Free
		}
		// A message leaves every 50 ms and takes up to 16 times as long: 16 are in flight.
		at := begin + time.Duration(seq)*50*time.Millisecond + time.Duration(r.IntN(800))*time.Millisecond
		if seq == 0 && begin > 0 {
			at = begin // only the first epoch's start may be overtaken
		}
		arrives[seq], inTime[seq] = true, true
		if lossy && seq > 0 {
			switch r.IntN(20) {
			case 0:
				arrives[seq], inTime[seq] = false, false
				continue
			case 1:
				at += limits.Gap + time.Second
				inTime[seq] = false
			}
		}
		packets = append(packets, packet{at, m})
		for range r.IntN(3) / 2 {
			packets = append(packets, packet{at + time.Duration(r.IntN(3000))*time.Millisecond, m})
		}
	}
	return packets, inTime, arrives
}

// run plays packets with a timer at the deadline, and returns what was applied, and when.
func run(t *testing.T, s *order.Stream[int64], packets []packet) (applied []int64, late map[int64]bool, when map[int64]time.Duration) {
	t.Helper()
	slices.SortStableFunc(packets, func(a, b packet) int { return cmp.Compare(a.at, b.at) })
	late, when = map[int64]bool{}, map[int64]time.Duration{}
	take := func(r order.Result[int64], at time.Duration) {
		for _, seq := range r.Ready {
			if _, twice := when[seq]; twice {
				t.Fatalf("%d is applied twice", seq)
			}
			when[seq], late[seq] = at, r.Late
			applied = append(applied, seq)
		}
	}
	expire := func(until time.Duration) {
		for due, ok := s.Deadline(); ok && due.Before(epoch.Add(until)); due, ok = s.Deadline() {
			take(s.Expire(due), due.Sub(epoch))
		}
	}
	for _, p := range packets {
		expire(p.at)
		take(s.Accept(p.message, epoch.Add(p.at)), p.at)
	}
	expire(1 << 50)
	return applied, late, when
}

// Whatever the order of arrival: each message that arrives is applied once; those that need an order
// have it, unless one was given up; nothing waits longer than the gap; and the id can be used again.
func TestRandomArrivals(t *testing.T) {
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := order.New[int64](order.Limits{Messages: 64, Bytes: 1 << 20, Gap: limits.Gap})
		begin := time.Duration(0)
		for round := range byte(2) {
			lossy := seed%2 == 1
			packets, inTime, arrives := client(r, begin, round+1, lossy)
			applied, late, when := run(t, s, slices.Clone(packets))
			check(t, seed, packets, applied, late, when, inTime, arrives)
			if t.Failed() {
				return
			}
			for _, p := range packets {
				begin = max(begin, p.at+2*limits.Gap)
			}
		}
	}
}

func check(t *testing.T, seed uint64, packets []packet, applied []int64, late map[int64]bool, when map[int64]time.Duration, inTime, arrives map[int64]bool) {
	t.Helper()
	last := int64(-1)
	kinds, first := map[int64]order.Kind{}, map[int64]time.Duration{}
	for _, p := range packets {
		seq := p.message.Seq
		kinds[seq] = p.message.Kind
		if at, ok := first[seq]; !ok || p.at < at {
			first[seq] = p.at
		}
	}
	for _, seq := range applied {
		if kinds[seq] != order.Free && !late[seq] {
			if seq < last {
				t.Errorf("seed %d: %d after %d", seed, seq, last)
			}
			last = seq
		}
		if late[seq] && inTime[seq] && kinds[seq] != order.Free && first[seq] < limits.Gap {
			t.Errorf("seed %d: %d came in time and was given up", seed, seq)
		}
	}
	for seq := range int64(messages) {
		at, ok := when[seq]
		switch {
		case ok != arrives[seq]:
			t.Errorf("seed %d: %d arrives %v, applied %v", seed, seq, arrives[seq], ok)
		case ok && at > first[seq]+limits.Gap:
			t.Errorf("seed %d: %d waited %v", seed, seq, at-first[seq])
		}
	}
}
