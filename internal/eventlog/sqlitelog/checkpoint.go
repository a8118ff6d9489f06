package sqlitelog

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"sync/atomic"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

const (
	// checkpointAfter is how many bytes may be in the write-ahead log, roughly, before they
	// are copied into the database.
	checkpointAfter = 8 << 20
	// pageCost is what a request adds to the log beyond its own bytes: a page it changes.
	pageCost = 4096
)

const checkpoint = `PRAGMA wal_checkpoint(PASSIVE)`

// checkpointer copies the write-ahead log into the database while the writer goes on. What
// the writer has added meanwhile is little, so the writer then copies the rest itself, and
// the log begins anew: without that it would grow for as long as writes follow each other.
type checkpointer struct {
	db *sql.DB

	wake   chan struct{} // to the goroutine: the log is long
	copied chan struct{} // to the writer: all but the newest part has been copied
	quit   chan struct{}
	done   chan struct{}

	mu     sync.Mutex  // held while a checkpoint is made, so that none follows a failed sync
	failed atomic.Bool // a sync failed; no more checkpoints are made, and nothing is written

	size int // the writer's: bytes since the log began anew
}

func newCheckpointer(db *sql.DB) *checkpointer {
	return &checkpointer{
		db:   db,
		wake: make(chan struct{}, 1), copied: make(chan struct{}, 1),
		quit: make(chan struct{}), done: make(chan struct{}),
	}
}

// wrote is called by the writer after each transaction.
func (c *checkpointer) wrote(w *writer, size, requests int) {
	c.size += size + requests*pageCost
	select {
	case <-c.copied:
		if c.mu.TryLock() { // else one is being made, and will tell
			c.copy(w.conn)
			c.mu.Unlock()
		}
		c.size = 0
	default:
	}
	if c.size >= checkpointAfter {
		notify(c.wake)
	}
}

func (c *checkpointer) run() {
	defer close(c.done)
	for {
		select {
		case <-c.wake:
		case <-c.quit:
			return
		}
		c.mu.Lock()
		c.copy(c.db)
		c.mu.Unlock()
		notify(c.copied)
	}
}

// copy makes a checkpoint. Most errors leave the log longer, and the next checkpoint tries again.
// A failed sync is different: the system takes what it could not write for written, and SQLite
// does not write again what an earlier checkpoint has copied and left for this one to sync. If the
// log began anew after that, data would be gone. So it stays as it is, until the next start copies
// all of it once more.
func (c *checkpointer) copy(db interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
},
) {
	if c.failed.Load() {
		return
	}
	_, err := db.ExecContext(context.Background(), checkpoint)
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code() == sqlite3.SQLITE_IOERR_FSYNC {
		c.failed.Store(true)
	}
}

func (c *checkpointer) stop() {
	close(c.quit)
	<-c.done
}

func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
