// Package tasktool is the tool that has another agent do a part of the work: a session of its
// own, with its own context, whose last answer is the result. The child is an ordinary
// session with a parent, so people can see it, watch it and steer it, and it survives a
// restart as its parent does: its id follows from the call, so the call that is run again
// finds the child where it is.
package tasktool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/schema"
)

// Name is the tool's name.
const Name = "task"

// maxShown is how much of a call of the subagent is shown, in bytes.
const maxShown = 200

// abortTimeout is how long a child is waited for after its parent was aborted.
const abortTimeout = time.Second

//go:embed task.json
var input []byte

var params = schema.MustParse(input)

// Sessions is what the tool needs of the engine. Errors are *session.Error.
type Sessions interface {
	Create(context.Context, session.Create) (session.ID, error)
	Do(context.Context, session.ID, session.Command) (session.Receipt, error)
	State(context.Context, session.ID) (*session.State, error)
	Watch(context.Context, session.ID, *session.Position) (*live.Subscription, error)
}

// Options bound what the tool may start.
type Options struct {
	Depth    int // levels of children below a session that a person started
	Parallel int // children of one session at a time
}

// Tool is the tool. It is safe for concurrent use.
type Tool struct {
	sessions Sessions
	opt      Options

	mu    sync.Mutex
	slots map[string]chan struct{} // of each parent that has children
	users map[string]int
}

// New returns the tool.
func New(sessions Sessions, opt Options) *Tool {
	return &Tool{sessions: sessions, opt: opt, slots: make(map[string]chan struct{}), users: make(map[string]int)}
}

// Spec implements [tool.Tool]. A call may be run again, because it finds its child.
func (t *Tool) Spec() tool.Spec {
	return tool.Spec{
		Name: Name, Schema: params.Raw(), Repeatable: true,
		Description: "Have a subagent do a self-contained part of the work and get its answer. It works in the same directory with the same tools and sees nothing of this conversation. Use it for searches and investigations whose details do not matter later, and for independent parts that can be done side by side.",
	}
}

type request struct {
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
	ReadOnly    bool   `json:"readonly"`
}

// Run implements [tool.Tool].
func (t *Tool) Run(ctx context.Context, call tool.Call, progress func(tool.Progress)) tool.Result {
	var in request
	if err := params.Decode(call.Input, &in); err != nil {
		return tool.Failure(err.Error())
	}
	leave, err := t.enter(ctx, call.Session)
	if err != nil {
		return tool.Failure("Aborted before the subagent was started.")
	}
	defer leave()
	child, err := t.child(ctx, call, in)
	if err != nil {
		return tool.Failure("The subagent cannot be started: " + session.AsError(err).Message)
	}
	progress(tool.Progress{Text: "session " + string(child) + "\n"})
	s, err := t.follow(ctx, child, progress)
	switch {
	case ctx.Err() != nil:
		return t.abort(ctx, child)
	case err != nil:
		return tool.Failure("The subagent cannot be followed: " + session.AsError(err).Message)
	}
	return result(s)
}

// enter waits for a slot of the parent.
func (t *Tool) enter(ctx context.Context, parent string) (leave func(), err error) {
	t.mu.Lock()
	slots := t.slots[parent]
	if slots == nil {
		slots = make(chan struct{}, max(1, t.opt.Parallel))
		t.slots[parent] = slots
	}
	t.users[parent]++
	t.mu.Unlock()
	drop := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.users[parent]--; t.users[parent] == 0 {
			delete(t.users, parent)
			delete(t.slots, parent)
		}
	}
	select {
	case slots <- struct{}{}:
		return func() { <-slots; drop() }, nil
	case <-ctx.Done():
		drop()
		return nil, ctx.Err()
	}
}

// child returns the session of a call, and makes it when it is not there yet.
func (t *Tool) child(ctx context.Context, call tool.Call, in request) (session.ID, error) {
	parent, err := t.sessions.State(ctx, session.ID(call.Session))
	if err != nil {
		return "", err
	}
	id := session.ID(call.Session + "-" + strings.TrimPrefix(call.ID, "call"))
	if len(id) > 64 || !id.Valid() {
		return "", session.Errorf(session.Invalid, "subagents may be nested no deeper")
	}
	if depth, err := t.depth(ctx, parent); err != nil || depth >= t.opt.Depth {
		return "", errors.Join(err, session.Errorf(session.Forbidden, "subagents may be nested %d deep, and this is one already", t.opt.Depth))
	}
	_, err = t.sessions.Create(ctx, session.Create{
		ID: id, Cwd: parent.Cwd, Name: in.Description, Model: parent.Model, Thinking: parent.Thinking,
		Parent: parent.ID, Origin: parent.Origin,
	})
	if err != nil && session.AsError(err).Kind != session.Locked {
		return "", err
	}
	if in.ReadOnly {
		if _, err := t.sessions.Do(ctx, id, session.SetMode{Mode: session.ModeAsk}); err != nil && session.AsError(err).Kind != session.Busy {
			return "", err
		}
	}
	// The id makes a repeated call find the run that is there.
	_, err = t.sessions.Do(ctx, id, session.Prompt{ID: Name, Text: in.Prompt})
	return id, err
}

// depth counts the parents of a session.
func (t *Tool) depth(ctx context.Context, s *session.State) (int, error) {
	depth := 0
	for s.Parent != "" && strings.HasPrefix(string(s.ID), string(s.Parent)+"-") {
		parent, err := t.sessions.State(ctx, s.Parent)
		if err != nil {
			return 0, err
		}
		s = parent
		depth++
	}
	return depth, nil
}

// follow waits for the end of the child's run and shows what it does, a line a step.
func (t *Tool) follow(ctx context.Context, child session.ID, progress func(tool.Progress)) (*session.State, error) {
	sub, err := t.sessions.Watch(ctx, child, nil)
	if err != nil {
		return nil, err
	}
	defer sub.Close()
	for {
		u, err := sub.Next(ctx)
		if err != nil {
			return nil, err
		}
		for _, r := range u.Records {
			if e, ok := r.Event.(session.ToolStarted); ok {
				if item := u.State.Tool(e.Call); item != nil {
					progress(tool.Progress{Text: item.Name + " " + tool.Cut(item.Input, maxShown) + "\n"})
				}
			}
		}
		if u.State.Run == nil && u.State.LastRun > 0 {
			return u.State, nil
		}
	}
}

// abort ends the child with its parent; but a child whose server is stopping goes on with it.
func (t *Tool) abort(ctx context.Context, child session.ID) tool.Result {
	if errors.Is(context.Cause(ctx), tool.ErrShutdown) {
		return tool.Failure("The server was stopped.")
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), abortTimeout)
	defer cancel()
	if _, err := t.sessions.Do(late, child, session.Abort{}); err == nil {
		if s, err := t.follow(late, child, func(tool.Progress) {}); err == nil {
			r := result(s)
			return tool.Failure("Aborted. The subagent had come this far:\n\n" + r.Text)
		}
	}
	return tool.Failure("Aborted.")
}

// result is the last answer of the child.
func result(s *session.State) tool.Result {
	text := ""
	for i := len(s.Settled) - 1; i >= 0 && text == ""; i-- {
		if a, ok := s.Settled[i].(*session.Assistant); ok {
			for _, b := range a.Blocks {
				if b, ok := b.(session.Text); ok {
					text += b.Text
				}
			}
			break
		}
	}
	text = tool.Cut(text, tool.MaxBytes)
	if s.LastOutcome == session.RunFailed {
		return tool.Failure(fmt.Sprintf("The subagent failed: %s\n\n%s", s.LastError, text))
	}
	if text == "" {
		text = "The subagent ended without an answer."
	}
	return tool.Result{Text: text}
}
