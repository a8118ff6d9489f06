package actor

import (
	"context"

	"github.com/roost-dev/roost/internal/session"
)

// maxCopied is about how many bytes of items one event of a copy holds.
const maxCopied = 128 << 10

// Fork makes a session that begins with the transcript of another: all of it that is
// settled, or what comes before one message of the person. Errors are *session.Error.
func (e *Engine) Fork(ctx context.Context, id session.ID, before session.ItemID, name string) (session.ID, error) {
	s, err := e.State(ctx, id)
	if err != nil {
		return "", err
	}
	items := s.Settled
	if before != "" {
		events, err := (&session.State{Settled: items}).Decide(session.Rewind{Item: before})
		if err != nil {
			return "", err
		}
		items = items[:events[0].(session.Rewound).Items]
	}
	if name == "" {
		name = s.Name
	}
	events := copies(items, s.LastRun, s.Users)
	if s.Mode != "" {
		events = append(events, session.ModeSet{Mode: s.Mode})
	}
	return e.create(ctx, session.Create{
		Cwd: s.Cwd, Name: name, Model: s.Model, Thinking: s.Thinking, Parent: id, Origin: s.Origin,
	}, events)
}

// Import makes a session with a transcript from elsewhere. Items must be settled, in order,
// each call with its result, and their ids must be unique.
func (e *Engine) Import(ctx context.Context, c session.Create, items []session.Item) (session.ID, error) {
	var lastRun session.RunID
	users := uint32(0)
	for _, item := range items {
		switch i := item.(type) {
		case *session.User:
			users++
			lastRun = max(lastRun, i.Run)
		case *session.Assistant:
			lastRun = max(lastRun, i.Run)
		case *session.Tool:
			lastRun = max(lastRun, i.Run)
		}
	}
	return e.create(ctx, c, copies(items, lastRun, users))
}

// copies makes events of items, none of them much too large.
func copies(items []session.Item, lastRun session.RunID, users uint32) []session.Event {
	var events []session.Event
	from, size := 0, 0
	for i, item := range items {
		size += weight(item)
		if size > maxCopied || i == len(items)-1 {
			events = append(events, session.ItemsCopied{Items: items[from : i+1], LastRun: lastRun, Users: users})
			from, size = i+1, 0
		}
	}
	return events
}

func weight(item session.Item) int {
	size := 0
	switch i := item.(type) {
	case *session.User:
		for _, b := range i.Blocks {
			size += len(session.BlockText(b))
		}
	case *session.Assistant:
		for _, b := range i.Blocks {
			size += len(session.BlockText(b))
		}
	case *session.Tool:
		size = len(i.Input) + len(i.Output) + len(i.Details)
	}
	return size
}
