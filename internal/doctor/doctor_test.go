package doctor_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/blob"
	"github.com/roost-dev/roost/internal/datadir"
	"github.com/roost-dev/roost/internal/doctor"
	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const picture = "not really a picture"

// fixture makes a data directory with the sessions a, b and c, each of which has a settled run and
// an unsettled one and refers to a blob.
func fixture(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	blobs, err := blob.OpenDir(filepath.Join(dir, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	hash, err := blobs.Put(t.Context(), []byte(picture))
	if err != nil {
		t.Fatal(err)
	}
	log := openLog(t, dir)
	for _, id := range []session.ID{"a", "b", "c"} {
		fill(t, log, id, hash)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// openLog opens a log in a directory that may have blobs already.
func openLog(t *testing.T, dir string) *sqlitelog.Log {
	t.Helper()
	aside := filepath.Join(t.TempDir(), "blobs")
	if err := os.Rename(filepath.Join(dir, "blobs"), aside); err != nil {
		t.Fatal(err)
	}
	log, err := sqlitelog.Open(dir)
	if err := errors.Join(err, os.Rename(aside, filepath.Join(dir, "blobs"))); err != nil {
		t.Fatal(err)
	}
	return log
}

func fill(t *testing.T, log eventlog.Log, id session.ID, hash string) {
	t.Helper()
	state := &session.State{}
	add := func(events ...session.Event) {
		var records []session.Record
		after := state.Seq
		for _, e := range events {
			r := session.Record{Seq: state.Seq + 1, At: int64(state.Seq) + 1, Event: e}
			state.Apply(r)
			records = append(records, r)
		}
		if err := log.Append(t.Context(), id, after, records); err != nil {
			t.Fatal(err)
		}
	}
	prompt := func(run session.RunID, b session.Block) session.Event {
		return session.RunStarted{Run: run, Item: session.ItemID(fmt.Sprintf("u%d", run)), Blocks: []session.Block{b}}
	}
	add(session.Created{ID: id, Cwd: "/work", Name: string(id), Model: session.ModelRef{Provider: "p", ID: "m"}},
		prompt(1, session.Image{MIME: "image/png", Blob: hash, Size: int64(len(picture))}), session.RunEnded{})
	if err := log.Compact(t.Context(), id, eventlog.Snapshot{Head: state.Head, Items: state.Settled}); err != nil {
		t.Fatal(err)
	}
	add(prompt(2, session.Text{Text: strings.Repeat("x", 30<<10)}), session.RunEnded{}, session.Renamed{Name: "new"})
}

// change runs SQL on the database, as nobody should.
func change(t *testing.T, dir, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, sqlitelog.FileName))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		t.Fatal(err)
	}
}

func examine(t *testing.T, dir string, repair bool) *doctor.Report {
	t.Helper()
	r, err := doctor.Check(t.Context(), doctor.Options{Dir: dir, Repair: repair})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// text is a report as lines.
func text(r *doctor.Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "%s: %s|%s|%s\n", f.Severity, f.What, f.Do, f.Done)
	}
	return b.String()
}

// listed reads every session that the index names, and returns their ids.
func listed(t *testing.T, dir string) (ids []string) {
	t.Helper()
	log, err := sqlitelog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	for m, err := range log.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := eventlog.Restore(t.Context(), log, m.ID); err != nil {
			t.Errorf("session %s: %v", m.ID, err)
		}
		ids = append(ids, string(m.ID))
	}
	slices.Sort(ids)
	return ids
}

func TestNothingIsWrong(t *testing.T) {
	dir := fixture(t)
	if r := examine(t, dir, false); len(r.Findings) > 0 || r.Sessions != 3 || r.Blobs != 1 {
		t.Errorf("%+v", r)
	}
}

// TestDamage damages one thing after the other: each is named, a repair mends it, and what it does
// not concern is as before.
func TestDamage(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(t *testing.T, dir string)
		say    string
		done   string // empty when a repair cannot help
		left   string // the sessions that are there afterwards
	}{
		"record": {func(t *testing.T, dir string) {
			change(t, dir, `UPDATE events SET data = x'ffff' WHERE session = 1 AND seq = 5`)
		}, "problem: session a cannot be read", "moved to damaged/a", "b c"},
		"gap": {func(t *testing.T, dir string) {
			change(t, dir, `DELETE FROM events WHERE session = 2 AND seq = 5`)
		}, "problem: session b cannot be read", "moved to damaged/b", "a c"},
		"does not add up": {func(t *testing.T, dir string) { // another run's end instead of its begin
			change(t, dir, `UPDATE events SET data = x'0804180162001001' WHERE session = 1 AND seq = 4`)
		}, "problem: session a cannot be read", "moved to damaged/a", "b c"},
		"snapshot": {func(t *testing.T, dir string) {
			change(t, dir, `UPDATE snapshots SET head = x'ff' WHERE session = 3`)
		}, "problem: session c cannot be read", "moved to damaged/c", "a b"},
		"no events": {func(t *testing.T, dir string) {
			change(t, dir, `DELETE FROM events WHERE session = 1; DELETE FROM snapshots WHERE session = 1`)
		}, "problem: session a cannot be read", "moved to damaged/a", "b c"},
		"index wrong": {func(t *testing.T, dir string) {
			change(t, dir, `UPDATE sessions SET name = 'other', active = 1 WHERE id = 'b'`)
		}, "the index of sessions is wrong about 1 sessions", "made anew", "a b c"},
		"index lacks a session": {func(t *testing.T, dir string) {
			change(t, dir, `DELETE FROM sessions WHERE id = 'b'`)
		}, "the index of sessions is wrong about 1 sessions", "made anew", "a b c"},
		"no index": {func(t *testing.T, dir string) {
			change(t, dir, `DROP TABLE sessions`)
		}, "the index of sessions is wrong about 3 sessions", "made anew", "a b c"},
		"index and a session": {func(t *testing.T, dir string) {
			change(t, dir, `DELETE FROM sessions; UPDATE events SET data = x'ffff' WHERE session = 1 AND seq = 5`)
		}, "problem: session a cannot be read", "moved to damaged/a", "b c"},
		"file mode": {func(t *testing.T, dir string) {
			if err := os.Chmod(filepath.Join(dir, sqlitelog.FileName), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "warning: roost.db has mode 0644", "mode 0600 now", "a b c"},
		"directory mode": {func(t *testing.T, dir string) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}, "problem: the data directory has mode 0755", "mode 0700 now", "a b c"},
		"blob missing": {func(t *testing.T, dir string) {
			hash := blob.Hash([]byte(picture))
			if err := os.Remove(filepath.Join(dir, "blobs", hash[:2], hash)); err != nil {
				t.Fatal(err)
			}
		}, "is missing", "", "a b c"},
		"blob damaged": {func(t *testing.T, dir string) {
			hash := blob.Hash([]byte(picture))
			if err := os.WriteFile(filepath.Join(dir, "blobs", hash[:2], hash), []byte("other"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "is damaged", "", "a b c"},
		"token": {func(t *testing.T, dir string) {
			if err := os.WriteFile(filepath.Join(dir, "token"), []byte("roost_x"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "problem: the HTTP listener does not open", "", "a b c"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := fixture(t)
			c.damage(t, dir)
			before, err := os.ReadFile(filepath.Join(dir, sqlitelog.FileName))
			if err != nil {
				t.Fatal(err)
			}
			looked := examine(t, dir, false)
			if got := text(looked); !strings.Contains(got, c.say) || looked.Bad() == 0 {
				t.Fatalf("found:\n%s", got)
			}
			if after, err := os.ReadFile(filepath.Join(dir, sqlitelog.FileName)); err != nil || !bytes.Equal(before, after) {
				t.Errorf("a look changes the database: %v", err)
			}
			repaired := text(examine(t, dir, true))
			if !strings.Contains(repaired, c.say) || !strings.Contains(repaired, c.done) {
				t.Errorf("repaired:\n%s", repaired)
			}
			after := examine(t, dir, false)
			if (after.Bad() == 0) != (c.done != "") {
				t.Errorf("after the repair:\n%s", text(after))
			}
			if got := strings.Join(listed(t, dir), " "); got != c.left {
				t.Errorf("sessions %s", got)
			}
		})
	}
}

// TestWhatIsTakenAwayIsKept looks for a damaged session where the doctor says that it is.
func TestWhatIsTakenAwayIsKept(t *testing.T) {
	dir := fixture(t)
	change(t, dir, `UPDATE events SET data = x'ffff' WHERE session = 1 AND seq = 5`)
	examine(t, dir, true)
	kept, err := filepath.Glob(filepath.Join(dir, "damaged", "a", "rows-*.jsonl"))
	if err != nil || len(kept) != 1 {
		t.Fatal(kept, err)
	}
	b, err := os.ReadFile(kept[0])
	if err != nil || strings.Count(string(b), `"table":"events"`) < 3 || !strings.Contains(string(b), `"table":"chunks"`) {
		t.Errorf("%.300s, %v", b, err)
	}
	if info, err := os.Stat(kept[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
}

// TestFlippedPages overwrites one page of the file after the other: a repair leaves a database
// that is whole, with every session that could be read before.
func TestFlippedPages(t *testing.T) {
	pristine := fixture(t)
	data, err := os.ReadFile(filepath.Join(pristine, sqlitelog.FileName))
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	saved := 0
	for at := page; at < len(data); at += 3 * page {
		dir := filepath.Join(t.TempDir(), "data")
		if err := os.CopyFS(dir, os.DirFS(pristine)); err != nil {
			t.Fatal(err)
		}
		bad := slices.Clone(data)
		for i := range page {
			bad[at+i] ^= 0x5a
		}
		if err := os.WriteFile(filepath.Join(dir, sqlitelog.FileName), bad, 0o600); err != nil {
			t.Fatal(err)
		}
		looked := examine(t, dir, false)
		if strings.Count(text(looked), "\n") != len(looked.Findings) {
			t.Errorf("a finding has several lines:\n%s", text(looked))
		}
		repaired := examine(t, dir, true)
		if after := examine(t, dir, false); after.Bad() > 0 || after.Sessions < looked.Sessions {
			t.Errorf("page %d\nbefore:\n%sduring:\n%safter:\n%s", at/page, text(looked), text(repaired), text(after))
		}
		saved += len(listed(t, dir))
	}
	if saved == 0 {
		t.Error("no session was saved")
	}
}

func TestLostDatabase(t *testing.T) {
	for name, c := range map[string]struct {
		damage func(path string) error
		say    string
	}{
		"truncated": {func(path string) error { return os.Truncate(path, 9000) }, "database is damaged"},
		"letter":    {func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("dear all, ", 900)), 0o600) }, "database is damaged"},
		"removed":   {os.Remove, "database is missing"},
		"emptied":   {func(path string) error { return os.Truncate(path, 0) }, "database is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := fixture(t)
			path := filepath.Join(dir, sqlitelog.FileName)
			if err := c.damage(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(path)
			for _, repair := range []bool{false, true} {
				if got := text(examine(t, dir, repair)); !strings.Contains(got, c.say) || !strings.Contains(got, "backup") {
					t.Errorf("repair %v:\n%s", repair, got)
				}
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestServerRuns(t *testing.T) {
	dir := fixture(t)
	held, err := datadir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = held.Close() }()
	log, err := sqlitelog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	if err := os.WriteFile(filepath.Join(dir, "blobs", "put-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r := examine(t, dir, false)
	if r.Bad() > 0 || r.Server != os.Getpid() || r.Sessions != 3 || strings.Contains(text(r), "put-1") {
		t.Errorf("%+v", r)
	}
	if _, err := doctor.Check(t.Context(), doctor.Options{Dir: dir, Repair: true}); !errors.Is(err, doctor.ErrServer) {
		t.Errorf("repair: %v", err)
	}
}

func TestLeftovers(t *testing.T) {
	dir := fixture(t)
	names := []string{"blobs/put-123", "grants.json.new", "token.5.tmp", "roost.db.salvage"}
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	orphan := blob.Hash([]byte("orphan"))
	blobs := blob.LookDir(filepath.Join(dir, "blobs"))
	if _, err := blobs.Put(t.Context(), []byte("orphan")); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "outputs", "gone"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := examine(t, dir, true)
	got := text(r)
	for _, want := range append(names, "1 blobs (1 KiB) are named by no event", "outputs of 1 sessions that are gone") {
		if !strings.Contains(got, want) {
			t.Errorf("%s is not in\n%s", want, got)
		}
	}
	if r.Bad() > 0 {
		t.Errorf("leftovers are no damage:\n%s", got)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := blobs.Get(t.Context(), orphan); err != nil {
		t.Errorf("what nothing refers to must stay: %v", err)
	}
}

func TestCannotCheck(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	if _, err := doctor.Check(t.Context(), doctor.Options{Dir: missing}); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the directory was made")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := doctor.Check(ctx, doctor.Options{Dir: fixture(t)}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestConfiguration(t *testing.T) {
	r, err := doctor.Check(t.Context(), doctor.Options{Dir: fixture(t), Config: errors.New("line 3 is odd"), Warn: []string{"open to all"}})
	if err != nil || r.Bad() != 2 || !strings.Contains(text(r), "line 3 is odd") || !strings.Contains(text(r), "open to all") {
		t.Errorf("%v\n%s", err, text(r))
	}
}
