package sqlitelog_test

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

func created(id session.ID) session.Record {
	return session.Record{Seq: 1, At: 1, Event: session.Created{ID: id, Cwd: "/work", Name: "name of " + string(id)}}
}

func delta(seq session.Seq, text string) session.Record {
	return session.Record{Seq: seq, At: int64(seq), Event: session.Delta{Text: text}}
}

func add(t *testing.T, log eventlog.Log, id session.ID, records ...session.Record) {
	t.Helper()
	if err := log.Append(t.Context(), id, records[0].Seq-1, records); err != nil {
		t.Fatal(err)
	}
}

// last reads a session to its end.
func last(t *testing.T, log eventlog.Log, id session.ID) (seq session.Seq, err error) {
	t.Helper()
	for r, err := range log.Read(t.Context(), id, 0) {
		if err != nil {
			return seq, err
		}
		seq = r.Seq
	}
	return seq, nil
}

func run(t *testing.T, log *sqlitelog.Log, query string, args ...any) {
	t.Helper()
	if err := log.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
}

// filled makes a closed database with a few sessions and returns its file.
func filled(t *testing.T, dir string) string {
	t.Helper()
	log, err := sqlitelog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []session.ID{"a", "b", "c"} {
		add(t, log, id, created(id), delta(2, strings.Repeat("x", 100<<10)))
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, sqlitelog.FileName)
}

func TestOpenRefuses(t *testing.T) {
	sqlFile := func(script string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(script); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		change func(t *testing.T, path string)
		want   error
	}{
		"truncated": {func(t *testing.T, path string) { truncateFile(t, path, 2) }, sqlitelog.ErrDamaged},
		"cut short": {func(t *testing.T, path string) { truncateFile(t, path, 3000) }, sqlitelog.ErrDamaged},
		"no database": {func(t *testing.T, path string) {
			if err := os.WriteFile(path, []byte(strings.Repeat("this is a letter. ", 1000)), 0o600); err != nil {
				t.Fatal(err)
			}
		}, sqlitelog.ErrDamaged},
		"schema overwritten": {func(t *testing.T, path string) { overwrite(t, path, 100, 3996) }, sqlitelog.ErrDamaged},
		"newer":              {sqlFile(`PRAGMA user_version = 99`), sqlitelog.ErrNewer},
		"other program":      {sqlFile(`PRAGMA application_id = 7`), sqlitelog.ErrForeign},
		"unmarked":           {sqlFile(`PRAGMA application_id = 0; PRAGMA user_version = 0`), sqlitelog.ErrForeign},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filled(t, dir)
			c.change(t, path)
			log, err := sqlitelog.Open(dir)
			if err == nil {
				_ = log.Close()
			}
			if !errors.Is(err, c.want) {
				t.Fatalf("got %v, want %v", err, c.want)
			}
			if err != nil && !strings.Contains(err.Error(), path) {
				t.Errorf("%q does not name the file", err)
			}
		})
	}
}

// truncateFile cuts a file to a part of its size, or by that many bytes when it is large.
func truncateFile(t *testing.T, path string, by int64) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	size := info.Size() / by
	if by > 100 {
		size = info.Size() - by
	}
	if err := os.Truncate(path, size); err != nil {
		t.Fatal(err)
	}
}

func overwrite(t *testing.T, path string, at, n int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte(strings.Repeat("\xa5", int(n))), at); err != nil {
		t.Fatal(err)
	}
}

func TestOpenNeedsADirectory(t *testing.T) {
	if _, err := sqlitelog.Open(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
}

func TestFileIsPrivateAndItsNameMayBeOdd(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "100% odd? name#1 & é")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log := open(t, dir)
	add(t, log, "a", created("a"))
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		info, err := f.Info()
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", f.Name(), info.Mode(), err)
		}
	}
}

// TestDamagedRows damages what is stored of one session, and reads that one and another.
func TestDamagedRows(t *testing.T) {
	for name, damage := range map[string]string{
		"record overwritten":  `UPDATE events SET data = x'ffff' WHERE session = 1 AND seq = 3`,
		"record empty":        `UPDATE events SET data = x'' WHERE session = 1 AND seq = 3`,
		"record of elsewhere": `UPDATE events SET data = (SELECT data FROM events WHERE session = 1 AND seq = 4) WHERE session = 1 AND seq = 3`,
		"record missing":      `DELETE FROM events WHERE session = 1 AND seq = 3`,
		"head overwritten":    `UPDATE snapshots SET head = x'ffff' WHERE session = 1`,
		"chunk overwritten":   `UPDATE chunks SET data = x'ffff' WHERE session = 1`,
		"chunk missing":       `DELETE FROM chunks WHERE session = 1`,
		"chunk moved":         `UPDATE chunks SET first = 7 WHERE session = 1`,
	} {
		t.Run(name, func(t *testing.T) {
			log := open(t, t.TempDir())
			for _, id := range []session.ID{"a", "b"} {
				add(t, log, id, created(id), delta(2, "x"), delta(3, "y"), delta(4, "z"))
				s := eventlog.Snapshot{Head: session.Head{ID: id, Seq: 2}, Items: []session.Item{&session.User{ID: "u1"}}}
				if err := log.Compact(t.Context(), id, s); err != nil {
					t.Fatal(err)
				}
			}
			run(t, log, damage)
			if err := readAll(t, log, "a"); !errors.Is(err, eventlog.ErrCorrupt) {
				t.Errorf("damaged session: %v", err)
			}
			if err := readAll(t, log, "b"); err != nil {
				t.Errorf("other session: %v", err)
			}
			if err := log.Delete(t.Context(), "a"); err != nil {
				t.Errorf("delete of the damaged session: %v", err)
			}
		})
	}
}

func readAll(t *testing.T, log eventlog.Log, id session.ID) error {
	t.Helper()
	s, err := log.Load(t.Context(), id)
	if err != nil {
		return err
	}
	for _, err := range log.Read(t.Context(), id, s.Head.Seq) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestRebuildIndex(t *testing.T) {
	log := open(t, t.TempDir())
	add(t, log, "a", created("a"), session.Record{Seq: 2, At: 5, Event: session.Renamed{Name: "new"}})
	add(t, log, "b", created("b"), session.Record{Seq: 2, At: 6, Event: session.RunStarted{Run: 1, Item: "u1"}}, delta(3, "x"))
	add(t, log, "c", created("c"))
	add(t, log, "gone", created("gone"))
	s := eventlog.Snapshot{Head: session.Head{ID: "a", Seq: 2, Name: "new", Cwd: "/work", CreatedAt: 1, UpdatedAt: 5}}
	if err := log.Compact(t.Context(), "a", s); err != nil {
		t.Fatal(err)
	}
	if err := log.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	before := index(t, log)
	run(t, log, `UPDATE sessions SET name = 'wrong', active = 0, updated_at = 0 WHERE id <> 'c'; DELETE FROM sessions WHERE id = 'c'`)
	if slices.Equal(before, index(t, log)) {
		t.Fatal("nothing was damaged")
	}
	if err := log.RebuildIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := index(t, log); !slices.Equal(before, after) {
		t.Fatalf("got %+v, want %+v", after, before)
	}
	run(t, log, `UPDATE events SET data = x'ff' WHERE kind = 'run_started'; UPDATE sessions SET name = 'wrong'`)
	if err := log.RebuildIndex(t.Context()); !errors.Is(err, eventlog.ErrCorrupt) {
		t.Fatal(err)
	}
	for _, m := range index(t, log) {
		if wrong := m.Name == "wrong"; wrong != (m.ID == "b") {
			t.Errorf("session %s has the name %q", m.ID, m.Name)
		}
	}
}

func index(t *testing.T, log eventlog.Log) []session.Meta {
	t.Helper()
	var metas []session.Meta
	for m, err := range log.List(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		metas = append(metas, m)
	}
	return metas
}
