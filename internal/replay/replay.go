// Package replay prints what the event log holds of a session, for people who want to know what
// has happened: its events, or what its clients are shown. It only reads, so a server may work on
// the same data.
//
//	events   one line of JSON for each event that is kept: seq, time, kind and fields
//	roost    the session and its items as roost's own API shows them
//	pi       the snapshot that a client of pi's protocol gets
//	cursor   the checkpoint that a client of Cursor's protocol gets, with its blobs
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/roost-dev/roost/internal/blob"
	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/session"
)

// formats are the printers by the name of the format.
var formats = map[string]func(context.Context, *history, io.Writer) error{
	"events": printEvents,
	"roost":  printRoost,
	"pi":     printPi,
	"cursor": printCursor,
}

// Formats returns the names of the formats, the default first.
func Formats() []string { return []string{"events", "roost", "pi", "cursor"} }

// history is a session as it is stored.
type history struct {
	snapshot eventlog.Snapshot
	records  []session.Record
	state    *session.State
	epoch    session.Epoch
	blobs    *blob.Dir
}

// Print writes the session id of the data directory dir in a format, one of Formats. Errors:
// those of sqlitelog.OpenView, eventlog.ErrNotFound, and eventlog.ErrCorrupt after all that could
// be read.
func Print(ctx context.Context, dir string, id session.ID, format string, w io.Writer) error {
	show, ok := formats[format]
	if !ok {
		return fmt.Errorf("replay: there is no format %q", format)
	}
	v, err := sqlitelog.OpenView(ctx, dir)
	if err != nil {
		return err
	}
	h, err := load(ctx, v, id)
	if end := v.Close(); h == nil || end != nil { // what follows needs the database no longer
		return errors.Join(err, end)
	}
	h.blobs = blob.LookDir(filepath.Join(dir, "blobs"))
	return errors.Join(show(ctx, h, w), err)
}

// load reads a session. With an error it returns what could be read before, if anything.
func load(ctx context.Context, v *sqlitelog.View, id session.ID) (*history, error) {
	epoch, err := v.Epoch()
	if err != nil {
		return nil, err
	}
	e, err := v.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	h := &history{epoch: epoch}
	if h.snapshot, err = v.Load(e); err != nil {
		return nil, fmt.Errorf("session %s: %w", id, err)
	}
	h.state = &session.State{Head: h.snapshot.Head, Settled: h.snapshot.Items}
	for r, err := range v.Records(e, h.state.Seq) {
		if err == nil {
			err = h.apply(r)
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return h, fmt.Errorf("session %s after event %d: %w", id, h.state.Seq, err)
		}
	}
	return h, nil
}

// apply adds a record. One that does not fit is as bad as one that cannot be read.
func (h *history) apply(r session.Record) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: event %d does not fit what is before it", eventlog.ErrCorrupt, r.Seq)
		}
	}()
	h.state.Apply(r)
	h.records = append(h.records, r)
	return nil
}
