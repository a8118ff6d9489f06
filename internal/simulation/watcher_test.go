package simulation

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/session"
)

// watcher follows the events of one session through every life of the server, from its position.
type watcher struct {
	w       *world
	id      string
	sub     *live.Subscription
	replica *session.State // nil until the first update
	seen    texts
}

// come subscribes, from where the watcher was.
func (v *watcher) come() {
	if v.sub != nil || v.w.proc == nil {
		return
	}
	var from *session.Position
	if v.replica != nil {
		from = &session.Position{Epoch: v.w.proc.engine.Epoch(), Seq: v.replica.Seq}
	}
	if sub, err := v.w.proc.engine.Watch(v.w.ctx, session.ID(v.id), from); err == nil {
		v.sub = sub
	}
}

func (v *watcher) leave() {
	if v.sub != nil {
		v.sub.Close()
		v.sub = nil
	}
}

// check takes what was published and compares it with what was, and with the disk.
func (v *watcher) check() {
	for v.sub != nil {
		ctx, cancel := context.WithTimeout(v.w.ctx, time.Millisecond)
		u, err := v.sub.Next(ctx)
		cancel()
		if errors.Is(err, context.DeadlineExceeded) {
			return
		}
		if err != nil {
			v.leave()
			return
		}
		v.update(u)
	}
}

func (v *watcher) update(u live.Update) {
	if u.Reset {
		if v.replica != nil && u.State.Seq < v.replica.Seq {
			v.w.fail("session %s went back from %d to %d", v.id, v.replica.Seq, u.State.Seq)
		}
		v.replica = u.State.Clone()
	}
	for _, r := range u.Records {
		if v.replica == nil || r.Seq != v.replica.Seq+1 {
			v.w.fail("session %s: event %d does not follow", v.id, r.Seq)
			return
		}
		v.replica.Apply(r)
	}
	v.stored()
	v.w.looked(&v.seen, "the watcher of "+v.id, v.id, stateItems(v.replica))
	if u.State != nil && v.replica.Seq == u.State.Seq && !reflect.DeepEqual(stateItems(v.replica), stateItems(u.State)) {
		v.w.fail("session %s: the events up to %d give another transcript than the state", v.id, u.State.Seq)
	}
}

// stored checks that the disk has what was shown.
func (v *watcher) stored() {
	last, err := lastOf(v.w, v.id)
	if err == nil && last < v.replica.Seq {
		v.w.fail("session %s: event %d was shown, and the event log ends at %d", v.id, v.replica.Seq, last)
	}
}

// stateItems are the items of a state as a client shows them.
func stateItems(s *session.State) (list []shownItem) {
	for _, i := range s.Transcript() {
		switch i := i.(type) {
		case *session.User:
			list = append(list, shownItem{string(i.ID), plain(i.Blocks), true})
		case *session.Assistant:
			list = append(list, shownItem{string(i.ID), plain(i.Blocks), false})
		case *session.Tool:
		}
	}
	return list
}

func plain(blocks []session.Block) (text string) {
	for _, b := range blocks {
		text += session.BlockText(b)
	}
	return text
}
