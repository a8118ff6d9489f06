package workspace

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Replace makes data the content of the file n, which may exist or not, and makes missing
// directories above it. The content changes as one: a reader, and whoever looks after a
// crash, finds the old file or the new one. The mode of an existing file is kept, and its
// owner where the system allows that. Read-only files and what is not a regular file are
// refused. A link is replaced, not followed; Resolve has followed it already.
func (r *Root) Replace(n Name, data []byte) error {
	old, err := r.files.Lstat(string(n))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := r.files.MkdirAll(string(n.Dir()), 0o777); err != nil {
			return r.failed(n.Dir(), err)
		}
	case err != nil:
		return r.failed(n, err)
	case old.Mode()&fs.ModeSymlink != 0:
		old = nil
	default:
		if err := replaceable(old); err != nil {
			return r.failed(n, err)
		}
	}
	temp := n.Dir().Join(".roost-" + rand.Text() + ".tmp")
	if err := r.fill(temp, data, old); err != nil {
		return errors.Join(r.failed(n, err), r.discard(temp))
	}
	if err := r.files.Rename(string(temp), string(n)); err != nil {
		return errors.Join(r.failed(n, err), r.discard(temp))
	}
	return nil
}

func replaceable(old fs.FileInfo) error {
	if err := regular(old); err != nil {
		return err
	}
	if old.Mode().Perm()&0o222 == 0 {
		return fmt.Errorf("%w; change its mode first", ErrReadOnly)
	}
	return nil
}

// fill makes a new file with the content, and the mode and owner of old unless that is nil.
func (r *Root) fill(n Name, data []byte, old fs.FileInfo) (err error) {
	perm := fs.FileMode(0o666)
	if old != nil {
		perm = 0o600 // until it has the owner that its mode is meant for
	}
	f, err := r.files.OpenFile(string(n), os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(data); err != nil {
		return err
	}
	if old != nil {
		keepOwner(f, old)
		if err := f.Chmod(old.Mode() & (fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky)); err != nil {
			return err
		}
	}
	return f.Sync() // without it the rename may reach the disk before the content
}

func (r *Root) discard(temp Name) error {
	if err := r.files.Remove(string(temp)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
