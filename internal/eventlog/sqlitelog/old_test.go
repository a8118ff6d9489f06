package sqlitelog_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

// oldFiles are databases as earlier versions have written them, with what is in them: the last
// event and the number of items of each session by its name and place in the file. A new form of
// the database, or of its records, gets a directory of its own; none is ever changed.
var oldFiles = map[string][]struct {
	name   string
	last   session.Seq
	items  int
	active bool
}{
	"v1": {
		{"two runs", 214, 16, false}, // settled runs, mode, tools
		{"a picture", 56, 5, false},  // a blob
		{"two runs", 3, 16, false},   // a fork
		{"in a run", 4, 3, true},     // killed in the middle of a pass
	},
}

// oldFile copies a database of testdata into a directory of its own.
func oldFile(t *testing.T, version string) (dir string) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", version, sqlitelog.FileName))
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, sqlitelog.FileName), data, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestOldFiles opens what earlier versions have written, reads every session and goes on with
// one.
func TestOldFiles(t *testing.T) {
	versions, err := os.ReadDir("testdata")
	if err != nil || len(versions) != len(oldFiles) {
		t.Fatalf("%d directories, %v", len(versions), err)
	}
	for version, want := range oldFiles {
		t.Run(version, func(t *testing.T) {
			log := open(t, oldFile(t, version))
			metas := index(t, log)
			if len(metas) != len(want) {
				t.Fatalf("%d sessions", len(metas))
			}
			v := 0
			for m := range byAge(metas) {
				state, err := eventlog.Restore(t.Context(), log, m.ID)
				if err != nil {
					t.Fatalf("session %d: %v", v, err)
				}
				got, w := fmt.Sprint(m.Name, state.Seq, len(state.Transcript()), m.Active), want[v]
				if got != fmt.Sprint(w.name, w.last, w.items, w.active) || m.Active != (state.Run != nil) {
					t.Errorf("session %d: %s, want %+v", v, got, w)
				}
				v++
				renamed := session.Record{Seq: state.Seq + 1, At: 1_900_000_000_000, Event: session.Renamed{Name: "goes on"}}
				if err := log.Append(t.Context(), m.ID, state.Seq, []session.Record{renamed}); err != nil {
					t.Fatal(err)
				}
				if again, err := eventlog.Restore(t.Context(), log, m.ID); err != nil || again.Name != "goes on" {
					t.Fatalf("session %d goes on: %v", v, err)
				}
			}
		})
	}
}

// byAge yields sessions by their id, which begins with the time at which they were made.
func byAge(metas []session.Meta) func(func(session.Meta) bool) {
	byID := make(map[session.ID]session.Meta)
	var ids []string
	for _, m := range metas {
		byID[m.ID] = m
		ids = append(ids, string(m.ID))
	}
	return func(yield func(session.Meta) bool) {
		for _, id := range sorted(ids) {
			if !yield(byID[session.ID(id)]) {
				return
			}
		}
	}
}

func TestNewerFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	log := open(t, dir)
	run(t, log, `PRAGMA user_version = 99`)
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitelog.Open(dir); !errors.Is(err, sqlitelog.ErrNewer) {
		t.Errorf("open: %v", err)
	}
	if _, err := sqlitelog.OpenView(t.Context(), dir); !errors.Is(err, sqlitelog.ErrNewer) {
		t.Errorf("view: %v", err)
	}
}
