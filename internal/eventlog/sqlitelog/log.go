// Package sqlitelog is the event log of one node: a SQLite database, which anybody can look
// into with the sqlite3 program.
//
//	Append ┐                    ┌─▶ one transaction, one fsync ─▶ roost.db-wal
//	Append ┼─▶ writer goroutine ┤                                      │
//	Delete ┘   takes all that   └─▶ answers                            │ checkpointer
//	           wait                                                    ▼ goroutine
//	Load, Read, List ◀──────── connections of their own ─────────── roost.db
//
// One goroutine writes. It takes everything that waits into one transaction, so batches
// grow with the load and the cost of an append falls. Readers see committed data only and
// never hold the writer up. Rows that a snapshot or a deletion makes useless are removed in
// small steps, so that a long session does not stop the others.
package sqlitelog

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"modernc.org/sqlite"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

// FileName is the name of the database in the data directory.
const FileName = "roost.db"

var (
	// ErrDamaged says that the database cannot be opened because it is damaged, or is not a
	// database at all.
	ErrDamaged = errors.New("event log database is damaged: restore a backup, or try `sqlite3 roost.db .recover`")
	// ErrMissing says that there is no database where there are other things of sessions.
	ErrMissing = errors.New("event log database is missing, though the directory holds other data of sessions: restore a backup into a new directory, or put the file back; to begin without the old sessions, choose another directory")
	// ErrUnwritable says that the database or its directory cannot be written, which reading needs
	// as well.
	ErrUnwritable = errors.New("event log database cannot be written: look at the owner and mode of the directory and of roost.db, and whether the disk is mounted read-only")
	// ErrNewer says that a newer roost has written the database.
	ErrNewer = errors.New("event log database was written by a newer roost: use that version")
	// ErrForeign says that the file is a database of another program.
	ErrForeign = errors.New("event log database belongs to another program: choose another data directory")
)

var _ eventlog.Log = (*Log)(nil)

// Log is an event log in a SQLite database. The caller makes sure that one process only has
// the directory open. After a failed sync of the database, writes return [eventlog.ErrDisk]. All methods are
// safe for concurrent use.
type Log struct {
	epoch   session.Epoch
	readers *sql.DB
	rebuilt bool  // the index was lost and made anew at Open
	unread  error // the sessions that could not be read then

	writer *writer
	check  *checkpointer

	mu     sync.RWMutex // held for reading while a request is handed over or a page is read
	closed bool
}

// Open opens the database in the directory dir and makes it when there is none. The time it
// takes does not depend on the number of sessions, unless their index is lost: it is made anew
// then, see IndexRebuilt. It returns ErrDamaged, ErrMissing, ErrUnwritable, ErrNewer or ErrForeign when the file
// cannot be used.
func Open(dir string) (*Log, error) {
	// On ext4 fsync waits for the file's timestamps, which no reader needs. Where there is no
	// fdatasync, fsync remains.
	_, _ = sqlite.Fdatasync(true)
	path := filepath.Join(dir, FileName)
	if gone, err := missing(dir); gone || err != nil {
		return nil, fmt.Errorf("open event log %s: %w", path, cmp.Or(err, ErrMissing))
	}
	// SQLite would make the file readable for everybody.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	if err := f.Close(); err != nil {
		return nil, fmt.Errorf("open event log: %w", err)
	}
	l, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("open event log %s: %w", path, err)
	}
	return l, nil
}

func open(path string) (*Log, error) {
	ctx := context.Background()
	db := connect(path, writerPragmas)
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, errors.Join(openError(err), db.Close())
	}
	l, err := start(ctx, path, db, conn)
	if err != nil {
		return nil, errors.Join(openError(err), conn.Close(), db.Close())
	}
	return l, nil
}

func start(ctx context.Context, path string, db *sql.DB, conn *sql.Conn) (*Log, error) {
	if err := migrate(ctx, conn); err != nil {
		return nil, err
	}
	if err := checkSize(ctx, path, conn); err != nil {
		return nil, err
	}
	var epoch int64
	if err := conn.QueryRowContext(ctx, `SELECT value FROM meta WHERE name = 'epoch'`).Scan(&epoch); err != nil {
		return nil, err
	}
	lost, err := indexLost(ctx, conn)
	if err != nil {
		return nil, err
	}
	check := newCheckpointer(connect(path, checkpointPragmas))
	w, err := newWriter(ctx, db, conn, check)
	if err != nil {
		return nil, errors.Join(err, check.db.Close())
	}
	readers := connect(path, readerPragmas)
	readers.SetMaxOpenConns(maxReaders)
	readers.SetMaxIdleConns(1)
	l := &Log{epoch: session.Epoch(epoch), readers: readers, writer: w, check: check}
	go check.run()
	go w.run()
	if lost {
		l.rebuilt, l.unread = true, l.RebuildIndex(ctx)
	}
	return l, nil
}

// Epoch is the incarnation of the log.
func (l *Log) Epoch() session.Epoch { return l.epoch }

// IndexRebuilt reports whether Open has found the index of sessions lost and made it anew. The
// error joins those of the sessions that could not be read, which the index lacks.
func (l *Log) IndexRebuilt() (bool, error) { return l.rebuilt, l.unread }

// ObserveCommits has f called after each transaction that was committed, with the time that it
// took. F is called from one goroutine, which everyone who writes waits for; a later call
// replaces it.
func (l *Log) ObserveCommits(f func(time.Duration)) { l.writer.observe.Store(&f) }

// Close waits for writes that have begun, brings the database into one file and closes it.
// Later calls of any method return [eventlog.ErrClosed]; closing again does nothing.
func (l *Log) Close() error {
	l.mu.Lock()
	if l.closed {
		l.mu.Unlock()
		return nil
	}
	l.closed = true
	close(l.writer.requests)
	l.mu.Unlock()

	<-l.writer.done
	l.check.stop()
	// The last connection to close copies the write-ahead log into the database.
	return errors.Join(l.readers.Close(), l.check.db.Close(), l.writer.close())
}

// write hands a request to the writer and waits until it is on disk or has failed.
func (l *Log) write(ctx context.Context, size int, do func(*writer) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	r := request{do: do, size: size, done: make(chan error, 1)}
	if err := l.submit(ctx, r); err != nil {
		return err
	}
	return <-r.done
}

func (l *Log) submit(ctx context.Context, r request) error {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return eventlog.ErrClosed
	}
	select {
	case l.writer.requests <- r:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
