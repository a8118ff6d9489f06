//go:build unix

package guard

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkPrivate refuses a file that anybody but the user of this process may open.
func checkPrivate(path string, info fs.FileInfo) error {
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s: %w", path, ErrTokenOwner)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("%s: %w; remove it to have a new one made, or, if nobody did, run: chmod 600 %s", path, ErrTokenMode, path)
	}
	return nil
}
