//go:build linux || darwin

package datadir

import "syscall"

// Free returns how many bytes an ordinary user can still write on the file system of path, and
// false when the system does not say.
func Free(path string) (bytes uint64, ok bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return 0, false
	}
	return s.Bavail * uint64(s.Bsize), true
}
