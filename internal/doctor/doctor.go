// Package doctor looks for what is wrong with a data directory, explains it, and repairs what can
// be repaired without a decision of a person. Without being asked to repair it changes nothing,
// and then it also works while a server has the directory open: it sees the database as it was at
// one moment. It deletes nothing but files that were left half written; what it takes out of the
// way is kept in DATA/damaged.
//
//	directory ─lock─▶ permissions, token, disk ─▶ database ─▶ every session ─▶ blobs ─▶ findings
//	                                                 └─────────── repair ◀─────────────────┘
package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/internal/blob"
	"github.com/roost-dev/roost/internal/datadir"
)

// Severity says how bad a finding is.
type Severity uint8

// The severities.
const (
	Note    Severity = iota // nothing is wrong
	Warning                 // something will go wrong, or is not as it should be
	Problem                 // something is lost or does not work
)

// String returns "note", "warning" or "problem".
func (s Severity) String() string {
	switch s {
	case Note:
		return "note"
	case Warning:
		return "warning"
	case Problem:
	}
	return "problem"
}

// Finding is one thing that was found.
type Finding struct {
	Severity Severity
	What     string // what is the matter, and what that means
	Do       string // what a person should do about it; empty for nothing
	Done     string // what was done about it; empty for nothing
}

// Report is the outcome of a check.
type Report struct {
	Findings []Finding
	Sessions int // that were read
	Blobs    int // that are referred to
	Server   int // the process that has the directory open, when it was looked at from beside; else 0
}

// Bad returns how many findings are more than notes.
func (r *Report) Bad() int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity > Note {
			n++
		}
	}
	return n
}

// Options says what is checked.
type Options struct {
	Dir    string // the data directory
	Repair bool
	Config error            // why the configuration cannot be used, nil if it can
	Warn   []string         // what the configuration warns of
	Now    func() time.Time // nil means time.Now
}

// ErrServer says that a repair needs the directory for itself.
var ErrServer = errors.New("stop the server before a repair")

// Check examines a data directory. An error says that it could not: there is no such directory,
// it belongs to somebody else, or a server uses it and Repair is asked.
func Check(ctx context.Context, opt Options) (*Report, error) {
	path, err := filepath.Abs(opt.Dir)
	if err != nil {
		return nil, fmt.Errorf("check data directory: %w", err)
	}
	opt.Dir = path
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if info, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("check data directory: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("check data directory %s: not a directory", path)
	}
	c := &check{Options: opt, blobs: blob.LookDir(filepath.Join(path, "blobs")), refs: make(map[string]string)}
	if err := c.lock(); err != nil {
		return nil, err
	}
	err = c.all(ctx)
	if c.dir != nil {
		err = errors.Join(err, c.dir.Close())
	}
	if err != nil {
		return nil, err
	}
	return &c.Report, nil
}

// check is one examination.
type check struct {
	Options
	Report

	dir   *datadir.Dir // nil when the directory is not locked
	blobs *blob.Dir
	refs  map[string]string // the hashes of blobs, each with a session that refers to it
	whole bool              // every session was read, so that what nothing refers to is known
}

func (c *check) find(s Severity, do, format string, args ...any) *Finding {
	c.Findings = append(c.Findings, Finding{Severity: s, What: fmt.Sprintf(format, args...), Do: do})
	return &c.Findings[len(c.Findings)-1]
}

// lock takes the directory. It goes on without when a server has it, or when its mode is wrong.
func (c *check) lock() error {
	if info, err := os.Stat(c.Dir); err == nil && info.Mode().Perm()&0o077 != 0 {
		f := c.find(Problem, "run `chmod 700 "+c.Dir+"`, or use --repair", "the data directory has mode %04o: others can read conversations and the token, and roost does not start", info.Mode().Perm())
		if c.Repair {
			if err := os.Chmod(c.Dir, 0o700); err != nil {
				return fmt.Errorf("repair mode: %w", err)
			}
			f.Done = "it has mode 0700 now"
		}
	}
	dir, err := datadir.Open(c.Dir)
	switch held, inUse := errors.AsType[*datadir.InUseError](err); {
	case inUse && c.Repair:
		return fmt.Errorf("%w: process %d uses %s", ErrServer, held.PID, c.Dir)
	case inUse:
		c.Server = held.PID
		c.find(Note, "", "a server (process %d) runs: this is how things were at one moment; a repair needs it stopped", held.PID)
		return nil
	case errors.Is(err, datadir.ErrPermissions), errors.Is(err, fs.ErrPermission):
		return nil // found above, or by the files' modes
	case err != nil:
		return err
	}
	c.dir = dir
	return nil
}

func (c *check) all(ctx context.Context) error {
	c.config()
	c.token()
	c.space()
	if err := c.modes(ctx); err != nil {
		return err
	}
	if err := c.leftovers(); err != nil {
		return err
	}
	if err := c.database(ctx); err != nil {
		return err
	}
	if err := c.references(ctx); err != nil {
		return err
	}
	return ctx.Err()
}
