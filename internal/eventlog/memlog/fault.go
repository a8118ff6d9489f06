package memlog

import (
	"context"
	"errors"

	"github.com/roost-dev/roost/internal/eventlog"
)

// ErrInjected is the error of a write that was told to fail. Its outcome is unknown to the
// caller, as the port says.
var ErrInjected = errors.New("injected fault of the event log")

// Fault is what happens to one write.
type Fault int

// The faults.
const (
	None   Fault = iota
	Before       // nothing is written, and the write returns ErrInjected
	After        // all is written, and the write returns ErrInjected all the same
	Full         // nothing is written, and the write returns eventlog.ErrFull
)

// Fail makes the n-th write from now fail, counted from 1. Writes are the calls of Append,
// Compact and Delete that begin.
func (l *Log) Fail(n int, fault Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults[l.writes+n] = fault
}

// Writes returns how many writes have begun.
func (l *Log) Writes() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.writes
}

// Crash ends the log as the death of its process would, and returns what a new process finds:
// all that was acknowledged, and nothing of the writes that are under way. Those and all later
// calls return [eventlog.ErrClosed]. (A write that was stored and never acknowledged is one with
// the fault After and a Crash behind it.)
func (l *Log) Crash() *Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed, l.crashed = true, true
	next := New()
	next.Delay, next.sessions = l.Delay, l.sessions
	l.sessions = nil
	return next
}

// write runs do with the lock held, once the write has begun and unless a fault says no.
func (l *Log) write(ctx context.Context, do func() error) error {
	fault, err := l.begin(ctx)
	if err != nil {
		return err
	}
	defer l.begun.Done()
	if l.Delay != nil {
		l.Delay()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.crashed {
		return eventlog.ErrClosed
	}
	switch fault {
	case Before:
		return ErrInjected
	case Full:
		return eventlog.ErrFull
	case After:
		if err := do(); err != nil {
			return err
		}
		return ErrInjected
	case None:
	}
	return do()
}

func (l *Log) begin(ctx context.Context) (Fault, error) {
	if err := ctx.Err(); err != nil {
		return None, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return None, eventlog.ErrClosed
	}
	l.begun.Add(1)
	l.writes++
	fault := l.faults[l.writes]
	delete(l.faults, l.writes)
	return fault, nil
}
