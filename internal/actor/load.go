package actor

import "context"

// load reads the session and settles what was in progress when its last actor ended.
func (a *actor) load() error {
	a.store = store{log: a.engine.cfg.Log, id: a.id}
	state, err := a.store.load(context.Background())
	if err != nil {
		return err
	}
	a.state = state
	a.running.Store(state.Run != nil)
	if a.failRun != "" {
		a.emit(state.Fail(a.failRun)...)
		return nil
	}
	a.emit(state.Recover(a.engine.repeatable, a.now())...)
	return nil
}

// repeatable reports whether a tool of the server's own may be run again after a crash.
func (e *Engine) repeatable(name string) bool {
	for _, t := range e.cfg.Tools {
		if spec := t.Spec(); spec.Name == name {
			return spec.Repeatable
		}
	}
	return false
}
