// Package hook runs the user's own programs beside a session's work: before a prompt is
// accepted, before and after a tool, and when a run has ended. They come from the user's
// configuration only, never from a project.
//
// A hook gets one JSON document on its standard input and answers in one of these ways:
//
//	exit 0                       go on; standard output may hold {"context": "…"}, which the
//	                             model is told, or {"block": "why"}
//	exit 2                       block; standard error says why
//	any other exit, or too late  a fault: what was to happen is blocked as well, because a
//	                             guard that fails must not open the door
package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os/exec"
	"path"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

// Limits of one hook.
const (
	maxOutput = 64 << 10        // bytes read of each stream
	waitDelay = 2 * time.Second // for streams that something else keeps open
	exitBlock = 2
)

// Hook is one program.
type Hook struct {
	Match   string   // a tool's name, with * for any text; empty for every tool
	Command []string // program and arguments, run without a shell
	Timeout time.Duration
}

// Options are the programs of each moment, in order. Logger is required.
type Options struct {
	Prompt []Hook // before a prompt is accepted
	Before []Hook // before a tool
	After  []Hook // after a tool
	RunEnd []Hook
	Env    []string // the environment of the programs, "NAME=value"
	Logger *slog.Logger
}

// Hooks runs hooks. It is safe for concurrent use.
type Hooks struct{ opt Options }

// New returns hooks.
func New(opt Options) *Hooks { return &Hooks{opt: opt} }

// document is what a hook reads.
type document struct {
	Event   string          `json:"event"` // before_prompt, before_tool, after_tool or run_end
	Session string          `json:"session"`
	Cwd     string          `json:"cwd"`
	Model   string          `json:"model"`
	Prompt  string          `json:"prompt,omitempty"`
	Tool    string          `json:"tool,omitempty"`
	Call    string          `json:"call,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	Output  string          `json:"output,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
	Outcome string          `json:"outcome,omitempty"` // completed, aborted or failed
	Error   string          `json:"error,omitempty"`
}

func about(event string, s *session.State) document {
	return document{Event: event, Session: string(s.ID), Cwd: s.Cwd, Model: s.Model.String()}
}

// BeforePrompt may refuse a prompt, with an *session.Error of kind Forbidden, or add text for
// the model.
func (h *Hooks) BeforePrompt(ctx context.Context, s *session.State, text string) (string, error) {
	d := about("before_prompt", s)
	d.Prompt = text
	added, block := h.run(ctx, h.opt.Prompt, d)
	if block != "" {
		return "", session.Errorf(session.Forbidden, "a hook does not accept the prompt: %s", block)
	}
	return added, nil
}

// BeforeTool may refuse a call, in words for the model.
func (h *Hooks) BeforeTool(ctx context.Context, s *session.State, name string, call tool.Call) string {
	d := about("before_tool", s)
	d.Tool, d.Call, d.Input = name, call.ID, call.Input
	if _, block := h.run(ctx, h.opt.Before, d); block != "" {
		return "A hook of the user does not allow this call: " + block
	}
	return ""
}

// AfterTool may add to what the model reads of a result.
func (h *Hooks) AfterTool(ctx context.Context, s *session.State, name string, call tool.Call, r tool.Result) string {
	d := about("after_tool", s)
	d.Tool, d.Call, d.Input, d.Output, d.IsError = name, call.ID, call.Input, r.Text, r.IsError
	added, block := h.run(ctx, h.opt.After, d)
	if block != "" {
		added = strings.TrimSpace(added + "\n" + "A hook of the user objects: " + block)
	}
	return added
}

// RunEnded tells the hooks that a run has ended.
func (h *Hooks) RunEnded(ctx context.Context, s *session.State) {
	d := about("run_end", s)
	d.Outcome = map[session.Outcome]string{
		session.RunCompleted: "completed", session.RunAborted: "aborted", session.RunFailed: "failed",
	}[s.LastOutcome]
	d.Error = s.LastError
	h.run(ctx, h.opt.RunEnd, d)
}

// run runs the hooks that a document concerns, in order, until one blocks. It returns what
// they have to say to the model, and why one blocks.
func (h *Hooks) run(ctx context.Context, hooks []Hook, d document) (added, block string) {
	var said []string
	for _, hook := range hooks {
		if ok, _ := path.Match(hook.Match, d.Tool); hook.Match != "" && !ok {
			continue
		}
		text, why, err := h.one(ctx, hook, d)
		if err != nil {
			h.opt.Logger.Warn("hook failed", slog.String("event", d.Event), slog.String("program", hook.Command[0]), slog.Any("error", err))
			why = fmt.Sprintf("it failed (%v)", err)
		}
		if text != "" {
			said = append(said, text)
		}
		if why != "" {
			return strings.Join(said, "\n"), why
		}
	}
	return strings.Join(said, "\n"), ""
}

// one runs a hook.
func (h *Hooks) one(ctx context.Context, hook Hook, d document) (added, block string, err error) {
	input, err := json.Marshal(d)
	if err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(ctx, hook.Timeout)
	defer cancel()
	var stdout, stderr capped
	cmd := exec.CommandContext(ctx, hook.Command[0], hook.Command[1:]...)
	cmd.Dir, cmd.Env = d.Cwd, h.opt.Env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(input), &stdout, &stderr
	cmd.WaitDelay = waitDelay
	group(cmd)
	err = cmd.Run()
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return "", "", fmt.Errorf("it did not end within %v", hook.Timeout)
	case failed && exit.ExitCode() == exitBlock:
		return "", or(clean(stderr.String()), "no reason given"), nil
	case err != nil:
		return "", "", err
	}
	var a struct {
		Block   string `json:"block"`
		Context string `json:"context"`
	}
	if text := bytes.TrimSpace(stdout.Bytes()); len(text) > 0 && text[0] == '{' {
		if err := json.Unmarshal(text, &a); err != nil {
			return "", "", fmt.Errorf("its answer is not JSON: %w", err)
		}
	}
	return clean(a.Context), clean(a.Block), nil
}

func clean(s string) string { return strings.ToValidUTF8(strings.TrimSpace(s), "\uFFFD") }

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// capped keeps the first maxOutput bytes that are written to it, and takes the rest.
type capped struct{ bytes.Buffer }

func (c *capped) Write(p []byte) (int, error) {
	if room := maxOutput - c.Len(); room > 0 {
		c.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
