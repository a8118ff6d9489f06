package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

var _ Store = (*Dir)(nil)

// Dir is a Store in a directory of its own.
type Dir struct{ path string }

// temporary begins the names of files that are being written.
const temporary = "put-"

// OpenDir returns the store in the directory path, which it makes (0700) when it is missing.
// What earlier processes have left half written is removed, so one process only may have the
// directory open.
func OpenDir(path string) (*Dir, error) {
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	// The directory may be there since a moment ago, and what is synced in it is lost with it.
	if err := syncDir(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("open blobs: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), temporary) {
			if err := os.Remove(filepath.Join(path, e.Name())); err != nil {
				return nil, fmt.Errorf("open blobs: %w", err)
			}
		}
	}
	return &Dir{path: path}, nil
}

// LookDir returns the store in the directory path, which need not exist, for reading: nothing is
// made or removed, so another process may have it open.
func LookDir(path string) *Dir { return &Dir{path: path} }

// List returns the hashes of the stored blobs in order, and the paths of files that are none,
// such as those being written.
func (d *Dir) List() (hashes, strays []string, err error) {
	err = filepath.WalkDir(d.path, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // the store is empty, or a file was renamed meanwhile
		case err != nil || e.IsDir():
			return err
		case ValidHash(e.Name()) && path == d.file(e.Name()):
			hashes = append(hashes, e.Name())
		default:
			strays = append(strays, path)
		}
		return nil
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list blobs: %w", err)
	}
	return hashes, strays, nil
}

// Put implements [Store]. A crash leaves the whole blob or none.
func (d *Dir) Put(ctx context.Context, data []byte) (string, error) {
	if err := checkPut(ctx, data); err != nil {
		return "", fmt.Errorf("put blob: %w", err)
	}
	hash := Hash(data)
	if err := d.put(hash, data); err != nil {
		if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
			err = fmt.Errorf("%w (%w)", ErrFull, err)
		}
		return "", fmt.Errorf("put blob %s: %w", hash, err)
	}
	return hash, nil
}

func (d *Dir) put(hash string, data []byte) error {
	// A damaged blob is put again. One that is there may be there since a moment ago, before
	// its folder was synced, so the folders are synced all the same.
	if _, err := d.get(hash); err != nil {
		if err := d.write(hash, data); err != nil {
			return err
		}
	}
	if err := syncDir(d.folder(hash)); err != nil {
		return err
	}
	return syncDir(d.path)
}

func (d *Dir) write(hash string, data []byte) (err error) {
	if err := os.Mkdir(d.folder(hash), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	f, err := os.CreateTemp(d.path, temporary) // makes it 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), d.file(hash))
}

// Get implements [Store].
func (d *Dir) Get(ctx context.Context, hash string) ([]byte, error) {
	err := checkGet(ctx, hash)
	if err != nil {
		return nil, fmt.Errorf("get blob: %w", err)
	}
	data, err := d.get(hash)
	if err != nil {
		return nil, fmt.Errorf("get blob %s: %w", hash, err)
	}
	return data, nil
}

func (d *Dir) get(hash string) ([]byte, error) {
	f, err := os.Open(d.file(hash))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, ErrNotFound
	case err != nil:
		return nil, err
	}
	defer f.Close()
	// A file that has grown must not fill the memory.
	data, err := io.ReadAll(io.LimitReader(f, MaxSize+1))
	if err != nil {
		return nil, err
	}
	if Hash(data) != hash {
		return nil, ErrCorrupt
	}
	return data, nil
}

func (d *Dir) folder(hash string) string { return filepath.Join(d.path, hash[:2]) }

func (d *Dir) file(hash string) string { return filepath.Join(d.folder(hash), hash) }

// syncDir makes the names in a directory durable. Tests look at what it is called for.
var syncDir = func(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
