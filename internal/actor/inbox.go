package actor

import (
	"context"
	"sync"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

// Limits of an inbox.
const (
	maxPending = 256 << 10 // bytes of parts that wait for the actor; the provider is not read meanwhile
	maxMerged  = 4 << 10   // bytes up to which adjacent parts are merged while they wait
	partCost   = 64        // bytes that a part is counted as beside its text
)

// inbox holds the parts of an answer until the actor takes them. Parts gather while the actor
// appends, so the events of a busy session grow and those of a quiet one do not wait.
type inbox struct {
	wake func()
	room chan struct{} // has room for one signal: pending went down

	mu      sync.Mutex
	parts   []provider.Part
	spare   []provider.Part // was parts, empty, to be parts again
	grown   []byte          // the text of the last part, when others were merged into it
	pending int
	err     error
	finish  *provider.Part
	usage   *session.Usage
	closed  bool // the stream has ended
}

func newInbox(wake func()) *inbox { return &inbox{wake: wake, room: make(chan struct{}, 1)} }

// push adds a part, and waits while too much waits already. It returns false if ctx ended.
func (b *inbox) push(ctx context.Context, part provider.Part) bool {
	full := b.add(part)
	b.wake()
	for full {
		select {
		case <-b.room:
		case <-ctx.Done():
			return false
		}
		b.mu.Lock()
		full = b.pending > maxPending
		b.mu.Unlock()
	}
	return ctx.Err() == nil
}

// add reports whether too much waits.
func (b *inbox) add(part provider.Part) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch part.Kind {
	case provider.UsageReport:
		b.usage = &part.Usage
		return false
	case provider.Finish:
		b.finish = &part
		return false
	case provider.TextDelta, provider.ReasoningDelta, provider.ReasoningEnd, provider.CallStart, provider.CallDelta, provider.CallEnd:
	}
	if last := len(b.parts) - 1; last >= 0 && b.mergeable(&b.parts[last], &part) {
		if len(b.grown) == 0 {
			b.grown = append(b.grown, b.parts[last].Text...)
		}
		b.grown = append(b.grown, part.Text...)
	} else {
		b.endMerge()
		b.parts = append(b.parts, part)
	}
	b.pending += len(part.Text) + partCost
	return b.pending > maxPending
}

func (b *inbox) mergeable(last, part *provider.Part) bool {
	if last.Kind != part.Kind || last.Key != part.Key || max(len(last.Text), len(b.grown))+len(part.Text) > maxMerged {
		return false
	}
	return last.Kind == provider.TextDelta || last.Kind == provider.ReasoningDelta || last.Kind == provider.CallDelta
}

// endMerge gives the last part the text that was merged into it.
func (b *inbox) endMerge() {
	if len(b.grown) > 0 {
		b.parts[len(b.parts)-1].Text = string(b.grown)
		b.grown = b.grown[:0]
	}
}

// end says that no more parts come, because of err if it is not nil.
func (b *inbox) end(err error) {
	b.mu.Lock()
	b.err, b.closed = err, true
	b.mu.Unlock()
	b.wake()
}

// take returns the parts that wait, to be given back with release, and whether they are the
// last.
func (b *inbox) take() (parts []provider.Part, last bool) {
	b.mu.Lock()
	b.endMerge()
	parts, last = b.parts, b.closed
	b.parts, b.spare, b.pending = b.spare, nil, 0
	b.mu.Unlock()
	select {
	case b.room <- struct{}{}:
	default:
	}
	return parts, last
}

func (b *inbox) release(parts []provider.Part) {
	clear(parts)
	b.mu.Lock()
	b.spare = parts[:0]
	b.mu.Unlock()
}

// outcome returns how the stream ended: with an error, or with what the provider said last.
func (b *inbox) outcome() (finish *provider.Part, usage *session.Usage, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.finish, b.usage, b.err
}
