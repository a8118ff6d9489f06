package ignore_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/tool/searchtool/ignore"
)

func TestOrderOfFiles(t *testing.T) {
	top := &ignore.Dir{Git: ignore.Parse("*.log\nbuild/\n"), Ignore: ignore.Parse("!keep.log"), Exclude: ignore.Parse("*.tmp\n!x.log")}
	sub := &ignore.Dir{Parent: top, Path: "sub", Git: ignore.Parse("!b.log\n!a.tmp\nkeep.log\n/only")}
	for _, c := range []struct {
		dir   *ignore.Dir
		path  string
		isDir bool
		want  bool
	}{
		{top, "a.log", false, true},
		{top, "x.log", false, true},         // .gitignore ranks above exclude
		{top, "keep.log", false, false},     // .ignore ranks above .gitignore
		{sub, "sub/keep.log", false, false}, // even above a deeper one
		{sub, "sub/b.log", false, false},    // deeper ranks above
		{sub, "sub/a.tmp", false, false},
		{sub, "sub/b.tmp", false, true},
		{sub, "sub/only", false, true},
		{top, "build", true, true},
		{top, "build", false, false},
	} {
		if got := c.dir.Ignored(c.path, c.isDir); got != c.want {
			t.Errorf("%s (directory: %v): got %v", c.path, c.isDir, got)
		}
	}
}

// repo is a git repository in which git is asked what it ignores.
type repo struct{ dir string }

func newRepo(t *testing.T) *repo {
	t.Helper()
	r := &repo{dir: t.TempDir()}
	for _, d := range []string{"a/b/c", "foo/a", "b/foo", "x.y/a"} {
		if err := os.MkdirAll(filepath.Join(r.dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{
		"a/b/c/foo", "a/b/c/a.x", "a/b/ab", "a/foo.x", "a/b/x.y", "foo/a/a", "foo/ab", "foo/a.x", "b/foo/c", "b/a", "b/x.y",
		"x.y/a/b", "x.y/foo", "a.x", "ab", "c", " c", "c ", "#c", "!c", "a[b]", "a-b", "a*b", "foo.x", "a\\b",
	} {
		if err := os.WriteFile(filepath.Join(r.dir, f), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	git := exec.Command("git", "init", "-q", r.dir)
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("this test needs git: %v %s", err, out)
	}
	return r
}

// paths returns everything in the tree, directories before what is in them.
func (r *repo) paths(t *rapid.T) (paths []string, dirs map[string]bool) {
	dirs = map[string]bool{}
	err := filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(r.dir, path)
		switch {
		case err != nil || relErr != nil:
			return err
		case rel == ".git":
			return fs.SkipDir
		case rel != "." && e.Name() != ".gitignore":
			paths = append(paths, rel)
			dirs[rel] = e.IsDir()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths, dirs
}

// gitSays returns the paths that git ignores.
func (r *repo) gitSays(t *rapid.T, paths []string) []string {
	git := exec.Command("git", "-c", "core.excludesFile=/dev/null", "-c", "core.ignoreCase=false", "check-ignore", "--no-index", "-z", "--stdin")
	git.Dir = r.dir
	git.Stdin = strings.NewReader(strings.Join(paths, "\x00") + "\x00")
	var stderr bytes.Buffer
	git.Stderr = &stderr
	out, err := git.Output()
	if err != nil && git.ProcessState.ExitCode() != 1 { // 1: none is ignored
		t.Fatalf("this test needs git: %v %s", err, stderr.String())
	}
	return slices.DeleteFunc(strings.Split(string(out), "\x00"), func(s string) bool { return s == "" })
}

// weSay returns the paths that a walk by our rules leaves out.
func weSay(paths []string, isDir map[string]bool, files map[string]string, exclude string) (ignored []string) {
	dirs := map[string]*ignore.Dir{"": {Git: ignore.Parse(files[""]), Exclude: ignore.Parse(exclude)}}
	out := map[string]bool{}
	for _, p := range paths {
		parent := ""
		if i := strings.LastIndexByte(p, '/'); i >= 0 {
			parent = p[:i]
		}
		if out[p] = out[parent] || dirs[parent].Ignored(p, isDir[p]); out[p] {
			ignored = append(ignored, p)
		}
		if isDir[p] {
			dirs[p] = &ignore.Dir{Parent: dirs[parent], Path: p, Git: ignore.Parse(files[p])}
		}
	}
	return ignored
}

func TestAgreesWithGit(t *testing.T) {
	r := newRepo(t)
	piece := rapid.SampledFrom([]string{
		"a", "b", "c", "foo", ".x", "x.y", "*", "**", "?", "/", "/", "/**/", "**/", "/**", "[ab]", "[!a]", "[^b]", "[a-c]", "[]-a]",
		"[[:alpha:]]", "[[:punct:]]", "[[:no:]]", "[a", "[", "\\", "\\*", "\\ ", " ", "-", "{a,b}", "[+-9]", "[\\]", "[c-a]",
	})
	line := rapid.Custom(func(t *rapid.T) string {
		return rapid.SampledFrom([]string{"", "", "", "!", "/", "#", "\\!", "\\#", "!/"}).Draw(t, "mark") +
			strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "pieces"), "") +
			rapid.SampledFrom([]string{"", "", "/", " ", "\r"}).Draw(t, "end")
	})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 0, 6).Draw(t, "lines"), "\n") + rapid.SampledFrom([]string{"", "\n"}).Draw(t, "last")
	})
	rapid.Check(t, func(t *rapid.T) {
		files := map[string]string{"": text.Draw(t, "top"), "a": text.Draw(t, "a"), "a/b": text.Draw(t, "a/b")}
		exclude := text.Draw(t, "exclude")
		for dir, content := range files {
			if err := os.WriteFile(filepath.Join(r.dir, dir, ".gitignore"), []byte(content), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(r.dir, ".git", "info", "exclude"), []byte(exclude), 0o644); err != nil {
			t.Fatal(err)
		}
		paths, isDir := r.paths(t)
		got, want := weSay(paths, isDir, files, exclude), r.gitSays(t, paths)
		for _, p := range paths {
			if g, w := slices.Contains(got, p), slices.Contains(want, p); g != w {
				t.Fatalf("%q: we ignore it: %v, git: %v\nfiles %q, exclude %q", p, g, w, files, exclude)
			}
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add("*.o\n!a.o\n/b/\n\\ \n[", "a/b.o")
	f.Fuzz(func(_ *testing.T, text, path string) {
		(&ignore.Dir{Path: "a", Git: ignore.Parse(text)}).Ignored(path, true)
	})
}
