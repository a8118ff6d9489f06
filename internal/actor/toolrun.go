package actor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

// maxShown bounds the output of a running tool that waits for the actor, in bytes.
const maxShown = 64 << 10

// toolRun runs one call in the workspace.
type toolRun struct {
	job
	run        session.RunTool
	name       string
	repeatable bool
	wake       func()

	mu      sync.Mutex
	shown   *session.ToolOutput // output that waits for the actor
	outcome *session.ToolEnded
}

// startTool runs a call of the last pass.
func (a *actor) startTool(run session.RunTool) *toolRun {
	item := a.state.Tool(run.Call)
	ctx, j := a.newJob()
	t := &toolRun{job: j, run: run, name: item.Name, wake: a.wake}
	call := tool.Call{
		ID: string(run.Call), Session: string(a.id), Input: json.RawMessage(item.Input), Dir: a.state.Cwd,
		Confined: !a.engine.cfg.Unconfined, Env: a.toolEnv(), OutputDir: a.outputDir(),
	}
	if len(call.Input) == 0 {
		call.Input = json.RawMessage("{}")
	}
	call.Previous = previous(a.state.Settled, item.Name)
	t.repeatable = a.state.Run.MayRepeat(run.Call) || a.engine.repeatable(item.Name)
	go t.work(ctx, a, a.state.Clone(), call)
	return t
}

func (t *toolRun) work(ctx context.Context, a *actor, s *session.State, call tool.Call) {
	defer close(t.over)
	defer func() {
		if v := recover(); v != nil {
			a.log.Error("tool failed", slog.String("tool", t.name), slog.Any("panic", v))
			t.finish(session.ToolEnded{IsError: true, Output: "The tool failed: internal error."})
		}
	}()
	if err := os.MkdirAll(call.OutputDir, 0o700); err != nil {
		call.OutputDir = os.TempDir()
	}
	tools := a.engine.toolsOf(ctx, s)
	i := slices.IndexFunc(tools, func(x tool.Tool) bool { return x.Spec().Name == t.name })
	if i < 0 {
		t.finish(session.ToolEnded{IsError: true, Output: unknownTool(t.name, tools)})
		return
	}
	t.finish(t.ending(ctx, a, a.engine.hooked(ctx, s, tools[i], call, t.progress)))
}

// previous returns the details of the newest successful call of a tool.
func previous(items []session.Item, name string) json.RawMessage {
	for _, item := range slices.Backward(items) {
		if t, ok := item.(*session.Tool); ok && t.Name == name && t.Status == session.Complete && t.Details != nil {
			return t.Details
		}
	}
	return nil
}

func unknownTool(name string, tools []tool.Tool) string {
	names := make([]string, len(tools))
	for i, t := range tools {
		names[i] = t.Spec().Name
	}
	slices.Sort(names)
	return fmt.Sprintf("There is no tool %q. The tools are: %s.", name, strings.Join(names, ", "))
}

// ending turns a result into the event, and its images into blobs.
func (t *toolRun) ending(ctx context.Context, a *actor, r tool.Result) session.ToolEnded {
	e := session.ToolEnded{IsError: r.IsError, Output: utf8Text(r.Text), Details: r.Details}
	if len(e.Output) > 2*tool.MaxBytes {
		e.Output = utf8Text(e.Output[:2*tool.MaxBytes]) + "\n[cut]"
	}
	if len(e.Details) > tool.MaxDetails || !json.Valid(e.Details) {
		e.Details = nil
	}
	for _, image := range r.Images {
		hash, err := a.engine.cfg.Blobs.Put(context.WithoutCancel(ctx), image.Data)
		if err != nil {
			a.log.Warn("image cannot be kept", slog.Any("error", err))
			e.Output += "\n[an image could not be kept]"
			continue
		}
		e.Images = append(e.Images, session.Image{MIME: utf8Text(image.MIME), Blob: hash, Size: int64(len(image.Data))})
	}
	return e
}

// progress keeps output for the actor. Output that comes faster than it is taken is merged,
// and of too much only the end is kept.
func (t *toolRun) progress(p tool.Progress) {
	text := utf8Text(p.Text)
	t.mu.Lock()
	if t.shown == nil {
		t.shown = &session.ToolOutput{Call: t.run.Call}
	}
	if p.Replace {
		t.shown.Text, t.shown.Replace = "", true
	}
	t.shown.Text += text
	if len(t.shown.Text) > maxShown {
		t.shown.Text, t.shown.Replace = utf8Text(t.shown.Text[len(t.shown.Text)-maxShown/2:]), true
	}
	t.mu.Unlock()
	t.wake()
}

func (t *toolRun) finish(e session.ToolEnded) {
	e.Call = t.run.Call
	t.mu.Lock()
	t.outcome = &e
	t.mu.Unlock()
	t.wake()
}

func (t *toolRun) effect() session.Effect { return t.run }

// keepAtShutdown reports whether the result of a run that the shutdown cut short is worth
// keeping: a tool that may be repeated is run again instead.
func (t *toolRun) keepAtShutdown() bool { return !t.repeatable }

func (t *toolRun) collect(a *actor) {
	t.mu.Lock()
	shown, outcome := t.shown, t.outcome
	t.shown = nil
	t.mu.Unlock()
	item := a.state.Tool(t.run.Call)
	if item != nil && item.Status == session.Streaming {
		if shown != nil && outcome == nil {
			a.emit(*shown)
		}
		if outcome != nil {
			a.emit(*outcome)
		}
	}
	if outcome != nil {
		t.collected = true
		t.cancel(nil)
	}
}

// abandon gives the call of a tool that does not stop its result.
func (t *toolRun) abandon(a *actor) {
	a.log.Error("tool does not stop", slog.String("tool", t.name))
	if item := a.state.Tool(t.run.Call); item != nil && item.Status == session.Streaming {
		a.emit(session.ToolEnded{Call: t.run.Call, IsError: true, Output: "Aborted. The tool did not stop in time and may still be running."})
	}
}

// toolEnv is what programs that tools start learn about the session.
func (a *actor) toolEnv() []string {
	s := a.state
	return append(slices.Clone(a.engine.cfg.Env),
		"ROOST_SESSION_ID="+string(s.ID),
		"PI_SESSION_ID="+string(s.ID),
		"PI_PROVIDER="+s.Model.Provider,
		"PI_MODEL="+s.Model.ID,
		"PI_REASONING_LEVEL="+string(s.Thinking),
	)
}

func (a *actor) outputDir() string {
	if a.engine.cfg.OutputDir == "" {
		return filepath.Join(os.TempDir(), "roost-output")
	}
	return filepath.Join(a.engine.cfg.OutputDir, string(a.id))
}

func (a *actor) removeOutputs() {
	if a.engine.cfg.OutputDir == "" {
		return
	}
	if err := os.RemoveAll(a.outputDir()); err != nil {
		a.log.Warn("outputs cannot be removed", slog.Any("error", err))
	}
}
