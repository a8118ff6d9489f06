package sqlitelog_test

import (
	"bytes"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

func sorted(s []string) []string { return slices.Sorted(slices.Values(s)) }

func view(t *testing.T, dir string) *sqlitelog.View {
	t.Helper()
	v, err := sqlitelog.OpenView(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := v.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}

// ids reads every session of a view and returns the ids of those that are whole.
func ids(t *testing.T, v *sqlitelog.View) (good []string) {
	t.Helper()
	entries, err := v.Entries(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, _, err := v.Meta(e); err == nil {
			good = append(good, string(e.ID))
		}
	}
	return sorted(good)
}

func TestViewIsOneMoment(t *testing.T) {
	dir := t.TempDir()
	log := open(t, dir)
	add(t, log, "a", created("a"), delta(2, "x"))
	v := view(t, dir)
	add(t, log, "a", delta(3, "y"))
	add(t, log, "b", created("b"))
	e, err := v.Find(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	var seqs []session.Seq
	for r, err := range v.Records(e, 0) {
		if err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, r.Seq)
	}
	if !slices.Equal(seqs, []session.Seq{1, 2}) || len(ids(t, v)) != 1 {
		t.Errorf("records %v, sessions %v", seqs, ids(t, v))
	}
	if _, err := v.Find(t.Context(), "b"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Errorf("later session: %v", err)
	}
	if now := view(t, dir); len(ids(t, now)) != 2 {
		t.Errorf("later view: %v", ids(t, now))
	}
}

func TestIndexIsMadeAnewAtStart(t *testing.T) {
	for name, damage := range map[string]string{
		"table missing":  `DROP TABLE sessions`,
		"rows missing":   `DELETE FROM sessions`,
		"newest missing": `DELETE FROM sessions WHERE id = 'c'`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			log := open(t, dir)
			for _, id := range []session.ID{"a", "b", "c", "gone"} {
				add(t, log, id, created(id), session.Record{Seq: 2, At: 5, Event: session.RunStarted{Run: 1, Item: "u1"}})
			}
			if err := log.Delete(t.Context(), "gone"); err != nil {
				t.Fatal(err)
			}
			before := index(t, log)
			run(t, log, damage)
			if err := log.Close(); err != nil {
				t.Fatal(err)
			}
			log = open(t, dir)
			if rebuilt, err := log.IndexRebuilt(); !rebuilt || err != nil {
				t.Fatalf("rebuilt %v, %v", rebuilt, err)
			}
			if d := cmp.Diff(before, index(t, log)); d != "" {
				t.Fatal(d)
			}
			if active, err := log.Active(t.Context()); err != nil || len(active) != 3 {
				t.Errorf("active %v, %v", active, err)
			}
			add(t, log, "new", created("new"))
			if err := readAll(t, log, "new"); err != nil {
				t.Error(err)
			}
		})
	}
	if rebuilt, _ := open(t, t.TempDir()).IndexRebuilt(); rebuilt {
		t.Error("the index of an empty log was made anew")
	}
}

// TestIndexSchema compares the index that is made anew with that of the migrations.
func TestIndexSchema(t *testing.T) {
	dir := t.TempDir()
	const query = `SELECT group_concat(name || char(10) || sql, char(10)) FROM (SELECT * FROM sqlite_schema WHERE tbl_name = 'sessions' AND sql IS NOT NULL ORDER BY name)`
	schema := func() (text string) {
		db, err := sql.Open("sqlite", filepath.Join(dir, sqlitelog.FileName))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.QueryRow(query).Scan(&text); err != nil {
			t.Fatal(err)
		}
		return text
	}
	log := open(t, dir)
	want := schema()
	run(t, log, `DROP TABLE sessions`)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
	if d := cmp.Diff(want, schema()); d != "" || !strings.Contains(want, "CREATE INDEX") {
		t.Error(d)
	}
}

func TestMissingDatabase(t *testing.T) {
	for name, left := range map[string]string{"blobs": "blobs/ab/abc", "outputs": "outputs/s1/bash.log", "its log": sqlitelog.FileName + "-wal"} {
		for kind, change := range map[string]func(string) error{
			"gone": os.Remove, "empty": func(path string) error { return os.Truncate(path, 0) },
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				dir := t.TempDir()
				path := filled(t, dir)
				if err := change(path); err != nil {
					t.Fatal(err)
				}
				other := filepath.Join(dir, left)
				if err := errors.Join(os.MkdirAll(filepath.Dir(other), 0o700), os.WriteFile(other, []byte("x"), 0o600)); err != nil {
					t.Fatal(err)
				}
				if _, err := sqlitelog.Open(dir); !errors.Is(err, sqlitelog.ErrMissing) {
					t.Errorf("open: %v", err)
				}
				if _, err := sqlitelog.OpenView(t.Context(), dir); !errors.Is(err, sqlitelog.ErrMissing) {
					t.Errorf("view: %v", err)
				}
				if b, err := os.ReadFile(other); err != nil || string(b) != "x" {
					t.Errorf("what was left is changed: %v", err)
				}
			})
		}
	}
	if _, err := sqlitelog.OpenView(t.Context(), t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("nothing at all: %v", err)
	}
}

func TestCopyOfALogInUse(t *testing.T) {
	dir, dest := t.TempDir(), filepath.Join(t.TempDir(), sqlitelog.FileName)
	log := open(t, dir)
	add(t, log, "a", created("a"), delta(2, "x"))
	done := make(chan error)
	go func() { // as a server does, until the copy is made
		var err error
		for seq := session.Seq(3); err == nil; seq++ {
			select {
			case done <- nil:
				return
			default:
				err = log.Append(t.Context(), "a", seq-1, []session.Record{delta(seq, strings.Repeat("x", 1000))})
			}
		}
		done <- err
	}()
	err := sqlitelog.Copy(t.Context(), dir, dest)
	if err := errors.Join(err, <-done); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dest); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	if err := sqlitelog.RaiseEpoch(t.Context(), dest, time.UnixMilli(1_900_000_000_000)); err != nil {
		t.Fatal(err)
	}
	copied := open(t, filepath.Dir(dest))
	if err := readAll(t, copied, "a"); err != nil {
		t.Error(err)
	}
	if copied.Epoch() != 1_900_000_000_000 || log.Epoch() != 1 {
		t.Errorf("epochs %d and %d", copied.Epoch(), log.Epoch())
	}
	if err := sqlitelog.Copy(t.Context(), dir, dest); !errors.Is(err, fs.ErrExist) {
		t.Errorf("onto a file: %v", err)
	}
}

// TestSalvage damages pages of the file, and finds all sessions that lie elsewhere.
func TestSalvage(t *testing.T) {
	for at := int64(4096); at < 40*4096; at += 4 * 4096 {
		dir := t.TempDir()
		path := filled(t, dir)
		overwrite(t, path, at, 4096)
		before := view(t, dir)
		good := ids(t, before)
		if lines, err := before.Integrity(true); err != nil || len(lines) == 0 && len(good) == 3 {
			t.Errorf("page %d: nothing is noticed: %v", at/4096, err)
		}
		aside := t.TempDir()
		whole := func(v *sqlitelog.View, e sqlitelog.Entry) bool { _, _, err := v.Meta(e); return err == nil }
		lost, err := sqlitelog.Salvage(t.Context(), dir, aside, whole, time.Now())
		if err != nil || len(lost) > 0 {
			t.Fatalf("page %d: %v %v", at/4096, lost, err)
		}
		if _, err := os.Stat(filepath.Join(aside, sqlitelog.FileName)); err != nil {
			t.Error(err)
		}
		log := open(t, dir)
		var after []string
		for _, m := range index(t, log) {
			after = append(after, string(m.ID))
			if err := readAll(t, log, m.ID); err != nil {
				t.Errorf("page %d: session %s: %v", at/4096, m.ID, err)
			}
		}
		if !slices.Equal(sorted(after), good) || log.Epoch() < 1_000_000 {
			t.Errorf("page %d: %v before, %v after, epoch %d", at/4096, good, after, log.Epoch())
		}
		if lines, err := view(t, dir).Integrity(true); err != nil || len(lines) > 0 {
			t.Errorf("page %d: %v %v", at/4096, lines, err)
		}
		add(t, log, "new", created("new"))
	}
}

func TestExportAndDiscard(t *testing.T) {
	dir := t.TempDir()
	log := open(t, dir)
	add(t, log, "a", created("a"), delta(2, "x"), delta(3, "y"))
	add(t, log, "b", created("b"))
	run(t, log, `UPDATE events SET data = x'ff' WHERE session = 1 AND seq = 2`)
	v := view(t, dir)
	e, err := v.Find(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := v.Export(e, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"table":"sessions"`, `"seq":2,"at":2,"kind":"delta","data":"/w=="}`, `"seq":3`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in %s", want, out.String())
		}
	}
	if err := log.Discard(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if got := index(t, log); len(got) != 1 || got[0].ID != "b" {
		t.Errorf("left %v", got)
	}
	if n, err := log.Count(`SELECT count(*) FROM events WHERE session = 1`); n != 0 || err != nil {
		t.Errorf("%d events, %v", n, err)
	}
}

// TestCrashDuringSalvage looks at the moment in which the old file has been moved and the new one
// has not got its name: nothing is begun anew, and the old file is whole.
func TestCrashDuringSalvage(t *testing.T) {
	dir := t.TempDir()
	path := filled(t, dir)
	aside := filepath.Join(dir, "damaged", "database-1")
	err := errors.Join(os.MkdirAll(aside, 0o700), os.Rename(path, filepath.Join(aside, sqlitelog.FileName)),
		os.WriteFile(filepath.Join(dir, sqlitelog.SalvageName), []byte("half"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitelog.Open(dir); !errors.Is(err, sqlitelog.ErrMissing) {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(aside, sqlitelog.FileName), path); err != nil {
		t.Fatal(err)
	}
	if got := index(t, open(t, dir)); len(got) != 3 {
		t.Errorf("%d sessions", len(got))
	}
}

func TestSize(t *testing.T) {
	log := open(t, t.TempDir())
	add(t, log, "a", created("a"), delta(2, strings.Repeat("x", 5000)))
	add(t, log, "b", created("b"))
	for id, bounds := range map[session.ID][2]int64{"a": {5000, 5200}, "b": {10, 100}} {
		if n, err := log.Size(t.Context(), id); err != nil || n < bounds[0] || n > bounds[1] {
			t.Errorf("%s: %d bytes, %v", id, n, err)
		}
	}
	if _, err := log.Size(t.Context(), "c"); !errors.Is(err, eventlog.ErrNotFound) {
		t.Error(err)
	}
}
