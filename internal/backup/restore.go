package backup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/internal/datadir"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
)

// restoring is the name of the database until everything else of a backup is in place.
const restoring = sqlitelog.FileName + ".restore"

// Verify checks that a backup is as it was made: every file by its SHA-256, and the database by
// SQLite. Errors: ErrNoBackup, ErrNewer, ErrDamaged.
func Verify(ctx context.Context, src string) (*Manifest, error) {
	m, err := verify(ctx, src)
	if err != nil {
		return nil, fmt.Errorf("verify backup %s: %w", src, err)
	}
	return m, nil
}

func verify(ctx context.Context, src string) (m *Manifest, err error) {
	root, err := os.OpenRoot(src)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if m, err = readManifest(root); err != nil {
		return nil, err
	}
	for _, want := range m.Files {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := compare(root, want.Path, want); err != nil {
			return nil, err
		}
	}
	if err := whole(ctx, src); err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrDamaged, err)
	}
	return m, nil
}

// compare checks that the file name is what the manifest says.
func compare(root *os.Root, name string, want File) error {
	have, err := sum(root, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%w (%s is missing)", ErrDamaged, want.Path)
	case err != nil:
		return err
	case have.Size != want.Size || have.SHA256 != want.SHA256:
		return fmt.Errorf("%w (%s is not what was backed up)", ErrDamaged, want.Path)
	}
	return nil
}

// Restore makes a data directory from a backup, in dir, which does not exist or is empty. The
// epoch rises, so that a client which knows more of a session than the backup does is told to
// load it again. The database gets its name last: a server does not start on a directory that is
// half restored. Errors: those of Verify and datadir.Open, and ErrNotEmpty.
func Restore(ctx context.Context, src, dir string, now time.Time) (m *Manifest, err error) {
	if m, err = Verify(ctx, src); err != nil {
		return nil, err
	}
	if err := restore(ctx, src, dir, m, now); err != nil {
		return nil, fmt.Errorf("restore %s: %w", dir, err)
	}
	return m, nil
}

func restore(ctx context.Context, src, dir string, m *Manifest, now time.Time) (err error) {
	if err := empty(dir); err != nil {
		return err
	}
	data, err := datadir.Open(dir) // from here on no server can start on it
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, data.Close()) }()
	if err := empty(dir); err != nil {
		return err
	}
	from, err := os.OpenRoot(src)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.OpenRoot(data.Path())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	c := &copier{from: from, to: to}
	for _, f := range m.Files {
		if err := c.restore(ctx, f); err != nil {
			return err
		}
	}
	if err := sqlitelog.RaiseEpoch(ctx, data.Join(restoring), now); err != nil {
		return err
	}
	if err := c.sync(); err != nil {
		return err
	}
	if err := os.Rename(data.Join(restoring), data.Join(sqlitelog.FileName)); err != nil {
		return err
	}
	return syncDir(data.Path())
}

// restore copies a file and looks at what it has copied.
func (c *copier) restore(ctx context.Context, f File) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	target := f.Path
	if target == sqlitelog.FileName {
		target = restoring
	}
	have, err := c.copy(f.Path, target)
	if err == nil && have != f {
		err = fmt.Errorf("%w (%s has changed since it was verified)", ErrDamaged, f.Path)
	}
	return err
}

// empty reports ErrNotEmpty unless dir is missing or has nothing but a lock in it.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() != "lock" {
			return fmt.Errorf("%w (it has %s)", ErrNotEmpty, filepath.Join(dir, e.Name()))
		}
	}
	return nil
}
