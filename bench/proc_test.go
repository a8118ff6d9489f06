package main

import (
	"testing"
	"time"
)

func TestParseCPU(t *testing.T) {
	const tail = " S 1 2 3 0 -1 4194560 1203 0 5 0 %s 0 0 20 0 9 0 12345 1700000000 4000 18446744073709551615"
	for _, tc := range []struct {
		name, stat string
		want       time.Duration
	}{
		{"plain", "42 (roost) S 1 2 3 0 -1 4194560 1203 0 5 0 150 25 0 0 20 0 9 0 12345", 1750 * time.Millisecond},
		{"a name that looks like fields", "42 (a) b (c 1 2) R 1 2 3 0 -1 4194560 1203 0 5 0 1 2 0 0 20", 30 * time.Millisecond},
	} {
		if got, err := parseCPU(tc.stat); err != nil || got != tc.want {
			t.Errorf("%s: %v, %v instead of %v", tc.name, got, err, tc.want)
		}
	}
	for _, stat := range []string{"", "42 roost S 1", "42 (roost) S 1 2", "42 (roost) S 1 2 3 0 -1 4194560 1203 0 5 0 x 25 0", tail} {
		if got, err := parseCPU(stat); err == nil {
			t.Errorf("%q is %v", stat, got)
		}
	}
}

func TestParseMemory(t *testing.T) {
	got, err := parseMemory("Name:\troost\nVmPeak:\t 9999 kB\nVmHWM:\t   30720 kB\nVmRSS:\t   20480 kB\nRssAnon:\t 1 kB\n")
	if want := (memory{resident: 20 << 20, peak: 30 << 20}); err != nil || got != want {
		t.Errorf("%+v, %v instead of %+v", got, err, want)
	}
	for _, status := range []string{"", "VmRSS:\t 1 kB\n", "VmRSS:\t x kB\nVmHWM:\t 1 kB\n"} {
		if got, err := parseMemory(status); err == nil {
			t.Errorf("%q is %+v", status, got)
		}
	}
}

func TestFileSystem(t *testing.T) {
	const mounts = "/dev/vda / ext4 rw 0 0\nproc /proc proc rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/vdb /tmp/disk xfs rw 0 0\nnonsense\n/dev/vdc /home ext4 rw 0 0\nover /home btrfs rw 0 0\n"
	for path, want := range map[string]string{
		"/": "ext4", "/var/lib": "ext4", "/tmp": "tmpfs", "/tmp/x": "tmpfs", "/tmpfile": "ext4", "/tmp/disk/x": "xfs", "/home/me": "btrfs",
	} {
		if got := fileSystem(mounts, path); got != want {
			t.Errorf("%s is on %s instead of %s", path, got, want)
		}
	}
	if got := fileSystem("", "/"); got != "unknown" {
		t.Errorf("without mounts: %s", got)
	}
}

func TestOwnProcess(t *testing.T) {
	if file("/proc/self/stat") == "" {
		t.Log("there is no /proc: measuring needs Linux")
		return
	}
	if _, err := parseCPU(file("/proc/self/stat")); err != nil {
		t.Error(err)
	}
	if m, err := parseMemory(file("/proc/self/status")); err != nil || m.peak < m.resident {
		t.Errorf("%+v, %v", m, err)
	}
}
