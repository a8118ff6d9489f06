package cursor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/cursortool"
	"github.com/roost-dev/roost/internal/cursorview"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// follow is how a driver learns what happens to its session.
type follow struct {
	news    chan news // nil while nothing is followed
	sub     *live.Subscription
	cancel  context.CancelFunc
	updates *cursorview.Updates
	at      session.Seq // of the last record
	seen    session.Seq // what the client has been told before this attempt
	opened  session.Seq // the last event when it was noted that the client is told
	run     session.RunID
	told    bool // the calls that had begun at seen are known to this attempt's client
	ended   *session.RunEnded
	steers  map[session.ItemID]string // injections that wait for their delivery
}

type news struct {
	update live.Update
	err    error
}

// followRun tells the client of the newest run of s from the event after seen.
func (d *driver) followRun(ctx context.Context, s *session.State, seen session.Seq) error {
	var cards cursorview.Cards
	if d.tools.set != nil {
		cards = d.tools.set
	}
	d.follow.updates = cursorview.NewUpdates(cards)
	d.follow.at, d.follow.seen, d.follow.run = s.RunSeq-1, seen, s.LastRun
	d.follow.steers = make(map[session.ItemID]string)
	d.tools.query = uint32(s.Seq) * 16 // so that an answer to a question of an earlier attempt fits none of this one
	d.restoreEarly(s)
	return d.watch(ctx)
}

// watch subscribes from the last record on.
func (d *driver) watch(ctx context.Context) error {
	from := &session.Position{Epoch: d.server.opt.Engine.Epoch(), Seq: d.follow.at}
	sub, err := d.server.opt.Engine.Watch(ctx, d.id, from)
	if err != nil {
		return err
	}
	sub.Touch() // so that there is a state after what was missed
	ctx, cancel := context.WithCancel(ctx)
	c := make(chan news)
	d.follow.sub, d.follow.cancel, d.follow.news = sub, cancel, c
	d.work.Go(func() {
		for {
			u, err := sub.Next(ctx)
			select {
			case c <- news{u, err}:
			case <-ctx.Done():
				return
			}
			if err != nil {
				return
			}
		}
	})
	return nil
}

func (d *driver) unwatch() {
	if d.follow.sub != nil {
		d.follow.cancel()
		d.follow.sub.Close()
		d.follow.sub, d.follow.news = nil, nil
	}
}

// update tells the client what has happened.
func (d *driver) update(ctx context.Context, n news) error {
	switch {
	case errors.Is(n.err, live.ErrRemoved):
		return cursorwire.Refused("Conversation Deleted", "the session was deleted on the server")
	case d.follow.isOver(d.state): // what comes now is of another run
		if n.err != nil {
			d.unwatch()
		}
		return nil
	case n.err != nil: // the session was reloaded
		d.unwatch()
		return d.reload(ctx)
	case n.update.Reset && n.update.State.LastRun != d.follow.run: // its events are gone
		return cursorwire.Interrupted("the session has gone on with another run")
	case n.update.Reset: // this reader was too slow
		d.unwatch()
		return d.watch(ctx)
	}
	if err := d.reopen(ctx, n.update.Records); err != nil {
		return err
	}
	var out []*agentv1.AgentServerMessage
	for _, r := range n.update.Records {
		out = append(out, d.record(r)...)
		if d.follow.ended != nil {
			break
		}
	}
	for _, m := range cursorview.Merge(out) {
		d.link.Send(m, uint64(d.follow.at))
	}
	if n.update.State == nil {
		return nil
	}
	if d.state == nil {
		d.tellRunning()
		d.ckpt.want(true)
	}
	d.state = n.update.State
	if d.follow.ended != nil {
		return nil
	}
	return d.startCalls(ctx)
}

// reopen notes again that the client is told, if the session was loaded again without this driver's
// knowledge: between its look at the state and its subscription.
func (d *driver) reopen(ctx context.Context, records []session.Record) error {
	for _, r := range records {
		if _, ok := r.Event.(session.TakenUp); !ok || r.Seq <= d.follow.opened {
			continue
		}
		s, err := d.server.opt.Engine.State(ctx, d.id)
		if err != nil || s.LastRun != d.follow.run {
			return err
		}
		return d.open(ctx, s)
	}
	return nil
}

// isOver reports whether s is of the time after the end of the run.
func (f *follow) isOver(s *session.State) bool { return f.ended != nil && s != nil && s.Seq >= f.at }

// reload follows a session that has failed and was loaded again.
func (d *driver) reload(ctx context.Context) error {
	s, err := d.server.opt.Engine.State(ctx, d.id)
	if err != nil {
		return err
	}
	if s.LastRun == d.follow.run {
		if err := d.open(ctx, s); err != nil {
			return err
		}
	}
	return d.watch(ctx)
}

// record returns what the client is told of an event.
func (d *driver) record(r session.Record) []*agentv1.AgentServerMessage {
	d.follow.at = r.Seq
	if r.Seq > d.follow.seen {
		d.tellRunning()
	}
	out := d.follow.updates.Apply(r)
	switch e := r.Event.(type) {
	case session.ToolStarted:
		d.began[e.Call] = r.Seq
		d.ckpt.want(false)
	case session.ToolEnded, session.PassEnded, session.SteerDelivered, session.CompactionEnded:
		d.ckpt.want(true)
	case session.CompactionStarted:
		d.ckpt.want(false)
		if r.Seq > d.follow.seen {
			d.preCompact()
		}
	case session.RunEnded:
		d.follow.ended = &e
		d.ckpt.want(true)
	}
	if r.Seq <= d.follow.seen {
		return nil
	}
	if e, ok := r.Event.(session.SteerDelivered); ok {
		if id := d.follow.steers[e.Item]; id != "" {
			delete(d.follow.steers, e.Item)
			out = append(out, injectionMessage(id, delivered))
		}
	}
	return out
}

// tellRunning tells the client which calls had begun before this attempt and have no result yet.
func (d *driver) tellRunning() {
	if d.follow.told {
		return
	}
	d.follow.told = true
	for _, m := range d.follow.updates.Running() {
		d.link.Send(m, 0)
	}
}

// restoreEarly takes up results that earlier attempts have received out of order and not applied.
func (d *driver) restoreEarly(s *session.State) {
	d.tools.early = make(map[uint32][]*agentv1.ExecClientMessage)
	var keys []string
	for key := range s.Front {
		if strings.HasPrefix(key, keyAppend) && !strings.HasPrefix(key, keyAppend+d.link.RequestID()+"/") {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return int(appendSeq(a) - appendSeq(b)) })
	for _, key := range keys {
		if m := d.readEarly(s.Front[key]).GetExecClientMessage(); m != nil {
			d.tools.early[m.GetId()] = append(d.tools.early[m.GetId()], m)
		}
		d.report.Keep = append(d.report.Keep, session.FrontSet{Key: key})
	}
}

// How long the end of a run may take.
const (
	lastCheckpoint = 2*setTimeout + time.Second
	lastWrites     = 10 * time.Second
)

// conclude follows the run to its end and tells the client how it ended (section 4.2).
func (d *driver) conclude(ctx context.Context) error {
	if _, err := d.pump(ctx, 0, func() bool { return d.follow.isOver(d.state) }); err != nil {
		return err
	}
	d.rejectSteers()
	if _, err := d.pump(ctx, lastCheckpoint, d.ckpt.idle); err != nil {
		return err
	}
	if d.lost(d.state) {
		return errNotDelivered
	}
	if d.follow.ended.Outcome == session.RunFailed {
		d.finishLink(ctx, failure(*d.follow.ended))
		return nil
	}
	d.link.Send(d.follow.updates.TurnEnded(), uint64(d.follow.at))
	d.lastWord(ctx)
	return nil
}

// lastWord sends the checkpoint once more after the end of the turn: the client then knows that
// nothing is left to resume, whatever becomes of the connection (section 4.2).
func (d *driver) lastWord(ctx context.Context) {
	if d.ckpt.newest != nil {
		d.sendCheckpoint(time.Now(), d.ckpt.newest)
	}
	d.finishLink(ctx, nil)
}

// finishLink ends the stream, and waits a little until the client has it all.
func (d *driver) finishLink(ctx context.Context, end *cursorwire.Error) {
	d.link.End(end)
	timer := time.NewTimer(lastWrites)
	defer timer.Stop()
	select {
	case <-d.link.Gone():
	case <-timer.C:
	case <-ctx.Done():
	}
}

// failure is what the stream of a failed run ends with.
func failure(e session.RunEnded) *cursorwire.Error {
	switch e.Fault {
	case session.FaultUnavailable:
		return cursorwire.ProviderFailed(e.Error, true)
	case session.FaultKey:
		return cursorwire.BadProviderKey(e.Error)
	case session.FaultContext:
		return cursorwire.ConversationTooLong(e.Error)
	case session.FaultRequest:
		return cursorwire.ProviderFailed(e.Error, false)
	case session.FaultNone:
	}
	return cursorwire.Refused("Run Failed", e.Error)
}

// detach leaves the session to itself, and remembers how far the client has come.
func (d *driver) detach() {
	d.unwatch()
	if d.id == "" || d.follow.run == 0 {
		return
	}
	sent := sentMark{Run: d.follow.run, Seq: max(d.follow.seen, session.Seq(d.link.Written())), Turns: d.ckpt.turns}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), 5*time.Second)
	defer cancel()
	_, _ = d.server.opt.Engine.Do(ctx, d.id, session.Report{Keep: append(d.report.Keep, setMark(keySent, sent))})
}

// preCompact asks the client's hooks before a compaction (section 8.5); what they say is for people.
func (d *driver) preCompact() {
	if d.request.GetHooksConfig() == nil {
		return
	}
	d.ask(&agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_ExecuteHookArgs{ExecuteHookArgs: &agentv1.ExecuteHookArgs{
		Request: &agentv1.ExecuteHookRequest{Request: &agentv1.ExecuteHookRequest_PreCompact{PreCompact: &agentv1.PreCompactRequestQuery{
			Trigger: "auto", ContextWindowSize: int64(d.ckpt.base.Window), ConversationId: new(d.attempt.conversation),
		}}},
	}}}, silence, func(*agentv1.ExecClientMessage) {})
}

// loadTools reads the tools of a run that this attempt has not begun.
func (d *driver) loadTools(ctx context.Context, offer string) error {
	if d.attempt.offer == offer {
		return nil
	}
	defs, err := d.readOffer(ctx, offer)
	if err != nil {
		return err
	}
	d.tools.set, d.attempt.offer = cursortool.NewSet(defs), offer
	return nil
}
