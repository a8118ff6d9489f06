package memlog

import (
	"context"
	"errors"
	"fmt"

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
	Torn         // half is written, so that nothing of it counts, and the write returns ErrInjected
)

// Fail makes the n-th write from now fail, counted from 1. Writes are the calls of Append,
// Compact and Delete that begin.
func (l *Log) Fail(n int, fault Fault) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults[l.writes+n] = fault
}

// Mend takes back every fault that has not happened yet.
func (l *Log) Mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	clear(l.faults)
	l.crashAt = 0
}

// CrashAt ends the log in the middle of the n-th write from now, counted from 1, as the death of
// its process would: after the fault, which says how much of the write has reached the disk, the
// write and all later calls return [eventlog.ErrClosed]. Then is called in a goroutine of its own.
// What a new process finds is what Crash returns.
func (l *Log) CrashAt(n int, fault Fault, then func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.faults[l.writes+n], l.crashAt, l.onCrash = fault, l.writes+n, then
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
	for _, h := range next.sessions {
		h.torn = false
	}
	return next
}

// Revoke takes the log away from its owner, as the end of a lease would, and returns the log of the
// next one, which has all that was written. Writes to the old log, those under way included, return
// [eventlog.ErrFenced]; what was read there can still be read.
func (l *Log) Revoke() *Log {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := New()
	next.Delay = l.Delay
	for id, h := range l.sessions {
		next.sessions[id] = new(*h)
	}
	l.revoked = true
	return next
}

// write runs do with the lock held, once the write has begun and unless a fault says no.
func (l *Log) write(ctx context.Context, do func() error) error {
	fault, last, err := l.begin(ctx)
	if err != nil {
		return err
	}
	defer l.begun.Done()
	if l.Delay != nil {
		l.Delay()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.crashed:
		return eventlog.ErrClosed
	case l.revoked:
		return fmt.Errorf("%w: it has another owner", eventlog.ErrFenced)
	case last:
		err := l.obey(fault, do)
		l.closed, l.crashed = true, true
		go l.onCrash()
		if err == nil || errors.Is(err, ErrInjected) {
			err = eventlog.ErrClosed
		}
		return err
	}
	return l.obey(fault, do)
}

// obey does what is left of a write after a fault.
func (l *Log) obey(fault Fault, do func() error) error {
	switch fault {
	case Before:
		return ErrInjected
	case Full:
		return eventlog.ErrFull
	case Torn:
		l.tear = true
		defer func() { l.tear = false }()
		if err := do(); err != nil {
			return err
		}
		return ErrInjected
	case After:
		if err := do(); err != nil {
			return err
		}
		return ErrInjected
	case None:
	}
	return do()
}

// begin returns what happens to the write that begins, and whether it is the last one.
func (l *Log) begin(ctx context.Context) (fault Fault, last bool, err error) {
	if err := ctx.Err(); err != nil {
		return None, false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return None, false, eventlog.ErrClosed
	}
	l.begun.Add(1)
	l.writes++
	fault = l.faults[l.writes]
	delete(l.faults, l.writes)
	return fault, l.writes == l.crashAt, nil
}
