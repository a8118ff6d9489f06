package pi_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	client "github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/pi"
	"github.com/roost-dev/roost/internal/piwire"
)

// serve listens on a socket of its own and returns its path.
func (r *rig) serve() (path string, l net.Listener) {
	r.t.Helper()
	dir, err := os.MkdirTemp("", "pi")
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path = filepath.Join(dir, "a", "b", "pi.sock")
	l, err = pi.ListenUnix(path)
	if err != nil {
		r.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- r.server.Serve(l) }()
	r.t.Cleanup(func() {
		_ = l.Close()
		if err := <-done; err != nil {
			r.t.Errorf("Serve: %v", err)
		}
	})
	return path, l
}

func TestUnixSocket(t *testing.T) {
	r := newRig(t)
	path, l := r.serve()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v", info, err)
	}
	if parent, err := os.Stat(filepath.Dir(path)); err != nil || parent.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", parent, err)
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("the folder has %v, %v", entries, err)
	}
	c, err := client.Dial(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Session(t.Context(), &piwire.Create{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Session(t.Context(), &piwire.Prompt{SessionID: s.ID, Text: "hi"}); err != nil {
		t.Error(err)
	}
	if _, err := pi.ListenUnix(path); !errors.Is(err, pi.ErrRunning) {
		t.Errorf("a second server: %v", err)
	}
	r.server.Close()
	<-c.Done()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	if err := l.Close(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("second close: %v", err)
	}
}

// The last message of a connection arrives, though the client has sent more than was read.
func TestLastMessageArrivesOverASocket(t *testing.T) {
	r := newRig(t)
	path, _ := r.serve()
	for range 50 {
		nc, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write(append(append(frames(t, &piwire.Hello{Version: 1}), frame("\xff")...), make([]byte, 100<<10)...)); err != nil {
			t.Fatal(err)
		}
		messages := piwire.NewServerReader(nc, piwire.MaxFrame)
		if m, err := messages.Read(); err != nil || !isHello(m) {
			t.Fatalf("%v, %v", m, err)
		}
		if m, err := messages.Read(); err != nil {
			t.Fatalf("%v, %v", m, err)
		}
		_ = nc.Close()
	}
}

func TestSocketPathsThatDoNotFit(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{
		filepath.Join(dir, strings.Repeat("x", 110)),
		"/" + strings.Repeat("é", 60),
		"/tmp/" + strings.Repeat("d", 95) + "/s", // the name that is bound first does not fit
	} {
		if l, err := pi.ListenUnix(path); err == nil {
			_ = l.Close()
			t.Errorf("%d bytes are accepted", len(path))
		}
	}
}

func TestWhatIsInThePlaceOfASocket(t *testing.T) {
	dir, err := os.MkdirTemp("", "pi") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	if err := os.WriteFile(path, []byte("data"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := pi.ListenUnix(path); err == nil {
		t.Error("a file was taken for a socket")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "data" {
		t.Errorf("the file was touched: %q, %v", b, err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}

	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false)
	_ = stale.Close()
	l, err := pi.ListenUnix(path)
	if err != nil {
		t.Fatalf("a stale socket: %v", err)
	}

	// Another server's socket in the same place outlives this listener.
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	next, err := pi.ListenUnix(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("unix", path); err != nil {
		t.Errorf("the replacement: %v", err)
	} else {
		_ = c.Close()
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}

// Of many servers that start at once on one path, one wins and works.
func TestServersThatStartAtOnce(t *testing.T) {
	dir, err := os.MkdirTemp("", "pi") //nolint:usetesting // t.TempDir is too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	path := filepath.Join(dir, "s")
	won := make(chan net.Listener, 8)
	for range 8 {
		go func() {
			l, err := pi.ListenUnix(path)
			if err != nil && !errors.Is(err, pi.ErrRunning) {
				t.Errorf("start: %v", err)
			}
			won <- l
		}()
	}
	var winners []net.Listener
	for range 8 {
		if l := <-won; l != nil {
			winners = append(winners, l)
		}
	}
	if len(winners) != 1 {
		t.Fatalf("%d servers", len(winners))
	}
	if c, err := net.Dial("unix", path); err != nil {
		t.Error(err)
	} else {
		_ = c.Close()
	}
	_ = winners[0].Close()
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}
