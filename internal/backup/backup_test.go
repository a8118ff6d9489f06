package backup_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/backup"
	"github.com/roost-dev/roost/internal/blob"
	"github.com/roost-dev/roost/internal/datadir"
	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var now = time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)

// live is a data directory that a server has open.
type live struct {
	dir  string
	log  *sqlitelog.Log
	hash string // of a blob
}

func start(t *testing.T) *live {
	t.Helper()
	dir, err := datadir.Open(filepath.Join(t.TempDir(), "data"))
	if err != nil {
		t.Fatal(err)
	}
	log, err := sqlitelog.Open(dir.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(log.Close(), dir.Close()); err != nil {
			t.Error(err)
		}
	})
	blobs, err := blob.OpenDir(dir.Join("blobs"))
	if err != nil {
		t.Fatal(err)
	}
	hash, err := blobs.Put(t.Context(), []byte("a picture"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"server-id": "one", "token": "roost_secret", "grants.json": "{}", "outputs/s1/bash-1.log": "much", "mcp/x.json": "login", "blobs/put-1": "half",
	} {
		write(t, dir.Join(name), text)
	}
	l := &live{dir.Path(), log, hash}
	l.add(t, 1, session.Created{ID: "s1", Cwd: "/work", Model: session.ModelRef{Provider: "p", ID: "m"}})
	l.add(t, 2, session.RunStarted{Run: 1, Item: "u1", Blocks: []session.Block{session.Image{MIME: "image/png", Blob: hash}}})
	return l
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func (l *live) add(t *testing.T, seq session.Seq, e session.Event) {
	t.Helper()
	if err := l.log.Append(t.Context(), "s1", seq-1, []session.Record{{Seq: seq, At: int64(seq), Event: e}}); err != nil {
		t.Fatal(err)
	}
}

// tree returns the files below dir, and checks that they are private.
func tree(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %o", path, info.Mode().Perm())
		}
		if !e.IsDir() {
			rel, err := filepath.Rel(dir, path)
			names = append(names, rel)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestBackupAndRestore(t *testing.T) {
	l := start(t)
	dest := filepath.Join(t.TempDir(), "backup")
	made, err := backup.Make(t.Context(), l.dir, dest, "1.2.3", now)
	if err != nil || len(made.Skipped) > 0 {
		t.Fatal(err, made)
	}
	l.add(t, 3, session.RunEnded{}) // what the backup does not have
	want := []string{"blobs/" + l.hash[:2] + "/" + l.hash, "grants.json", "manifest.json", "outputs/s1/bash-1.log", "roost.db", "server-id"}
	if got := tree(t, dest); !slices.Equal(got, want) {
		t.Errorf("the backup has %q", got)
	}
	m, err := backup.Verify(t.Context(), dest)
	if err != nil || m.Version != "1.2.3" || len(m.Files) != len(want)-1 || m.Bytes() < 10_000 {
		t.Fatalf("%v %+v", err, m)
	}

	dir := filepath.Join(t.TempDir(), "restored")
	if _, err := backup.Restore(t.Context(), dest, dir, now); err != nil {
		t.Fatal(err)
	}
	tree(t, dir)
	log, err := sqlitelog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	state, err := eventlog.Restore(t.Context(), log, "s1")
	if err != nil || state.Seq != 2 || state.Run == nil {
		t.Errorf("%v %+v", err, state)
	}
	// A position of the old history must not be taken for one of the new.
	if log.Epoch() == l.log.Epoch() || log.Epoch() != session.Epoch(now.UnixMilli()) {
		t.Errorf("epoch %d", log.Epoch())
	}
	if data, err := blob.LookDir(filepath.Join(dir, "blobs")).Get(t.Context(), l.hash); err != nil || string(data) != "a picture" {
		t.Errorf("%q %v", data, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "token")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the token was restored: %v", err)
	}
}

// TestBackupWhileWriting makes a backup of a log into which is written all the time, with a blob
// before each event: the backup has the blobs of all its events.
func TestBackupWhileWriting(t *testing.T) {
	l := start(t)
	blobs := blob.LookDir(filepath.Join(l.dir, "blobs"))
	done := make(chan error)
	go func() {
		for seq := session.Seq(3); ; seq++ {
			hash, err := blobs.Put(context.Background(), []byte{byte(seq), byte(seq >> 8)})
			if err == nil {
				e := session.SteerQueued{Item: "u2", Blocks: []session.Block{session.Image{MIME: "image/png", Blob: hash}}}
				err = l.log.Append(context.Background(), "s1", seq-1, []session.Record{{Seq: seq, At: 1, Event: e}})
			}
			select {
			case done <- err:
				return
			default:
			}
		}
	}()
	for range 3 {
		dest := filepath.Join(t.TempDir(), "backup")
		if _, err := backup.Make(t.Context(), l.dir, dest, "", now); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Verify(t.Context(), dest); err != nil {
			t.Fatal(err)
		}
		checkBlobs(t, dest)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func checkBlobs(t *testing.T, dest string) {
	t.Helper()
	v, err := sqlitelog.OpenView(t.Context(), dest)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = v.Close() }()
	e, err := v.Find(t.Context(), "s1")
	if err != nil {
		t.Fatal(err)
	}
	for r, err := range v.Records(e, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if s, ok := r.Event.(session.SteerQueued); ok {
			if _, err := blob.LookDir(filepath.Join(dest, "blobs")).Get(t.Context(), s.Blocks[0].(session.Image).Blob); err != nil {
				t.Fatalf("event %d: %v", r.Seq, err)
			}
		}
	}
}

func TestDamagedBackupsAreRefused(t *testing.T) {
	l := start(t)
	pristine := filepath.Join(t.TempDir(), "backup")
	if _, err := backup.Make(t.Context(), l.dir, pristine, "", now); err != nil {
		t.Fatal(err)
	}
	manifest := func(change func(*backup.Manifest)) func(string) error {
		return func(dir string) error {
			path := filepath.Join(dir, "manifest.json")
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var m backup.Manifest
			if err := json.Unmarshal(data, &m); err != nil {
				return err
			}
			change(&m)
			if data, err = json.Marshal(m); err != nil {
				return err
			}
			return os.WriteFile(path, data, 0o600)
		}
	}
	for name, c := range map[string]struct {
		damage func(dir string) error
		want   error
	}{
		"not finished":  {func(dir string) error { return os.Remove(filepath.Join(dir, "manifest.json")) }, backup.ErrNoBackup},
		"newer":         {manifest(func(m *backup.Manifest) { m.Format = 2 }), backup.ErrNewer},
		"not JSON":      {func(dir string) error { return os.WriteFile(filepath.Join(dir, "manifest.json"), []byte("{"), 0o600) }, backup.ErrDamaged},
		"without files": {manifest(func(m *backup.Manifest) { m.Files = nil }), backup.ErrDamaged},
		"leads away":    {manifest(func(m *backup.Manifest) { m.Files[0].Path = "blobs/../../secret" }), backup.ErrDamaged},
		"token":         {manifest(func(m *backup.Manifest) { m.Files[0].Path = "token" }), backup.ErrDamaged},
		"file missing":  {func(dir string) error { return os.Remove(filepath.Join(dir, "server-id")) }, backup.ErrDamaged},
		"file changed":  {func(dir string) error { return os.WriteFile(filepath.Join(dir, "server-id"), []byte("two"), 0o600) }, backup.ErrDamaged},
		"truncated":     {func(dir string) error { return os.Truncate(filepath.Join(dir, "roost.db"), 8000) }, backup.ErrDamaged},
	} {
		t.Run(name, func(t *testing.T) {
			src, dir := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "data")
			if err := errors.Join(os.CopyFS(src, os.DirFS(pristine)), c.damage(src)); err != nil {
				t.Fatal(err)
			}
			if _, err := backup.Restore(t.Context(), src, dir, now); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
			if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("something was made: %v", err)
			}
		})
	}
}

func TestNothingIsOverwritten(t *testing.T) {
	l := start(t)
	dest := filepath.Join(t.TempDir(), "backup")
	for i := range 2 {
		_, err := backup.Make(t.Context(), l.dir, dest, "", now)
		if (i == 0 && err != nil) || (i == 1 && !errors.Is(err, backup.ErrNotEmpty)) {
			t.Fatal(i, err)
		}
	}
	if _, err := backup.Restore(t.Context(), dest, l.dir, now); !errors.Is(err, backup.ErrNotEmpty) {
		t.Errorf("over a data directory: %v", err)
	}
	taken := filepath.Join(t.TempDir(), "empty")
	held, err := datadir.Open(taken)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := errors.AsType[*datadir.InUseError](second(backup.Restore(t.Context(), dest, taken, now))); !ok {
		t.Error("restored into a directory that a process holds")
	}
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := backup.Restore(t.Context(), dest, taken, now); err != nil {
		t.Errorf("into an empty directory: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestFailuresLeaveNothing(t *testing.T) {
	l := start(t)
	at := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := backup.Make(ctx, l.dir, filepath.Join(at, "backup"), "", now); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, err := backup.Make(t.Context(), t.TempDir(), filepath.Join(at, "backup"), "", now); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if left, err := os.ReadDir(at); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

func TestDamagedBlobIsLeftOutAndNamed(t *testing.T) {
	l := start(t)
	write(t, filepath.Join(l.dir, "blobs", l.hash[:2], l.hash), "another picture")
	dest := filepath.Join(t.TempDir(), "backup")
	made, err := backup.Make(t.Context(), l.dir, dest, "", now)
	if err != nil || len(made.Skipped) != 1 || !strings.Contains(made.Skipped[0], l.hash) {
		t.Fatalf("%v %+v", err, made)
	}
	if _, err := backup.Verify(t.Context(), dest); err != nil {
		t.Error(err)
	}
}

// TestHalfRestoredDirectory is refused by a server: the database has its name last.
func TestHalfRestoredDirectory(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "blobs", "ab", "abc"), "x")
	write(t, filepath.Join(dir, "roost.db.restore"), "x")
	if _, err := sqlitelog.Open(dir); !errors.Is(err, sqlitelog.ErrMissing) {
		t.Error(err)
	}
}

// TestKilledBackup finds what a backup leaves that is killed: it is no backup, and the next one
// says what to do about it.
func TestKilledBackup(t *testing.T) {
	l := start(t)
	dest := filepath.Join(t.TempDir(), "backup")
	write(t, filepath.Join(dest+".unfinished", "roost.db"), "half")
	if _, err := backup.Make(t.Context(), l.dir, dest, "", now); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("the next one: %v", err)
	}
	if _, err := backup.Verify(t.Context(), dest+".unfinished"); !errors.Is(err, backup.ErrNoBackup) {
		t.Errorf("what is left: %v", err)
	}
}
