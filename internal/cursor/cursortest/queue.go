package cursortest

import (
	"context"
	"sync"
)

// queue is a channel without a limit, for what a client has to send.
type queue[T any] struct {
	mu    sync.Mutex
	items []T
	more  chan struct{}
}

func newQueue[T any]() *queue[T] { return &queue[T]{more: make(chan struct{}, 1)} }

func (q *queue[T]) push(item T) {
	q.mu.Lock()
	q.items = append(q.items, item)
	q.mu.Unlock()
	select {
	case q.more <- struct{}{}:
	default:
	}
}

// pop waits for an item, for one goroutine; ok is false when ctx has ended.
func (q *queue[T]) pop(ctx context.Context) (item T, ok bool) {
	for ctx.Err() == nil {
		q.mu.Lock()
		if len(q.items) > 0 {
			item, q.items = q.items[0], q.items[1:]
			q.mu.Unlock()
			return item, true
		}
		q.mu.Unlock()
		select {
		case <-q.more:
		case <-ctx.Done():
		}
	}
	return item, false
}
