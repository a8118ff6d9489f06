package datadir

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const fuseMagic = 0x65735546

// fuseNames are file systems in user space that keep their files on another machine.
var fuseNames = []string{"fuse.sshfs", "fuse.s3fs", "fuse.rclone", "fuse.glusterfs", "fuse.gcsfuse", "fuse.davfs2", "fuse.ceph", "fuse.juicefs", "fuse.curlftpfs"}

// remoteFUSE reports whether the FUSE file system that holds path is a remote one. When the
// table of mounts cannot be read it is taken for local: the mount is the user's own.
func remoteFUSE(path string) (name string, remote bool) {
	f, err := os.Open("/proc/self/mounts")
	if err != nil {
		return "", false
	}
	defer f.Close()
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	name = mountType(bufio.NewScanner(f), path)
	return name, slices.Contains(fuseNames, name)
}

// mountType returns the type of the mount that holds path, from lines of fstab(5).
func mountType(lines *bufio.Scanner, path string) (kind string) {
	longest := -1
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 3 {
			continue
		}
		point := unescape.Replace(fields[1])
		inside := path == point || strings.HasPrefix(path, strings.TrimSuffix(point, "/")+"/")
		if inside && len(point) >= longest { // a later mount hides an earlier one
			longest, kind = len(point), fields[2]
		}
	}
	return kind
}

// unescape undoes how the table writes blanks in names.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
