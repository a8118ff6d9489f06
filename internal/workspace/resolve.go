package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const (
	maxPath  = 4096 // bytes, PATH_MAX of Linux
	maxLinks = 40   // followed for one path, as Linux does
)

// Name is a resolved path: relative to the root when that is confined, else absolute; clean,
// and without links when it was resolved.
type Name string

// Join returns the name of an entry of the directory n. The entry is one path element.
func (n Name) Join(entry string) Name { return Name(filepath.Join(string(n), entry)) }

// Dir returns the name of the directory that holds n.
func (n Name) Dir() Name { return Name(filepath.Dir(string(n))) }

// Base returns the last element of the name.
func (n Name) Base() string { return filepath.Base(string(n)) }

// Resolve returns the name of the file at path, which is relative to the working directory
// or absolute. Links are followed; the last elements need not exist. When the root is not
// confined, a leading "~" is the home directory. A path out of a confined root is ErrOutside.
func (r *Root) Resolve(path string) (Name, error) {
	rel, err := r.enter(path)
	if err != nil {
		return "", err
	}
	w := walk{root: r, path: path, todo: elements(rel)}
	w.at = w.top()
	for len(w.todo) > 0 {
		next := w.todo[0]
		w.todo = w.todo[1:]
		if err := w.step(next); err != nil {
			return "", err
		}
	}
	return Name(w.at), nil
}

// enter turns a path into one that is relative to the place where walks start.
func (r *Root) enter(path string) (string, error) {
	switch {
	case path == "":
		return "", fmt.Errorf("%w: it is empty", ErrPath)
	case len(path) > maxPath:
		return "", fmt.Errorf("%w: longer than %d bytes", ErrPath, maxPath)
	case strings.ContainsRune(path, 0):
		return "", fmt.Errorf("%w: %q holds a NUL byte", ErrPath, path)
	}
	path = filepath.FromSlash(path)
	if r.confined {
		return r.inside(path)
	}
	if path == "~" || strings.HasPrefix(path, "~"+string(filepath.Separator)) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("%w: ~ has no meaning here: %w", ErrPath, err)
		}
		path = home + path[1:]
	}
	if !filepath.IsAbs(path) {
		path = r.real + string(filepath.Separator) + path
	}
	return path[len(filepath.VolumeName(path)):], nil
}

// inside returns path relative to a confined root.
func (r *Root) inside(path string) (string, error) {
	if !filepath.IsAbs(path) {
		return path, nil
	}
	for _, p := range []string{path, filepath.Clean(path)} {
		for _, dir := range []string{r.dir, r.real} {
			if rel, ok := below(dir, p); ok {
				return rel, nil
			}
		}
	}
	return "", r.outside(path)
}

func (r *Root) outside(path string) error {
	return fmt.Errorf("%s is %w %s; only files below that directory can be used", path, ErrOutside, r.dir)
}

func elements(path string) []string { return strings.Split(path, string(filepath.Separator)) }

// walk is the resolution of one path. at has no links and lies inside the root.
type walk struct {
	root  *Root
	path  string // what was asked for, for messages
	at    string
	todo  []string
	links int
	lost  bool // at does not exist, so nothing below it does
}

func (w *walk) top() string {
	if w.root.confined {
		return "."
	}
	return filepath.VolumeName(w.root.real) + string(filepath.Separator)
}

func (w *walk) step(element string) error {
	switch element {
	case "", ".":
		return nil
	case "..":
		if w.at == w.top() && w.root.confined {
			return w.root.outside(w.path)
		}
		w.at = filepath.Dir(w.at)
		w.lost = false
		return nil
	}
	next := filepath.Join(w.at, element)
	if w.lost {
		w.at = next
		return nil
	}
	info, err := w.root.files.Lstat(next)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.at, w.lost = next, true
		return nil
	case err != nil:
		return fmt.Errorf("%s: %w", w.path, reason(err))
	case info.Mode()&fs.ModeSymlink != 0:
		return w.follow(next)
	}
	w.at = next
	return nil
}

// follow puts the target of a link in front of what is still to be walked.
func (w *walk) follow(link string) error {
	if w.links++; w.links > maxLinks {
		return fmt.Errorf("%s: %w: more than %d links", w.path, ErrPath, maxLinks)
	}
	target, err := w.root.files.Readlink(link)
	if err != nil {
		return fmt.Errorf("%s: %w", w.path, reason(err))
	}
	if filepath.IsAbs(target) {
		w.at = w.top()
		if w.root.confined {
			rel, ok := below(w.root.real, target)
			if !ok {
				rel, ok = below(w.root.dir, target)
			}
			if !ok {
				return fmt.Errorf("%s is a link: %w", w.path, w.root.outside(target))
			}
			target = rel
		}
	}
	w.todo = append(elements(target), w.todo...)
	return nil
}

// reason drops the operation and path of an os error: messages name the path as it was asked
// for, not the steps in between.
func reason(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err
	}
	return err
}
