package workspace_test

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/internal/workspace"
)

func TestOpenFileRefusesWhatIsNotAFile(t *testing.T) {
	work, _ := tree(t)
	must(t, syscall.Mkfifo(filepath.Join(work, "pipe"), 0o600))
	r := open(t, work, false)
	for path, want := range map[string]error{
		"pipe":        workspace.ErrNotRegular,
		"/dev/zero":   workspace.ErrNotRegular,
		"/dev/random": workspace.ErrNotRegular,
		"sub":         workspace.ErrIsDir,
		"none":        fs.ErrNotExist,
	} {
		n, err := r.Resolve(path)
		must(t, err)
		if f, _, err := r.OpenFile(n); !errors.Is(err, want) {
			t.Errorf("%s: got %v, %v, want %v", path, f, err, want)
		}
	}
}

// The check before the open can be outrun; the wall may not depend on it.
func TestLinkSwappedIn(t *testing.T) {
	work, outside := tree(t)
	r := open(t, work, true)
	n, err := r.Resolve("sub/b.txt")
	must(t, err)
	must(t, os.Rename(filepath.Join(work, "sub"), filepath.Join(work, "gone")))
	must(t, os.Symlink(outside, filepath.Join(work, "sub")))
	must(t, os.WriteFile(filepath.Join(outside, "b.txt"), []byte("secret"), 0o600))
	if _, _, err := r.OpenFile(n); err == nil {
		t.Error("read through a link that came after the check")
	}
	if err := r.Replace(n, []byte("overwritten")); err == nil {
		t.Error("wrote through a link that came after the check")
	}
	if _, _, err := r.ReadDir("sub", 10); err == nil {
		t.Error("listed through a link that came after the check")
	}
	if got, err := os.ReadFile(filepath.Join(outside, "b.txt")); err != nil || string(got) != "secret" {
		t.Errorf("the file outside is now %q, %v", got, err)
	}
}

func TestLinkSwappedDuringUse(t *testing.T) {
	work, outside := tree(t)
	r := open(t, work, true)
	must(t, os.WriteFile(filepath.Join(outside, "b.txt"), []byte("secret"), 0o600))
	dir, spare := filepath.Join(work, "sub"), filepath.Join(work, "spare")
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(dir, spare)
			_ = os.Symlink(outside, dir)
			_ = os.Remove(dir)
			_ = os.Rename(spare, dir)
		}
	})
	for i := range 3000 {
		n, err := r.Resolve("sub/b.txt")
		if err != nil {
			continue
		}
		if f, _, err := r.OpenFile(n); err == nil {
			data, err := io.ReadAll(f)
			must(t, err)
			must(t, f.Close())
			if string(data) == "secret" {
				t.Fatal("read the file outside")
			}
		}
		if i%20 == 0 { // it waits for the disk
			_ = r.Replace(n, []byte("b"))
		}
	}
	close(stop)
	swapper.Wait()
	if got, err := os.ReadFile(filepath.Join(outside, "b.txt")); err != nil || string(got) != "secret" {
		t.Errorf("the file outside is now %q, %v", got, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 2 {
		t.Errorf("files were left outside: %v, %v", entries, err)
	}
}

func TestReplace(t *testing.T) {
	for _, confined := range []bool{true, false} {
		work, _ := tree(t)
		r := open(t, work, confined)
		must(t, os.Chmod(filepath.Join(work, "sub", "b.txt"), 0o751))
		for _, path := range []string{"in", "new/dir/file", "dangling"} {
			n, err := r.Resolve(path)
			must(t, err)
			must(t, r.Replace(n, []byte("fresh")))
			got, err := os.ReadFile(filepath.Join(work, path))
			if err != nil || string(got) != "fresh" {
				t.Errorf("%s: got %q, %v", path, got, err)
			}
		}
		if info, err := os.Lstat(filepath.Join(work, "in")); err != nil || info.Mode()&fs.ModeSymlink == 0 {
			t.Errorf("the link was replaced, not its target: %v", err)
		}
		if info, err := os.Stat(filepath.Join(work, "sub", "b.txt")); err != nil || info.Mode().Perm() != 0o751 {
			t.Errorf("mode is %v, %v", info.Mode(), err)
		}
		must(t, filepath.WalkDir(work, func(path string, _ fs.DirEntry, err error) error {
			if strings.HasSuffix(path, ".tmp") {
				t.Errorf("left behind: %s", path)
			}
			return err
		}))
	}
}

func TestReplaceRefuses(t *testing.T) {
	work, _ := tree(t)
	must(t, os.Chmod(filepath.Join(work, "a.txt"), 0o444))
	must(t, syscall.Mkfifo(filepath.Join(work, "pipe"), 0o600))
	r := open(t, work, true)
	for name, want := range map[workspace.Name]error{
		"a.txt":        workspace.ErrReadOnly,
		"sub":          workspace.ErrIsDir,
		"pipe":         workspace.ErrNotRegular,
		".":            workspace.ErrIsDir,
		"a.txt/x":      syscall.ENOTDIR,
		"../outside/x": nil,
		"../outside":   nil,
	} {
		err := r.Replace(name, []byte("x"))
		if err == nil || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
}

func TestReadDirIsBounded(t *testing.T) {
	work, _ := tree(t)
	r := open(t, work, true)
	entries, more, err := r.ReadDir(".", 3)
	if err != nil || len(entries) != 3 || !more {
		t.Errorf("got %d, %v, %v", len(entries), more, err)
	}
	entries, more, err = r.ReadDir("sub", 3)
	if err != nil || len(entries) != 3 || more {
		t.Errorf("got %d, %v, %v", len(entries), more, err)
	}
	if _, _, err := r.ReadDir("a.txt", 3); err == nil {
		t.Error("listed a file")
	}
	if info, err := r.Lstat("in"); err != nil || info.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("Lstat of a link: %v", err)
	}
}
