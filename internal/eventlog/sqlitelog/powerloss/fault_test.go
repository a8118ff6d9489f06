//go:build linux

package powerloss

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

// fail has the calls of an operation on a file end with the errors, one after the other, and the
// last one from then on.
func (d *disk) fail(o op, name string, codes ...int32) {
	var n atomic.Int32
	d.intercept(func(c call) int32 {
		if c.op != o || c.name != name {
			return sqlite3.SQLITE_OK
		}
		i := int(n.Add(1)) - 1
		return codes[min(i, len(codes)-1)]
	})
}

// survives makes sure that losses of power leave the sessions with these names.
func (d *disk) survives(t *testing.T, losses int, want ...string) {
	t.Helper()
	random := rand.New(rand.NewPCG(3, 4))
	for range losses {
		if found := names(t, d.picture(random)); !slices.Equal(found, want) {
			t.Fatalf("after a loss of power: %q, want %q", found, want)
		}
	}
}

// TestDiskErrors has every write or sync fail for a while.
func TestDiskErrors(t *testing.T) {
	for name, test := range map[string]struct {
		op   op
		code int32
		full bool // the error says that nothing was written
	}{
		"no room":      {opWrite, sqlite3.SQLITE_FULL, true},
		"failed write": {opWrite, sqlite3.SQLITE_IOERR_WRITE, true},
		"failed sync":  {opSync, sqlite3.SQLITE_IOERR_FSYNC, false},
	} {
		t.Run(name, func(t *testing.T) {
			d, log := begin(t, 2)
			d.fail(test.op, wal, test.code)
			err := rename(t.Context(), log, id(0), 2, "lost")
			if e, ok := errors.AsType[*sqlite.Error](err); !ok || e.Code() != int(test.code) || errors.Is(err, eventlog.ErrFull) != test.full {
				t.Errorf("append: %v", err)
			}
			if err := log.Delete(t.Context(), id(1)); err == nil {
				t.Error("a session could be deleted")
			}
			for i := range 2 {
				if seq := ends(t, log, id(i)); seq != 1 {
					t.Errorf("session %d ends at %d", i, seq)
				}
			}
			d.intercept(nil)
			for i, name := range []string{"a", "b"} {
				if err := rename(t.Context(), log, id(i), 2, name); err != nil {
					t.Errorf("once the disk is well again: %v", err)
				}
			}
			d.survives(t, 20, "a", "b")
		})
	}
}

// TestFailedSyncIsDoneAgain acknowledges an append whose sync failed only after all of it was
// written once more: the next sync alone would succeed, and keep nothing.
func TestFailedSyncIsDoneAgain(t *testing.T) {
	d, log := begin(t, 1)
	d.fail(opSync, wal, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_OK)
	if err := rename(t.Context(), log, id(0), 2, "new"); err != nil {
		t.Fatal(err)
	}
	d.survives(t, 20, "new")
}

// TestFailedSyncOnAFullDisk is about an append whose sync fails, and which then cannot be written
// again. It may be on the disk, so the answer must not be that nothing was written.
func TestFailedSyncOnAFullDisk(t *testing.T) {
	d, log := begin(t, 1)
	var failed atomic.Bool
	d.intercept(func(c call) int32 {
		switch {
		case c.op == opSync && !failed.Swap(true):
			return sqlite3.SQLITE_IOERR_FSYNC
		case c.op == opWrite && failed.Load():
			return sqlite3.SQLITE_FULL
		}
		return sqlite3.SQLITE_OK
	})
	err := rename(t.Context(), log, id(0), 2, "new")
	if err == nil || errors.Is(err, eventlog.ErrFull) {
		t.Errorf("append: %v", err)
	}
	if seq := ends(t, log, id(0)); seq != 1 {
		t.Errorf("the session ends at %d", seq)
	}
}

// TestFailedSyncOfACheckpoint has the sync of the database fail once. SQLite would not write again
// what it had copied before, so the log must not begin anew.
func TestFailedSyncOfACheckpoint(t *testing.T) {
	d, log := begin(t, 2)
	w := &bulk{log: log, id: id(1), seq: 1}
	w.write(t)
	if err := rename(t.Context(), log, id(0), 2, "new"); err != nil {
		t.Fatal(err)
	}
	copying, written := make(chan struct{}), make(chan struct{})
	var first, failed atomic.Bool
	d.intercept(func(c call) int32 {
		switch {
		case c.name != sqlitelog.FileName:
		case c.op == opWrite && !first.Swap(true):
			close(copying)
			<-written
		case c.op == opSync && !failed.Swap(true):
			return sqlite3.SQLITE_IOERR_FSYNC
		}
		return sqlite3.SQLITE_OK
	})
	// What is written while the checkpoint copies makes it one that leaves the sync to the next.
	for begun := false; !begun; {
		w.write(t)
		select {
		case <-copying:
			begun = true
		default:
		}
	}
	w.write(t)
	close(written)
	for !failed.Load() {
		w.write(t)
	}
	// The goroutine that makes checkpoints may not have said so yet.
	var refused error
	seq := session.Seq(3)
	for ; refused == nil; seq++ {
		refused = rename(t.Context(), log, id(0), seq, "new")
	}
	if !errors.Is(refused, eventlog.ErrDisk) {
		t.Fatalf("after the failed sync: %v", refused)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	d.intercept(nil)
	d.survives(t, 3, "new", "last")

	again, err := sqlitelog.Open(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	if end := ends(t, again, id(1)); end != w.seq {
		t.Errorf("the session ends at %d, want %d", end, w.seq)
	}
	if err := rename(t.Context(), again, id(0), seq-1, "new"); err != nil {
		t.Error(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	d.survives(t, 3, "new", "last")
}

// bulk makes a session long.
type bulk struct {
	log eventlog.Log
	id  session.ID
	seq session.Seq
}

// write does nothing once the log takes no more.
func (b *bulk) write(t *testing.T) {
	t.Helper()
	text := session.Text{Text: strings.Repeat("x", 200<<10)}
	events := []session.Event{
		session.RunStarted{Run: 1, Item: "u1", Blocks: []session.Block{text}}, session.RunEnded{}, session.Renamed{Name: "last"},
	}
	var records []session.Record
	for i, e := range events {
		records = append(records, session.Record{Seq: b.seq + 1 + session.Seq(i), At: 1, Event: e})
	}
	err := b.log.Append(t.Context(), b.id, b.seq, records)
	switch {
	case err == nil:
		b.seq += session.Seq(len(records))
	case !errors.Is(err, eventlog.ErrDisk):
		t.Fatal(err)
	}
}
