package sqlitelog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

// row is what the writer knows about a session.
type row struct {
	num      int64
	meta     session.Meta
	last     session.Seq // its last event
	snapshot session.Seq // the end of its snapshot, 0 without one
	items    int         // of the snapshot
}

// encoded is a record ready to be stored.
type encoded struct {
	kind string
	data []byte
}

// Append implements [eventlog.Log].
func (l *Log) Append(ctx context.Context, id session.ID, after session.Seq, records []session.Record) error {
	rows, size, err := encode(id, after, records)
	if err != nil {
		return err
	}
	err = l.write(ctx, size, func(w *writer) error { return w.append(id, after, records, rows) })
	if err != nil {
		return fmt.Errorf("append to session %s after %d: %w", id, after, err)
	}
	return nil
}

// encode runs on the caller's goroutine, so that the writer has only to store.
func encode(id session.ID, after session.Seq, records []session.Record) ([]encoded, int, error) {
	if err := eventlog.CheckAppend(id, after, records); err != nil {
		return nil, 0, err
	}
	rows := make([]encoded, len(records))
	size := 0
	for i, r := range records {
		data, err := eventlog.AppendRecord(nil, r)
		if err != nil {
			return nil, 0, err
		}
		rows[i] = encoded{kind: eventlog.Kind(r.Event), data: data}
		size += len(data)
	}
	return rows, size, nil
}

func (w *writer) append(id session.ID, after session.Seq, records []session.Record, rows []encoded) error {
	r, err := w.find(id)
	switch {
	case errors.Is(err, eventlog.ErrNotFound) && after == 0:
		r = &row{}
	case err != nil:
		return err
	case after != r.last:
		return fmt.Errorf("%w: its last event is %d", eventlog.ErrFenced, r.last)
	}
	if err := w.index(r, records); err != nil {
		return err
	}
	for i, e := range rows {
		if _, err := w.stmt.insert.ExecContext(context.Background(), r.num, int64(records[i].Seq), records[i].At, e.kind, e.data); err != nil {
			return err
		}
	}
	r.last += session.Seq(len(rows))
	w.keep(id, r)
	return nil
}

// index brings a session's row of the index up to date, and makes it for a new session.
func (w *writer) index(r *row, records []session.Record) error {
	changed := false
	for _, record := range records {
		changed = r.meta.Apply(record) || changed
	}
	if !changed {
		return nil
	}
	ctx, values := context.Background(), metaValues(r.meta)
	if r.num != 0 {
		_, err := w.stmt.update.ExecContext(ctx, append(values, r.num)...)
		return err
	}
	result, err := w.stmt.create.ExecContext(ctx, append([]any{string(r.meta.ID)}, values...)...)
	if err != nil {
		return err
	}
	r.num, err = result.LastInsertId()
	return err
}

// find returns the row of a session, or ErrNotFound.
func (w *writer) find(id session.ID) (*row, error) {
	if r := w.cache[id]; r != nil {
		return r, nil
	}
	r := &row{}
	dest := append([]any{&r.num}, metaFields(&r.meta)...)
	err := w.stmt.find.QueryRowContext(context.Background(), string(id)).Scan(append(dest, &r.snapshot, &r.items, &r.last)...)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, eventlog.ErrNotFound
	case err != nil:
		return nil, err
	}
	w.keep(id, r)
	return r, nil
}

func (w *writer) keep(id session.ID, r *row) {
	if w.cache[id] == nil && len(w.cache) >= maxCached {
		for other := range w.cache {
			delete(w.cache, other) // whichever comes first; it is read again when needed
			break
		}
	}
	w.cache[id] = r
}
