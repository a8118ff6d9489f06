package backup

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/blob"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
)

// Made is a backup that was made.
type Made struct {
	Manifest
	// Skipped are files that could not be copied as they should be, each with the reason. The
	// backup is whole without them.
	Skipped []string
}

// Make copies the data directory dir to dest, which must not exist and whose parent must. A
// server may work in dir meanwhile: the database is copied as it is at one moment, and all that
// its events refer to was there before. Dest appears when the backup is whole and durable; until
// then its name has ".unfinished" added, which a crash leaves behind. Errors: ErrNotEmpty, and
// those of sqlitelog.OpenView.
func Make(ctx context.Context, dir, dest, version string, now time.Time) (made *Made, err error) {
	if _, err := os.Lstat(dest); err == nil {
		return nil, fmt.Errorf("backup to %s: %w", dest, ErrNotEmpty)
	}
	temp := dest + ".unfinished"
	if err := os.Mkdir(temp, 0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			err = fmt.Errorf("%s is left of a backup that was not finished, or one is being made: remove it if none is", temp)
		}
		return nil, fmt.Errorf("backup to %s: %w", dest, err)
	}
	if made, err = fill(ctx, dir, temp, version, now); err == nil {
		if err = os.Rename(temp, dest); err == nil {
			err = syncDir(filepath.Dir(dest))
		}
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("backup to %s: %w", dest, err), os.RemoveAll(temp))
	}
	return made, nil
}

func fill(ctx context.Context, dir, temp, version string, now time.Time) (made *Made, err error) {
	from, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.OpenRoot(temp)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	// The database first: what its events name is in the directories already, and stays there.
	if err := sqlitelog.Copy(ctx, dir, filepath.Join(temp, sqlitelog.FileName)); err != nil {
		return nil, err
	}
	if err := whole(ctx, temp); err != nil {
		return nil, err
	}
	database, err := sum(to, sqlitelog.FileName)
	if err != nil {
		return nil, err
	}
	made = &Made{Manifest: Manifest{Format: format, Version: version, MadeAt: now.UTC().Truncate(time.Second), Files: []File{database}}}
	c := &copier{from: from, to: to}
	c.note(manifestName)
	for _, name := range append(files, trees...) {
		if err := made.add(ctx, c, name); err != nil {
			return nil, err
		}
	}
	if err := made.write(to); err != nil {
		return nil, err
	}
	return made, c.sync()
}

// add copies a file or a tree; what is missing is left out.
func (m *Made) add(ctx context.Context, c *copier, name string) error {
	return fs.WalkDir(c.from.FS(), name, func(name string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // there is none, or its session was deleted meanwhile
		}
		if err != nil || e.IsDir() {
			return errors.Join(err, ctx.Err())
		}
		base := filepath.Base(name)
		isBlob := strings.HasPrefix(name, "blobs/")
		if !e.Type().IsRegular() || isBlob && !blob.ValidHash(base) {
			return nil // a blob that is being written, a link that a tool has made
		}
		f, err := c.copy(name, name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if isBlob && f.SHA256 != base {
			m.Skipped = append(m.Skipped, name+": the blob is damaged")
			return c.to.Remove(filepath.FromSlash(name))
		}
		m.Files = append(m.Files, f)
		return nil
	})
}

// whole checks a database of which a copy was made.
func whole(ctx context.Context, dir string) error {
	v, err := sqlitelog.OpenView(ctx, dir)
	if err != nil {
		return err
	}
	lines, err := v.Integrity(false)
	if err = errors.Join(err, v.Close()); err == nil && len(lines) > 0 {
		err = fmt.Errorf("%w (%s)", sqlitelog.ErrDamaged, lines[0])
	}
	return err
}

func sum(root *os.Root, name string) (File, error) {
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return File{}, err
	}
	defer f.Close()
	h := sha256.New()
	n, err := io.Copy(h, f)
	return File{Path: name, Size: n, SHA256: digits(h)}, err
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
