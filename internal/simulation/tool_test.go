package simulation

import (
	"context"
	"time"

	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

// workTool is a tool of the workspace, whose effect is that it is counted.
type workTool struct {
	w          *world
	name       string
	repeatable bool
}

func (w *world) tools() []tool.Tool {
	return []tool.Tool{workTool{w, "safe", true}, workTool{w, "unsafe", false}, workTool{w, "risky", false}}
}

func (t workTool) Spec() tool.Spec {
	return tool.Spec{Name: t.name, Schema: []byte(`{"type":"object"}`), Repeatable: t.repeatable}
}

func (t workTool) Run(ctx context.Context, c tool.Call, progress func(tool.Progress)) tool.Result {
	if !t.repeatable {
		t.w.effect(c.Session + "/" + c.ID)
	}
	progress(tool.Progress{Text: t.w.word()})
	if !rest(ctx, t.w.drawn(2000)) {
		return tool.Result{Text: "stopped", IsError: true}
	}
	return tool.Result{Text: "result"}
}

// judge asks about risky calls.
func judge(s *session.State, call session.ToolCall) session.Verdict {
	if call.Name == "risky" && len(s.Grants) == 0 {
		return session.Verdict{Query: &session.Query{Reason: "it is risky", Grants: []string{"risky"}}}
	}
	return session.Verdict{}
}

// effect counts a change of the outside world, which must not be made twice.
func (w *world) effect(call string) {
	w.facts.Lock()
	defer w.facts.Unlock()
	w.effects[call]++
	if n := w.effects[call]; n > 1 {
		w.failure = orFirst(w.failure, "the call "+call+" ran twice")
	}
}

// drawn is a time of less than ms milliseconds.
func (w *world) drawn(ms int) time.Duration {
	w.dice.Lock()
	defer w.dice.Unlock()
	if w.calm {
		return 0
	}
	return time.Duration(w.rng.IntN(ms)) * time.Millisecond
}
