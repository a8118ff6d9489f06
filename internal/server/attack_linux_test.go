package server

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/config"
)

// listening returns how many TCP sockets of this process listen.
func listening(t *testing.T) (n int) {
	t.Helper()
	own := make(map[string]bool)
	descriptors, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range descriptors {
		if target, err := os.Readlink(d); err == nil {
			own[strings.TrimSuffix(strings.TrimPrefix(target, "socket:["), "]")] = true
		}
	}
	for _, file := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		table, err := os.ReadFile(file)
		if err != nil {
			continue // no such protocol here
		}
		for line := range strings.Lines(string(table)) {
			const state, inode, listen = 3, 9, "0A"
			if f := strings.Fields(line); len(f) > inode && f[state] == listen && own[f[inode]] {
				n++
			}
		}
	}
	return n
}

// A server that is not told to listen has no TCP socket at all.
func TestNoListenerByDefault(t *testing.T) {
	before := listening(t)
	cfg, err := config.FromEnv(func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	s, err := Open(t.Context(), Options{Config: cfg, DataDir: filepath.Join(dir, "data"), Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Close(context.WithoutCancel(t.Context())) }()
	if n := listening(t); n != before || s.Endpoint().URL != "" {
		t.Errorf("%d sockets listen, %d before; the URL is %q", n, before, s.Endpoint().URL)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") // the count counts
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if n := listening(t); n != before+1 {
		t.Errorf("a listener is not counted: %d, %d before", n, before)
	}
}
