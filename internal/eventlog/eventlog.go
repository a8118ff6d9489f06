// Package eventlog is the port to the durable history of sessions, and the codec of its
// records. Nothing is shown to a client and no command is acknowledged before Append has
// returned. The package sqlitelog implements it for one node and memlog for simulations;
// both pass the suite in eventlogtest.
//
//	events  1 … through │ through+1 … last
//	        ────────────┼─────────────────
//	        replaced by │ kept one by one
//	        a Snapshot  │
package eventlog

import (
	"context"
	"errors"
	"iter"

	"github.com/roost-dev/roost/internal/session"
)

var (
	// ErrFenced says that the session's last event is not the one the caller thinks: somebody
	// else has written, or the session exists already.
	ErrFenced = errors.New("session was changed by another writer")
	// ErrNotFound says that there is no such session.
	ErrNotFound = errors.New("no such session")
	// ErrCompacted says that the events asked for have been replaced by a snapshot.
	ErrCompacted = errors.New("events have been compacted")
	// ErrFull says that the disk has no room or refuses writes. Nothing was written.
	ErrFull = errors.New("no space left for the event log")
	// ErrDisk says that the disk has failed to keep what was written to it. Until the log is opened
	// anew nothing can be written; everything acknowledged is still in the files then.
	ErrDisk = errors.New("the disk failed to keep what was written, so the event log takes no more: look at the disk, then restart roost, which finds everything that was acknowledged")
	// ErrClosed says that the log has been closed.
	ErrClosed = errors.New("event log is closed")
	// ErrCorrupt says that a stored record cannot be read. It concerns one session only.
	ErrCorrupt = errors.New("event log record is unreadable")
)

// Snapshot replaces the events of a session up to and including Head.Seq. It is taken while
// the session was idle: without run and without queue.
type Snapshot struct {
	Head session.Head
	// From is the index of the first of Items in the transcript. When a snapshot is written,
	// the items before From are those of the earlier snapshot; when one is read, From is 0.
	From  int
	Items []session.Item
}

// Log is a durable history of sessions. Every method is safe for concurrent use, and appends
// of different sessions that wait at the same time share one commit.
type Log interface {
	// Epoch is the incarnation of the log; it never changes while the log is open.
	Epoch() session.Epoch

	// Append adds records to a session, all or none, and returns once they would survive a
	// loss of power. The first record's Seq is after+1; after 0 makes the session, whose
	// first event is then Created. Errors: ErrFenced, ErrNotFound, ErrFull, ErrClosed. After
	// any other error the outcome is unknown, and the session must be loaded again. An
	// Append that has begun is not given up when ctx ends.
	Append(ctx context.Context, id session.ID, after session.Seq, records []session.Record) error

	// Load returns the newest snapshot of a session, the zero Snapshot when it has none, or
	// ErrNotFound.
	Load(ctx context.Context, id session.ID) (Snapshot, error)

	// Read yields the records after a sequence number, in order and without gaps, up to the
	// last one at the time of the call. It yields ErrCompacted if after lies before the
	// snapshot's end, ErrNotFound, or ErrCorrupt.
	Read(ctx context.Context, id session.ID, after session.Seq) iter.Seq2[session.Record, error]

	// Compact replaces the events up to snapshot.Head.Seq by the snapshot. A crash leaves
	// either the events or the snapshot.
	Compact(ctx context.Context, id session.ID, snapshot Snapshot) error

	// Delete removes everything of a session. Deleting one that is not there is ErrNotFound.
	Delete(ctx context.Context, id session.ID) error

	// List yields the index, the most recently updated session first.
	List(ctx context.Context) iter.Seq2[session.Meta, error]

	// Active returns the sessions with a run in progress.
	Active(ctx context.Context) ([]session.ID, error)

	// Close waits for appends that have begun and releases everything.
	Close() error
}

// Restore returns a session's state as of its last record, or the errors of Load and Read.
func Restore(ctx context.Context, log Log, id session.ID) (*session.State, error) {
	snapshot, err := log.Load(ctx, id)
	if err != nil {
		return nil, err
	}
	state := &session.State{Head: snapshot.Head, Settled: snapshot.Items}
	for r, err := range log.Read(ctx, id, snapshot.Head.Seq) {
		if err != nil {
			return nil, err
		}
		state.Apply(r)
	}
	return state, nil
}

// MetaOf is the index row of a session that a snapshot ends with. It was idle then. Its time is
// that of the last event, which may be later than that of the last one that changed the index.
func MetaOf(h session.Head) session.Meta {
	return session.Meta{
		ID: h.ID, CreatedAt: h.CreatedAt, UpdatedAt: h.UpdatedAt, Parent: h.Parent, Name: h.Name,
		Cwd: h.Cwd, Model: h.Model, Thinking: h.Thinking, Origin: h.Origin,
	}
}
