package actor

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/roost-dev/roost/internal/session"
)

// restartDelay is how long a session that failed in the middle of a run rests before it is
// taken up again by itself.
const restartDelay = 2 * time.Second

// acquire returns the loaded actor of a session and keeps it in memory until release.
func (e *Engine) acquire(ctx context.Context, id session.ID) (*actor, error) {
	if !id.Valid() {
		return nil, session.Errorf(session.NotFound, "there is no such session")
	}
	e.mu.Lock()
	if e.closing {
		e.mu.Unlock()
		return nil, errClosing
	}
	a := e.actors[id]
	if a == nil {
		if len(e.actors) >= e.cfg.MaxLive {
			e.mu.Unlock()
			return nil, session.Errorf(session.Unavailable, "%d sessions are in use, which is the limit; try again when one is idle", e.cfg.MaxLive)
		}
		a = newActor(e, id)
		e.start(a)
	}
	a.refs++
	e.mu.Unlock()

	select {
	case <-a.loaded:
	case <-ctx.Done():
		e.release(a)
		return nil, session.Errorf(session.Canceled, "the request was canceled")
	}
	if a.loadErr != nil {
		e.release(a)
		return nil, a.loadErr
	}
	return a, nil
}

// start runs a new actor. The caller holds e.mu.
func (e *Engine) start(a *actor) {
	e.actors[a.id] = a
	e.running.Go(func() {
		a.run()
	})
}

func (e *Engine) release(a *actor) {
	e.mu.Lock()
	a.refs--
	idle := a.refs == 0
	e.mu.Unlock()
	if idle {
		a.wake()
	}
}

// hold keeps an actor that is held already in memory until one more release.
func (e *Engine) hold(a *actor) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a.refs++
}

// referenced reports whether anyone holds the actor.
func (e *Engine) referenced(a *actor) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return a.refs > 0
}

// forget takes an actor out of the index, so that the next acquire starts a new one. With
// unlessHeld it does so only if nobody holds it, and reports whether it did.
func (e *Engine) forget(a *actor, unlessHeld bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if unlessHeld && a.refs > 0 {
		return false
	}
	if e.actors[a.id] == a {
		delete(e.actors, a.id)
	}
	return true
}

// restart takes a session that failed up again after a pause. With a reason, its run is
// ended instead of continued.
func (e *Engine) restart(id session.ID, reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return
	}
	e.running.Go(func() {
		select {
		case <-time.After(restartDelay):
		case <-e.quit:
			return
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.closing || e.actors[id] != nil {
			return
		}
		a := newActor(e, id)
		a.failRun = reason
		e.start(a)
	})
}

// Create makes a session and returns its id. Cwd, Model and Thinking may be left empty for
// the defaults; with an ID that is there already the error is Locked. Errors are *session.Error.
func (e *Engine) Create(ctx context.Context, c session.Create) (session.ID, error) {
	return e.create(ctx, c, nil)
}

// create makes a session and lets events happen to it at once.
func (e *Engine) create(ctx context.Context, c session.Create, events []session.Event) (session.ID, error) {
	if c.Cwd == "" {
		c.Cwd = e.cfg.Dir
	}
	if !c.Remote {
		if err := checkDir(c.Cwd); err != nil {
			return "", err
		}
	}
	if c.Model.IsZero() {
		c.Model = e.cfg.DefaultModel()
	}
	_, model, err := e.cfg.Models.Find(c.Model)
	if err != nil {
		return "", err
	}
	if c.Thinking == "" {
		c.Thinking = session.Clamp(e.cfg.DefaultThinking, model.ThinkingLevels)
	} else if session.Clamp(c.Thinking, model.ThinkingLevels) != c.Thinking {
		return "", session.Errorf(session.Invalid, "%s has no thinking level %q; it has %v", c.Model, c.Thinking, model.ThinkingLevels)
	}
	if c.ID == "" {
		c.ID = e.cfg.NewID()
	}
	created, err := session.New(c)
	if err != nil {
		return "", err
	}
	at := e.cfg.Now().UnixMilli()
	records := []session.Record{{Seq: 1, At: at, Event: created}}
	for _, event := range events {
		records = append(records, session.Record{Seq: session.Seq(len(records) + 1), At: at, Event: event})
	}
	if err := e.cfg.Log.Append(ctx, c.ID, 0, records); err != nil {
		return "", logError(err)
	}
	e.cfg.Logger.Info("session created", slog.String("session", string(c.ID)), slog.String("origin", c.Origin))
	e.changed(Change{ID: c.ID, Kind: SessionCreated, Origin: c.Origin})
	return c.ID, nil
}

func checkDir(dir string) error {
	if !filepath.IsAbs(dir) {
		return session.Errorf(session.Invalid, "cwd must be an absolute path")
	}
	info, err := os.Stat(dir)
	if err != nil || !info.IsDir() {
		return session.Errorf(session.Invalid, "cwd must be an existing directory of the server")
	}
	return nil
}

// Delete stops what a session is doing and removes it for ever. Its watchers are told.
func (e *Engine) Delete(ctx context.Context, id session.ID) error {
	m := &remove{reply: make(chan error, 1)}
	err, failed := deliver(ctx, e, id, m, m.reply)
	if failed != nil {
		return failed
	}
	return err
}
