//go:build linux

package powerloss

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

// plan is what a test does.
type plan struct {
	size        int  // of most texts, at most
	checkpoints bool // many of them; else those of the log only, after megabytes
	lies        bool // of the disk: syncs do nothing
	sick        bool // writes and syncs fail now and then
	lives       int  // how often a log is opened after a loss of power before a new one is begun
	shots       int  // pictures of each life
	calls       int  // of SQLite between two pictures, at most
}

// maxFailures is how many steps of an author fail one after the other at most, as a disk is ill
// for few calls.
const maxFailures = 300

// shot is a picture, and what must be found in it.
type shot struct {
	picture picture
	allowed map[session.ID][]outcome
	when    string
}

// life is one process that has the log open, until the power goes.
type life struct {
	plan
	disk     *disk
	promises *promises

	mu     sync.Mutex
	random *rand.Rand
	open   bool
	wait   int // calls until the next shot
	taken  []shot
	ill    int // calls until the disk is well again
}

// asked makes a shot now and then, and makes calls of SQLite fail.
func (l *life) asked(c call) int32 {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wait--; l.wait < 0 && len(l.taken) < l.shots {
		l.wait = l.random.IntN(l.calls)
		l.shoot(fmt.Sprintf("before %s of %s", c.op, c.name))
	}
	if !l.sick || !l.open {
		return sqlite3.SQLITE_OK
	}
	if l.ill--; l.ill < -100 {
		l.ill = l.random.IntN(50)
	}
	often := 3
	if c.op == opWrite {
		often = 60 // of the many that a transaction has
	}
	if l.ill < 0 || l.random.IntN(often) > 0 {
		return sqlite3.SQLITE_OK
	}
	return failure(c, l.random)
}

func (l *life) shoot(when string) {
	// No author can go on while this is held, so each has asked for one thing at most that was
	// not answered.
	l.promises.mu.Lock()
	defer l.promises.mu.Unlock()
	l.taken = append(l.taken, shot{l.disk.picture(l.random), l.promises.allowed(), when})
}

// failure is an error that a call may end with.
func failure(c call, random *rand.Rand) int32 {
	switch c.op {
	case opSync:
		return sqlite3.SQLITE_IOERR_FSYNC
	case opTruncate:
		return sqlite3.SQLITE_IOERR_TRUNCATE
	case opWrite:
		if random.IntN(2) == 0 {
			return sqlite3.SQLITE_FULL
		}
		return sqlite3.SQLITE_IOERR_WRITE
	case opOpen, opDelete:
	}
	return sqlite3.SQLITE_OK
}

// live opens the log and writes until there are enough shots.
func (l *life) live(t *testing.T) {
	t.Helper()
	log, err := sqlitelog.Open(l.disk.dir)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range sessions {
		a := &author{id: id(i), log: log, promises: l.promises, size: l.size, random: rand.New(rand.NewPCG(l.seed(), 0))}
		if err := a.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		wg.Go(func() { l.write(t, a) })
	}
	if l.checkpoints {
		wg.Go(func() { l.checkpoint(t) })
	}
	wg.Wait()
	if err := log.Close(); err != nil && !l.sick {
		t.Error(err)
	}
	l.shoot("after the end")
}

func (l *life) seed() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = true
	return l.random.Uint64()
}

func (l *life) write(t *testing.T, a *author) {
	for failed := 0; !l.over(); {
		err := a.step(t.Context())
		if failed++; err == nil {
			failed = 0
		}
		if failed > maxFailures {
			t.Errorf("the log does not work again: %v", err)
			return
		}
		if l.sick && errors.Is(err, eventlog.ErrDisk) {
			return
		}
		if err != nil && l.sick {
			err = a.recover(t.Context(), err)
		}
		if err != nil {
			t.Error(err)
			return
		}
	}
}

// over leaves some shots for the end, when the log is closed.
func (l *life) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.taken) < l.shots-2 {
		return false
	}
	l.wait = min(l.wait, 3)
	return true
}

// checkpoint copies the write-ahead log into the database again and again, as the log does
// itself after some megabytes.
func (l *life) checkpoint(t *testing.T) {
	uri := "file:" + filepath.Join(l.disk.dir, sqlitelog.FileName) + "?_pragma=synchronous(FULL)&_pragma=busy_timeout(0)&_pragma=wal_autocheckpoint(0)"
	connector, err := sqlite.NewConnector(uri)
	if err != nil {
		t.Error(err)
		return
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	for !l.over() {
		if _, err := db.ExecContext(t.Context(), `PRAGMA wal_checkpoint(PASSIVE)`); err != nil && !l.sick {
			t.Error(err)
			return
		}
	}
}

// story is a log that loses its power again and again, with what must be found after that.
type story struct {
	plan
	random *rand.Rand
	dir    string
	found  map[session.ID]outcome
}

// next is the life of a log that begins with what the one before has left. It returns how many
// pictures were made of it, and the first in which something is wrong.
func (s *story) next(t *testing.T) (int, error) {
	t.Helper()
	l := &life{plan: s.plan, disk: plug(t, s.dir, s.random), promises: newPromises(), random: s.random}
	defer unplug(s.dir)
	l.disk.lies = s.lies
	maps.Copy(l.promises.kept, s.found)
	l.disk.intercept(l.asked)
	l.live(t)
	if err := os.RemoveAll(s.dir); err != nil {
		return 0, err
	}
	heir := s.random.IntN(len(l.taken))
	for i, shot := range l.taken {
		found, err := develop(t, shot, i%4 == 0)
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
	return len(l.taken), nil
}

// develop looks at a picture. The doctor comes last, and may come first as well.
func develop(t *testing.T, s shot, doctorFirst bool) (map[session.ID]outcome, error) {
	t.Helper()
	dir := private(t)
	if err := s.picture.save(dir); err != nil {
		return nil, err
	}
	if doctorFirst {
		if err := examine(t.Context(), dir); err != nil {
			return nil, fmt.Errorf("before the start: %w", err)
		}
	}
	found, err := look(t.Context(), dir, s.allowed)
	return found, errors.Join(err, os.RemoveAll(dir))
}

// tell tells stories until there have been so many losses of power, or something is wrong.
func tell(t *testing.T, p plan, losses int) error {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	for losses > 0 && !t.Failed() {
		s := &story{plan: p, random: random, dir: private(t)}
		for i := 0; i < p.lives && losses > 0; i++ {
			n, err := s.next(t)
			if err != nil {
				return err
			}
			losses -= n
		}
	}
	return nil
}
