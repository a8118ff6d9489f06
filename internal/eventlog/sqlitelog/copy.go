package sqlitelog

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// Copy writes the database in the directory dir, as it is at one moment, to a new file (0600),
// also while a server has it open and goes on writing. The copy is one file without free pages,
// and durable when Copy returns. Errors: those of OpenView, and fs.ErrExist.
func Copy(ctx context.Context, dir, dest string) (err error) {
	v, err := OpenView(ctx, dir) // for its errors, which say what is wrong with the database
	if err != nil {
		return err
	}
	if err := v.Close(); err != nil {
		return err
	}
	// SQLite would make the file readable for everybody; an empty one it takes as it is.
	f, err := os.OpenFile(dest, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("copy event log: %w", err)
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(fmt.Errorf("copy event log: %w", err), os.Remove(dest))
		}
	}()
	db := connect(filepath.Join(dir, FileName), viewPragmas)
	_, err = db.ExecContext(ctx, `VACUUM INTO ?`, dest)
	if err = errors.Join(storeError(err), db.Close()); err != nil {
		return err
	}
	return f.Sync()
}

// RaiseEpoch makes the database in the file path, which nobody has open, another incarnation of
// its history, because events that clients have seen may be missing from it. The new epoch is
// the time in milliseconds, so that it differs from that of any other copy that was raised.
func RaiseEpoch(ctx context.Context, path string, now time.Time) error {
	if _, err := os.Stat(path); err != nil {
		return fmt.Errorf("raise epoch: %w", err)
	}
	db := connect(path, "mode=rw&_pragma=synchronous(FULL)&_pragma=mmap_size(0)")
	_, err := db.ExecContext(ctx, `UPDATE meta SET value = max(value + 1, ?) WHERE name = 'epoch'`, now.UnixMilli())
	if err = errors.Join(openError(err), db.Close()); err != nil {
		return fmt.Errorf("raise epoch of %s: %w", path, err)
	}
	return nil
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// removeIfThere removes a file that may be missing.
func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
