package cursor

import (
	"context"
	"sync"
)

// delivery is a message on its way to a driver.
type delivery struct {
	received
	size int
	kept <-chan struct{} // closed when it may go; nil for at once
}

// inbox hands messages to a driver in order, from many senders that do not wait for it. It is safe
// for concurrent use.
type inbox struct {
	out chan received

	mu     sync.Mutex
	queue  []delivery
	bytes  int           // of queue
	news   chan struct{} // has room for one signal; nil before there is a driver
	space  chan struct{} // closed when there is room again; nil while nobody waits
	closed bool          // no more come
	over   bool          // nobody takes any
}

// open readies the inbox for its driver, until ctx ends.
func (b *inbox) open(ctx context.Context, work *sync.WaitGroup) {
	b.mu.Lock()
	b.out, b.news = make(chan received), make(chan struct{}, 1)
	b.mu.Unlock()
	work.Go(func() {
		defer close(b.out)
		defer b.end()
		for {
			d, ok, closed := b.first()
			switch {
			case ok && !b.hand(ctx, d), !ok && closed:
				return
			case ok:
				continue
			}
			select {
			case <-b.news:
			case <-ctx.Done():
				return
			}
		}
	})
}

// hand gives d to the driver. It reports false when ctx has ended first.
func (b *inbox) hand(ctx context.Context, d delivery) bool {
	if d.kept != nil {
		select {
		case <-d.kept:
		case <-ctx.Done():
			return false
		}
	}
	select {
	case b.out <- d.received:
	case <-ctx.Done():
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.queue[0] = delivery{}
	b.queue = b.queue[1:]
	b.bytes -= d.size
	if b.space != nil && !b.full() {
		close(b.space)
		b.space = nil
	}
	return true
}

func (b *inbox) first() (d delivery, ok, closed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return delivery{}, false, b.closed
	}
	return b.queue[0], true, b.closed
}

func (b *inbox) full() bool { return len(b.queue) >= maxInbox || b.bytes >= maxInboxBytes }

// end acknowledges what nobody takes any more.
func (b *inbox) end() {
	b.mu.Lock()
	rest := b.queue
	b.queue, b.bytes, b.over = nil, 0, true
	if b.space != nil {
		close(b.space)
		b.space = nil
	}
	b.mu.Unlock()
	for _, d := range rest {
		d.Done(nil)
	}
}

// put queues d and never waits. It reports false, and does nothing, when nobody will take it.
func (b *inbox) put(d delivery) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.news == nil || b.closed || b.over {
		return false
	}
	b.queue = append(b.queue, d)
	b.bytes += d.size
	b.wake()
	return true
}

// room returns nil when there is room for more, and otherwise what is closed when there may be.
func (b *inbox) room() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.over || !b.full() {
		return nil
	}
	if b.space == nil {
		b.space = make(chan struct{})
	}
	return b.space
}

// close says that no more come.
func (b *inbox) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	b.wake()
}

// wake has the driver's goroutine look again. The caller holds mu.
func (b *inbox) wake() {
	select {
	case b.news <- struct{}{}:
	default:
	}
}
