package cursor

import (
	"context"

	"github.com/roost-dev/roost/internal/cursorview"
	"github.com/roost-dev/roost/internal/session"
)

// reconcile makes the session's transcript what the client's user sees (sections 6.6 and 6.8): what
// the client has and the session lacks is taken over, and what the client has given up is taken
// away. Known reports that the message of the action has been obeyed already.
func (d *driver) reconcile(ctx context.Context) (known bool, err error) {
	engine := d.server.opt.Engine
	s, err := engine.State(ctx, d.id)
	if err != nil {
		return false, err
	}
	plan, err := d.compare(ctx, s)
	if err != nil {
		return false, err
	}
	d.instructions = plan.Instructions
	ours := cursorview.Turns(s)
	replace := session.Replace{Keep: plan.KeepItems, Copies: copies(plan.Import, plan.Runs, plan.Users)}
	items := plan.Items
	keep := func(turns int) { // without what the client has beyond them
		plan.Keep, replace = turns, session.Replace{Keep: cursorview.ItemsOf(s, turns)}
		plan.Prefix = plan.Prefix[:min(len(plan.Prefix), turns)]
		items = replace.Keep
	}
	if len(plan.Import) == 0 && plan.Keep < ours && (d.attempt.resumes() || d.attempt.told > 0 && plan.Keep >= d.attempt.told) {
		keep(ours) // the client has not been told of what came after, so it has not given it up
	}
	if u := s.FindPrompt(d.attempt.promptID()); u != nil && plan.Keep == ours && len(plan.Import) == 0 {
		if turn := turnOf(s, u.ID); len(d.attempt.state.GetTurns()) > turn || d.attempt.resumes() {
			known = true // a queued message that comes again
		} else {
			keep(turn) // the message is sent anew, perhaps changed
		}
	}
	d.ckpt.base.Prefix, d.ckpt.base.Items = plan.Prefix, items
	if replace.Keep == len(s.Settled) && len(replace.Copies) == 0 {
		return known, nil
	}
	_, err = engine.Do(ctx, d.id, replace)
	return known, err
}

// compare has the view compare the session with the client's state, and fetches what it needs.
func (d *driver) compare(ctx context.Context, s *session.State) (cursorview.Plan, error) {
	for {
		plan := cursorview.Reconcile(s, &d.ckpt.project, d.attempt.state, d.kv.have)
		if len(plan.Missing) == 0 {
			return plan, nil
		}
		for _, id := range plan.Missing {
			d.kv.get(id)
		}
		if _, err := d.pump(ctx, blobWait, func() bool { return d.kv.knows(plan.Missing) }); err != nil {
			return plan, err
		}
		for _, id := range plan.Missing { // what did not come in time is not there
			if _, ok := d.kv.have(id); !ok {
				d.kv.missing[id] = true
			}
		}
	}
}

// turnOf returns the number of the turn that a message begins or belongs to, from 0.
func turnOf(s *session.State, id session.ItemID) int {
	n := -1
	for _, item := range s.Settled {
		if u, ok := item.(*session.User); ok && u.Note == session.NoteNone {
			n++
		}
		if item.ItemID() == id {
			return n
		}
	}
	return n + 1
}

// maxCopied is about how many bytes of items one event of a copy holds.
const maxCopied = 128 << 10

// copies makes events of items, none of them much too large.
func copies(items []session.Item, runs session.RunID, users uint32) []session.ItemsCopied {
	var out []session.ItemsCopied
	from, size := 0, 0
	for i, item := range items {
		size += weight(item)
		if size > maxCopied || i == len(items)-1 {
			out = append(out, session.ItemsCopied{Items: items[from : i+1], LastRun: runs, Users: users})
			from, size = i+1, 0
		}
	}
	return out
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

// counters returns the newest run and the number of messages in items.
func counters(items []session.Item) (runs session.RunID, users uint32) {
	for _, item := range items {
		switch i := item.(type) {
		case *session.User:
			users++
			runs = max(runs, i.Run)
		case *session.Assistant:
			runs = max(runs, i.Run)
		case *session.Tool:
			runs = max(runs, i.Run)
		}
	}
	return runs, users
}
