package sqlitelog

import (
	"context"
	"database/sql"
)

const (
	// checkpointAfter is how many bytes may be in the write-ahead log, roughly, before they
	// are copied into the database.
	checkpointAfter = 8 << 20
	// pageCost is what a request adds to the log beyond its own bytes: a page it changes.
	pageCost = 4096
)

// checkpointer copies the write-ahead log into the database while the writer goes on. What
// the writer has added meanwhile is little, so the writer then copies the rest itself, and
// the log begins anew: without that it would grow for as long as writes follow each other.
type checkpointer struct {
	db *sql.DB

	wake   chan struct{} // to the goroutine: the log is long
	copied chan struct{} // to the writer: all but the newest part has been copied
	quit   chan struct{}
	done   chan struct{}

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
		// An error leaves the log longer, and the next checkpoint tries again.
		_, _ = w.conn.ExecContext(context.Background(), `PRAGMA wal_checkpoint(PASSIVE)`)
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
		_, _ = c.db.Exec(`PRAGMA wal_checkpoint(PASSIVE)`)
		notify(c.copied)
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
