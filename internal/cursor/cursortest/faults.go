package cursortest

import (
	"math/rand/v2"
	"sync"
	"time"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Append is one message on its way to the server over BidiAppend.
type Append struct {
	// RequestID is that of the attempt.
	RequestID string
	// Seq counts the messages of the stream from 0.
	Seq     int64
	Message *agentv1.AgentClientMessage
}

// Pick chooses appends. It is called in the order of sequence numbers, once for each append.
type Pick func(r *rand.Rand, a Append) bool

// Faults is what happens to appends. The zero value is a network without faults; even then appends
// overtake each other, because they travel on connections of their own.
type Faults struct {
	// Seed is that of the random numbers which the functions are given.
	Seed uint64
	// Reorder delays the sending of an append, and of no other.
	Reorder func(r *rand.Rand, a Append) time.Duration
	// Duplicate sends an append twice, as an HTTP client does that lost a reply.
	Duplicate Pick
	// Drop loses an append before it is sent; the client does not notice.
	Drop Pick
	// DropResponse loses the reply: the server has the append, the client sees a broken connection
	// and gives up the attempt.
	DropResponse Pick
}

// Chance picks with probability p.
func Chance(p float64) Pick {
	return func(r *rand.Rand, _ Append) bool { return r.Float64() < p }
}

// Jitter is for Faults.Reorder: a delay below limit.
func Jitter(limit time.Duration) func(*rand.Rand, Append) time.Duration {
	return func(r *rand.Rand, _ Append) time.Duration { return time.Duration(r.Int64N(int64(limit))) }
}

// fate is what the faults have in store for one append.
type fate struct {
	delay                         time.Duration
	duplicate, drop, dropResponse bool
}

// dice throws for a client's appends.
type dice struct {
	faults Faults
	mu     sync.Mutex
	rand   *rand.Rand
}

func newDice(f Faults) *dice {
	return &dice{faults: f, rand: rand.New(rand.NewPCG(f.Seed, 0))}
}

func (d *dice) throw(a Append) fate {
	d.mu.Lock()
	defer d.mu.Unlock()
	pick := func(p Pick) bool { return p != nil && p(d.rand, a) }
	f := fate{duplicate: pick(d.faults.Duplicate), drop: pick(d.faults.Drop), dropResponse: pick(d.faults.DropResponse)}
	if d.faults.Reorder != nil {
		f.delay = d.faults.Reorder(d.rand, a)
	}
	return f
}
