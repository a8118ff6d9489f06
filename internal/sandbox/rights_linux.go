package sandbox

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// around are the rights of root that lead around Landlock: to other processes' memory and
// environment, to files by handle, to disks by a device file made in the session's directory,
// and to the kernel.
var around = []int{
	unix.CAP_DAC_READ_SEARCH, unix.CAP_MKNOD, unix.CAP_PERFMON, unix.CAP_BPF, unix.CAP_SYS_ADMIN, unix.CAP_SYS_BOOT,
	unix.CAP_SYS_MODULE, unix.CAP_SYS_PTRACE, unix.CAP_SYS_RAWIO, unix.CAP_SYSLOG, unix.CAP_AUDIT_CONTROL, unix.CAP_MAC_ADMIN,
}

// dropRights takes them from the calling thread. Programs it becomes do not get them back,
// because restrict has forbidden new privileges.
func dropRights() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets [2]unix.CapUserData // of 32 rights each
	if err := unix.Capget(&header, &sets[0]); err != nil {
		return fmt.Errorf("look up the rights of this process: %w", err)
	}
	for _, right := range around {
		set, bit := &sets[right/32], uint32(1)<<(right%32)
		set.Effective &^= bit
		set.Permitted &^= bit
		set.Inheritable &^= bit
	}
	if err := unix.Capset(&header, &sets[0]); err != nil {
		return fmt.Errorf("drop rights of root: %w", err)
	}
	return nil
}
