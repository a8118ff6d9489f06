package sqlitelog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

// RebuildIndex makes the index of sessions anew from their snapshots and events, one session
// at a time, while the log is in use. The error joins those of the sessions that cannot be
// read; their rows stay as they are.
func (l *Log) RebuildIndex(ctx context.Context) error {
	nums, err := l.numbers(ctx)
	if err != nil {
		return fmt.Errorf("rebuild index: %w", err)
	}
	var errs []error
	for _, num := range nums {
		if err := l.write(ctx, 0, func(w *writer) error { return w.reindex(num) }); err != nil {
			errs = append(errs, fmt.Errorf("rebuild index of session number %d: %w", num, err))
		}
		if ctx.Err() != nil || errors.Is(err, eventlog.ErrClosed) {
			break
		}
	}
	return errors.Join(errs...)
}

// numbers returns the sessions that have anything stored and are not deleted.
func (l *Log) numbers(ctx context.Context) (nums []int64, err error) {
	err = l.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.Query(`SELECT session FROM events UNION SELECT session FROM snapshots
			EXCEPT SELECT session FROM garbage WHERE gone ORDER BY 1`)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var num int64
			if err := rows.Scan(&num); err != nil {
				return err
			}
			nums = append(nums, num)
		}
		return rows.Err()
	})
	return nums, err
}

func (w *writer) reindex(num int64) error {
	meta, err := w.fold(num)
	if err != nil || meta.ID == "" {
		return err // without id: deleted meanwhile
	}
	delete(w.cache, meta.ID)
	_, err = w.conn.ExecContext(context.Background(), `INSERT OR REPLACE INTO sessions (num, id, `+metaColumns+`)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, append([]any{num, string(meta.ID)}, metaValues(meta)...)...)
	return err
}

// fold computes the index row of a session from what is stored of it.
func (w *writer) fold(num int64) (session.Meta, error) {
	ctx := context.Background()
	var meta session.Meta
	var gone bool
	if err := w.conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM garbage WHERE session = ? AND gone)`, num).Scan(&gone); err != nil || gone {
		return meta, err
	}
	var head []byte
	err := w.conn.QueryRowContext(ctx, `SELECT head FROM snapshots WHERE session = ?`, num).Scan(&head)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return meta, err
	}
	var after session.Seq
	if err == nil {
		h, err := eventlog.DecodeHead(head)
		if err != nil {
			return meta, err
		}
		meta, after = metaOf(h), h.Seq
	}
	rows, err := w.conn.QueryContext(ctx, `SELECT data FROM events WHERE session = ? AND seq > ? ORDER BY seq`, num, int64(after))
	if err != nil {
		return meta, err
	}
	defer rows.Close()
	for rows.Next() {
		var data sql.RawBytes
		if err := rows.Scan(&data); err != nil {
			return meta, err
		}
		r, err := eventlog.DecodeRecord(data)
		if err != nil {
			return meta, err
		}
		meta.Apply(r)
	}
	return meta, rows.Err()
}

// metaOf is the index row of a session that a snapshot ends with. It was idle then, and every
// event that an idle session can have changes the index, so the times agree.
func metaOf(h session.Head) session.Meta {
	return session.Meta{
		ID: h.ID, CreatedAt: h.CreatedAt, UpdatedAt: h.UpdatedAt, Parent: h.Parent, Name: h.Name,
		Cwd: h.Cwd, Model: h.Model, Thinking: h.Thinking, Origin: h.Origin,
	}
}
