package sqlitelog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

// Records are read in pages, so that a slow consumer holds neither a connection nor the
// write-ahead log. A page ends after so many records or bytes.
const (
	pageRecords = 512
	pageBytes   = 1 << 20
)

// view runs do in one read transaction.
func (l *Log) view(ctx context.Context, do func(*sql.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	l.mu.RLock()
	defer l.mu.RUnlock()
	if l.closed {
		return eventlog.ErrClosed
	}
	// A transaction is short and is not interrupted: watching ctx would cost more.
	ctx = context.WithoutCancel(ctx)
	tx, err := l.readers.BeginTx(ctx, nil)
	if err != nil {
		return storeError(err)
	}
	err = do(tx)
	if end := tx.Rollback(); err == nil {
		err = end
	}
	return storeError(err)
}

// place is where a session's records are.
type place struct {
	num            int64
	snapshot, last session.Seq
}

func locate(tx *sql.Tx, id session.ID) (place, error) {
	var p place
	err := tx.QueryRow(`SELECT s.num, coalesce(p.seq, 0),
		max(coalesce(p.seq, 0), coalesce((SELECT max(seq) FROM events WHERE session = s.num), 0))
		FROM sessions s LEFT JOIN snapshots p ON p.session = s.num WHERE s.id = ?`, string(id)).Scan(&p.num, &p.snapshot, &p.last)
	if errors.Is(err, sql.ErrNoRows) {
		return p, eventlog.ErrNotFound
	}
	return p, err
}

// Load implements [eventlog.Log].
func (l *Log) Load(ctx context.Context, id session.ID) (eventlog.Snapshot, error) {
	var s eventlog.Snapshot
	err := l.view(ctx, func(tx *sql.Tx) error {
		p, err := locate(tx, id)
		if err != nil || p.snapshot == 0 {
			return err
		}
		s, err = loadSnapshot(tx, p.num)
		return err
	})
	if err != nil {
		return eventlog.Snapshot{}, fmt.Errorf("load session %s: %w", id, err)
	}
	return s, nil
}

func loadSnapshot(tx *sql.Tx, num int64) (s eventlog.Snapshot, err error) {
	var head []byte
	var count int
	if err := tx.QueryRow(`SELECT head, items FROM snapshots WHERE session = ?`, num).Scan(&head, &count); err != nil {
		return s, err
	}
	if s.Head, err = eventlog.DecodeHead(head); err != nil {
		return s, err
	}
	s.Items, err = loadItems(tx, num, count)
	return s, err
}

func loadItems(tx *sql.Tx, num int64, count int) ([]session.Item, error) {
	rows, err := tx.Query(`SELECT first, data FROM chunks WHERE session = ? ORDER BY first`, num)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []session.Item
	for rows.Next() {
		var first int
		var data sql.RawBytes
		if err := rows.Scan(&first, &data); err != nil {
			return nil, err
		}
		items, err := eventlog.DecodeItems(data)
		if err != nil {
			return nil, err
		}
		if first != len(all) {
			return nil, fmt.Errorf("%w: item %d of the transcript is missing", eventlog.ErrCorrupt, len(all))
		}
		all = append(all, items...)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(all) != count {
		return nil, fmt.Errorf("%w: the transcript has %d items instead of %d", eventlog.ErrCorrupt, len(all), count)
	}
	return all, nil
}

// Read implements [eventlog.Log].
func (l *Log) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		var last session.Seq // known after the first page
		for begun := false; !begun || after < last; begun = true {
			page, end, err := l.page(ctx, id, after, last)
			if err != nil {
				yield(session.Record{}, fmt.Errorf("read session %s after %d: %w", id, after, err))
				return
			}
			last = end
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
				after = r.Seq
			}
		}
	}
}

// page returns the records after a sequence number, and the end of what is to be read,
// which is given from the second page on.
func (l *Log) page(ctx context.Context, id session.ID, after, last session.Seq) (page []session.Record, end session.Seq, err error) {
	err = l.view(ctx, func(tx *sql.Tx) error {
		p, err := locate(tx, id)
		if err != nil {
			return err
		}
		if after < p.snapshot {
			return fmt.Errorf("%w: the snapshot ends at %d", eventlog.ErrCompacted, p.snapshot)
		}
		if end = last; end == 0 {
			end = p.last
		}
		if after >= end {
			return nil
		}
		page, err = records(tx, p.num, after, end)
		return err
	})
	return page, end, err
}

// records returns a page of records; with an error, those before it.
func records(tx *sql.Tx, num int64, after, end session.Seq) ([]session.Record, error) {
	rows, err := tx.Query(`SELECT data FROM events WHERE session = ? AND seq > ? AND seq <= ? ORDER BY seq LIMIT ?`,
		num, int64(after), int64(end), pageRecords)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var page []session.Record
	for size := 0; size < pageBytes && rows.Next(); {
		var data sql.RawBytes
		if err := rows.Scan(&data); err != nil {
			return page, err
		}
		r, err := eventlog.DecodeRecord(data)
		if err != nil {
			return page, err
		}
		if after++; r.Seq != after {
			return page, fmt.Errorf("%w: event %d is missing", eventlog.ErrCorrupt, after)
		}
		page, size = append(page, r), size+len(data)
	}
	if err := rows.Err(); err != nil {
		return page, err
	}
	if len(page) == 0 {
		return nil, fmt.Errorf("%w: event %d is missing", eventlog.ErrCorrupt, after+1)
	}
	return page, nil
}

// List implements [eventlog.Log]. It reads the whole index before it yields, so the
// consumer may take its time and may call the log.
func (l *Log) List(ctx context.Context) iter.Seq2[session.Meta, error] {
	return func(yield func(session.Meta, error) bool) {
		metas, err := l.index(ctx, `SELECT id, `+metaColumns+` FROM sessions`)
		if err != nil {
			yield(session.Meta{}, fmt.Errorf("list sessions: %w", err))
			return
		}
		slices.SortFunc(metas, eventlog.CompareMeta)
		for _, m := range metas {
			if !yield(m, nil) {
				return
			}
		}
	}
}

// Active implements [eventlog.Log].
func (l *Log) Active(ctx context.Context) ([]session.ID, error) {
	metas, err := l.index(ctx, `SELECT id, `+metaColumns+` FROM sessions WHERE active ORDER BY id`)
	if err != nil {
		return nil, fmt.Errorf("list active sessions: %w", err)
	}
	ids := make([]session.ID, len(metas))
	for i, m := range metas {
		ids[i] = m.ID
	}
	return ids, nil
}

func (l *Log) index(ctx context.Context, query string) ([]session.Meta, error) {
	var metas []session.Meta
	err := l.view(ctx, func(tx *sql.Tx) error {
		rows, err := tx.Query(query)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var m session.Meta
			if err := rows.Scan(metaFields(&m)...); err != nil {
				return err
			}
			metas = append(metas, m)
		}
		return rows.Err()
	})
	return metas, err
}

// Size returns how many bytes a session takes in the database, about, or ErrNotFound.
func (l *Log) Size(ctx context.Context, id session.ID) (size int64, err error) {
	err = l.view(ctx, func(tx *sql.Tx) error {
		p, err := locate(tx, id)
		if err != nil {
			return err
		}
		return tx.QueryRow(`SELECT coalesce((SELECT sum(length(data)) FROM events WHERE session = ?1), 0)
			+ coalesce((SELECT sum(length(data)) FROM chunks WHERE session = ?1), 0)
			+ coalesce((SELECT length(head) FROM snapshots WHERE session = ?1), 0)`, p.num).Scan(&size)
	})
	if err != nil {
		return 0, fmt.Errorf("size of session %s: %w", id, err)
	}
	return size, nil
}
