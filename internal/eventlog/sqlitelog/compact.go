package sqlitelog

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

const (
	// A chunk is closed once it has so many items or bytes, whichever comes first. Small
	// enough to be written again when a little is added, large enough to be read fast.
	chunkItems = 64
	chunkBytes = 32 << 10
	// sweepRows is how many useless rows a transaction removes in passing.
	sweepRows = 256
)

// chunk is a piece of a transcript.
type chunk struct {
	items int
	data  []byte
}

func (c chunk) full() bool { return c.items >= chunkItems || len(c.data) >= chunkBytes }

// Compact implements [eventlog.Log].
func (l *Log) Compact(ctx context.Context, id session.ID, snapshot eventlog.Snapshot) error {
	if err := eventlog.CheckSnapshot(id, snapshot); err != nil {
		return err
	}
	head, err := eventlog.AppendHead(nil, snapshot.Head)
	if err != nil {
		return err
	}
	chunks, size, err := cut(snapshot.Items)
	if err != nil {
		return err
	}
	err = l.write(ctx, size+len(head), func(w *writer) error { return w.compact(id, snapshot, head, chunks) })
	if err != nil {
		return fmt.Errorf("compact session %s up to %d: %w", id, snapshot.Head.Seq, err)
	}
	return nil
}

// cut encodes items as chunks.
func cut(items []session.Item) (chunks []chunk, size int, err error) {
	var c chunk
	for i := range items {
		if c.data, err = eventlog.AppendItems(c.data, items[i:i+1]); err != nil {
			return nil, 0, err
		}
		c.items++
		if c.full() || i == len(items)-1 {
			chunks, size = append(chunks, c), size+len(c.data)
			c = chunk{}
		}
	}
	return chunks, size, nil
}

func (w *writer) compact(id session.ID, s eventlog.Snapshot, head []byte, chunks []chunk) error {
	r, err := w.find(id)
	if err != nil {
		return err
	}
	if err := eventlog.CheckCompact(s, r.snapshot, r.last, r.items); err != nil {
		return err
	}
	ctx, count := context.Background(), s.From+len(s.Items)
	if err := w.putItems(r.num, s.From, chunks); err != nil {
		return err
	}
	if _, err := w.stmt.putSnapshot.ExecContext(ctx, r.num, int64(s.Head.Seq), count, head); err != nil {
		return err
	}
	if _, err := w.stmt.addGarbage.ExecContext(ctx, r.num, int64(s.Head.Seq), false); err != nil {
		return err
	}
	r.snapshot, r.items, w.garbage = s.Head.Seq, count, true
	return nil
}

// putItems replaces the items from index from on by chunks. The chunk before them is
// written again when from cuts it, or when it is short.
func (w *writer) putItems(num int64, from int, chunks []chunk) error {
	ctx := context.Background()
	var first int
	var last chunk
	err := w.stmt.tail.QueryRowContext(ctx, num, from).Scan(&first, &last.items, &last.data)
	if err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	start := from
	if keep := from - first; err == nil && (keep < last.items || !last.full()) {
		if last, err = truncate(last, keep); err != nil {
			return err
		}
		start, chunks = first, join(last, chunks)
	}
	if _, err := w.stmt.dropChunks.ExecContext(ctx, num, start); err != nil {
		return err
	}
	for _, c := range chunks {
		if _, err := w.stmt.putChunk.ExecContext(ctx, num, start, c.items, c.data); err != nil {
			return err
		}
		start += c.items
	}
	return nil
}

// truncate returns the first keep items of c.
func truncate(c chunk, keep int) (chunk, error) {
	if keep >= c.items {
		return c, nil
	}
	items, err := eventlog.DecodeItems(c.data)
	if err != nil {
		return c, err
	}
	if keep > len(items) {
		return c, fmt.Errorf("%w: a piece of the transcript has %d items instead of %d", eventlog.ErrCorrupt, len(items), c.items)
	}
	data, err := eventlog.AppendItems(nil, items[:keep])
	return chunk{items: keep, data: data}, err
}

// join puts c before chunks, together with the first of them when c is not full.
func join(c chunk, chunks []chunk) []chunk {
	if len(chunks) == 0 || c.full() {
		return append([]chunk{c}, chunks...)
	}
	c.items += chunks[0].items
	c.data = append(slices.Clip(c.data), chunks[0].data...)
	return append([]chunk{c}, chunks[1:]...)
}

// Delete implements [eventlog.Log]. The session is gone when it returns; its events and
// items are removed from the file soon after.
func (l *Log) Delete(ctx context.Context, id session.ID) error {
	if err := l.write(ctx, 0, func(w *writer) error { return w.delete(id) }); err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	return nil
}

func (w *writer) delete(id session.ID) error {
	r, err := w.find(id)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if _, err := w.stmt.remove.ExecContext(ctx, r.num); err != nil {
		return err
	}
	if _, err := w.stmt.addGarbage.ExecContext(ctx, r.num, int64(math.MaxInt64), true); err != nil {
		return err
	}
	delete(w.cache, id)
	w.garbage = true
	return nil
}

// sweep removes a few of the rows that nobody reads any more.
func (w *writer) sweep() error {
	if !w.garbage {
		return nil
	}
	ctx := context.Background()
	var num, through int64
	var gone bool
	err := w.stmt.firstGarbage.QueryRowContext(ctx).Scan(&num, &through, &gone)
	if errors.Is(err, sql.ErrNoRows) {
		w.garbage = false
		return nil
	}
	if err != nil {
		return err
	}
	more, err := w.sweepRows(w.stmt.sweepEvents, num, through, sweepRows)
	if err != nil || more {
		return err
	}
	if gone {
		const sweepChunks = 16 // a chunk is many pages
		if more, err = w.sweepRows(w.stmt.sweepChunks, num, sweepChunks); err != nil || more {
			return err
		}
		if _, err := w.stmt.dropSnapshot.ExecContext(ctx, num); err != nil {
			return err
		}
	}
	_, err = w.stmt.swept.ExecContext(ctx, num)
	return err
}

// sweepRows reports whether there may be more rows of the kind.
func (w *writer) sweepRows(stmt *sql.Stmt, args ...any) (more bool, err error) {
	result, err := stmt.ExecContext(context.Background(), args...)
	if err != nil {
		return false, err
	}
	n, err := result.RowsAffected()
	return n > 0, err
}
