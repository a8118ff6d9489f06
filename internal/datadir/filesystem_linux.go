package datadir

import (
	"fmt"
	"syscall"
)

// unsuitable are the file systems that are refused, by their number in statfs(2). On all of
// them another machine may change the files, so that a lock of this kernel protects nothing,
// the shared memory of SQLite's write-ahead log is not shared, and a crash of the other side
// may lose what was synced.
//
// Left out on purpose: overlay, tmpfs and the local disk file systems, where all holds (tmpfs
// until the machine stops, which its user has chosen); 9p (0x01021997) and virtiofs, which
// containers and virtual machines use for folders of their own host; and FUSE (0x65735546)
// in general, which is local as often as not. FUSE hides what is behind it, so a remote one
// is found by its name in fuseNames.
var unsuitable = map[int64]string{
	0x6969:     "NFS",
	0x517b:     "SMB",
	0xff534d42: "CIFS",
	0xfe534d42: "SMB2",
	0x5346414f: "AFS",
	0x73757245: "Coda",
	0x564c:     "NCP",
	0x00c36400: "Ceph",
	0x01161970: "GFS2",
	0x7461636f: "OCFS2",
	0x0bd00bd0: "Lustre",
	0x47504653: "GPFS",
	0xaad7aaea: "PanFS",
	0x19830326: "BeeGFS",
	0x20030528: "OrangeFS",
}

// checkFileSystem refuses network file systems.
func checkFileSystem(path string) error {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return fmt.Errorf("examine data directory %s: %w", path, err)
	}
	// The field is signed on most machines; only its lower 32 bits carry the number.
	kind := int64(uint32(s.Type))
	name, bad := unsuitable[kind]
	if kind == fuseMagic {
		name, bad = remoteFUSE(path)
	}
	if bad {
		return refuseFileSystem(path, name)
	}
	return nil
}
