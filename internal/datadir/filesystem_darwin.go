package datadir

import (
	"fmt"
	"syscall"
)

// checkFileSystem refuses what the kernel does not count as local: NFS, SMB, AFP, WebDAV.
func checkFileSystem(path string) error {
	const local = 0x1000 // MNT_LOCAL
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return fmt.Errorf("examine data directory %s: %w", path, err)
	}
	if s.Flags&local != 0 {
		return nil
	}
	var kind []byte
	for _, c := range s.Fstypename {
		if c == 0 {
			break
		}
		kind = append(kind, byte(c))
	}
	return refuseFileSystem(path, string(kind))
}
