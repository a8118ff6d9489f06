// Package memlog is an event log in memory, for simulations and tests. It keeps records
// encoded, as a disk would, uses no clock and starts no goroutine, so it works in simulated
// time. On command its writes fail, lose their acknowledgement, or take long, and Crash
// gives what a restarted process would find.
package memlog

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

var _ eventlog.Log = (*Log)(nil)

// Log is an event log in memory. The zero value is not usable: see New. All methods are safe
// for concurrent use.
type Log struct {
	// Delay, when set before the log is used, is called by each write once it has begun and
	// before it takes effect. It may block, in simulated time as well.
	Delay func()

	mu       sync.Mutex
	sessions map[session.ID]*history
	faults   map[int]Fault // by the number of the write
	writes   int           // begun so far
	closed   bool
	crashed  bool
	revoked  bool
	tear     bool // the write that takes effect is torn
	crashAt  int  // the number of the write that is the last one; 0 for none
	onCrash  func()
	begun    sync.WaitGroup
}

// history is what is stored of one session.
type history struct {
	meta     session.Meta
	head     []byte // nil without a snapshot
	snapshot session.Seq
	items    [][]byte // one by one
	records  [][]byte // those after snapshot
	torn     bool     // behind them is half a write, which a new process drops
}

func (h *history) last() session.Seq { return h.snapshot + session.Seq(len(h.records)) }

// New returns an empty log.
func New() *Log {
	return &Log{sessions: make(map[session.ID]*history), faults: make(map[int]Fault)}
}

// Epoch is always 1.
func (*Log) Epoch() session.Epoch { return 1 }

// Append implements [eventlog.Log].
func (l *Log) Append(ctx context.Context, id session.ID, after session.Seq, records []session.Record) error {
	if err := eventlog.CheckAppend(id, after, records); err != nil {
		return err
	}
	rows := make([][]byte, len(records))
	for i, r := range records {
		var err error
		if rows[i], err = eventlog.AppendRecord(nil, r); err != nil {
			return err
		}
	}
	err := l.write(ctx, func() error {
		h := l.sessions[id]
		switch {
		case h == nil && after > 0:
			return eventlog.ErrNotFound
		case l.tear && h != nil:
			h.torn = true
			return nil
		case l.tear:
			return nil
		case h != nil && h.torn:
			return ErrInjected
		case h == nil:
			h = &history{}
			l.sessions[id] = h
		case after != h.last():
			return fmt.Errorf("%w: its last event is %d", eventlog.ErrFenced, h.last())
		}
		for _, r := range records {
			h.meta.Apply(r)
		}
		h.records = append(h.records, rows...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("append to session %s after %d: %w", id, after, err)
	}
	return nil
}

// Compact implements [eventlog.Log].
func (l *Log) Compact(ctx context.Context, id session.ID, s eventlog.Snapshot) error {
	if err := eventlog.CheckSnapshot(id, s); err != nil {
		return err
	}
	head, err := eventlog.AppendHead(nil, s.Head)
	if err != nil {
		return err
	}
	items := make([][]byte, len(s.Items))
	for i := range s.Items {
		if items[i], err = eventlog.AppendItems(nil, s.Items[i:i+1]); err != nil {
			return err
		}
	}
	err = l.write(ctx, func() error {
		h := l.sessions[id]
		if h == nil {
			return eventlog.ErrNotFound
		}
		if err := eventlog.CheckCompact(s, h.snapshot, h.last(), len(h.items)); err != nil {
			return err
		}
		if l.tear {
			return nil
		}
		h.records = slices.Clone(h.records[s.Head.Seq-h.snapshot:])
		h.head, h.snapshot = head, s.Head.Seq
		h.items = append(h.items[:s.From:s.From], items...)
		return nil
	})
	if err != nil {
		return fmt.Errorf("compact session %s up to %d: %w", id, s.Head.Seq, err)
	}
	return nil
}

// Delete implements [eventlog.Log].
func (l *Log) Delete(ctx context.Context, id session.ID) error {
	err := l.write(ctx, func() error {
		if l.sessions[id] == nil {
			return eventlog.ErrNotFound
		}
		if l.tear {
			return nil
		}
		delete(l.sessions, id)
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete session %s: %w", id, err)
	}
	return nil
}

// Load implements [eventlog.Log].
func (l *Log) Load(ctx context.Context, id session.ID) (eventlog.Snapshot, error) {
	h, err := l.find(ctx, id)
	if err == nil && h.head == nil {
		return eventlog.Snapshot{}, nil
	}
	var s eventlog.Snapshot
	if err == nil {
		s.Head, err = eventlog.DecodeHead(h.head)
	}
	if err == nil {
		s.Items, err = eventlog.DecodeItems(slices.Concat(h.items...))
	}
	if err != nil {
		return eventlog.Snapshot{}, fmt.Errorf("load session %s: %w", id, err)
	}
	return s, nil
}

// Read implements [eventlog.Log].
func (l *Log) Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error] {
	return func(yield func(session.Record, error) bool) {
		h, err := l.find(ctx, id)
		if err == nil && after < h.snapshot {
			err = fmt.Errorf("%w: the snapshot ends at %d", eventlog.ErrCompacted, h.snapshot)
		}
		if err != nil {
			yield(session.Record{}, fmt.Errorf("read session %s after %d: %w", id, after, err))
			return
		}
		for _, data := range h.records[min(after, h.last())-h.snapshot:] {
			if err := ctx.Err(); err != nil {
				yield(session.Record{}, err)
				return
			}
			r, err := eventlog.DecodeRecord(data)
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// List implements [eventlog.Log].
func (l *Log) List(ctx context.Context) iter.Seq2[session.Meta, error] {
	return func(yield func(session.Meta, error) bool) {
		metas, err := l.index(ctx)
		if err != nil {
			yield(session.Meta{}, fmt.Errorf("list sessions: %w", err))
			return
		}
		for _, m := range metas {
			if !yield(m, nil) {
				return
			}
		}
	}
}

// Active implements [eventlog.Log].
func (l *Log) Active(ctx context.Context) ([]session.ID, error) {
	metas, err := l.index(ctx)
	if err != nil {
		return nil, fmt.Errorf("list active sessions: %w", err)
	}
	var ids []session.ID
	for _, m := range metas {
		if m.Active {
			ids = append(ids, m.ID)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

// Close waits for writes that have begun. Later calls return [eventlog.ErrClosed].
func (l *Log) Close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.begun.Wait()
	return nil
}

// find returns a copy of a session's history. Stored bytes never change, so they are shared.
func (l *Log) find(ctx context.Context, id session.ID) (history, error) {
	if err := ctx.Err(); err != nil {
		return history{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return history{}, eventlog.ErrClosed
	}
	h := l.sessions[id]
	if h == nil {
		return history{}, eventlog.ErrNotFound
	}
	return *h, nil
}

func (l *Log) index(ctx context.Context) ([]session.Meta, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, eventlog.ErrClosed
	}
	metas := make([]session.Meta, 0, len(l.sessions))
	for h := range maps.Values(l.sessions) {
		metas = append(metas, h.meta)
	}
	slices.SortFunc(metas, eventlog.CompareMeta)
	return metas, nil
}
