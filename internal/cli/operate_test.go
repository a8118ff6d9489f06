package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

// operate runs a command on a data directory, with a configuration that is right.
func operate(t *testing.T, dir string, args ...string) result {
	t.Helper()
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	var out, beside bytes.Buffer
	code := Run(t.Context(), Server{Version: "1.2.3"}, append([]string{"--data", dir}, args...), strings.NewReader(""), &out, &beside)
	return result{code, out.String(), beside.String()}
}

func dataWithASession(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "data")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	log, err := sqlitelog.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	created := session.Created{ID: "s1", Cwd: "/work", Model: session.ModelRef{Provider: "p", ID: "m"}, Thinking: session.ThinkingOff}
	err = log.Append(t.Context(), "s1", 0, []session.Record{{Seq: 1, At: 1, Event: created}})
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestDoctor(t *testing.T) {
	dir := dataWithASession(t)
	if r := operate(t, dir, "doctor"); r.code != 0 || r.out != "checked "+dir+": 1 sessions, 0 blobs they refer to; 0 notes, 0 findings\n" || r.beside != "" {
		t.Errorf("%+v", r)
	}
	if err := os.Chmod(filepath.Join(dir, "roost.db"), 0o644); err != nil {
		t.Fatal(err)
	}
	const what = "warning roost.db has mode 0644: others can read it if they can reach it. "
	if r := operate(t, dir, "doctor"); r.code != 1 || !strings.HasPrefix(r.out, what+"What to do: use --repair\n") {
		t.Errorf("%+v", r)
	}
	if r := operate(t, dir, "doctor", "--repair"); r.code != 1 || !strings.HasPrefix(r.out, what+"Repaired: it has mode 0600 now\n") {
		t.Errorf("%+v", r)
	}
	if r := operate(t, filepath.Join(dir, "missing"), "doctor"); r.code != 2 || !strings.HasPrefix(r.beside, "roost: could not check: ") {
		t.Errorf("%+v", r)
	}
}

func TestBackupRestoreReplay(t *testing.T) {
	dir := dataWithASession(t)
	dest, restored := filepath.Join(t.TempDir(), "backup"), filepath.Join(t.TempDir(), "new")
	for _, c := range []struct {
		dir  string
		args []string
		code int
		say  string
	}{
		{dir, []string{"backup", dest}, 0, "backup " + dest + ": 1 files, "},
		{dir, []string{"backup", dest}, 1, "exists already"},
		{dir, []string{"restore", "--check", dest}, 0, "is good: 1 files"},
		{dir, []string{"restore", dest}, 1, "exists already"},
		{restored, []string{"restore", dest}, 0, "restored " + restored + " from the backup of "},
		{restored, []string{"replay", "s1"}, 0, `{"seq":1,"at":"1970-01-01T00:00:00.001Z","kind":"created","event":{"id":"s1",`},
		{restored, []string{"replay", "s1", "--format", "pi"}, 0, `"type":"event"`},
		{restored, []string{"replay", "s2"}, 1, "no such session"},
		{restored, []string{"replay", "s1", "--format", "odd"}, 2, "use one of events, roost, pi, cursor"},
		{restored, []string{"restore"}, 2, "needs 1 argument(s) [SRC]"},
	} {
		r := operate(t, c.dir, c.args...)
		if r.code != c.code || !strings.Contains(r.out+r.beside, c.say) {
			t.Errorf("%v: %+v", c.args, r)
		}
	}
}
