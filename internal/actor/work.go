package actor

import (
	"context"
	"slices"
	"time"

	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

// work is something that runs for the actor outside its goroutine: a [pass], a [toolRun] or
// a [compaction].
// Its methods are called by the actor only.
type work interface {
	effect() session.Effect
	// collect makes events of what there is since the last call.
	collect(a *actor)
	// ended reports whether the work has ended and all it had was collected.
	ended() bool
	// stop asks the work, at the time now, to end; done is closed once it has.
	stop(now time.Time)
	done() <-chan struct{}
	// stopped returns when stop was first called, or the zero time.
	stopped() time.Time
}

// job is what every work has. Its fields belong to the actor, but for over, which the work
// closes.
type job struct {
	cancel    context.CancelCauseFunc
	quit      <-chan struct{} // closed when the engine closes
	over      chan struct{}
	stopAt    time.Time
	collected bool // all it had has been made events
}

// newJob returns a job and the context that ends with it.
func (a *actor) newJob() (context.Context, job) {
	ctx, cancel := context.WithCancelCause(context.Background())
	return ctx, job{cancel: cancel, quit: a.engine.quit, over: make(chan struct{})}
}

func (j *job) done() <-chan struct{} { return j.over }
func (j *job) stopped() time.Time    { return j.stopAt }
func (j *job) ended() bool           { return j.collected }

func (j *job) stop(now time.Time) {
	if j.stopAt.IsZero() {
		j.stopAt = now
	}
	select {
	case <-j.quit:
		j.cancel(tool.ErrShutdown)
	default:
		j.cancel(context.Canceled)
	}
}

// collect takes what the works have, and forgets those that have ended.
func (a *actor) collect() {
	now := a.engine.cfg.Now()
	a.works = slices.DeleteFunc(a.works, func(w work) bool {
		w.collect(a)
		if t, ok := w.(*toolRun); ok && !w.ended() && !w.stopped().IsZero() && now.Sub(w.stopped()) >= stopGrace {
			t.abandon(a)
			return true
		}
		return w.ended()
	})
}

// reconcile starts what the state wants to be running, and stops what it does not.
func (a *actor) reconcile() {
	a.wakeAt = time.Time{}
	wanted := a.state.Effects()
	for _, w := range a.works {
		if slices.Contains(wanted, w.effect()) {
			continue
		}
		if w.stopped().IsZero() {
			w.stop(a.engine.cfg.Now())
		}
		a.wakeBy(w.stopped().Add(stopGrace))
	}
	for _, e := range wanted {
		if slices.ContainsFunc(a.works, func(w work) bool { return w.effect() == e }) {
			continue
		}
		switch e := e.(type) {
		case session.CallModel:
			a.works = append(a.works, a.startPass(e))
		case session.RunTool:
			a.works = append(a.works, a.startTool(e))
		case session.Summarize:
			a.works = append(a.works, a.startCompaction(e))
		case session.Wake:
			a.wakeBy(time.UnixMilli(e.At))
		}
	}
}

func (a *actor) wakeBy(t time.Time) {
	if a.wakeAt.IsZero() || t.Before(a.wakeAt) {
		a.wakeAt = t
	}
}

// stopWorks stops everything that runs and waits for its end, though not for ever.
func (a *actor) stopWorks() {
	for _, w := range a.works {
		w.stop(a.engine.cfg.Now())
	}
	grace := time.NewTimer(stopGrace)
	defer grace.Stop()
	for _, w := range a.works {
		select {
		case <-w.done():
		case <-grace.C:
			return
		}
	}
}

// shutdown stops the works and keeps what they had: the results of tools that were cut short,
// so that the model learns how far they came, and the text streamed so far. The run goes on
// after the next start.
func (a *actor) shutdown() error {
	a.stopWorks()
	for _, w := range a.works {
		if t, ok := w.(*toolRun); ok && !t.keepAtShutdown() {
			continue
		}
		w.collect(a)
	}
	a.works = nil
	return a.commit()
}
