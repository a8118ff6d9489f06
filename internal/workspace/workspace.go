// Package workspace is the way to the files of a session: a root that file tools cannot
// leave. A tool resolves the path that the model wrote to a Name, and uses the Name:
//
//	path ──Resolve──▶ Name ──OpenFile, ReadDir, Replace──▶ file
//
// Resolve follows links itself, to refuse with a clear message whatever lies outside. That
// is courtesy. The wall is os.Root, which every operation of a confined root goes through
// and which holds even when a directory is swapped for a link in between.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Errors of this package. Besides them, errors of the os package are returned.
var (
	ErrOutside    = errors.New("outside the working directory")
	ErrPath       = errors.New("not a usable path")
	ErrNotRegular = errors.New("not a regular file")
	ErrIsDir      = errors.New("is a directory")
	ErrReadOnly   = errors.New("file is read-only")
)

// files is the part of os.Root that a Root uses; plain is the same without a wall.
type files interface {
	OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error)
	Lstat(name string) (fs.FileInfo, error)
	Readlink(name string) (string, error)
	MkdirAll(name string, perm fs.FileMode) error
	Rename(from, to string) error
	Remove(name string) error
	Close() error
}

// Root is a working directory. It is safe for concurrent use, until it is closed.
type Root struct {
	dir      string // as given, absolute
	real     string // without links
	confined bool
	files    files
}

// Open opens the directory dir, an absolute path. When confined, nothing outside dir can be
// reached through the Root, by links neither; otherwise every file the process can reach.
func Open(dir string, confined bool) (*Root, error) {
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("working directory %q: %w: it must be absolute", dir, ErrPath)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	info, err := os.Stat(real)
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("working directory %s: %w: it must be a directory", dir, ErrPath)
	}
	r := &Root{dir: filepath.Clean(dir), real: real, confined: confined, files: plain{}}
	if confined {
		root, err := os.OpenRoot(real)
		if err != nil {
			return nil, fmt.Errorf("working directory: %w", err)
		}
		r.files = root
	}
	return r, nil
}

// Close frees the Root. Files opened through it stay open.
func (r *Root) Close() error { return r.files.Close() }

// Dir returns the directory that the Root was opened with.
func (r *Root) Dir() string { return r.dir }

// Real returns the path of a file in the file system, without links: the same file has the
// same path, whatever root and name it was reached by (hard links aside).
func (r *Root) Real(n Name) string {
	if r.confined {
		return filepath.Join(r.real, string(n))
	}
	return string(n)
}

// Show returns the name as the model should see and use it: relative to the working
// directory when it is inside, with slashes.
func (r *Root) Show(n Name) string {
	if r.confined {
		return filepath.ToSlash(string(n))
	}
	if rel, ok := below(r.real, string(n)); ok {
		return filepath.ToSlash(rel)
	}
	return filepath.ToSlash(string(n))
}

// below returns path relative to dir, or false when it is not dir or inside it. It looks at
// the text only, and leaves ".." in path alone: what that means depends on links.
func below(dir, path string) (string, bool) {
	if path == dir {
		return ".", true
	}
	prefix := strings.TrimSuffix(dir, string(filepath.Separator)) + string(filepath.Separator)
	rest, ok := strings.CutPrefix(path, prefix)
	if rest == "" {
		rest = "."
	}
	return rest, ok
}

// plain is the file system without a wall.
type plain struct{}

func (plain) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	return os.OpenFile(name, flag, perm)
}
func (plain) Lstat(name string) (fs.FileInfo, error)       { return os.Lstat(name) }
func (plain) Readlink(name string) (string, error)         { return os.Readlink(name) }
func (plain) MkdirAll(name string, perm fs.FileMode) error { return os.MkdirAll(name, perm) }
func (plain) Rename(from, to string) error                 { return os.Rename(from, to) }
func (plain) Remove(name string) error                     { return os.Remove(name) }
func (plain) Close() error                                 { return nil }
