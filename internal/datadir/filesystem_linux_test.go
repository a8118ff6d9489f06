package datadir

import (
	"bufio"
	"errors"
	"os"
	"strings"
	"testing"
)

func TestFileSystemsOfThisMachine(t *testing.T) {
	for _, path := range []string{t.TempDir(), "/dev/shm", "/"} {
		if _, err := os.Stat(path); err != nil {
			continue // not on this machine
		}
		if err := checkFileSystem(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := checkFileSystem("/missing/directory"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

func TestRefusalSaysWhatToDo(t *testing.T) {
	err := refuseFileSystem("/net/data", "NFS")
	if !errors.Is(err, ErrNetwork) || !strings.Contains(err.Error(), "/net/data is on NFS") || !strings.Contains(err.Error(), "local disk") {
		t.Error(err)
	}
}

func TestMountType(t *testing.T) {
	const mounts = `/dev/vda / ext4 rw 0 0
tmpfs /tmp tmpfs rw 0 0
me@host:/ /home/me/far fuse.sshfs rw 0 0
host:/x /home/me/far\040away fuse.rclone rw 0 0
broken
/dev/fuse /home/me/far/near fuse.ntfs rw 0 0
over /tmp fuse.portal rw 0 0
`
	for path, want := range map[string]string{
		"/":                      "ext4",
		"/home/me":               "ext4",
		"/home/me/far":           "fuse.sshfs",
		"/home/me/far/data":      "fuse.sshfs",
		"/home/me/farther":       "ext4",
		"/home/me/far away/data": "fuse.rclone",
		"/home/me/far/near/data": "fuse.ntfs",
		"/tmp/x":                 "fuse.portal",
	} {
		if got := mountType(bufio.NewScanner(strings.NewReader(mounts)), path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}
