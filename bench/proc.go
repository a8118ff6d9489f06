package main

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the times in /proc, which is the same on every Linux.
const tick = 10 * time.Millisecond

// parseCPU returns user and system time from the text of /proc/PID/stat. The name of the
// program, in brackets, may hold anything.
func parseCPU(stat string) (time.Duration, error) {
	_, rest, _ := cutLast(stat, ")")
	fields := strings.Fields(rest)
	const utime, stime = 11, 12 // counted from behind the name
	if len(fields) <= stime {
		return 0, fmt.Errorf("unknown form of /proc/PID/stat: %q", stat)
	}
	var sum int64
	for _, i := range []int{utime, stime} {
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/PID/stat: %w", err)
		}
		sum += n
	}
	return time.Duration(sum) * tick, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// memory is in bytes.
type memory struct {
	resident int64
	peak     int64
}

// parseMemory reads the text of /proc/PID/status.
func parseMemory(status string) (memory, error) {
	var m memory
	for line := range strings.Lines(status) {
		name, value, _ := strings.Cut(line, ":")
		var field *int64
		switch name {
		case "VmRSS":
			field = &m.resident
		case "VmHWM":
			field = &m.peak
		default:
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return memory{}, fmt.Errorf("/proc/PID/status: %w", err)
		}
		*field = kib << 10
	}
	if m.resident == 0 || m.peak == 0 {
		return memory{}, fmt.Errorf("unknown form of /proc/PID/status: %q", status)
	}
	return m, nil
}

// fileSystem returns the type of the file system that holds an absolute path, from the text
// of /proc/mounts. The last mount of the longest matching point counts.
func fileSystem(mounts, path string) string {
	best, kind := -1, "unknown"
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		point := filepath.Clean(fields[1])
		if within(point, path) && len(point) >= best {
			best, kind = len(point), fields[2]
		}
	}
	return kind
}

func within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
