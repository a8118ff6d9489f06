package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// OpenFile opens a regular file for reading. It never waits: pipes, sockets and devices are
// refused with ErrNotRegular, and directories with ErrIsDir.
func (r *Root) OpenFile(n Name) (*os.File, fs.FileInfo, error) {
	// Looking first spares devices an open, which may already do something; O_NONBLOCK
	// keeps the open of a pipe that came in between from waiting for a writer.
	info, err := r.files.Lstat(string(n))
	if err != nil {
		return nil, nil, r.failed(n, err)
	}
	if info.Mode()&fs.ModeSymlink == 0 {
		if err := regular(info); err != nil {
			return nil, nil, r.failed(n, err)
		}
	}
	f, err := r.files.OpenFile(string(n), os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, nil, r.failed(n, err)
	}
	info, err = f.Stat()
	if err == nil {
		err = regular(info)
	}
	if err != nil {
		return nil, nil, errors.Join(r.failed(n, err), f.Close())
	}
	return f, info, nil
}

// EndReads makes reads of f end when ctx does. Some files of /proc are regular and yet wait
// for data; for all others it changes nothing. The caller calls stop before it closes f.
func EndReads(ctx context.Context, f *os.File) (stop func() bool) {
	return context.AfterFunc(ctx, func() {
		_ = f.SetReadDeadline(time.Unix(0, 1)) // not for files on disk, which do not wait
	})
}

func regular(info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return nil
	case info.IsDir():
		return ErrIsDir
	default:
		return fmt.Errorf("%w (%s)", ErrNotRegular, kind(info.Mode()))
	}
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "it is a named pipe"
	case m&fs.ModeSocket != 0:
		return "it is a socket"
	case m&fs.ModeDevice != 0:
		return "it is a device"
	default:
		return "it is special"
	}
}

// Lstat describes the file; a link is not followed.
func (r *Root) Lstat(n Name) (fs.FileInfo, error) {
	info, err := r.files.Lstat(string(n))
	if err != nil {
		return nil, r.failed(n, err)
	}
	return info, nil
}

// ReadDir returns at most limit entries of a directory, in no particular order, and whether
// there are more.
func (r *Root) ReadDir(n Name, limit int) (entries []fs.DirEntry, more bool, err error) {
	const flags = os.O_RDONLY | nonblock
	d, err := r.files.OpenFile(string(n), flags, 0)
	if err != nil {
		return nil, false, r.failed(n, err)
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	entries, err = d.ReadDir(limit + 1)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, r.failed(n, err)
	}
	if len(entries) > limit {
		return entries[:limit], true, nil
	}
	return entries, false, nil
}

func (r *Root) failed(n Name, err error) error {
	return fmt.Errorf("%s: %w", r.Show(n), reason(err))
}
