package sqlitelog

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/roost-dev/roost/internal/eventlog"
)

// Page caches are small, because a session in use has its state in memory and is written
// only. cache_size is in KiB when negative. busy_timeout is for a person who looks into the
// database with another program.
const (
	writerPragmas     = "_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=wal_autocheckpoint(0)&_pragma=cache_size(-1024)&_pragma=mmap_size(0)"
	readerPragmas     = "_pragma=busy_timeout(5000)&_pragma=query_only(1)&_pragma=cache_size(-256)&_pragma=mmap_size(0)"
	checkpointPragmas = "_pragma=busy_timeout(0)&_pragma=synchronous(FULL)&_pragma=wal_autocheckpoint(0)&_pragma=cache_size(-64)&_pragma=mmap_size(0)"

	// maxReaders bounds the connections for reading, and so their memory.
	maxReaders = 4
)

// uri is how SQLite is told of the database at path.
func uri(path, query string) string {
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: query}
	return u.String()
}

// connect returns a pool for the database at path. It opens nothing yet.
func connect(path, pragmas string) *sql.DB {
	connector, err := sqlite.NewConnector(uri(path, pragmas))
	if err != nil {
		// The name and the pragmas are ours; only a mistake in them can get here.
		panic(fmt.Sprintf("sqlitelog: %v", err))
	}
	return sql.OpenDB(connector)
}

// applicationID marks the file as roost's: "roos" in ASCII.
const applicationID = 0x726f6f73

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the schema to the newest version. PRAGMA user_version counts the files of
// migrations that have been run; each runs in a transaction of its own.
func migrate(ctx context.Context, conn *sql.Conn) error {
	have, names, err := schema(ctx, conn)
	if err != nil {
		return err
	}
	for i, name := range names[have:] {
		script, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		step := fmt.Sprintf("BEGIN IMMEDIATE;\n%s\nPRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;", script, applicationID, have+i+1)
		if _, err := conn.ExecContext(ctx, step); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// schema returns how many of the migrations have been run, and all of them. It returns
// ErrForeign or ErrNewer when they are not for this database.
func schema(ctx context.Context, conn *sql.Conn) (have int, names []string, err error) {
	if names, err = fs.Glob(migrations, "migrations/*.sql"); err != nil {
		return 0, nil, err
	}
	var app, tables int
	row := conn.QueryRowContext(ctx, `SELECT v.user_version, a.application_id, (SELECT count(*) FROM sqlite_schema)
		FROM pragma_user_version v, pragma_application_id a`)
	if err := row.Scan(&have, &app, &tables); err != nil {
		return 0, nil, err
	}
	switch {
	case app != applicationID && (app != 0 || tables > 0):
		return 0, nil, ErrForeign
	case have > len(names):
		return 0, nil, fmt.Errorf("%w (its schema is %d, this one knows up to %d)", ErrNewer, have, len(names))
	}
	return have, names, nil
}

// checkSize finds a file that has lost its end, which SQLite notices only when it needs a
// page from there. While the write-ahead log holds pages, the file may be short rightly.
func checkSize(ctx context.Context, path string, conn *sql.Conn) error {
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		return nil
	}
	var want int64
	err := conn.QueryRowContext(ctx, `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`).Scan(&want)
	if err != nil {
		return err
	}
	file, err := os.Stat(path)
	if err != nil {
		return err
	}
	if file.Size() < want {
		return fmt.Errorf("%w (it has %d of %d bytes)", ErrDamaged, file.Size(), want)
	}
	return nil
}

// keepWAL has the write-ahead log stay when conn is closed.
func keepWAL(conn *sql.Conn) error {
	return conn.Raw(func(driver any) error {
		_, err := driver.(sqlite.FileControl).FileControlPersistWAL("main", 1)
		return err
	})
}

// code returns SQLite's primary result code, or 0 when err does not come from SQLite.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code() & 0xff
	}
	return 0
}

// openError says what is wrong with a database that cannot be opened.
func openError(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code() == sqlite3.SQLITE_READONLY_ROLLBACK {
		// The power was lost while a start made the database; who may only read cannot undo that.
		return fmt.Errorf("%w (%w)", ErrOlder, err)
	}
	switch code(err) {
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w (%w)", ErrDamaged, err)
	case sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM:
		return fmt.Errorf("%w (%w)", ErrUnwritable, err)
	}
	return storeError(err)
}

// storeError gives an error of SQLite the meaning that the port has for it.
func storeError(err error) error {
	if e, ok := errors.AsType[*sqlite.Error](err); ok && e.Code() == sqlite3.SQLITE_IOERR_WRITE {
		// A quota or a limit on files. A transaction whose write fails is not committed.
		return fmt.Errorf("%w (%w)", eventlog.ErrFull, err)
	}
	switch code(err) {
	case sqlite3.SQLITE_FULL:
		return fmt.Errorf("%w (%w)", eventlog.ErrFull, err)
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("%w (%w)", eventlog.ErrCorrupt, err)
	}
	return err
}

// undecided reports whether a transaction that ended with err may still be on the disk: it was
// written, and only then something failed, such as the sync.
func undecided(err error) bool {
	return code(err) == sqlite3.SQLITE_IOERR && !errors.Is(storeError(err), eventlog.ErrFull)
}
