package pi

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// ErrRunning says that a server answers on the socket already.
var ErrRunning = errors.New("a server is running on this socket already")

const probeTimeout = time.Second

// maxSocketPath is the longest path of a socket, in bytes.
func maxSocketPath() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103
}

// ListenUnix listens on a socket that only its owner can open (SPEC 4.1). Folders that are
// missing are made, private. The socket is bound under a private name and linked to its
// public one when it is ready. A socket whose server is dead is replaced; one whose server
// answers is ErrRunning; anything else in its place is left alone. Closing the listener
// removes the socket, unless it has been replaced.
func ListenUnix(path string) (net.Listener, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	// A name of its own, so that of two servers that start at once none takes the other's.
	private := filepath.Join(filepath.Dir(path), ".p-"+rand.Text()[:8])
	if limit := maxSocketPath(); len(path) > limit || len(private) > limit {
		return nil, fmt.Errorf("socket path %q: longer than %d bytes, choose a shorter one", path, limit)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	if err := makeWay(path); err != nil {
		return nil, err
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: private, Net: "unix"})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false)
	info, err := publish(private, path)
	if err != nil {
		_ = l.Close()
		_ = os.Remove(private)
		return nil, err
	}
	return &unixListener{UnixListener: l, path: path, info: info}, nil
}

// publish gives a bound socket its public name.
func publish(private, path string) (fs.FileInfo, error) {
	if err := os.Chmod(private, 0o600); err != nil {
		return nil, err
	}
	if err := os.Link(private, path); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("socket %s: %w", path, ErrRunning)
		}
		return nil, err
	}
	if err := os.Remove(private); err != nil {
		return nil, err
	}
	return os.Lstat(path)
}

// makeWay makes room for a socket at path.
func makeWay(path string) error {
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("%s exists and is no socket: remove it or choose another path", path)
	}
	c, err := net.DialTimeout("unix", path, probeTimeout)
	if err == nil {
		_ = c.Close()
		return fmt.Errorf("socket %s: %w", path, ErrRunning)
	}
	// Moved first, so that a socket that was bound meanwhile is not removed unseen.
	aside := filepath.Join(filepath.Dir(path), ".s-"+rand.Text()[:6])
	if err := os.Rename(path, aside); err != nil {
		return err
	}
	moved, err := os.Lstat(aside)
	if err == nil && !os.SameFile(info, moved) {
		return errors.Join(os.Link(aside, path), os.Remove(aside), fmt.Errorf("socket %s: %w", path, ErrRunning))
	}
	return os.Remove(aside)
}

type unixListener struct {
	*net.UnixListener
	path string
	info fs.FileInfo
	once sync.Once
}

// Close stops listening and removes the socket if it is still this listener's.
func (l *unixListener) Close() error {
	err := net.ErrClosed
	l.once.Do(func() {
		err = l.UnixListener.Close()
		if now, statErr := os.Lstat(l.path); statErr == nil && os.SameFile(now, l.info) {
			err = errors.Join(err, os.Remove(l.path))
		}
	})
	return err
}
