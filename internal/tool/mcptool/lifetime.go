package mcptool

import (
	"context"
	"fmt"
	"sync"
)

// lifetime is when a manager's goroutines may run. It is safe for concurrent use.
type lifetime struct {
	ctx    context.Context // what is started lives longer than the call that starts it
	cancel context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	work   sync.WaitGroup
}

func newLifetime() *lifetime {
	l := new(lifetime)
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// start runs f in a goroutine, with a context that ends with the lifetime. It returns false,
// and does nothing, after the end.
func (l *lifetime) start(f func(ctx context.Context)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.work.Go(func() { f(l.ctx) })
	return true
}

// close ends the lifetime and reports whether it had not ended before.
func (l *lifetime) close() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.closed = true
	l.cancel(ErrClosed)
	return true
}

// over returns a channel that is closed when all goroutines have ended.
func (l *lifetime) over() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		l.work.Wait()
	}()
	return done
}

// guarded calls f, and turns a panic of code that reads what servers send into an error.
func guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its answer cannot be understood: %v", r)
		}
	}()
	return f()
}
