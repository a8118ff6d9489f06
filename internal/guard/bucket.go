package guard

import (
	"sync"
	"time"
)

// Refused requests: a burst is answered and logged in full, then one a second.
const (
	burst  = 20
	refill = time.Second
)

// bucket limits failures. There is one for everybody: tokens cannot be guessed, so the limit
// only keeps the log and the answers small, and one bucket cannot grow with the attackers.
type bucket struct {
	now func() time.Time

	mu    sync.Mutex
	spent time.Time // when the failures so far will be forgotten
}

// take reports whether one more failure is within the limit, and counts it.
func (b *bucket) take() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	if b.spent.Before(now) {
		b.spent = now
	}
	if b.spent.Sub(now) > (burst-1)*refill {
		return false
	}
	b.spent = b.spent.Add(refill)
	return true
}
