package searchtool

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/tool/searchtool/ignore"
	"github.com/roost-dev/roost/internal/workspace"
)

const (
	maxEntries = 100_000 // of one directory that are looked at
	maxIgnore  = 1 << 20 // bytes of an ignore file that are read
	maxDepth   = 500     // of directories
)

// errStop ends a walk whose caller has enough.
var errStop = errors.New("enough")

// entry is something that a walk came by.
type entry struct {
	name workspace.Name
	rel  string // relative to where the walk began, with slashes
	mode fs.FileMode
}

// walker goes through a tree in the order of the paths, with a directory's path taken as
// ending in a slash. It leaves out .git and what ignore files say, and does not follow links.
type walker struct {
	root  *workspace.Root
	visit func(entry) error
	start workspace.Name
	top   workspace.Name // the repository's topmost directory that can be seen
	cut   int            // directories of which not everything was looked at
}

// walk visits everything below the directory start until visit returns an error. The error
// errStop ends the walk without being returned.
func (w *walker) walk(ctx context.Context, start workspace.Name) error {
	w.start = start
	rules, err := w.above(start)
	if err != nil {
		return err
	}
	entries, more, err := w.root.ReadDir(start, maxEntries)
	if err != nil {
		return err
	}
	err = w.directory(ctx, start, rules, entries, more, 0)
	if errors.Is(err, errStop) {
		return nil
	}
	return err
}

// above returns the rules of the directories above start, up to the one that holds .git.
func (w *walker) above(start workspace.Name) (*ignore.Dir, error) {
	chain := []workspace.Name{}
	w.top = start
	for at := start; ; at = at.Dir() {
		w.top = at
		chain = append(chain, at)
		if _, err := w.root.Lstat(at.Join(".git")); err == nil || at.Dir() == at {
			break
		}
	}
	var rules *ignore.Dir
	for _, dir := range slices.Backward(chain[1:]) {
		rules = w.rules(dir, rules)
	}
	return rules, nil
}

// rules reads the ignore files of a directory.
func (w *walker) rules(dir workspace.Name, parent *ignore.Dir) *ignore.Dir {
	d := &ignore.Dir{Parent: parent, Path: w.relative(w.top, dir)}
	d.Ignore = w.parse(dir.Join(".ignore"))
	d.Git = w.parse(dir.Join(".gitignore"))
	if dir == w.top {
		d.Exclude = w.parse(dir.Join(".git").Join("info").Join("exclude"))
	}
	if d.Ignore == nil && d.Git == nil && d.Exclude == nil && parent != nil {
		return parent
	}
	return d
}

// parse returns the rules in a file, or nil when it cannot be read, which is as good as its
// not being there.
func (w *walker) parse(file workspace.Name) *ignore.Rules {
	f, _, err := w.root.OpenFile(file)
	if err != nil {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(f, maxIgnore))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil
	}
	return ignore.Parse(string(text))
}

// relative returns a name relative to a directory above it, with slashes; "" for itself.
func (w *walker) relative(dir, name workspace.Name) string {
	if dir == name {
		return ""
	}
	if dir == "." {
		return filepath.ToSlash(string(name))
	}
	prefix := strings.TrimSuffix(string(dir), string(filepath.Separator)) + string(filepath.Separator)
	return filepath.ToSlash(strings.TrimPrefix(string(name), prefix))
}

func (w *walker) directory(ctx context.Context, dir workspace.Name, above *ignore.Dir, entries []fs.DirEntry, more bool, depth int) error {
	if more || depth == maxDepth {
		w.cut++
	}
	if depth == maxDepth {
		return nil
	}
	rules := w.own(dir, above, entries)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return cmp.Compare(sortKey(a), sortKey(b)) })
	for _, e := range entries {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name := dir.Join(e.Name())
		if e.Name() == ".git" || rules.Ignored(w.relative(w.top, name), e.IsDir()) {
			continue
		}
		if err := w.visit(entry{name, w.relative(w.start, name), e.Type()}); err != nil {
			return err
		}
		if e.IsDir() {
			below, more, err := w.root.ReadDir(name, maxEntries)
			if err != nil {
				w.cut++ // one directory that cannot be read is no reason to find nothing
				continue
			}
			if err := w.directory(ctx, name, rules, below, more, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// own returns the rules that apply in a directory. Only the first one may be without entries
// for ignore files and yet need a look: for .git/info/exclude.
func (w *walker) own(dir workspace.Name, above *ignore.Dir, entries []fs.DirEntry) *ignore.Dir {
	has := above == nil || slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		return e.Name() == ".gitignore" || e.Name() == ".ignore"
	})
	if has {
		return w.rules(dir, above)
	}
	return above
}

func sortKey(e fs.DirEntry) string {
	if e.IsDir() {
		return e.Name() + "/"
	}
	return e.Name()
}

// missed tells that a search did not see everything, or "".
func (w *walker) missed() string {
	if w.cut == 0 {
		return ""
	}
	return fmt.Sprintf("Not everything in %d directories could be looked at.", w.cut)
}
