package eventlog

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/roost-dev/roost/internal/session"
)

// The checks below are what implementations of Log share.

// CheckAppend reports what is wrong with the arguments of Append in themselves: a fault of
// the caller.
func CheckAppend(id session.ID, after session.Seq, records []session.Record) error {
	if !id.Valid() {
		return fmt.Errorf("append: %q is no session id", id)
	}
	if len(records) == 0 {
		return errors.New("append: no records")
	}
	for i, r := range records {
		if r.Seq != after+1+session.Seq(i) {
			return fmt.Errorf("append to session %s after %d: record %d has sequence number %d", id, after, i, r.Seq)
		}
		c, created := r.Event.(session.Created)
		if created != (r.Seq == 1) || created && c.ID != id {
			return fmt.Errorf("append to session %s: Created is its first event, and the first only", id)
		}
	}
	return nil
}

// CheckSnapshot reports what is wrong with the arguments of Compact in themselves: a fault of
// the caller.
func CheckSnapshot(id session.ID, s Snapshot) error {
	if s.Head.ID != id || s.Head.Seq == 0 || s.From < 0 {
		return fmt.Errorf("compact session %s: snapshot of session %q at event %d from item %d", id, s.Head.ID, s.Head.Seq, s.From)
	}
	return nil
}

// CheckCompact reports whether s may follow the snapshot that ends at event snapshot and has
// so many items, in a session whose last event is last. An older snapshot than the stored
// one is ErrCompacted; one that the events do not reach, or that leaves a gap in the items,
// is ErrFenced.
func CheckCompact(s Snapshot, snapshot, last session.Seq, items int) error {
	switch {
	case s.Head.Seq < snapshot:
		return fmt.Errorf("%w: the snapshot ends at %d", ErrCompacted, snapshot)
	case s.Head.Seq > last:
		return fmt.Errorf("%w: its last event is %d", ErrFenced, last)
	case s.From > items:
		return fmt.Errorf("%w: its snapshot has %d items, and the next begins at %d", ErrFenced, items, s.From)
	}
	return nil
}

// CompareMeta orders an index as List yields it: the most recently updated first, and by id
// where that is equal.
func CompareMeta(a, b session.Meta) int {
	return cmp.Or(cmp.Compare(b.UpdatedAt, a.UpdatedAt), cmp.Compare(a.ID, b.ID))
}
