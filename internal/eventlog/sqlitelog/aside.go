package sqlitelog

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"

	"github.com/roost-dev/roost/internal/session"
)

// rawRow is a row as it is stored, whatever its bytes mean. In JSON the bytes are base64.
type rawRow struct {
	Table string        `json:"table,omitempty"`
	Seq   int64         `json:"seq,omitempty"`   // of an event; of a snapshot, its end
	At    int64         `json:"at,omitempty"`    // of an event, milliseconds since 1970
	Kind  string        `json:"kind,omitempty"`  // of an event
	First int64         `json:"first,omitempty"` // of a chunk, the index of its first item
	Items int64         `json:"items,omitempty"` // of a chunk or a snapshot
	Data  []byte        `json:"data,omitempty"`  // roost.eventlog.v1.Record, Items or Head
	Row   *session.Meta `json:"row,omitempty"`   // of the index
	Error string        `json:"error,omitempty"` // the rows of the table that follow cannot be read
}

// Export writes all rows of a session as they are stored, one JSON object a line, for repairs by
// hand. Where rows cannot be read, a line says so; the error is that of writing only.
func (v *View) Export(e Entry, w io.Writer) error {
	out := json.NewEncoder(w)
	if e.Indexed {
		if err := out.Encode(rawRow{Table: "sessions", Row: &e.Meta}); err != nil {
			return err
		}
	}
	for _, query := range []string{
		`SELECT 'snapshots', seq, 0, '', 0, items, head FROM snapshots WHERE session = ?`,
		`SELECT 'chunks', 0, 0, '', first, items, data FROM chunks WHERE session = ? ORDER BY first`,
		`SELECT 'events', seq, at, kind, 0, 0, data FROM events WHERE session = ? ORDER BY seq`,
	} {
		if err := v.exportRows(out, query, e.num); err != nil {
			return err
		}
	}
	return nil
}

func (v *View) exportRows(out *json.Encoder, query string, num int64) error {
	rows, err := v.tx.Query(query, num)
	if err != nil {
		return out.Encode(rawRow{Error: err.Error()})
	}
	defer rows.Close()
	for rows.Next() {
		var r rawRow
		if err := rows.Scan(&r.Table, &r.Seq, &r.At, &r.Kind, &r.First, &r.Items, &r.Data); err != nil {
			return out.Encode(rawRow{Error: err.Error()})
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return out.Encode(rawRow{Error: err.Error()})
	}
	return nil
}

// Discard removes a session whatever state it is in, as Delete does. Whoever calls it has
// exported the session before.
func (l *Log) Discard(ctx context.Context, e Entry) error {
	err := l.write(ctx, 0, func(w *writer) error {
		if _, err := w.stmt.remove.ExecContext(context.Background(), e.num); err != nil {
			return err
		}
		if _, err := w.stmt.addGarbage.ExecContext(context.Background(), e.num, int64(math.MaxInt64), true); err != nil {
			return err
		}
		delete(w.cache, e.ID)
		w.garbage = true
		return nil
	})
	if err != nil {
		return fmt.Errorf("discard session %s: %w", e.ID, err)
	}
	return nil
}
