//go:build linux

package powerloss

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"

	"modernc.org/sqlite"

	"github.com/roost-dev/roost/internal/doctor"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

const (
	sessions = 4
	// shots is how many pictures are made of one life of the log, and shotCalls how many calls of
	// SQLite are between two of them at most.
	shots     = 12
	shotCalls = 50
	// lives is how many times a log is opened after a loss of power before a new one is begun.
	lives = 6
)

// errLost says that a session is not what it may be.
var errLost = errors.New("something was lost, or is there that must not be")

func id(i int) session.ID { return session.ID(fmt.Sprintf("s%d", i)) }

// shot is a picture, and what must be found in it.
type shot struct {
	picture picture
	allowed map[session.ID][]outcome
	when    string
}

// life is one process that has the log open, until the power goes.
type life struct {
	disk     *disk
	promises *promises

	mu     sync.Mutex
	random *rand.Rand
	wait   int // calls until the next shot
	shots  []shot
}

// watch makes a shot now and then.
func (l *life) watch(c call) int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wait--; l.wait >= 0 || len(l.shots) >= shots {
		return 0
	}
	l.wait = l.random.IntN(shotCalls)
	// No author can go on while this is held, so each has asked for one thing at most that was
	// not acknowledged.
	l.promises.mu.Lock()
	defer l.promises.mu.Unlock()
	l.shots = append(l.shots, shot{l.disk.picture(l.random), l.promises.allowed(), fmt.Sprintf("before call %d of %s", c.op, c.name)})
	return 0
}

// live opens the log in dir and writes until there are enough shots.
func live(t *testing.T, l *life) {
	t.Helper()
	log, err := sqlitelog.Open(l.disk.dir)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range sessions {
		a := &author{id: id(i), log: log, promises: l.promises, random: rand.New(rand.NewPCG(l.random.Uint64(), 0))}
		if err := a.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			for !l.over() {
				if err := a.step(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Go(func() { checkpoints(t, l) })
	wg.Wait()
	if err := log.Close(); err != nil {
		t.Error(err)
	}
}

// over leaves some shots for the end, when the log is closed.
func (l *life) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.shots) < shots-2 {
		return false
	}
	l.wait = min(l.wait, 3)
	return true
}

// checkpoints copies the write-ahead log into the database again and again, as the log does
// itself after some megabytes.
func checkpoints(t *testing.T, l *life) {
	t.Helper()
	connector, err := sqlite.NewConnector("file:" + filepath.Join(l.disk.dir, sqlitelog.FileName) + "?_pragma=synchronous(FULL)&_pragma=busy_timeout(0)&_pragma=wal_autocheckpoint(0)")
	if err != nil {
		t.Error(err)
		return
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	for !l.over() {
		if _, err := db.ExecContext(t.Context(), `PRAGMA wal_checkpoint(PASSIVE)`); err != nil {
			t.Error(err)
			return
		}
	}
}

// look opens the log in dir on an honest disk and compares it with what is allowed. It returns
// what it has found.
func look(ctx context.Context, dir string, allowed map[session.ID][]outcome) (map[session.ID]outcome, error) {
	log, err := sqlitelog.Open(dir)
	if err != nil {
		return nil, err
	}
	found, err := inspect(ctx, log, allowed)
	if err := errors.Join(err, log.Close()); err != nil {
		return nil, err
	}
	report, err := doctor.Check(ctx, doctor.Options{Dir: dir})
	if err != nil {
		return nil, err
	}
	if report.Bad() > 0 {
		return nil, fmt.Errorf("the doctor finds: %+v", report.Findings)
	}
	return found, nil
}

func inspect(ctx context.Context, log *sqlitelog.Log, allowed map[session.ID][]outcome) (map[session.ID]outcome, error) {
	if rebuilt, err := log.IndexRebuilt(); rebuilt {
		return nil, fmt.Errorf("the index was lost: %w", err)
	}
	found := make(map[session.ID]outcome)
	for meta, err := range log.List(ctx) {
		if err != nil {
			return nil, err
		}
		_, o, err := stored(ctx, log, meta.ID)
		if err != nil {
			return nil, err
		}
		found[meta.ID] = o
	}
	for i := range sessions {
		if may := allowed[id(i)]; !slices.Contains(may, found[id(i)]) && (len(may) > 0 || found[id(i)] != outcome{}) {
			return nil, fmt.Errorf("%w: %s is %+v, and may be %+v", errLost, id(i), found[id(i)], may)
		}
	}
	return found, nil
}

// private is a directory that others cannot enter.
func private(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// number is how many losses of power a test tries.
func number(t *testing.T, usual int) int {
	t.Helper()
	s := os.Getenv("ROOST_POWERLOSS")
	if s == "" {
		return usual
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatalf("ROOST_POWERLOSS: %v", err)
	}
	return n
}

// story is a log that loses its power again and again, with what must be found after that.
type story struct {
	random *rand.Rand
	lies   bool // of the disks
	dir    string
	found  map[session.ID]outcome
}

// next is the life of a log that begins with what the one before has left. It returns how many
// pictures were made of it, and the first in which something is wrong.
func (s *story) next(t *testing.T) (int, error) {
	t.Helper()
	l := &life{disk: plug(t, s.dir), promises: newPromises(), random: s.random}
	defer l.disk.unplug()
	l.disk.lies = s.lies
	maps.Copy(l.promises.kept, s.found)
	l.disk.intercept(l.watch)
	live(t, l)
	heir := s.random.IntN(len(l.shots))
	for i, shot := range l.shots {
		dir := private(t)
		if err := shot.picture.save(dir); err != nil {
			return i, err
		}
		found, err := look(t.Context(), dir, shot.allowed)
		if err != nil {
			return i, fmt.Errorf("power lost %s: %w", shot.when, err)
		}
		if i == heir {
			s.dir, s.found = private(t), found
			if err := shot.picture.save(s.dir); err != nil {
				return i, err
			}
		}
	}
	return len(l.shots), nil
}

// tell tells stories until there have been so many losses of power, or something is wrong.
func tell(t *testing.T, lies bool, losses int) error {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for losses > 0 && !t.Failed() {
		s := &story{random: random, lies: lies, dir: private(t)}
		for range lives {
			n, err := s.next(t)
			if err != nil {
				return err
			}
			losses -= n
		}
	}
	return nil
}

// TestPowerLoss takes the power away at any moment, again and again, and looks for all that was
// acknowledged.
func TestPowerLoss(t *testing.T) {
	if err := tell(t, false, number(t, 300)); err != nil {
		t.Error(err)
	}
}

// TestLyingDisk makes sure that TestPowerLoss would notice: with a disk that says that it has
// synced and has not, something is lost.
func TestLyingDisk(t *testing.T) {
	for range 20 {
		err := tell(t, true, 100)
		t.Log(err)
		if errors.Is(err, errLost) {
			return
		}
	}
	t.Error("nothing is lost on a disk that syncs nothing")
}
