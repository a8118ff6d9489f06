//go:build unix

package workspace

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives f the owner and group of old where that is permitted, which it is for a
// server that runs as root, as in a container. Elsewhere the new file is ours; nothing
// better can be done, so the error is dropped.
func keepOwner(f *os.File, old fs.FileInfo) {
	if st, ok := old.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(st.Uid), int(st.Gid))
	}
}
