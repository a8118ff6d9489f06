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

	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

// found is what a look into the database has shown, with the places of the findings, so that a
// repair can say what it has done.
type found struct {
	broken  int // the finding about the file, -1 without
	index   int // the finding about the index, -1 without
	damaged []damaged
}

type damaged struct {
	entry   sqlitelog.Entry
	finding int
}

// database checks the event log and, if that is asked, repairs it.
func (c *check) database(ctx context.Context) error {
	v, err := sqlitelog.OpenView(ctx, c.Dir)
	if err != nil {
		return c.unusable(err)
	}
	f, err := c.look(ctx, v)
	if err == nil && c.Repair && c.dir != nil {
		err = c.setAside(v, f)
	}
	if err = errors.Join(err, v.Close()); err != nil {
		return err
	}
	switch {
	case !c.Repair || c.dir == nil:
		return nil
	case f.broken >= 0:
		return c.salvage(ctx, f)
	case f.index >= 0 || len(f.damaged) > 0:
		return c.mend(ctx, f)
	}
	return nil
}

// unusable explains why the database cannot be opened.
func (c *check) unusable(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.find(Note, "", "there are no sessions yet")
	case errors.Is(err, sqlitelog.ErrOlder):
		c.find(Note, "", "the event log has an older form; the next start brings it up to date, and then it can be checked")
	case errors.Is(err, sqlitelog.ErrDamaged), errors.Is(err, sqlitelog.ErrMissing), errors.Is(err, sqlitelog.ErrUnwritable),
		errors.Is(err, sqlitelog.ErrNewer), errors.Is(err, sqlitelog.ErrForeign):
		c.find(Problem, "", "%v", err) // which says what to do
	default:
		return err
	}
	return nil
}

// look examines the database and every session.
func (c *check) look(ctx context.Context, v *sqlitelog.View) (*found, error) {
	f := &found{broken: -1, index: -1}
	lines, err := v.Integrity(false)
	if err == nil && len(lines) == 0 {
		lines, err = v.Integrity(true)
	}
	if err != nil {
		return nil, err
	}
	if len(lines) > 0 {
		c.find(Problem, "use --repair: it makes the file anew from the sessions that can be read, and keeps the old one",
			"the database file is damaged; sessions that are not named below are whole. SQLite says: %s", oneLine(lines[0]))
		f.broken = len(c.Findings) - 1
	}
	entries, err := v.Entries(ctx)
	if err != nil {
		return nil, err
	}
	wrong := 0
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		h, err := read(v, e)
		if err != nil {
			c.find(Problem, "use --repair, which moves it to "+c.name(c.asideOf(e))+", or restore a backup",
				"session %s cannot be read, the others are not concerned: %v", nameOf(e), err)
			f.damaged = append(f.damaged, damaged{e, len(c.Findings) - 1})
			continue
		}
		c.Sessions++
		for _, hash := range h.blobs {
			c.refs[hash] = string(h.meta.ID)
		}
		if !h.indexed(e) {
			wrong++
		}
	}
	if wrong > 0 || !v.HasIndex() {
		c.find(Problem, "use --repair, which makes the index anew", "the index of sessions is wrong about %d sessions: lists show them wrongly or not at all", wrong)
		f.index = len(c.Findings) - 1
	}
	c.whole = len(f.damaged) == 0 && f.broken < 0
	if c.whole {
		c.outputs(entries)
	}
	return f, nil
}

// oneLine is what SQLite says, without its heading and line breaks.
func oneLine(s string) string {
	return strings.ReplaceAll(strings.TrimPrefix(s, "*** in database main ***\n"), "\n", "; ")
}

// nameOf returns what to call a session.
func nameOf(e sqlitelog.Entry) string {
	if e.ID.Valid() {
		return string(e.ID)
	}
	return "without a readable id"
}

// outputs finds outputs of sessions that are gone.
func (c *check) outputs(entries []sqlitelog.Entry) {
	dirs, err := os.ReadDir(filepath.Join(c.Dir, "outputs"))
	if err != nil {
		return // there are none
	}
	n := 0
	for _, d := range dirs {
		if !slices.ContainsFunc(entries, func(e sqlitelog.Entry) bool { return e.ID == session.ID(d.Name()) }) {
			n++
		}
	}
	if n > 0 {
		c.find(Note, "", "outputs of %d sessions that are gone are still in outputs/", n)
	}
}

// asideOf is where a damaged session is kept.
func (c *check) asideOf(e sqlitelog.Entry) string {
	name := string(e.ID)
	if !e.ID.Valid() {
		name = fmt.Sprintf("unnamed-%d", e.Number())
	}
	return filepath.Join(c.Dir, "damaged", name)
}

// setAside writes down what is stored of the damaged sessions, before anything is changed.
func (c *check) setAside(v *sqlitelog.View, f *found) error {
	for _, d := range f.damaged {
		dir := c.asideOf(d.entry)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("set session %s aside: %w", nameOf(d.entry), err)
		}
		if err := export(v, d.entry, filepath.Join(dir, "rows-"+c.stamp()+".jsonl")); err != nil {
			return fmt.Errorf("set session %s aside: %w", nameOf(d.entry), err)
		}
	}
	return nil
}

func export(v *sqlitelog.View, e sqlitelog.Entry, path string) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(v.Export(e, out), out.Sync(), out.Close())
}

func (c *check) stamp() string { return c.Now().UTC().Format("20060102-150405.000") }

// movedAside says what has become of the damaged sessions.
func (c *check) movedAside(f *found) {
	for _, d := range f.damaged {
		c.Findings[d.finding].Done = "it was moved to " + c.name(c.asideOf(d.entry)) + " and is no longer listed"
	}
}

// salvage makes the file anew.
func (c *check) salvage(ctx context.Context, f *found) error {
	aside := filepath.Join(c.Dir, "damaged", "database-"+c.stamp())
	if err := os.MkdirAll(aside, 0o700); err != nil {
		return err
	}
	good := func(v *sqlitelog.View, e sqlitelog.Entry) bool {
		_, err := read(v, e)
		return err == nil
	}
	lost, err := sqlitelog.Salvage(ctx, c.Dir, aside, good, c.Now())
	if err != nil {
		return err
	}
	c.movedAside(f)
	c.Findings[f.broken].Done = "it was made anew; the old one is " + c.name(filepath.Join(aside, sqlitelog.FileName)) + ", and clients load their sessions again"
	if f.index >= 0 {
		c.Findings[f.index].Done = "it was made anew"
	}
	for _, e := range lost {
		c.find(Problem, "look into the old file", "session %s was read but cannot be copied", nameOf(e))
	}
	return nil
}

// mend repairs a database whose file is whole.
func (c *check) mend(ctx context.Context, f *found) error {
	log, err := sqlitelog.Open(c.Dir) //nolint:contextcheck // it takes no context: its time does not grow with the data
	if err != nil {
		return err
	}
	for _, d := range f.damaged {
		err = errors.Join(err, log.Discard(ctx, d.entry))
	}
	if f.index >= 0 && err == nil {
		err = log.RebuildIndex(ctx)
	}
	if err = errors.Join(err, log.Close()); err != nil {
		return fmt.Errorf("repair event log: %w", err)
	}
	c.movedAside(f)
	if f.index >= 0 {
		c.Findings[f.index].Done = "it was made anew"
	}
	return nil
}
