package cursor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/cursorview"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Times of the beginning of a run.
const (
	connectWait = 5 * time.Second  // for the client to read before it is asked anything
	contextWait = 5 * time.Second  // for its surroundings (section 3.9)
	blobWait    = 10 * time.Second // for the blobs of its state
	abortWait   = 15 * time.Second // for a superseded run to end
	prewarmWait = 30 * time.Minute // for a message after a prewarm
)

// serve does what the first message asks for, and returns when the client has been told the end.
func (d *driver) serve(ctx context.Context, first *received) error {
	d.attempt = readAttempt(first.Message, d.link)
	a := &d.attempt
	if !cursorwire.ValidConversationID(a.conversation) {
		return cursorwire.Refused("Invalid Conversation", "the request has no conversation_id of 1 to 128 letters, digits, - and _")
	}
	model, thinking, bad := d.server.names.find(a.model, a.effort)
	if bad != nil {
		return bad
	}
	for _, b := range a.blobs {
		if id, ok := cursorwire.ParseBlobID(b.GetId()); ok && cursorwire.BlobIDOf(b.GetValue()) == id {
			d.kv.known[id], d.kv.has[id] = b.GetValue(), true
		}
	}
	d.hold(a.state)
	d.id = SessionID(a.conversation)
	d.log, d.images = d.log.With(slog.String("session", string(d.id))), model.Images()
	d.server.take(d)
	d.ckpt.base = cursorview.Base{State: a.state, Window: model.ContextWindow, Mode: cursorwire.RequestedMode(a.action, a.state)}

	if a.action == nil {
		first.Done(nil)
		if err := d.prewarm(ctx); err != nil {
			return err
		}
	}
	for range 3 {
		err := d.begin(ctx, model, thinking, func() { first.Done(nil) })
		if e, ok := errors.AsType[*session.Error](err); ok && e.Kind == session.Busy {
			continue // somebody else has started a run meanwhile
		}
		return err
	}
	return cursorwire.Interrupted("the session is busy with other prompts")
}

func (d *driver) identity() string { return d.attempt.identity }

// prewarm waits for the message that a client's user is typing (section 3.8).
func (d *driver) prewarm(ctx context.Context) error {
	if s, err := d.server.opt.Engine.State(ctx, d.id); err == nil {
		d.state = s
		d.ckpt.want(true)
	}
	if _, err := d.pump(ctx, prewarmWait, func() bool { return len(d.later) > 0 }); err != nil {
		return err
	}
	if len(d.later) == 0 {
		return d.nothingToDo(ctx)
	}
	d.attempt.action, d.later = d.later[0], d.later[1:]
	d.state = nil
	return nil
}

// begin finds out whether the wish is a new one or a repetition, and has the session obey it.
func (d *driver) begin(ctx context.Context, model catalog.Model, thinking session.Thinking, accepted func()) error {
	s, err := d.server.opt.Engine.State(ctx, d.id)
	if e, ok := errors.AsType[*session.Error](err); ok && e.Kind == session.NotFound {
		s, err = nil, nil
	}
	if err != nil {
		return err
	}
	if s != nil {
		d.attempt.told = readMark[sentMark](s, keySent).Turns
		again, err := d.again(ctx, s)
		if err != nil {
			return err
		}
		if again {
			accepted()
			return d.attach(ctx, d.begun != 0)
		}
	}
	if err := d.gather(ctx); err != nil {
		return err
	}
	if s == nil {
		if err := d.create(ctx, model, thinking); err != nil {
			return err
		}
	} else if err := d.makeRoom(ctx); err != nil {
		return err
	}
	known, err := d.reconcile(ctx)
	if err != nil {
		return err
	}
	if err := d.adopt(ctx, model, thinking); err != nil {
		return err
	}
	if known {
		accepted()
		return d.nothingToDo(ctx)
	}
	started, err := d.start(ctx)
	if err != nil {
		return err
	}
	accepted()
	if started && d.begun == 0 { // the message was there already
		s, err := d.server.opt.Engine.State(ctx, d.id)
		if err != nil {
			return err
		}
		started = s.Run != nil
	}
	if !started {
		return d.nothingToDo(ctx)
	}
	return d.attach(ctx, d.begun != 0)
}

// again reports whether the wish is that of the newest run, which the client then goes on with: a
// retry after a lost connection, or another try after an error (section 7.6).
func (d *driver) again(ctx context.Context, s *session.State) (bool, error) {
	if joined := readMark[joinMark](s, keyJoined); joined.Identity == d.attempt.identity && d.attempt.resumes() {
		d.attempt.joined = joined.Prompt
		if d.lost(s) {
			return false, errNotDelivered
		}
	}
	mark := readMark[runMark](s, keyRun)
	same := mark.Identity == d.attempt.identity && mark.Run == s.LastRun && s.LastRun > 0 &&
		(d.attempt.resumes() || mark.Prompt == d.attempt.promptID())
	switch {
	case s.Run != nil && (same || d.attempt.resumes()):
		return true, nil
	case s.Run != nil && s.Run.Offer == "": // somebody else's: the message joins it
		return d.join(ctx)
	case s.Run != nil:
		u := s.FindPrompt(d.attempt.promptID())
		return u != nil && u.Run == s.Run.ID, nil
	case same && s.LastOutcome == session.RunCompleted:
		return true, nil
	case same:
		return d.tryAgain(ctx, s)
	}
	return false, nil
}

// tryAgain starts a run that takes up what the last one left unanswered.
func (d *driver) tryAgain(ctx context.Context, s *session.State) (bool, error) {
	if !s.Unanswered() {
		return true, nil
	}
	if err := d.gather(ctx); err != nil {
		return false, err
	}
	return d.resume(ctx)
}

func (d *driver) resume(ctx context.Context) (bool, error) {
	s, err := d.server.opt.Engine.State(ctx, d.id)
	if err != nil {
		return false, err
	}
	offer, err := d.offer(ctx)
	if err != nil {
		return false, err
	}
	r, err := d.server.opt.Engine.Do(ctx, d.id, session.Resume{Offer: offer, Keep: d.marks(s)})
	d.noteRun(r, s)
	return r.Run != 0, err
}

// join makes the message a steer of a run that another protocol has begun.
func (d *driver) join(ctx context.Context) (bool, error) {
	text, _, err := d.message(ctx)
	if err != nil || text == "" {
		return err == nil, err
	}
	id := d.attempt.promptID()
	keep := session.Report{Keep: []session.FrontSet{setMark(keyJoined, joinMark{Identity: d.attempt.identity, Prompt: id})}}
	if err := d.tell(ctx, keep); err != nil {
		return false, err
	}
	_, err = d.server.opt.Engine.Do(ctx, d.id, session.Steer{ID: id, Text: text})
	if err == nil {
		d.attempt.joined = id
	}
	if e, ok := errors.AsType[*session.Error](err); ok && e.Kind == session.Busy {
		return false, nil // it has ended
	}
	return err == nil, err
}

var errNotDelivered = cursorwire.Refused("Message Not Delivered", "the run that the message had joined was stopped before it was delivered; send it again")

// lost reports whether the message had joined a run and left no trace in s: whoever aborts a run takes
// back what is queued.
func (d *driver) lost(s *session.State) bool {
	return d.attempt.joined != "" && s.FindPrompt(d.attempt.joined) == nil
}

// attach follows the newest run to its end: all of it when it is fresh, else what the client has not
// been told of.
func (d *driver) attach(ctx context.Context, fresh bool) error {
	s, err := d.server.opt.Engine.State(ctx, d.id)
	if err != nil {
		return err
	}
	seen := s.RunSeq
	if !fresh {
		seen = seenOf(s)
	}
	mark := readMark[runMark](s, keyRun)
	switch {
	case mark.Run == s.LastRun:
		d.takeUp(s, mark)
	case fresh && s.Run == nil && s.LastRun != d.begun: // it is over already, and so is another
		return d.nothingToDo(ctx)
	}
	d.ckpt.turns = d.attempt.told
	sent := readMark[sentMark](s, keySent)
	if sent.Run != s.LastRun || !sent.Open || sent.Turns != d.attempt.told || takenUpAfter(s, sent.At) > 0 {
		// The seq that was seen is only lost if this process dies too before it is written.
		if err := d.open(ctx, s); err != nil {
			return err
		}
	} else {
		d.follow.opened = sent.At
	}
	if s.Run != nil && s.Run.Offer != "" {
		if err := d.loadTools(ctx, s.Run.Offer); err != nil {
			return err
		}
	}
	if err := d.followRun(ctx, s, seen); err != nil {
		return err
	}
	d.link.SetJournal(d.keepEarly)
	for _, a := range d.later {
		if err := d.action(ctx, a); err != nil {
			return err
		}
	}
	d.later = nil
	return d.conclude(ctx)
}

// open notes that the client is told what happens after s, or later: if the session is loaded again
// meanwhile, that is no end of what the client is told.
func (d *driver) open(ctx context.Context, s *session.State) error {
	for range 4 {
		at := s.Seq
		err := d.tell(ctx, session.Report{Keep: []session.FrontSet{
			setMark(keySent, sentMark{Run: s.LastRun, Open: true, At: at, Turns: max(d.attempt.told, d.ckpt.turns)}),
		}})
		if err == nil {
			s, err = d.server.opt.Engine.State(ctx, d.id)
		}
		if err != nil || takenUpAfter(s, at) == 0 {
			d.follow.opened = at
			return err
		}
	}
	return session.Errorf(session.Unavailable, "the session cannot be written for now; try again")
}

// takeUp restores what an earlier attempt knew of the client.
func (d *driver) takeUp(s *session.State, m runMark) {
	env := &d.tools.env
	if d.request == nil {
		env.Root, env.Terminals = m.Root, m.Terminals
	}
	env.PiOnly, env.Model, env.Agents, env.Session, env.Request = m.PiOnly, m.Model, m.Agents, d.attempt.conversation, m.Identity
	d.ckpt.base.Mode = m.Mode
	if todos, ok := todosOf(s, s.LastRun); ok {
		d.ckpt.base.Todos, d.ckpt.base.HasTodos = todos, true
		env.Todos = todos
	}
}

// marks is what the session is to remember of the run that begins after s.
func (d *driver) marks(s *session.State) []session.FrontSet {
	env := &d.tools.env
	run := s.LastRun + 1
	return []session.FrontSet{
		setMark(keyRun, runMark{
			Run: run, Identity: d.attempt.identity, Prompt: d.attempt.promptID(), Root: env.Root, Terminals: env.Terminals, Model: d.attempt.model,
			Mode: d.ckpt.base.Mode, Agents: d.attempt.agents, PiOnly: d.attempt.piOnly,
		}),
		setMark(keySent, sentMark{Run: run, Open: true, Turns: d.attempt.told}),
	}
}

// create makes the session of a new conversation.
func (d *driver) create(ctx context.Context, model catalog.Model, thinking session.Thinking) error {
	h := d.link.Headers()
	c := session.Create{
		ID: d.id, Cwd: d.tools.env.Root, Name: title(cursorwire.UserMessage(d.attempt.action).GetText()), Model: model.Ref, Thinking: thinking,
		Parent: d.server.parent(h.ParentRequestID), Origin: Origin, Remote: d.tools.env.Root != "",
	}
	_, err := d.server.opt.Engine.Create(ctx, c)
	if e, ok := errors.AsType[*session.Error](err); ok && e.Kind == session.Locked {
		return nil // it is there by now
	}
	return err
}

// makeRoom ends a run of an earlier wish (section 3.1).
func (d *driver) makeRoom(ctx context.Context) error {
	s, err := d.server.opt.Engine.State(ctx, d.id)
	if err != nil || s.Run == nil {
		return err
	}
	ended := d.resolutions(s, d.attempt.action.GetUserMessageAction().GetInterruptedPendingToolCallResolutions())
	if len(ended) > 0 {
		if _, err := d.server.opt.Engine.Do(ctx, d.id, session.Report{Ended: ended}); err != nil {
			return err
		}
	}
	return d.abort(ctx, s.Run.ID)
}

// abort ends a run and waits for its end.
func (d *driver) abort(ctx context.Context, run session.RunID) error {
	ctx, cancel := context.WithTimeout(ctx, abortWait)
	defer cancel()
	sub, err := d.server.opt.Engine.Watch(ctx, d.id, nil)
	if err != nil {
		return err
	}
	defer sub.Close()
	_, err = d.server.opt.Engine.Do(ctx, d.id, session.Abort{})
	if e, ok := errors.AsType[*session.Error](err); err != nil && (!ok || e.Kind != session.Busy) {
		return err
	}
	for {
		u, err := sub.Next(ctx)
		if err != nil {
			return session.Errorf(session.Busy, "the run before does not end")
		}
		if u.State != nil && (u.State.Run == nil || u.State.Run.ID != run) {
			return nil
		}
	}
}

// adopt gives the session the model, the thinking level and the mode that the client wants.
func (d *driver) adopt(ctx context.Context, model catalog.Model, thinking session.Thinking) error {
	s, err := d.server.opt.Engine.State(ctx, d.id)
	if err != nil {
		return err
	}
	do := func(cmd session.Command) error {
		_, err := d.server.opt.Engine.Do(ctx, d.id, cmd)
		return err
	}
	if s.Model != model.Ref {
		if err := do(session.SetModel{Model: model.Ref}); err != nil {
			return err
		}
	}
	if s.Thinking != thinking {
		if err := do(session.SetThinking{Thinking: thinking}); err != nil {
			return err
		}
	}
	mode := sessionMode(d.ckpt.base.Mode)
	if s.Mode != mode && (s.Mode != "" || mode != session.ModeAgent) {
		return do(session.SetMode{Mode: mode})
	}
	return nil
}

// sessionMode is what a mode of the protocol is in a session. Multitask differs from agent only in
// what the client does with subagents.
func sessionMode(m agentv1.AgentMode) session.Mode {
	switch m {
	case agentv1.AgentMode_AGENT_MODE_ASK:
		return session.ModeAsk
	case agentv1.AgentMode_AGENT_MODE_PLAN:
		return session.ModePlan
	case agentv1.AgentMode_AGENT_MODE_DEBUG:
		return session.ModeDebug
	default:
		return session.ModeAgent
	}
}

// nothingToDo ends a link on which no run is needed: the client is told the state and that the turn
// is over, because it takes anything else for a lost connection (section 4.2).
func (d *driver) nothingToDo(ctx context.Context) error {
	s, err := d.server.opt.Engine.State(ctx, d.id)
	if e, ok := errors.AsType[*session.Error](err); ok && e.Kind == session.NotFound {
		s, err = &session.State{}, nil
	}
	if err != nil {
		return err
	}
	d.state = s
	d.ckpt.want(true)
	if _, err := d.pump(ctx, lastCheckpoint, d.ckpt.idle); err != nil {
		return err
	}
	d.sendUpdate(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TurnEnded{TurnEnded: &agentv1.TurnEndedUpdate{}}})
	d.lastWord(ctx)
	return nil
}

// title is the name of a session that begins with a message.
func title(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(strings.ToValidUTF8(text, "")), "\n")
	if r := []rune(line); len(r) > 60 {
		line = string(r[:59]) + "…"
	}
	return line
}

func limitID(id string) string {
	if len(id) <= session.MaxPromptID {
		return id
	}
	return fmt.Sprintf("%.32s…%s", id, cursorwire.BlobIDOf([]byte(id)))
}
