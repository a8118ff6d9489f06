package cursortest

import (
	"context"
	"errors"
	"sync"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// These handlers misbehave. Each is for Options.Execs, around [DefaultHandler] or another handler.

// Late carries out at once and answers when release is closed. The answer is lost if the stream is
// over by then.
func Late(release <-chan struct{}, h Handler) Handler {
	return func(ctx context.Context, e *Exec) error {
		held, err := e.hold(ctx, h)
		select {
		case <-release:
		case <-ctx.Done():
		case <-e.Gone():
		}
		e.replay(held)
		return err
	}
}

// Never does not answer, and goes on until the stream is over.
func Never() Handler {
	return func(ctx context.Context, e *Exec) error {
		select {
		case <-ctx.Done():
		case <-e.Gone():
		}
		e.Leave()
		return nil
	}
}

// Twice sends each answer two times.
func Twice(h Handler) Handler {
	return func(ctx context.Context, e *Exec) error {
		once := e.out
		e.out = func(m *agentv1.AgentClientMessage) {
			once(m)
			if m.GetExecClientMessage() != nil {
				once(m)
			}
		}
		return h(ctx, e)
	}
}

// CloseFirst closes the execution before its answers are sent.
func CloseFirst(h Handler) Handler {
	return func(ctx context.Context, e *Exec) error {
		held, err := e.hold(ctx, h)
		e.Close()
		e.replay(held)
		return err
	}
}

// CloseOnly closes the execution without an answer, and does nothing.
func CloseOnly() Handler { return func(context.Context, *Exec) error { return nil } }

// Throws fails with text, and does nothing.
func Throws(text string) Handler {
	return func(context.Context, *Exec) error { return errors.New(text) }
}

// Reversed waits until n executions have been carried out, and answers them in reverse order. Fewer
// than n wait until their stream is over.
func Reversed(n int, h Handler) Handler {
	var mu sync.Mutex
	var turns []chan struct{}
	return func(ctx context.Context, e *Exec) error {
		held, err := e.hold(ctx, h)
		mine := make(chan struct{})
		mu.Lock()
		turns = append(turns, mine)
		i := len(turns) - 1
		if i%n == n-1 {
			close(mine)
		}
		mu.Unlock()
		select {
		case <-mine:
		case <-ctx.Done():
		case <-e.Gone():
		}
		e.replay(held)
		e.Close()
		mu.Lock()
		defer mu.Unlock()
		if i%n > 0 {
			defer close(turns[i-1])
		}
		return err
	}
}

// hold runs h and keeps its answers. How h ends the execution is forgotten.
func (e *Exec) hold(ctx context.Context, h Handler) (held []*agentv1.AgentClientMessage, err error) {
	var mu sync.Mutex
	err = h(ctx, &Exec{
		Execution: e.Execution, Client: e.Client, begun: e.begun, a: e.a, ended: true,
		out: func(m *agentv1.AgentClientMessage) {
			mu.Lock()
			defer mu.Unlock()
			held = append(held, m)
		},
	})
	return held, err
}

func (e *Exec) replay(held []*agentv1.AgentClientMessage) {
	for _, m := range held {
		e.out(m)
	}
}
