package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/workspace"
)

// Options say where to look.
type Options struct {
	Dir        string // the working directory, absolute
	Confined   bool   // nothing outside Dir is read
	UserSkills string // a directory of the user's own skills, absolute; empty for none
}

// The folders of skills in a project, in the order they are read.
var skillFolders = []string{".roost/skills", ".claude/skills", ".cursor/skills"}

// Read reads the files of a project. It looks in every directory from the repository's root
// down to the working directory: the root is the nearest directory upwards that holds .git,
// or the working directory when there is none. A confined session sees its working directory
// only, so that is where it begins, even when the repository begins further up.
//
// In each directory AGENTS.md comes first, then CLAUDE.md, then .cursor/rules. A file that
// is there twice, by a link or as a copy, counts once. The same files give the same result.
// A file that cannot be read is left out with a notice; an error means that the working
// directory cannot be opened or ctx has ended.
func Read(ctx context.Context, o Options) (p Project, err error) {
	root, err := workspace.Open(o.Dir, o.Confined)
	if err != nil {
		return Project{}, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	r := &reader{ctx: ctx, root: root, left: MaxTotal, seen: map[string]bool{}}
	dirs, err := r.levels()
	if err != nil {
		return Project{}, err
	}
	r.project.Branch = r.branch(dirs[0])
	for _, dir := range dirs {
		r.rulesOf(dir)
	}
	for _, dir := range slices.Backward(dirs) { // the nearest skill of a name wins
		for _, folder := range skillFolders {
			r.skillsIn(dir.Join(filepath.FromSlash(folder)))
		}
	}
	if o.UserSkills != "" {
		r.userSkills(o.UserSkills)
	}
	if ctx.Err() != nil {
		return Project{}, fmt.Errorf("read the project's rules: %w", context.Cause(ctx))
	}
	return r.project, nil
}

// reader gathers a Project.
type reader struct {
	ctx     context.Context // of the one call of Read
	root    *workspace.Root
	base    string // put before names that are shown, for the user's skills
	project Project
	left    int             // bytes that may still be kept
	seen    map[string]bool // real paths, texts and names of skills that were taken
}

// levels returns the directories from the repository's root to the working directory.
func (r *reader) levels() ([]workspace.Name, error) {
	dir, err := r.root.Resolve(".")
	if err != nil {
		return nil, err
	}
	dirs := []workspace.Name{dir}
	for len(dirs) <= maxLevels {
		if _, err := r.root.Lstat(dir.Join(".git")); err == nil {
			slices.Reverse(dirs)
			return dirs, nil
		}
		up := dir.Dir()
		if up == dir || r.root.Real(up) == r.root.Real(dir) {
			break
		}
		dir = up
		dirs = append(dirs, dir)
	}
	return dirs[:1], nil
}

func (r *reader) notice(format string, args ...any) {
	if len(r.project.Notices) < maxNotices {
		r.project.Notices = append(r.project.Notices, line(fmt.Sprintf(format, args...), maxDescription))
	}
}

// file is a file as it was read.
type file struct {
	path string // as shown
	text string // at most MaxFile bytes
	size int64
}

// open reads the beginning of a file. Of one that is not there, or was taken before, it
// returns false; of one that cannot be read too, with a notice.
func (r *reader) open(name workspace.Name) (file, bool) {
	if r.ctx.Err() != nil {
		return file{}, false
	}
	shown := r.show(name)
	resolved, err := r.root.Resolve(r.root.Real(name))
	if err != nil {
		r.notice("%s is left out: %v", shown, err)
		return file{}, false
	}
	real := r.root.Real(resolved)
	if r.seen["file "+real] {
		return file{}, false
	}
	text, size, err := r.read(resolved)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return file{}, false
	case err != nil:
		r.notice("%s is left out: %v", shown, err)
		return file{}, false
	}
	r.seen["file "+real] = true
	return file{path: shown, text: clean(text), size: size}, true
}

func (r *reader) read(name workspace.Name) (text string, size int64, err error) {
	f, info, err := r.root.OpenFile(name)
	if err != nil {
		return "", 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	defer workspace.EndReads(r.ctx, f)()
	b, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	return string(b), max(info.Size(), int64(len(b))), err
}

func (r *reader) show(name workspace.Name) string {
	return line(path.Join(r.base, r.root.Show(name)), maxDescription)
}

// entries returns the names in a directory in order; none when it is not there.
func (r *reader) entries(dir workspace.Name) []string {
	if r.ctx.Err() != nil {
		return nil
	}
	resolved, err := r.root.Resolve(r.root.Real(dir))
	if err != nil {
		r.notice("%s is left out: %v", r.show(dir), err)
		return nil
	}
	list, more, err := r.root.ReadDir(resolved, maxEntries)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		r.notice("%s is left out: %v", r.show(dir), err)
		return nil
	case more:
		r.notice("%s has more than %d entries, so it is left out", r.show(dir), maxEntries)
		return nil
	}
	names := make([]string, len(list))
	for i, e := range list {
		names[i] = e.Name()
	}
	slices.Sort(names)
	return names
}

// branch returns the branch that the repository at dir is on.
func (r *reader) branch(dir workspace.Name) string {
	head := dir.Join(".git").Join("HEAD")
	if link, _, err := r.read(dir.Join(".git")); err == nil { // a worktree: the file names the folder
		target, ok := strings.CutPrefix(strings.TrimSpace(link), "gitdir: ")
		if !ok {
			return ""
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(r.root.Real(dir), target)
		}
		if head, err = r.root.Resolve(filepath.Join(target, "HEAD")); err != nil {
			return ""
		}
	}
	text, _, err := r.read(head)
	if err != nil {
		return ""
	}
	name, _ := strings.CutPrefix(strings.TrimSpace(text), "ref: refs/heads/")
	if name == strings.TrimSpace(text) { // a commit, not a branch
		return ""
	}
	return line(name, maxDescription)
}
