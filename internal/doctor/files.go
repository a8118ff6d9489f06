package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/blob"
	"github.com/roost-dev/roost/internal/datadir"
	"github.com/roost-dev/roost/internal/guard"
)

const (
	// lowSpace is the room on the disk below which a warning is given.
	lowSpace = 512 << 20
	// shown is how many findings of one kind are listed; of the others only the number is.
	shown = 20
)

func (c *check) config() {
	if c.Config != nil {
		c.find(Problem, "correct the file", "the configuration cannot be used: %v", c.Config)
	}
	for _, w := range c.Warn {
		c.find(Warning, "", "configuration: %s", w)
	}
}

// token reads the token as a server would. It makes none, and repairs none, because one that
// others could read may be known to them.
func (c *check) token() {
	if _, err := os.Lstat(filepath.Join(c.Dir, guard.TokenFile)); err != nil {
		return
	}
	if _, _, err := guard.LoadToken(c.Dir); err != nil {
		c.find(Problem, "", "the HTTP listener does not open: %v", err)
	}
}

func (c *check) space() {
	if free, ok := datadir.Free(c.Dir); ok && free < lowSpace {
		c.find(Warning, "make room; retention can keep sessions from growing for ever", "the disk has %d MiB left: prompts are refused once it is full", free>>20)
	}
}

// modes checks that others cannot enter what roost has made. What tools have written into
// outputs has the modes that they gave it.
func (c *check) modes(ctx context.Context) error {
	wrong := 0
	err := filepath.WalkDir(c.Dir, func(path string, e fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a server works here
		case errors.Is(err, fs.ErrPermission):
			c.find(Problem, "give it back to the user who runs roost", "%s cannot be read", path)
			return fs.SkipDir
		case err != nil:
			return err
		case path == c.Dir:
			return ctx.Err()
		}
		info, err := e.Info()
		if err != nil || info.Mode().Perm()&0o077 == 0 || !info.IsDir() && !info.Mode().IsRegular() {
			return nil //nolint:nilerr // removed meanwhile
		}
		wrong++
		c.mode(path, info, wrong)
		if e.IsDir() && filepath.Dir(path) == filepath.Join(c.Dir, "outputs") {
			return fs.SkipDir
		}
		return nil
	})
	if wrong > shown {
		c.find(Warning, "", "and %d more files with such modes", wrong-shown)
	}
	if err != nil {
		return fmt.Errorf("check modes: %w", err)
	}
	return nil
}

func (c *check) mode(path string, info fs.FileInfo, n int) {
	name, want := c.name(path), fs.FileMode(0o600)
	if info.IsDir() {
		want = 0o700
	}
	if name == guard.TokenFile || strings.HasPrefix(name, "outputs"+string(filepath.Separator)) && !info.IsDir() {
		return
	}
	f := Finding{
		Severity: Warning, Do: "use --repair",
		What: fmt.Sprintf("%s has mode %04o: others can read it if they can reach it", name, info.Mode().Perm()),
	}
	if c.Repair && c.dir != nil {
		if err := os.Chmod(path, want); err != nil {
			f.Do = err.Error()
		} else {
			f.Done = fmt.Sprintf("it has mode %04o now", want)
		}
	}
	if n <= shown {
		c.Findings = append(c.Findings, f)
	}
}

// name returns a path as seen from the data directory.
func (c *check) name(path string) string {
	if rel, err := filepath.Rel(c.Dir, path); err == nil {
		return rel
	}
	return path
}

// temporary are the names of files that are being written, and stay after a crash.
var temporary = []string{"*.new", guard.TokenFile + ".*.tmp", "roost.db.salvage*", "roost.db.restore*", filepath.Join("mcp", ".new-*"), filepath.Join("blobs", "put-*")}

// leftovers finds files that were left half written. While a server runs they may be its own.
func (c *check) leftovers() error {
	if c.dir == nil {
		return nil
	}
	for _, pattern := range temporary {
		names, err := fs.Glob(os.DirFS(c.Dir), pattern)
		if err != nil {
			return err
		}
		for _, name := range names {
			f := c.find(Note, "use --repair to remove it", "%s was left half written by a process that was killed", name)
			if !c.Repair {
				continue
			}
			if err := os.Remove(filepath.Join(c.Dir, name)); err != nil {
				return fmt.Errorf("remove leftover: %w", err)
			}
			f.Done = "it was removed"
		}
	}
	return nil
}

// references compares what sessions refer to with what is there.
func (c *check) references(ctx context.Context) error {
	c.Blobs = len(c.refs)
	hashes := make([]string, 0, len(c.refs))
	for hash := range c.refs {
		hashes = append(hashes, hash)
	}
	slices.Sort(hashes)
	bad := 0
	for _, hash := range hashes {
		_, err := c.blobs.Get(ctx, hash)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil:
			continue
		}
		if bad++; bad > shown {
			continue
		}
		what := fmt.Sprintf("cannot be read (%v)", err)
		switch {
		case errors.Is(err, blob.ErrNotFound):
			what = "is missing"
		case errors.Is(err, blob.ErrCorrupt):
			what = "is damaged"
		}
		c.find(Problem, "copy blobs/"+hash[:2]+"/"+hash+" from a backup", "blob %s of session %s %s: the picture or note in it is left out", hash, c.refs[hash], what)
	}
	if bad > shown {
		c.find(Problem, "", "and %d more blobs", bad-shown)
	}
	if c.whole {
		return c.orphans()
	}
	return nil
}

// orphans finds what no session refers to any more. It stays: front ends and clients may know
// blobs that no event names.
func (c *check) orphans() error {
	hashes, strays, err := c.blobs.List()
	if err != nil {
		return err
	}
	orphans, size := 0, int64(0)
	for _, hash := range hashes {
		if _, used := c.refs[hash]; used {
			continue
		}
		orphans++
		if info, err := os.Stat(filepath.Join(c.Dir, "blobs", hash[:2], hash)); err == nil {
			size += info.Size()
		}
	}
	if orphans > 0 {
		c.find(Note, "", "%d blobs (%d KiB) are named by no event: they are of deleted sessions, or of clients that may ask for them", orphans, (size+1023)>>10)
	}
	for _, path := range strays {
		if !strings.HasPrefix(filepath.Base(path), "put-") {
			c.find(Note, "move it elsewhere", "%s is no blob", c.name(path))
		}
	}
	return nil
}
