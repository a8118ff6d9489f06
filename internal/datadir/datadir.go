// Package datadir opens the directory that holds everything roost keeps, for one process at
// a time. It comes first at start: nothing reads or writes in the directory before Open has
// returned, and Close comes last.
package datadir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// lockName is the file that a running process holds locked. It stays when the process ends;
// only the lock counts.
const lockName = "lock"

var (
	// ErrPermissions says that others may enter the directory.
	ErrPermissions = errors.New("data directory is open to others")
	// ErrOwner says that the directory belongs to another user.
	ErrOwner = errors.New("data directory belongs to another user")
	// ErrNetwork says that the directory is on a file system that roost cannot trust to keep
	// locks and data.
	ErrNetwork = errors.New("data directory is on an unsuitable file system")
)

// InUseError says that another process has the directory open.
type InUseError struct {
	Dir string
	PID int // of the other process, 0 when it is unknown
}

// Error names the directory and the process.
func (e *InUseError) Error() string {
	who := "another roost"
	if e.PID > 0 {
		who = fmt.Sprintf("another roost (pid %d)", e.PID)
	}
	return fmt.Sprintf("%s uses %s: stop it, or choose another data directory", who, e.Dir)
}

// Dir is an open data directory.
type Dir struct {
	path string
	lock *os.File
}

// Open makes the directory (0700) and its parents when they are missing, and locks it. They are
// there after a loss of power as well. It waits up to 3 s for a process that is about to end.
// Errors: ErrPermissions, ErrOwner, ErrNetwork, *InUseError, or those of the file system.
func Open(path string) (*Dir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	if err := makeAll(path); err != nil {
		return nil, fmt.Errorf("make data directory: %w", err)
	}
	// One that exists may be reached through a link; what counts is where it leads.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("open data directory: %w", err)
	}
	if err := checkAccess(path, info); err != nil {
		return nil, err
	}
	if err := checkFileSystem(path); err != nil {
		return nil, err
	}
	lock, err := acquire(path)
	if err != nil {
		return nil, err
	}
	return &Dir{path: path, lock: lock}, nil
}

// Path returns the absolute path of the directory.
func (d *Dir) Path() string { return d.path }

// Join returns the path of a name in the directory.
func (d *Dir) Join(name string) string { return filepath.Join(d.path, name) }

// Close gives the directory free. Closing twice is an error.
func (d *Dir) Close() error {
	// Closing the file ends its lock.
	if err := d.lock.Close(); err != nil {
		return fmt.Errorf("close data directory: %w", err)
	}
	return nil
}

func checkAccess(path string, info fs.FileInfo) error {
	if owner, ok := ownerOf(info); ok && owner != os.Geteuid() {
		return fmt.Errorf("%w: %s is owned by user id %d and roost runs as %d", ErrOwner, path, owner, os.Geteuid())
	}
	// Reading is refused as well as writing: the directory holds the token and conversations.
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return fmt.Errorf("%w (mode %04o): run `chmod 700 %s`", ErrPermissions, mode, path)
	}
	return nil
}

func acquire(path string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(path, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	switch err := waitLock(f); {
	case errors.Is(err, errLocked):
		held := &InUseError{Dir: path, PID: readPID(f)}
		return nil, errors.Join(held, f.Close())
	case err != nil:
		return nil, errors.Join(fmt.Errorf("lock data directory %s: %w", path, err), f.Close())
	}
	if err := writePID(f); err != nil {
		return nil, errors.Join(fmt.Errorf("lock data directory %s: %w", path, err), f.Close())
	}
	return f, nil
}

// A process that was killed has its lock until it is gone, which takes a moment on a busy machine, and may
// leave it to a program that it was starting until that has become another one. So a lock is waited for,
// whoever has it: a server that is killed and started again starts.
const (
	lockWait = 3 * time.Second
	lockPoll = 5 * time.Millisecond
)

// waitLock locks f, or returns errLocked when somebody has it all the time.
func waitLock(f *os.File) error {
	for end := time.Now().Add(lockWait); ; time.Sleep(lockPoll) {
		err := lockFile(f)
		if !errors.Is(err, errLocked) || time.Now().After(end) {
			return err
		}
	}
}

// writePID is for the message of a second process only.
func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// readPID returns 0 while the holder has not yet written its number.
func readPID(f *os.File) int {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0) // io.EOF is the rule here
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil || pid < 0 {
		return 0
	}
	return pid
}
