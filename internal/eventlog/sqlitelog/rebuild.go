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
		meta, after = eventlog.MetaOf(h), h.Seq
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

// indexLost finds out cheaply whether the index has to be made anew: when its table is missing,
// which is put back, or when the newest session that has something stored is not in it.
func indexLost(ctx context.Context, conn *sql.Conn) (bool, error) {
	var there bool
	err := conn.QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'sessions')`).Scan(&there)
	if err != nil {
		return false, err
	}
	if !there {
		return true, recreateIndex(ctx, conn)
	}
	var lost bool
	err = conn.QueryRowContext(ctx, `WITH newest AS (SELECT max(n) AS num FROM (
			SELECT max(session) AS n FROM events UNION ALL SELECT max(session) FROM snapshots))
		SELECT num IS NOT NULL AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.num = newest.num)
			AND NOT EXISTS (SELECT 1 FROM garbage g WHERE g.session = newest.num AND g.gone)
		FROM newest`).Scan(&lost)
	return lost, err
}

// recreateIndex makes the table of the index. Numbers of sessions go on after the highest that is
// in use, also by rows that have not been swept yet.
func recreateIndex(ctx context.Context, conn *sql.Conn) error {
	_, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE;\n"+indexSchema+`;
		DELETE FROM sqlite_sequence WHERE name = 'sessions';
		INSERT INTO sqlite_sequence (name, seq) SELECT 'sessions', coalesce(max(n), 0) FROM (
			SELECT max(session) AS n FROM events UNION ALL SELECT max(session) FROM snapshots
			UNION ALL SELECT max(session) FROM chunks UNION ALL SELECT max(session) FROM garbage);
		COMMIT`)
	if err != nil {
		_, rollback := conn.ExecContext(ctx, `ROLLBACK`)
		return errors.Join(fmt.Errorf("make the index anew: %w", err), rollback)
	}
	return nil
}
