package actor

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"

	"github.com/roost-dev/roost/internal/prompt"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

// Hooks are programs of the user that are told what happens, and may have a say in it. They
// are safe for concurrent use and have deadlines of their own.
type Hooks interface {
	// BeforePrompt may refuse a prompt, with an *session.Error, or add text for the model.
	BeforePrompt(ctx context.Context, s *session.State, text string) (added string, err error)
	// BeforeTool may refuse a call, in words for the model.
	BeforeTool(ctx context.Context, s *session.State, name string, call tool.Call) (refusal string)
	// AfterTool may add to what the model reads of a result.
	AfterTool(ctx context.Context, s *session.State, name string, call tool.Call, r tool.Result) (added string)
	// RunEnded is told that a run has ended. It is called in a goroutine of its own.
	RunEnded(ctx context.Context, s *session.State)
}

// policy is what the state's rules ask the engine.
type policy struct {
	engine *Engine
	known  *knownTools
}

// knownTools is what is known of the tools that a session's model was offered: whether running them twice
// does no harm. Servers of tools say so when they are asked for their tools, which takes a while.
type knownTools struct {
	mu         sync.Mutex
	repeatable map[string]bool // by name
}

func (k *knownTools) learn(tools []tool.Tool) {
	repeatable := make(map[string]bool, len(tools))
	for _, t := range tools {
		repeatable[t.Spec().Name] = t.Spec().Repeatable
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.repeatable = repeatable
}

func (k *knownTools) mayRepeat(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.repeatable[name]
}

// Judge implements [session.Policy].
func (p policy) Judge(s *session.State, c session.ToolCall) session.Verdict {
	if s.Run.Offer != "" {
		return session.Verdict{Host: session.HostClient} // which asks its own user
	}
	if !allowedInMode(s.Mode, c.Name) {
		return session.Verdict{Refusal: "The mode " + string(s.Mode) + " has no tool " + c.Name + ": nothing may be changed in it."}
	}
	var v session.Verdict
	if p.engine.cfg.Judge != nil {
		v = p.engine.cfg.Judge(s, c)
	}
	v.Repeatable = p.engine.repeatable(c.Name) || p.known.mayRepeat(c.Name)
	return v
}

// Shrink implements [session.Policy].
func (p policy) Shrink(s *session.State, force bool) (session.Shrink, bool) {
	_, model, err := p.engine.cfg.Models.Find(s.Model)
	if err != nil {
		return session.Shrink{}, false
	}
	return prompt.Shrink(s, model, p.engine.cfg.Compaction, p.engine.staticOffer, force)
}

// changers are the tools that a mode which changes nothing does without.
var changers = map[string]bool{"bash": true, "edit": true, "write": true}

func allowedInMode(m session.Mode, name string) bool {
	return m != session.ModeAsk && m != session.ModePlan || !changers[name]
}

// toolsOf returns the tools of a session. It may take as long as a server of tools takes to
// start.
func (e *Engine) toolsOf(ctx context.Context, s *session.State) []tool.Tool {
	all := e.cfg.Tools
	if e.cfg.MoreTools != nil {
		all = append(slices.Clip(all), e.cfg.MoreTools(ctx, s)...)
	}
	tools := make([]tool.Tool, 0, len(all))
	for _, t := range all {
		if allowedInMode(s.Mode, t.Spec().Name) {
			tools = append(tools, t)
		}
	}
	return tools
}

// offer is what a model is told of the tools.
func (a *actor) offer(ctx context.Context, s *session.State) []provider.Tool {
	if s.Run != nil && s.Run.Offer != "" {
		return a.engine.clientOffer(ctx, s.Run.Offer)
	}
	tools := a.engine.toolsOf(ctx, s)
	a.known.learn(tools)
	return offer(tools)
}

// clientOffer is what a model is told of the tools that a client runs.
func (e *Engine) clientOffer(ctx context.Context, hash string) []provider.Tool {
	var list []struct {
		Name, Description string
		Schema            json.RawMessage
	}
	data, err := e.cfg.Blobs.Get(ctx, hash)
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		e.cfg.Logger.ErrorContext(ctx, "the tools of a client cannot be read", slog.String("blob", hash), slog.Any("error", err))
		return nil
	}
	tools := make([]provider.Tool, len(list))
	for i, t := range list {
		tools[i] = provider.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema}
	}
	return tools
}

func offer(tools []tool.Tool) []provider.Tool {
	list := make([]provider.Tool, 0, len(tools))
	for _, t := range tools {
		spec := t.Spec()
		list = append(list, provider.Tool{Name: spec.Name, Description: spec.Description, Schema: spec.Schema})
	}
	return list
}

// request completes a request with what only the engine has.
func (e *Engine) request(ctx context.Context, r *provider.Request) *provider.Request {
	r.Image = func(i session.Image) ([]byte, error) { return e.cfg.Blobs.Get(ctx, i.Blob) }
	return r
}

// completePrompt asks the hooks about a prompt, and tells the model what has changed in the
// project. A prompt that was accepted before is not asked about again.
func (e *Engine) completePrompt(ctx context.Context, id session.ID, c session.Prompt) (session.Command, error) {
	if e.cfg.Context == nil && e.cfg.Hooks == nil && e.cfg.MayWork == nil {
		return c, nil
	}
	s, err := e.State(ctx, id)
	if err != nil {
		return nil, err
	}
	if s.FindPrompt(c.ID) != nil || s.Run != nil {
		return c, nil
	}
	if e.cfg.Hooks != nil {
		if c.Added, err = e.cfg.Hooks.BeforePrompt(ctx, s, c.Text); err != nil {
			return nil, err
		}
	}
	if c.Offer != "" {
		return c, nil
	}
	if e.cfg.MayWork != nil {
		if err := e.cfg.MayWork(s); err != nil {
			return nil, err
		}
	}
	if e.cfg.Context != nil {
		c.Context, err = e.context(ctx, s, e.cfg.Context(ctx, s))
	}
	return c, err
}

// Context returns the Context of a Prompt for what a client knows of the project. Errors are
// *session.Error.
func (e *Engine) Context(ctx context.Context, id session.ID, now prompt.Context) (session.Context, error) {
	s, err := e.State(ctx, id)
	if err != nil {
		return session.Context{}, err
	}
	return e.context(ctx, s, now)
}

// context says what the model has to be told of the project before the next message: all of
// it the first time, later what has changed. What it knows is kept as a blob, so that a
// session names it by its hash. The environment stays that of the first time.
func (e *Engine) context(ctx context.Context, s *session.State, now prompt.Context) (session.Context, error) {
	var old *prompt.Context
	if s.Context != "" {
		data, err := e.cfg.Blobs.Get(ctx, s.Context)
		if err == nil && json.Unmarshal(data, &old) == nil {
			now.Env = old.Env
		}
	}
	data, err := json.Marshal(now)
	if err != nil {
		return session.Context{}, err
	}
	hash, err := e.cfg.Blobs.Put(ctx, data)
	if err != nil {
		return session.Context{}, session.Errorf(session.Unavailable, "the project's rules cannot be kept; is the disk full?")
	}
	if hash == s.Context {
		return session.Context{}, nil
	}
	text := prompt.NoteMark + "\n\n" + prompt.Preamble(now)
	if old != nil {
		if text = prompt.Note(*old, now); text == "" {
			return session.Context{}, nil
		}
	}
	return session.Context{Hash: hash, Text: utf8Text(text)}, nil
}

// hooked runs a call with the hooks around it.
func (e *Engine) hooked(ctx context.Context, s *session.State, t tool.Tool, call tool.Call, progress func(tool.Progress)) tool.Result {
	hooks := e.cfg.Hooks
	if hooks == nil {
		return t.Run(ctx, call, progress)
	}
	name := t.Spec().Name
	if why := hooks.BeforeTool(ctx, s, name, call); why != "" {
		return tool.Failure(why)
	}
	r := t.Run(ctx, call, progress)
	if added := hooks.AfterTool(ctx, s, name, call, r); added != "" {
		r.Text += "\n\n" + added
	}
	return r
}
