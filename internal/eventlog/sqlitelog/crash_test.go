package sqlitelog_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

// crashDir is the variable that turns this test binary into the process that is killed.
const crashDir = "ROOST_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		fmt.Fprintln(os.Stderr, writeForever(dir))
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

const (
	crashSessions = 20
	crashBatch    = 3  // records of each append after the first
	crashCompact  = 30 // events between compactions
)

func crashID(i int) session.ID { return session.ID(fmt.Sprintf("s%d", i)) }

// crashText is the text of an event, so that each can be told from every other.
func crashText(id session.ID, seq session.Seq) string { return fmt.Sprintf("%s at %d", id, seq) }

// writeForever appends to all sessions from where they are, and prints what has been
// acknowledged.
func writeForever(dir string) error {
	log, err := sqlitelog.Open(dir)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for i := range crashSessions {
		go func() { failed <- writeSession(log, crashID(i)) }()
	}
	return <-failed
}

func writeSession(log eventlog.Log, id session.ID) error {
	ctx := context.Background()
	seq, items, err := crashState(ctx, log, id)
	if err != nil {
		return err
	}
	if seq == 0 {
		if err := log.Append(ctx, id, 0, []session.Record{created(id)}); err != nil {
			return err
		}
		seq = 1
	}
	for {
		var records []session.Record
		for n := range session.Seq(crashBatch) {
			records = append(records, delta(seq+1+n, crashText(id, seq+1+n)))
		}
		if err := log.Append(ctx, id, seq, records); err != nil {
			return err
		}
		seq += crashBatch
		// One write of less than a pipe's buffer arrives whole or not at all.
		if _, err := fmt.Printf("%s %d\n", id, seq); err != nil {
			return err
		}
		if seq%crashCompact == 1 {
			item := &session.User{ID: session.ItemID(fmt.Sprintf("u%d", items)), At: int64(seq)}
			s := eventlog.Snapshot{Head: session.Head{ID: id, Seq: seq}, From: items, Items: []session.Item{item}}
			if err := log.Compact(ctx, id, s); err != nil {
				return err
			}
			items++
		}
	}
}

// crashState checks all that is stored of a session and returns its last event and its items.
func crashState(ctx context.Context, log eventlog.Log, id session.ID) (seq session.Seq, items int, err error) {
	for m, err := range log.List(ctx) {
		if err != nil {
			return 0, 0, err
		}
		if m.ID == id {
			seq = 1
		}
	}
	if seq == 0 {
		return 0, 0, nil
	}
	s, err := log.Load(ctx, id)
	if err != nil {
		return 0, 0, err
	}
	seq = s.Head.Seq
	for i, item := range s.Items {
		if want := session.ItemID(fmt.Sprintf("u%d", i)); item.ItemID() != want {
			return 0, 0, fmt.Errorf("session %s: item %s in place of %s", id, item.ItemID(), want)
		}
	}
	for r, err := range log.Read(ctx, id, seq) {
		if err != nil {
			return 0, 0, err
		}
		if d, ok := r.Event.(session.Delta); ok && d.Text != crashText(id, r.Seq) {
			return 0, 0, fmt.Errorf("session %s: event %d is %q", id, r.Seq, d.Text)
		}
		seq = r.Seq
	}
	if (seq-1)%crashBatch != 0 {
		return 0, 0, fmt.Errorf("session %s ends at %d, in the middle of an append", id, seq)
	}
	return seq, len(s.Items), nil
}

// TestKill kills a process that writes, again and again, and looks for what it was told is
// on disk.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	acknowledged := make(map[session.ID]session.Seq)
	for round := range 18 {
		killOne(t, dir, random.IntN(1500), acknowledged)
		log, err := sqlitelog.Open(dir)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for i := range crashSessions {
			seq, _, err := crashState(t.Context(), log, crashID(i))
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if want := acknowledged[crashID(i)]; seq < want {
				t.Fatalf("round %d: session %s ends at %d, but %d was acknowledged", round, crashID(i), seq, want)
			}
		}
		if err := log.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(acknowledged) != crashSessions {
		t.Fatalf("only %d sessions were written", len(acknowledged))
	}
}

// killOne starts the process, kills it after so many acknowledgements, and adds all that it
// has given to acknowledged.
func killOne(t *testing.T, dir string, after int, acknowledged map[session.ID]session.Seq) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		var id session.ID
		var seq session.Seq
		if _, err := fmt.Sscan(lines.Text(), &id, &seq); err != nil {
			t.Fatalf("%q: %v", lines.Text(), err)
		}
		acknowledged[id] = max(acknowledged[id], seq)
		if n == after {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the process was not killed: %v", cmd.ProcessState)
	}
}

func walSize(t *testing.T, dir string) int64 {
	t.Helper()
	info, err := os.Stat(filepath.Join(dir, sqlitelog.FileName+"-wal"))
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}
