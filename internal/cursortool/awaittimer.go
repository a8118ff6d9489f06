package cursortool

import "time"

// tickNow asks for a Tick at once: a machine has no clock, so that is how it learns the time.
const tickNow = time.Millisecond

// timer runs from the first Tick, which is asked for at the start.
type timer struct {
	after       time.Duration
	start, last time.Time
}

// tick says whether the time is over, and how long it takes until then.
func (t *timer) tick(now time.Time) (over bool, left time.Duration) {
	if t.start.IsZero() {
		t.start = now
	}
	t.last = now
	left = t.after - now.Sub(t.start)
	return left <= 0, max(left, 0)
}

// passed is the time from the first Tick to the last one.
func (t *timer) passed() time.Duration { return t.last.Sub(t.start) }
