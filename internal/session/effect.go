package session

// Effect is work outside the process that a state wants to be running: [CallModel], [RunTool],
// [Summarize] or [Wake]. Effects are comparable: two that are equal are the same piece of work.
type Effect interface{ effect() }

// CallModel streams a pass.
type CallModel struct {
	Run   RunID
	Pass  int
	Break int // how often the run's streams have broken before
}

// RunTool runs a call in the workspace.
type RunTool struct{ Call CallID }

// Summarize has old items summarised.
type Summarize struct {
	Run     RunID
	Through int
}

// Wake asks for Advance at a time, in milliseconds since 1970.
type Wake struct{ At int64 }

func (CallModel) effect() {}
func (RunTool) effect()   {}
func (Summarize) effect() {}
func (Wake) effect()      {}

// Effects returns what should be running now. Whatever else runs is to be stopped; it then
// still reports its end.
func (s *State) Effects() []Effect {
	run := s.Run
	if run == nil || run.Aborting {
		return nil
	}
	if run.Compaction != nil {
		return []Effect{Summarize{Run: run.ID, Through: run.Compaction.Through}}
	}
	if run.Live != nil {
		if run.Wait != nil {
			return []Effect{Wake{At: run.Wait.Until}}
		}
		return []Effect{CallModel{Run: run.ID, Pass: run.Pass, Break: run.Breaks}}
	}
	var effects []Effect
	for _, t := range run.Batch {
		switch {
		case t.Status != Streaming:
		case t.Query != nil:
			if t.Query.Until > 0 {
				effects = append(effects, Wake{At: t.Query.Until})
			}
		case t.Host == HostWorkspace:
			effects = append(effects, RunTool{Call: t.Call})
		}
	}
	return effects
}
