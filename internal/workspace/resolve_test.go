package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/workspace"
)

// tree makes a working directory beside a folder with a secret, and returns both.
func tree(t *testing.T) (work, outside string) {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	must(t, err)
	work, outside = filepath.Join(base, "work"), filepath.Join(base, "outside")
	must(t, os.MkdirAll(filepath.Join(work, "sub", "deep"), 0o755))
	must(t, os.MkdirAll(outside, 0o755))
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	must(t, os.WriteFile(filepath.Join(work, "a.txt"), []byte("a"), 0o644))
	must(t, os.WriteFile(filepath.Join(work, "sub", "b.txt"), []byte("b"), 0o644))
	for link, target := range map[string]string{
		"in":       "sub/b.txt",
		"in-abs":   filepath.Join(work, "sub"),
		"out":      "../outside",
		"out-abs":  outside,
		"out-deep": "sub/../../outside/secret",
		"proc":     "/proc/self/root",
		"loop":     "loop",
		"dangling": "sub/new.txt",
		"sub/up":   "..",
	} {
		must(t, os.Symlink(target, filepath.Join(work, link)))
	}
	return work, outside
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t *testing.T, dir string, confined bool) *workspace.Root {
	t.Helper()
	r, err := workspace.Open(dir, confined)
	must(t, err)
	t.Cleanup(func() { must(t, r.Close()) })
	return r
}

func TestResolveConfined(t *testing.T) {
	work, _ := tree(t)
	r := open(t, work, true)
	for path, want := range map[string]string{
		"a.txt":                           "a.txt",
		"./sub//b.txt":                    "sub/b.txt",
		"sub/../a.txt":                    "a.txt",
		"sub/deep/../b.txt":               "sub/b.txt",
		".":                               ".",
		work:                              ".",
		work + "/":                        ".",
		work + "/sub/b.txt":               "sub/b.txt",
		work + "/sub/../a.txt":            "a.txt",
		filepath.Dir(work) + "/x/../work": ".",
		"in":                              "sub/b.txt",
		"in-abs/b.txt":                    "sub/b.txt",
		"sub/up/a.txt":                    "a.txt",
		"in-abs/up/in-abs/up/a.txt":       "a.txt",
		"dangling":                        "sub/new.txt",
		"new/dir/file":                    "new/dir/file",
		"new/../a.txt":                    "a.txt",
		"~/a.txt":                         "~/a.txt",
		"..a":                             "..a",
	} {
		if got, err := r.Resolve(path); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
}

func TestResolveRefusesWaysOut(t *testing.T) {
	work, outside := tree(t)
	r := open(t, work, true)
	for _, path := range []string{
		"..", "../outside/secret", "sub/../../outside/secret", "new/../../outside",
		"/", "/etc/passwd", outside, outside + "/secret", work + "/../outside/secret",
		work + "x", "/proc/self/root/etc/passwd", "/proc/self/cwd", "//etc/passwd",
		"out", "out/secret", "out-abs", "out-abs/secret", "out-deep", "proc", "proc/etc/passwd",
		"sub/up/../outside", "in-abs/../../outside/secret", "in-abs/up/out/secret",
	} {
		got, err := r.Resolve(path)
		if !errors.Is(err, workspace.ErrOutside) {
			t.Errorf("%s: got %q, %v, want ErrOutside", path, got, err)
		} else if !strings.Contains(err.Error(), work) {
			t.Errorf("%s: the message does not name the rule: %v", path, err)
		}
	}
}

func TestResolveRefusesWhatIsNoPath(t *testing.T) {
	work, _ := tree(t)
	for _, confined := range []bool{true, false} {
		r := open(t, work, confined)
		for _, path := range []string{
			"", "a\x00b", "a.txt\x00", strings.Repeat("a/", 3000), strings.Repeat("n", 300), "loop", "a.txt/b",
		} {
			if got, err := r.Resolve(path); err == nil {
				t.Errorf("confined %v: %.20q: got %q", confined, path, got)
			}
		}
	}
}

func TestResolveUnconfined(t *testing.T) {
	work, outside := tree(t)
	home := t.TempDir()
	t.Setenv("HOME", home)
	r := open(t, work, false)
	for path, want := range map[string]string{
		"a.txt":             work + "/a.txt",
		"../outside/secret": outside + "/secret",
		"out/secret":        outside + "/secret",
		"out-abs/x/y":       outside + "/x/y",
		"/":                 "/",
		"/../../etc":        "/etc",
		"~":                 home,
		"~/x":               home + "/x",
		"~x":                work + "/~x",
	} {
		if got, err := r.Resolve(path); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", path, got, err, want)
		}
	}
	for name, want := range map[workspace.Name]string{
		workspace.Name(work):            ".",
		workspace.Name(work + "/sub/b"): "sub/b",
		workspace.Name(outside):         outside,
		workspace.Name(work + "x/y"):    work + "x/y",
	} {
		if got := r.Show(name); got != want {
			t.Errorf("show %s: got %q, want %q", name, got, want)
		}
	}
}

func TestRootThroughALink(t *testing.T) {
	work, _ := tree(t)
	alias := filepath.Join(t.TempDir(), "alias")
	must(t, os.Symlink(work, alias))
	r := open(t, alias, true)
	for _, path := range []string{alias + "/sub/b.txt", work + "/sub/b.txt", "in-abs/b.txt"} {
		n, err := r.Resolve(path)
		if err != nil || n != "sub/b.txt" || r.Real(n) != work+"/sub/b.txt" {
			t.Errorf("%s: got %q (%s), %v", path, n, r.Real(n), err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	work, _ := tree(t)
	for _, dir := range []string{"relative", "", work + "/none", work + "/a.txt"} {
		if r, err := workspace.Open(dir, true); err == nil {
			t.Errorf("%q: opened", dir)
			must(t, r.Close())
		}
	}
}

// Whatever is resolved lies where the kernel says that the path leads, or is refused.
func TestResolveAgreesWithTheKernel(t *testing.T) {
	work, outside := tree(t)
	confined, free := open(t, work, true), open(t, work, false)
	element := rapid.SampledFrom([]string{
		"..", ".", "", "sub", "deep", "a.txt", "in", "in-abs", "out", "out-abs", "up", "outside", "secret", "work", "b.txt",
	})
	rapid.Check(t, func(t *rapid.T) {
		path := strings.Join(rapid.SliceOfN(element, 1, 8).Draw(t, "elements"), "/")
		if rapid.Bool().Draw(t, "absolute") {
			path = work + "/" + path
		}
		if path == "" {
			return
		}
		full := path
		if !filepath.IsAbs(path) {
			full = work + "/" + path
		}
		real, kernelErr := realpath(full)
		if n, err := free.Resolve(path); kernelErr == nil && (err != nil || string(n) != real) {
			t.Fatalf("%s: got %q, %v, the kernel says %q", path, n, err, real)
		}
		n, err := confined.Resolve(path)
		if err == nil && strings.HasPrefix(confined.Real(n), outside) {
			t.Fatalf("%s: left the root: %q", path, n)
		}
		if err == nil && kernelErr == nil && !filepath.IsAbs(path) && confined.Real(n) != real {
			t.Fatalf("%s: got %q, the kernel says %q", path, n, real)
		}
	})
}
