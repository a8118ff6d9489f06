//go:build linux

package powerloss

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

const wal = sqlitelog.FileName + "-wal"

// begin opens a log on a disk of its own, with some sessions of one event.
func begin(t *testing.T, sessions int) (*disk, *sqlitelog.Log) {
	t.Helper()
	d := plug(t, private(t), rand.New(rand.NewPCG(1, 2)))
	log, err := sqlitelog.Open(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		d.intercept(nil)
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	for i := range sessions {
		created := session.Created{ID: id(i), Cwd: "/work"}
		if err := log.Append(t.Context(), id(i), 0, []session.Record{{Seq: 1, At: 1, Event: created}}); err != nil {
			t.Fatal(err)
		}
	}
	return d, log
}

func rename(ctx context.Context, log eventlog.Log, id session.ID, seq session.Seq, name string) error {
	return log.Append(ctx, id, seq-1, []session.Record{{Seq: seq, At: int64(seq), Event: session.Renamed{Name: name}}})
}

// ends returns the last event of a session.
func ends(t *testing.T, log eventlog.Log, id session.ID) session.Seq {
	t.Helper()
	s, err := eventlog.Restore(t.Context(), log, id)
	if err != nil {
		t.Fatal(err)
	}
	return s.Seq
}

// TestSlowSync has each sync take 200 ms. Nothing is acknowledged before its sync, and all that
// waits meanwhile shares the next one.
func TestSlowSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const others = 30
		d, log := begin(t, 1+others)
		var syncs atomic.Int32
		d.intercept(func(c call) int32 {
			if c.op == opSync && c.name == wal {
				syncs.Add(1)
				time.Sleep(200 * time.Millisecond)
			}
			return sqlite3.SQLITE_OK
		})
		var answered atomic.Int32
		var wg sync.WaitGroup
		start := time.Now()
		add := func(i int, want time.Duration) {
			wg.Go(func() {
				err := rename(t.Context(), log, id(i), 2, "new")
				answered.Add(1)
				if took := time.Since(start); err != nil || took != want {
					t.Errorf("append %d: %v after %v, want %v", i, err, took, want)
				}
			})
		}
		add(0, 200*time.Millisecond)
		synctest.Wait()
		for i := range others {
			add(1+i, 400*time.Millisecond)
		}
		synctest.Wait()
		if seq := ends(t, log, id(0)); answered.Load() != 0 || seq != 1 {
			t.Errorf("%d appends are answered before the first sync, and the first session ends at %d", answered.Load(), seq)
		}
		wg.Wait()
		if syncs.Load() != 2 {
			t.Errorf("%d syncs", syncs.Load())
		}
	})
}

// TestCanceledDuringASlowSync gives up waiting for a place in line, and not what has one.
func TestCanceledDuringASlowSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const line = 256 // that wait behind the one that is synced
		d, log := begin(t, line+2)
		synced := make(chan struct{})
		d.intercept(func(c call) int32 {
			if c.op == opSync {
				<-synced
			}
			return sqlite3.SQLITE_OK
		})
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range line + 1 {
			wg.Go(func() {
				if err := rename(ctx, log, id(i), 2, "new"); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		var late error
		wg.Go(func() { late = rename(ctx, log, id(line+1), 2, "new") })
		synctest.Wait()
		cancel()
		synctest.Wait()
		if !errors.Is(late, context.Canceled) {
			t.Errorf("without a place in line: %v", late)
		}
		if err := rename(ctx, log, id(0), 2, "new"); !errors.Is(err, context.Canceled) {
			t.Errorf("afterwards: %v", err)
		}
		close(synced)
		wg.Wait()
		for i := range line + 2 {
			want := session.Seq(2)
			if i == line+1 {
				want = 1
			}
			if seq := ends(t, log, id(i)); seq != want {
				t.Errorf("session %d ends at %d, want %d", i, seq, want)
			}
		}
	})
}

// TestCloseDuringASlowSync waits for what has begun, and takes nothing more.
func TestCloseDuringASlowSync(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, log := begin(t, 3)
		synced := make(chan struct{})
		d.intercept(func(c call) int32 {
			if c.op == opSync {
				<-synced
			}
			return sqlite3.SQLITE_OK
		})
		var wg sync.WaitGroup
		for i := range 2 {
			wg.Go(func() {
				if err := rename(t.Context(), log, id(i), 2, "new"); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		var closed atomic.Bool
		wg.Go(func() {
			if err := log.Close(); err != nil {
				t.Error(err)
			}
			closed.Store(true)
		})
		synctest.Wait()
		if err := rename(t.Context(), log, id(2), 2, "new"); !errors.Is(err, eventlog.ErrClosed) || closed.Load() {
			t.Errorf("while it closes: %v (closed: %v)", err, closed.Load())
		}
		close(synced)
		wg.Wait()
		found := fmt.Sprint(names(t, d.picture(rand.New(rand.NewPCG(1, 1)))))
		if want := "[new new ]"; found != want {
			t.Errorf("after a loss of power: %q, want %q", found, want)
		}
	})
}

// names returns the names of the sessions in a picture, by their ids.
func names(t *testing.T, p picture) (names []string) {
	t.Helper()
	dir := private(t)
	if err := p.save(dir); err != nil {
		t.Fatal(err)
	}
	log, err := sqlitelog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	defer log.Close()
	for i := range sessions {
		s, err := eventlog.Restore(t.Context(), log, id(i))
		if errors.Is(err, eventlog.ErrNotFound) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, s.Name)
	}
	return names
}
