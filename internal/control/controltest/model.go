package controltest

import (
	"context"
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

// Model names the model of every session.
var Model = session.ModelRef{Provider: "test", ID: "family/model"}

// Answer is what the model does in one request: it yields parts until it returns.
type Answer func(ctx context.Context, yield func(provider.Part)) error

// Script is a model that gives its answers in order, and then says "done". It is safe for
// concurrent use.
type Script struct {
	mu      sync.Mutex
	answers []Answer
}

func (s *Script) next() Answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.answers) == 0 {
		return Says("done")
	}
	a := s.answers[0]
	s.answers = s.answers[1:]
	return a
}

// Stream implements provider.Model.
func (s *Script) Stream(ctx context.Context, _ *provider.Request) iter.Seq2[provider.Part, error] {
	return func(yield func(provider.Part, error) bool) {
		over := false
		err := s.next()(ctx, func(p provider.Part) { over = over || !yield(p, nil) })
		if err != nil && !over {
			yield(provider.Part{}, err)
		}
	}
}

// Find implements actor.Models.
func (s *Script) Find(ref session.ModelRef) (provider.Model, catalog.Model, error) {
	if ref != Model {
		return nil, catalog.Model{}, session.Errorf(session.Invalid, "there is no model %s", ref)
	}
	return s, List()[0], nil
}

// List returns the models on offer.
func List() []catalog.Model {
	return []catalog.Model{{
		Ref: Model, Name: "Test", ContextWindow: 100_000, MaxOutput: 100, Input: []string{catalog.InputText}, Authenticated: true,
		ThinkingLevels: []session.Thinking{session.ThinkingOff, session.ThinkingHigh}, Cost: session.Cost{Input: 1.5, Output: 3},
	}}
}

// Says answers with texts.
func Says(texts ...string) Answer {
	return func(_ context.Context, yield func(provider.Part)) error {
		for _, t := range texts {
			yield(provider.Part{Kind: provider.TextDelta, Text: t})
		}
		yield(provider.Part{Kind: provider.Finish, Stop: session.StopEnd})
		return nil
	}
}

// Thinks answers with reasoning, then text.
func Thinks(thought, text string) Answer {
	return func(ctx context.Context, yield func(provider.Part)) error {
		yield(provider.Part{Kind: provider.ReasoningDelta, Text: thought})
		yield(provider.Part{Kind: provider.ReasoningEnd, Signature: Signature})
		return Says(text)(ctx, yield)
	}
}

// Signature is the proof that the model attaches to its reasoning. No client may see it.
const Signature = "proof-of-reasoning"

// Calls asks for tools, each "name json".
func Calls(list ...string) Answer {
	return func(_ context.Context, yield func(provider.Part)) error {
		for i, c := range list {
			name, input, _ := strings.Cut(c, " ")
			yield(provider.Part{Kind: provider.CallStart, Key: i, Name: name})
			yield(provider.Part{Kind: provider.CallDelta, Key: i, Text: input})
			yield(provider.Part{Kind: provider.CallEnd, Key: i})
		}
		yield(provider.Part{Kind: provider.Finish, Stop: session.StopToolUse})
		return nil
	}
}

// Steps says each text once step has been received from, then ends.
func Steps(step <-chan struct{}, texts ...string) Answer {
	return func(ctx context.Context, yield func(provider.Part)) error {
		for _, t := range texts {
			select {
			case <-step:
			case <-ctx.Done():
				return ctx.Err()
			}
			yield(provider.Part{Kind: provider.TextDelta, Text: t})
		}
		yield(provider.Part{Kind: provider.Finish, Stop: session.StopEnd})
		return nil
	}
}

// Hangs says text and then nothing until it is stopped.
func Hangs(text string) Answer {
	return func(ctx context.Context, yield func(provider.Part)) error {
		yield(provider.Part{Kind: provider.TextDelta, Text: text})
		<-ctx.Done()
		return ctx.Err()
	}
}

// Breaks says text and fails with a fault.
func Breaks(fault provider.Fault, text string) Answer {
	return func(_ context.Context, yield func(provider.Part)) error {
		if text != "" {
			yield(provider.Part{Kind: provider.TextDelta, Text: text})
		}
		return provider.Errorf(fault, "the provider broke")
	}
}

// Grant is what a person can allow for longer than once.
const Grant = "echo risky"

// judge asks about calls whose input holds "risky", until that is granted.
func judge(s *session.State, c session.ToolCall) session.Verdict {
	if !strings.Contains(c.Input, "risky") || slices.Contains(s.Grants, Grant) {
		return session.Verdict{}
	}
	return session.Verdict{Query: &session.Query{Reason: "it is risky", Grants: []string{Grant}}}
}

// echo is a tool that puts out its input twice, and fails when that holds "fail".
type echo struct{}

func (echo) Spec() tool.Spec {
	return tool.Spec{Name: "echo", Schema: []byte(`{"type":"object"}`), Repeatable: true}
}

func (echo) Run(_ context.Context, c tool.Call, progress func(tool.Progress)) tool.Result {
	progress(tool.Progress{Text: "running\n"})
	return tool.Result{Text: string(c.Input) + "\n" + string(c.Input), IsError: strings.Contains(string(c.Input), "fail")}
}
