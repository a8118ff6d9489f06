package sqlitelog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

// SalvageName is the file in which a database is made anew, beside the old one.
const SalvageName = FileName + ".salvage"

// Salvage makes the damaged database in the directory dir anew from the sessions that good says
// can be read, and moves the old one, with all that belongs to it, into the directory aside,
// which exists. It returns the sessions it could not copy in spite of good. The epoch rises, as
// events may be missing. Nobody else may have the database open. A crash leaves the old database,
// or none and the old one in aside, never a mixture.
func Salvage(ctx context.Context, dir, aside string, good func(*View, Entry) bool, now time.Time) (lost []Entry, err error) {
	fresh := filepath.Join(dir, SalvageName)
	if lost, err = rescue(ctx, dir, fresh, good); err == nil {
		err = RaiseEpoch(ctx, fresh, now)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("salvage event log: %w", err), removeIfThere(fresh))
	}
	// The write-ahead log must not stay: SQLite would add it to the new file.
	for _, suffix := range []string{"", "-wal", "-shm"} {
		err := os.Rename(filepath.Join(dir, FileName+suffix), filepath.Join(aside, FileName+suffix))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("salvage event log: %w", err)
		}
	}
	if err := errors.Join(syncDir(aside), syncDir(dir)); err != nil {
		return nil, fmt.Errorf("salvage event log: %w", err)
	}
	if err := os.Rename(fresh, filepath.Join(dir, FileName)); err != nil {
		return nil, fmt.Errorf("salvage event log: %w", err)
	}
	return lost, syncDir(dir)
}

// rescue copies the good sessions of the database in dir into the new file fresh.
func rescue(ctx context.Context, dir, fresh string, good func(*View, Entry) bool) (lost []Entry, err error) {
	v, err := OpenView(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if err := removeIfThere(fresh); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(fresh, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Close(); err != nil {
		return nil, err
	}
	db := connect(fresh, "_pragma=synchronous(FULL)&_pragma=mmap_size(0)")
	defer func() { err = errors.Join(err, db.Close()) }()
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if err := migrate(ctx, conn); err != nil {
		return nil, err
	}
	if _, err := conn.ExecContext(ctx, `ATTACH ? AS old`, uri(filepath.Join(dir, FileName), "mode=ro")); err != nil {
		return nil, err
	}
	return copyAll(ctx, v, conn, good)
}

func copyAll(ctx context.Context, v *View, conn *sql.Conn, good func(*View, Entry) bool) (lost []Entry, err error) {
	if epoch, err := v.Epoch(); err == nil {
		if _, err := conn.ExecContext(ctx, `UPDATE meta SET value = ? WHERE name = 'epoch'`, int64(epoch)); err != nil {
			return nil, err
		}
	}
	entries, err := v.Entries(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !good(v, e) {
			continue
		}
		switch err := v.copyTo(ctx, conn, e); {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case errors.Is(storeError(err), eventlog.ErrFull):
			return nil, storeError(err)
		case err != nil:
			lost = append(lost, e)
		}
	}
	// A number is never used again, also when its session is not in the new database.
	_, err = conn.ExecContext(ctx, `DELETE FROM sqlite_sequence WHERE name = 'sessions';
		INSERT INTO sqlite_sequence (name, seq) VALUES ('sessions', ?)`, v.highest())
	return lost, err
}

// copyTo copies what is stored of a session, all or nothing, and makes its row of the index.
func (v *View) copyTo(ctx context.Context, conn *sql.Conn, e Entry) error {
	meta, _, err := v.Meta(e)
	if err != nil {
		return err
	}
	p, err := v.place(e.num)
	if err != nil {
		return err
	}
	tx, err := conn.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	queries := []string{`INSERT INTO events SELECT * FROM old.events WHERE session = ?1 AND seq > ?2`}
	if p.snapshot > 0 { // without one the tables below are not looked into: they may be damaged
		queries = append(queries, `INSERT INTO snapshots SELECT * FROM old.snapshots WHERE session = ?1`,
			`INSERT INTO chunks SELECT * FROM old.chunks WHERE session = ?1`)
	}
	for _, query := range queries {
		if _, err := tx.ExecContext(ctx, query, e.num, int64(p.snapshot)); err != nil {
			return errors.Join(err, tx.Rollback())
		}
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO sessions (num, id, `+metaColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		append([]any{e.num, string(meta.ID)}, metaValues(meta)...)...)
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Meta is what the index should say of a session: the fold of its snapshot and events. Its time
// is exact if the events say it, and else that of the snapshot, which may be later.
func (v *View) Meta(e Entry) (meta session.Meta, exact bool, err error) {
	snapshot, err := v.Load(e)
	if err != nil {
		return meta, false, err
	}
	if snapshot.Head.Seq > 0 {
		meta = eventlog.MetaOf(snapshot.Head)
	}
	for r, err := range v.Records(e, snapshot.Head.Seq) {
		if err != nil {
			return meta, false, err
		}
		exact = meta.Apply(r) || exact
	}
	return meta, exact, nil
}
