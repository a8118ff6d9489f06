package actor

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/session"
)

// Limits of one actor.
const (
	mailboxCap = 64              // messages; a sender waits while it is full
	stopGrace  = 5 * time.Second // for tools to end once they have been told to
)

// actor is the one writer of one session. Its fields after mailbox belong to its goroutine,
// except where said.
type actor struct {
	engine *Engine
	id     session.ID
	log    *slog.Logger
	refs   int // guarded by engine.mu

	mailbox chan message
	signal  chan struct{} // has room for one: some work has output, or a reference was dropped
	loaded  chan struct{} // closed once loadErr is final
	loadErr error
	dead    chan struct{} // closed once nothing will be answered any more
	hub     live.Hub

	failRun string // a reason to end the run in progress instead of continuing it
	state   *session.State
	store   store
	works   []work
	batch   []session.Record // applied, not yet appended
	answers []func(error)    // to be given once batch is in the event log, or could not be
	wakeAt  time.Time        // zero when there is nothing to wait for
	idleAt  time.Time        // when the session may leave memory
	removed bool

	known   knownTools  // safe for concurrent use
	running atomic.Bool // there is a run, as of the last commit; for everyone to read
}

func newActor(e *Engine, id session.ID) *actor {
	return &actor{
		engine: e, id: id, log: e.cfg.Logger.With(slog.String("session", string(id))),
		mailbox: make(chan message, mailboxCap), signal: make(chan struct{}, 1),
		loaded: make(chan struct{}), dead: make(chan struct{}),
	}
}

// message is what the mailbox holds.
type message interface{ handle(a *actor) }

// ask sends m and waits for its reply. It returns an error, an *session.Error, when there
// will be none.
func ask[T any](ctx context.Context, a *actor, m message, reply <-chan T) (T, error) {
	var none T
	select {
	case a.mailbox <- m:
	case <-a.dead:
		return none, errGone
	case <-ctx.Done():
		return none, session.Errorf(session.Canceled, "the request was canceled")
	}
	select {
	case r := <-reply:
		return r, nil
	case <-ctx.Done():
		return none, session.Errorf(session.Canceled, "the request was canceled; whether it took effect is unknown")
	case <-a.dead:
		select {
		case r := <-reply:
			return r, nil
		default:
			return none, errGone
		}
	}
}

// run loads the session and drives it until it may leave memory, it was removed, the engine
// closes, or it fails. A failure concerns this session only: what is not in the event log
// has not happened, and the next actor goes on from there.
func (a *actor) run() {
	reason := ""
	err := a.guard(func() error {
		if err := a.load(); err != nil {
			a.loadErr = err
			a.engine.forget(a, false)
			close(a.loaded)
			return nil
		}
		close(a.loaded)
		return a.loop()
	})
	if p, ok := err.(*panicError); ok { //nolint:errorlint // guard returns it as it is
		reason = "internal error"
		a.log.Error("session failed", slog.String("panic", p.text), slog.String("stack", p.stack))
	} else if err != nil {
		a.log.Error("session failed", slog.Any("error", err))
	}
	a.engine.forget(a, false)
	a.stopWorks()
	a.hub.Close(errGone)
	close(a.dead)
	if err != nil && a.state != nil && a.state.Run != nil {
		a.engine.restart(a.id, reason)
	}
}

type panicError struct{ text, stack string }

func (p *panicError) Error() string { return "panic: " + p.text }

// guard turns a panic of f into an error, so that it ends this session's actor and nothing
// else.
func (a *actor) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &panicError{text: fmt.Sprint(p), stack: string(debug.Stack())}
			select {
			case <-a.loaded:
			default:
				a.loadErr = session.Errorf(session.Internal, "the session's history is damaged and cannot be read")
				close(a.loaded)
			}
		}
	}()
	return f()
}

// loop is the life of a session: wait, take what there is, decide, append, apply, publish.
func (a *actor) loop() error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		a.collect()
		a.advance()
		if err := a.commit(); err != nil {
			return err
		}
		if a.removed {
			return nil
		}
		a.reconcile()
		if a.mayUnload() && a.engine.forget(a, true) {
			return nil
		}
		timer.Reset(a.sleep())
		select {
		case m := <-a.mailbox:
			a.receive(m)
		case <-a.signal:
		case <-timer.C:
		case <-a.engine.quit:
			return a.shutdown()
		}
	}
}

// receive handles m and whatever else has arrived, so that it all shares one append.
func (a *actor) receive(m message) {
	for range mailboxCap {
		m.handle(a)
		select {
		case m = <-a.mailbox:
		default:
			return
		}
	}
}

// wake makes the loop go round.
func (a *actor) wake() {
	select {
	case a.signal <- struct{}{}:
	default:
	}
}

func (a *actor) now() int64 { return a.engine.cfg.Now().UnixMilli() }

// emit makes events part of the session, in memory; commit makes them durable.
func (a *actor) emit(events ...session.Event) {
	at := a.now()
	for _, e := range events {
		r := session.Record{Seq: a.state.Seq + 1, At: at, Event: e}
		a.state.Apply(r)
		a.batch = append(a.batch, r)
	}
}

// advance lets everything happen that follows from the state by itself.
func (a *actor) advance() {
	for {
		events := a.state.Advance(policy{a.engine, &a.known}, a.now())
		if len(events) == 0 {
			return
		}
		a.emit(events...)
	}
}

// commit appends the batch, then publishes it, then gives the answers that waited for it.
func (a *actor) commit() error {
	ended := false
	if len(a.batch) > 0 {
		batch := a.batch
		a.batch = nil
		_, ended = batch[len(batch)-1].Event.(session.RunEnded)
		a.store.note(batch)
		a.engine.busy.Store(true)
		if err := a.store.append(batch); err != nil {
			a.answer(logError(err))
			return err
		}
		a.running.Store(a.state.Run != nil)
		if a.hub.Len() > 0 {
			a.hub.Publish(batch, a.state.Clone())
		}
		a.idleAt = time.Time{}
		a.indexChanged(batch)
	}
	a.answer(nil)
	if ended {
		a.store.settled(a.state, a.log)
		a.tellHooks()
	}
	return nil
}

// tellHooks tells the hooks that a run has ended. Nobody waits for them.
func (a *actor) tellHooks() {
	e := a.engine
	if e.cfg.Hooks == nil {
		return
	}
	state := a.state.Clone()
	e.running.Go(func() { e.cfg.Hooks.RunEnded(e.background, state) })
}

func (a *actor) answer(err error) {
	for _, answer := range a.answers {
		answer(err)
	}
	a.answers = nil
}

func (a *actor) indexChanged(batch []session.Record) {
	var m session.Meta
	if slices.ContainsFunc(batch, m.Apply) {
		a.engine.changed(Change{ID: a.id, Kind: SessionUpdated})
		return
	}
}

// sleep returns how long nothing can happen by itself.
func (a *actor) sleep() time.Duration {
	next := a.wakeAt
	if !a.idleAt.IsZero() && (next.IsZero() || a.idleAt.Before(next)) {
		next = a.idleAt
	}
	if next.IsZero() {
		return time.Hour
	}
	return max(0, next.Sub(a.engine.cfg.Now()))
}

// mayUnload reports whether the session has been idle and unwatched for long enough.
func (a *actor) mayUnload() bool {
	if a.state.Run != nil || len(a.works) > 0 || a.engine.referenced(a) {
		a.idleAt = time.Time{}
		return false
	}
	now := a.engine.cfg.Now()
	if a.idleAt.IsZero() {
		a.idleAt = now.Add(a.engine.cfg.IdleUnload)
	}
	return !now.Before(a.idleAt)
}
