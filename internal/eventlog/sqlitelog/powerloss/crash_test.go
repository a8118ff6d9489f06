//go:build linux

package powerloss

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/roost-dev/roost/internal/doctor"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

const sessions = 4

// errLost says that a session is not what it may be.
var errLost = errors.New("something was lost, or is there that must not be")

func id(i int) session.ID { return session.ID(fmt.Sprintf("s%d", i)) }

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
	return found, examine(ctx, dir)
}

// examine asks the doctor.
func examine(ctx context.Context, dir string) error {
	report, err := doctor.Check(ctx, doctor.Options{Dir: dir})
	if err == nil && report.Bad() > 0 {
		err = fmt.Errorf("the doctor finds: %+v", report.Findings)
	}
	return err
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

// TestPowerLoss takes the power away at any moment, again and again, and looks for all that was
// acknowledged.
func TestPowerLoss(t *testing.T) {
	if err := tell(t, plan{size: 1000, checkpoints: true, lives: 6, shots: 12, calls: 50}, number(t, 100)); err != nil {
		t.Error(err)
	}
}

// TestPowerLossDuringTheFirstStart takes the power away while the database is made: there is none
// afterwards, or a whole one.
func TestPowerLossDuringTheFirstStart(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	l := &life{plan: plan{shots: 1000, calls: 1}, disk: plug(t, private(t), random), promises: newPromises(), random: random}
	l.disk.intercept(l.asked)
	log, err := sqlitelog.Open(l.disk.dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	for _, s := range l.taken {
		if _, err := develop(t, s, true); err != nil {
			t.Errorf("power lost %s: %v", s.when, err)
		}
	}
	if len(l.taken) < 20 {
		t.Errorf("only %d calls", len(l.taken))
	}
}

// TestPowerLossAtCheckpoints writes so much that the log makes its checkpoints itself.
func TestPowerLossAtCheckpoints(t *testing.T) {
	if err := tell(t, plan{size: 150_000, lives: 3, shots: 6, calls: 2000}, number(t, 120)/20); err != nil {
		t.Error(err)
	}
}

// TestPowerLossOfASickDisk has writes and syncs fail before the power goes. What a failed sync
// should have made durable is gone, though later syncs succeed, and must not be acknowledged.
func TestPowerLossOfASickDisk(t *testing.T) {
	if err := tell(t, plan{size: 150_000, sick: true, lives: 4, shots: 8, calls: 2000}, number(t, 120)/20); err != nil {
		t.Error(err)
	}
}

// TestLyingDisk makes sure that TestPowerLoss would notice: with a disk that says that it has
// synced and has not, something is lost.
func TestLyingDisk(t *testing.T) {
	for range 20 {
		err := tell(t, plan{size: 1000, lies: true, checkpoints: true, lives: 6, shots: 12, calls: 50}, 100)
		t.Log(err)
		if errors.Is(err, errLost) {
			return
		}
	}
	t.Error("nothing is lost on a disk that syncs nothing")
}
