package fstool

import (
	"context"
	"fmt"
	"sync"
)

// queue lets one change of a file happen at a time, by the file's real path.
type queue struct {
	mu    sync.Mutex
	files map[string]*place // those in use
}

type place struct {
	turn  chan struct{} // holds a value while someone has the file
	users int           // who has it or waits for it; guarded by queue.mu
}

func newQueue() *queue { return &queue{files: map[string]*place{}} }

// enter waits for the file's turn. The caller calls leave when it is done.
func (q *queue) enter(ctx context.Context, real string) (leave func(), err error) {
	q.mu.Lock()
	p := q.files[real]
	if p == nil {
		p = &place{turn: make(chan struct{}, 1)}
		q.files[real] = p
	}
	p.users++
	q.mu.Unlock()
	select {
	case p.turn <- struct{}{}:
		return func() { <-p.turn; q.drop(real, p) }, nil
	case <-ctx.Done():
		q.drop(real, p)
		return nil, fmt.Errorf("waiting for another change of the file: %w", context.Cause(ctx))
	}
}

func (q *queue) drop(real string, p *place) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if p.users--; p.users == 0 {
		delete(q.files, real)
	}
}
