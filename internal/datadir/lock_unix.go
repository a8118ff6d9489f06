//go:build unix

package datadir

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

var errLocked = errors.New("locked by another process")

// lockFile takes the lock of an open file without waiting. The kernel gives it free when the
// process ends, however it ends.
func lockFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		case errors.Is(err, syscall.EINTR):
			continue
		}
		return err
	}
}

func ownerOf(info fs.FileInfo) (uid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}
