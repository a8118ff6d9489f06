package sqlitelog

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

const (
	// maxWaiting is how many requests wait in line; more wait at their caller.
	maxWaiting = 256
	// maxBatch bounds the bytes of one transaction, and so how long a small append waits
	// behind large ones.
	maxBatch = 4 << 20
	// maxCached bounds the sessions whose row is kept in memory.
	maxCached = 4096
)

// request is a piece of a transaction. It may be done twice, the first time in vain.
type request struct {
	do   func(*writer) error
	size int // bytes it writes, roughly
	done chan error
}

// writer is the one who changes the database. All but requests, done and observe belongs to its
// goroutine.
type writer struct {
	requests chan request
	done     chan struct{}
	observe  atomic.Pointer[func(time.Duration)] // told how long a commit took; nil until somebody asks

	db    *sql.DB
	conn  *sql.Conn
	stmt  statements
	check *checkpointer

	cache   map[session.ID]*row
	garbage bool // there may be rows to sweep
	stalled bool // a transaction has failed, so sweeping waits until one succeeds
}

func newWriter(ctx context.Context, db *sql.DB, conn *sql.Conn, check *checkpointer) (*writer, error) {
	w := &writer{
		requests: make(chan request, maxWaiting),
		done:     make(chan struct{}),
		db:       db, conn: conn, check: check,
		cache:   make(map[session.ID]*row),
		garbage: true,
	}
	return w, w.stmt.prepare(ctx, conn)
}

// run works until requests is closed and empty.
func (w *writer) run() {
	defer close(w.done)
	for {
		batch, open := w.next()
		if len(batch) > 0 || w.garbage {
			w.commit(batch)
		}
		if !open {
			return
		}
	}
}

// next returns all requests that wait. While there is garbage to sweep it does not wait for
// the first one.
func (w *writer) next() (batch []request, open bool) {
	var first request
	if w.garbage {
		select {
		case first, open = <-w.requests:
		default:
			return nil, true
		}
	} else {
		first, open = <-w.requests
	}
	if !open {
		return nil, false
	}
	batch = append(batch, first)
	for size := first.size; size < maxBatch; {
		select {
		case r, open := <-w.requests:
			if !open {
				return batch, false
			}
			batch = append(batch, r)
			size += r.size
		default:
			return batch, true
		}
	}
	return batch, true
}

// commit does a batch in one transaction. When that fails, each request gets its own, so
// that one that cannot be stored does not take the others along.
func (w *writer) commit(batch []request) {
	if w.check.failed.Load() {
		// What is read back may be older than what was written, so nothing may be built on it.
		w.garbage = false
		for _, r := range batch {
			r.done <- eventlog.ErrDisk
		}
		return
	}
	answers := make([]error, len(batch))
	err := w.transaction(func() error {
		for i, r := range batch {
			answers[i] = r.do(w)
			if answers[i] != nil && !refused(answers[i]) {
				return answers[i]
			}
		}
		return w.sweep()
	})
	if err != nil {
		w.garbage, w.stalled = false, true // a full disk is no reason to spin
		for i, r := range batch {
			answers[i] = w.again(r, err)
		}
	} else if w.stalled {
		w.garbage, w.stalled = true, false
	}
	size := 0
	for i, r := range batch {
		r.done <- answers[i]
		size += r.size
	}
	w.check.wrote(w, size, len(batch)+1) // one more for the sweep
}

// again does a request by itself, whose batch has failed.
func (w *writer) again(r request, batch error) error {
	err := storeError(w.transaction(func() error { return r.do(w) }))
	if errors.Is(err, eventlog.ErrFull) && undecided(batch) {
		// ErrFull would promise that nothing was written, and the batch was: after a loss of
		// power it may be there.
		return batch
	}
	return err
}

// refused reports whether a request ended before it wrote anything, so that the transaction
// may go on.
func refused(err error) bool {
	return errors.Is(err, eventlog.ErrFenced) || errors.Is(err, eventlog.ErrNotFound) || errors.Is(err, eventlog.ErrCompacted)
}

// transaction runs do in a transaction, and undoes everything when it or the commit fails.
func (w *writer) transaction(do func() error) error {
	ctx := context.Background()
	began := time.Now()
	_, err := w.stmt.begin.ExecContext(ctx)
	if err == nil {
		err = do()
	}
	if err == nil {
		_, err = w.stmt.commit.ExecContext(ctx)
	}
	if err != nil {
		clear(w.cache)
		// SQLite may have rolled back already, which makes this fail; either way it is over.
		_, _ = w.stmt.rollback.ExecContext(ctx)
	} else if f := w.observe.Load(); f != nil {
		(*f)(time.Since(began))
	}
	return err
}

// close is the last of the connections to close, so SQLite makes a checkpoint, and removes the
// write-ahead log unless a sync has failed before.
func (w *writer) close() error {
	var err error
	if w.check.failed.Load() {
		err = keepWAL(w.conn)
	}
	return errors.Join(err, w.stmt.close(), w.conn.Close(), w.db.Close())
}
