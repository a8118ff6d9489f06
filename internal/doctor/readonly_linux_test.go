package doctor_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/roost-dev/roost/internal/doctor"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
)

// asOrdinaryUser runs f on a thread that modes of files bind also if root runs the tests.
func asOrdinaryUser(t *testing.T, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		err := unix.Capget(&header, &data[0])
		if err == nil {
			data[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
			err = unix.Capset(&header, &data[0])
		}
		if err == nil {
			f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestReadOnlyDirectory(t *testing.T) {
	dir := fixture(t)
	if err := os.WriteFile(filepath.Join(dir, "lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
	asOrdinaryUser(t, func() {
		log, err := sqlitelog.Open(dir)
		if err == nil {
			_ = log.Close()
		}
		if !errors.Is(err, sqlitelog.ErrUnwritable) {
			t.Errorf("open: %v", err)
		}
		r, err := doctor.Check(t.Context(), doctor.Options{Dir: dir})
		if err != nil || r.Bad() == 0 {
			t.Errorf("doctor: %v %+v", err, r)
		}
	})
	if r := examine(t, dir, false); r.Sessions != 3 {
		t.Errorf("afterwards: %s", text(r))
	}
}
