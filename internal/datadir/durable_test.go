package datadir

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// synced makes syncDir keep the names that are durable, by directory, as long as the test runs.
func synced(t *testing.T) map[string][]string {
	t.Helper()
	durable, sync := make(map[string][]string), syncDir
	t.Cleanup(func() { syncDir = sync })
	syncDir = func(path string) error {
		entries, err := os.ReadDir(path)
		if err != nil {
			t.Error(err)
		}
		durable[path] = nil
		for _, e := range entries {
			durable[path] = append(durable[path], e.Name())
		}
		return sync(path)
	}
	return durable
}

func TestOpenMakesADirectoryThatStays(t *testing.T) {
	durable, base := synced(t), t.TempDir()
	path := filepath.Join(base, "a", "b", "data")
	d, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	for p := path; p != base; p = filepath.Dir(p) {
		if !slices.Contains(durable[filepath.Dir(p)], filepath.Base(p)) {
			t.Errorf("%s is lost with the power", p)
		}
	}
	if len(durable) != 3 {
		t.Errorf("synced: %v", durable)
	}
}

func TestOpenDoesNotMakeADirectoryOfAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, filepath.Join(path, "data")} {
		if d, err := Open(p); err == nil {
			t.Errorf("%s is open", d.Path())
		}
	}
}

func TestReplace(t *testing.T) {
	durable, dir := synced(t), t.TempDir()
	path := filepath.Join(dir, "file")
	for _, content := range []string{"a longer one", "new"} {
		clear(durable)
		if err := Replace(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != content {
			t.Errorf("got %q, %v; want %q", got, err, content)
		}
		if !slices.Equal(durable[dir], []string{"file"}) {
			t.Errorf("durable: %q", durable[dir])
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if err := Replace(filepath.Join(path, "below"), nil); err == nil {
		t.Error("a file was made below a file")
	}
}
