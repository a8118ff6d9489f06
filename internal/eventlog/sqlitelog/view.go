package sqlitelog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

// ErrOlder says that the database has an older form, which a View does not change.
var ErrOlder = errors.New("event log database has an older form: start this roost on it once, which brings it up to date")

// viewPragmas are for a connection that cannot write. The page cache is larger than a server's,
// because a view reads everything.
const viewPragmas = "mode=ro&_pragma=busy_timeout(5000)&_pragma=cache_size(-8192)&_pragma=mmap_size(0)"

// View is a database as it was at one moment, for tools that look into it: nothing is changed,
// and a server may have the database open and go on writing. While a View is open the write-ahead
// log of that server cannot begin anew, so it should not be open for long. It is not safe for
// concurrent use.
type View struct {
	db    *sql.DB
	conn  *sql.Conn
	tx    *sql.Tx
	index bool // there is an index of sessions
}

// Entry is a session as a View has it.
type Entry struct {
	ID      session.ID   // empty when nothing readable says it
	Meta    session.Meta // its row in the index, zero without one
	Indexed bool         // it has a row in the index
	num     int64
}

// Number is the session's number in the database, which is never given to another.
func (e Entry) Number() int64 { return e.num }

// OpenView opens the database in the directory dir. Errors: ErrDamaged, ErrNewer, ErrForeign,
// ErrOlder, ErrMissing, or fs.ErrNotExist when there is none and nothing that says there was one.
func OpenView(ctx context.Context, dir string) (*View, error) {
	path := filepath.Join(dir, FileName)
	gone, err := missing(dir)
	if gone {
		err = ErrMissing
	}
	var v *View
	if err == nil {
		v, err = openView(ctx, path)
	}
	if err != nil {
		return nil, fmt.Errorf("look into event log %s: %w", path, openError(err))
	}
	return v, nil
}

func openView(ctx context.Context, path string) (*View, error) {
	if info, err := os.Stat(path); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%w (it is no file)", ErrDamaged)
	} else if info.Size() == 0 {
		return nil, fs.ErrNotExist // a server that was killed while it made it
	}
	v := &View{db: connect(path, viewPragmas)}
	var err error
	if v.conn, err = v.db.Conn(ctx); err != nil {
		return nil, errors.Join(err, v.db.Close())
	}
	if err := v.begin(ctx, path); err != nil {
		return nil, errors.Join(err, v.Close())
	}
	return v, nil
}

func (v *View) begin(ctx context.Context, path string) (err error) {
	have, names, err := schema(ctx, v.conn)
	if err != nil {
		return err
	}
	if have < len(names) {
		return ErrOlder
	}
	if err := checkSize(ctx, path, v.conn); err != nil {
		return err
	}
	// Not ctx: it ends the transaction behind the back of whoever reads, who looks at it himself.
	if v.tx, err = v.conn.BeginTx(context.WithoutCancel(ctx), nil); err != nil {
		return err
	}
	return v.tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'sessions')`).Scan(&v.index)
}

// Close gives the database free.
func (v *View) Close() error {
	var errs []error
	if v.tx != nil {
		errs = append(errs, v.tx.Rollback())
	}
	return errors.Join(append(errs, v.conn.Close(), v.db.Close())...)
}

// Epoch is the incarnation of the log.
func (v *View) Epoch() (session.Epoch, error) {
	var epoch int64
	err := v.tx.QueryRow(`SELECT value FROM meta WHERE name = 'epoch'`).Scan(&epoch)
	return session.Epoch(epoch), storeError(err)
}

// HasIndex reports whether there is a table for the index of sessions.
func (v *View) HasIndex() bool { return v.index }

// Integrity returns what SQLite finds wrong with the file, at most 20 lines; none is good. The
// thorough check also compares SQLite's own indexes with the tables and takes several times
// longer.
func (v *View) Integrity(thorough bool) ([]string, error) {
	query := `PRAGMA quick_check(20)`
	if thorough {
		query = `PRAGMA integrity_check(20)`
	}
	lines, err := column[string](v.tx, query)
	if code(err) != 0 { // so damaged that the check itself cannot go on
		return append(lines, err.Error()), nil
	}
	return slices.DeleteFunc(lines, func(s string) bool { return s == "ok" }), err
}

// Entries returns the sessions: those of the index, and those of which something is stored
// without being there. It finds what it can when parts of the database cannot be read.
func (v *View) Entries(ctx context.Context) ([]Entry, error) {
	var entries []Entry
	known := make(map[int64]bool)
	if v.index {
		indexed, err := v.indexed()
		if err != nil && code(err) == 0 {
			return nil, err
		}
		for _, e := range indexed {
			known[e.num] = true
		}
		entries = indexed
	}
	for num := range v.stored() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !known[num] {
			known[num] = true
			entries = append(entries, Entry{ID: v.id(num), num: num})
		}
	}
	return entries, nil
}

// Find returns a session by its id, or ErrNotFound.
func (v *View) Find(ctx context.Context, id session.ID) (Entry, error) {
	entries, err := v.Entries(ctx)
	if err != nil {
		return Entry{}, err
	}
	i := slices.IndexFunc(entries, func(e Entry) bool { return e.ID == id })
	if i < 0 {
		return Entry{}, fmt.Errorf("session %s: %w", id, eventlog.ErrNotFound)
	}
	return entries[i], nil
}

func (v *View) indexed() ([]Entry, error) {
	rows, err := v.tx.Query(`SELECT num, id, ` + metaColumns + ` FROM sessions ORDER BY num`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var entries []Entry
	for rows.Next() {
		e := Entry{Indexed: true}
		if err := rows.Scan(append([]any{&e.num}, metaFields(&e.Meta)...)...); err != nil {
			return entries, err
		}
		e.ID = e.Meta.ID
		entries = append(entries, e)
	}
	return entries, rows.Err()
}

// stored yields the numbers of the sessions that have events or a snapshot and are not deleted.
// It goes from one number to the next by the tables' order, so it reads little; where that meets
// a damaged page, it tries every number instead.
func (v *View) stored() iter.Seq[int64] {
	return func(yield func(int64) bool) {
		damaged := false
		for num := int64(0); ; {
			next, err := v.next(num)
			if damaged = err != nil; damaged || next == 0 {
				break
			}
			if num = next; !v.gone(num) && !yield(num) {
				return
			}
		}
		if !damaged {
			return
		}
		for num := range min(v.highest(), maxNumber) {
			if !v.gone(num+1) && !yield(num+1) {
				return
			}
		}
	}
}

// next returns the lowest number above num of which something is stored, or 0.
func (v *View) next(num int64) (next int64, err error) {
	err = v.tx.QueryRow(`SELECT coalesce(min(n), 0) FROM (SELECT min(session) AS n FROM events WHERE session > ?1
		UNION ALL SELECT min(session) FROM snapshots WHERE session > ?1)`, num).Scan(&next)
	return next, err
}

func (v *View) gone(num int64) bool {
	var gone bool
	err := v.tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM garbage WHERE session = ? AND gone)`, num).Scan(&gone)
	return err == nil && gone
}

// maxNumber bounds how many numbers are tried one by one in a damaged database.
const maxNumber = 1_000_000

// highest returns the highest number that anything says was given to a session.
func (v *View) highest() (highest int64) {
	for _, query := range []string{
		`SELECT seq FROM sqlite_sequence WHERE name = 'sessions'`, `SELECT max(num) FROM sessions`,
		`SELECT max(session) FROM events`, `SELECT max(session) FROM snapshots`,
	} {
		var n int64
		if v.tx.QueryRow(query).Scan(&n) == nil {
			highest = max(highest, n)
		}
	}
	return highest
}

// id finds the id of a session without the index; empty when it cannot be read.
func (v *View) id(num int64) session.ID {
	var data []byte
	if v.tx.QueryRow(`SELECT head FROM snapshots WHERE session = ?`, num).Scan(&data) == nil {
		if h, err := eventlog.DecodeHead(data); err == nil {
			return h.ID
		}
	}
	if v.tx.QueryRow(`SELECT data FROM events WHERE session = ? AND seq = 1`, num).Scan(&data) == nil {
		if r, err := eventlog.DecodeRecord(data); err == nil {
			if c, ok := r.Event.(session.Created); ok {
				return c.ID
			}
		}
	}
	return ""
}

// Load returns the snapshot of a session, the zero Snapshot when it has none, or ErrCorrupt.
func (v *View) Load(e Entry) (eventlog.Snapshot, error) {
	p, err := v.place(e.num)
	if err != nil || p.snapshot == 0 {
		return eventlog.Snapshot{}, storeError(err)
	}
	s, err := loadSnapshot(v.tx, e.num)
	return s, storeError(err)
}

// Records yields the records of a session after a sequence number, in order and without gaps;
// those that the snapshot replaces cannot be asked for. It yields ErrCorrupt where that is not
// possible.
func (v *View) Records(e Entry, after session.Seq) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		p, err := v.place(e.num)
		if err == nil && after < p.snapshot {
			err = fmt.Errorf("%w: the snapshot ends at %d", eventlog.ErrCompacted, p.snapshot)
		}
		for err == nil && after < p.last {
			var page []session.Record
			page, err = records(v.tx, e.num, after, p.last)
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
				after = r.Seq
			}
		}
		if err != nil {
			yield(session.Record{}, storeError(err))
		}
	}
}

func (v *View) place(num int64) (place, error) {
	p := place{num: num}
	err := v.tx.QueryRow(`SELECT coalesce((SELECT seq FROM snapshots WHERE session = ?1), 0),
		coalesce((SELECT max(seq) FROM events WHERE session = ?1), 0)`, num).Scan(&p.snapshot, &p.last)
	p.last = max(p.last, p.snapshot)
	return p, err
}

func column[T any](tx *sql.Tx, query string, args ...any) (values []T, err error) {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var value T
		if err := rows.Scan(&value); err != nil {
			return values, err
		}
		values = append(values, value)
	}
	return values, rows.Err()
}

// missing reports whether there is no database, or an empty one, where there has been one: beside
// its write-ahead log, or beside what sessions have stored.
func missing(dir string) (bool, error) {
	path := filepath.Join(dir, FileName)
	info, err := os.Stat(path)
	if err == nil && info.Size() > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if wal, err := os.Stat(path + "-wal"); err == nil && wal.Size() > 0 {
		return true, nil
	}
	for _, name := range []string{"blobs", "outputs", "damaged"} {
		entries, err := os.ReadDir(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
		if len(entries) > 0 {
			return true, nil
		}
	}
	return false, nil
}
