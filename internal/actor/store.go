package actor

import (
	"context"
	"log/slog"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
)

// store is an actor's side of the event log: it appends, and keeps the log of settled runs
// small. The newest run keeps its events, so that a client that was away can be told exactly
// what it missed; the runs before it are replaced by a snapshot.
type store struct {
	log     eventlog.Log
	id      session.ID
	seq     session.Seq    // of the last durable event
	through session.Seq    // where the snapshot in the log ends
	kept    int            // how many items the snapshot has
	idle    *session.State // at the end of the last run, nil until one is known
	shared  int            // how many items idle has in common with the snapshot
	low     int            // the fewest items there were since idle
}

// note watches for items that are taken away.
func (s *store) note(records []session.Record) {
	for _, r := range records {
		if e, ok := r.Event.(session.Rewound); ok {
			s.low = min(s.low, e.Items)
		}
	}
}

// remember notes the state at the end of a run.
func (s *store) remember(state *session.State) {
	s.shared = min(s.kept, s.low)
	s.idle, s.low = state.Clone(), len(state.Settled)
}

// load returns the session's state as of its last durable event.
func (s *store) load(ctx context.Context) (*session.State, error) {
	snapshot, err := s.log.Load(ctx, s.id)
	if err != nil {
		return nil, logError(err)
	}
	state := &session.State{Head: snapshot.Head, Settled: snapshot.Items}
	s.through, s.kept, s.low = snapshot.Head.Seq, len(snapshot.Items), len(snapshot.Items)
	for r, err := range s.log.Read(ctx, s.id, s.through) {
		if err != nil {
			return nil, logError(err)
		}
		state.Apply(r)
		s.note([]session.Record{r})
	}
	s.seq = state.Seq
	if state.Run == nil {
		s.remember(state)
	}
	return state, nil
}

func (s *store) append(records []session.Record) error {
	if err := s.log.Append(context.Background(), s.id, s.seq, records); err != nil {
		return err
	}
	s.seq += session.Seq(len(records))
	return nil
}

// settled notes that a run has just ended, and compacts what was before it. A failure is
// worth a line in the log and nothing more: the events are all still there.
func (s *store) settled(state *session.State, log *slog.Logger) {
	if s.idle != nil && s.idle.Seq > s.through {
		snapshot := eventlog.Snapshot{Head: s.idle.Head, From: s.shared, Items: s.idle.Settled[s.shared:]}
		if err := s.log.Compact(context.Background(), s.id, snapshot); err != nil {
			log.Warn("compaction failed", slog.Any("error", err))
			return
		}
		s.through, s.kept = s.idle.Seq, len(s.idle.Settled)
	}
	s.remember(state)
}
