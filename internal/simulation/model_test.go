package simulation

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

// theModels are two names for one model, so that a session can change between them.
var theModels = []catalog.Model{named("model"), named("other")}

func named(id string) catalog.Model {
	return catalog.Model{
		Ref: session.ModelRef{Provider: "test", ID: id}, Name: id, API: "test", ContextWindow: 100_000, MaxOutput: 1000,
		ThinkingLevels: []session.Thinking{session.ThinkingOff, session.ThinkingHigh},
	}
}

// model is a provider in the outside world: it outlives the server, and what it says depends on the
// seed alone. Every word that it says is said once, so that a repeated or lost one is seen.
type model struct{ w *world }

// Find implements the engine's Models.
func (m *model) Find(ref session.ModelRef) (provider.Model, catalog.Model, error) {
	for _, known := range theModels {
		if ref == known.Ref {
			return m, known, nil
		}
	}
	return nil, catalog.Model{}, session.Errorf(session.Invalid, "no model %s", ref)
}

// Stream implements provider.Model.
func (m *model) Stream(ctx context.Context, req *provider.Request) iter.Seq2[provider.Part, error] {
	return func(yield func(provider.Part, error) bool) {
		a := m.w.drawAnswer(req)
		m.w.note("model asked by %s: %s continue=%v", req.CacheKey, a.kind, req.Continue)
		send := func(p provider.Part) bool { return rest(ctx, a.pause) && yield(p, nil) }
		if err := m.answer(a, send); err != nil {
			yield(provider.Part{}, err)
		} else if ctx.Err() != nil {
			yield(provider.Part{}, ctx.Err())
		}
	}
}

// answer is what the model does with one request.
type answer struct {
	kind  string
	pause time.Duration // before each part
	words int
	calls []string // names
}

func (w *world) drawAnswer(req *provider.Request) answer {
	w.dice.Lock()
	defer w.dice.Unlock()
	a := answer{kind: "text", words: 1 + w.rng.IntN(4)}
	if w.calm {
		return a
	}
	a.pause = time.Duration(w.rng.IntN(400)) * time.Millisecond
	a.kind = pick(w.rng, "text", "text", "text", "think", "calls", "calls", "calls", "broken", "refused", "limited", "stalled", "cut call", "overflow")
	if a.kind == "calls" {
		var names []string
		for _, t := range req.Tools {
			if t.Name == "safe" || t.Name == "unsafe" || t.Name == "risky" || t.Name == "read" || strings.Contains(t.Name, "deploy") {
				names = append(names, t.Name)
			}
		}
		if len(names) == 0 {
			a.kind = "text"
			return a
		}
		for range 1 + w.rng.IntN(3) {
			a.calls = append(a.calls, names[w.rng.IntN(len(names))])
		}
	}
	return a
}

func (m *model) answer(a answer, send func(provider.Part) bool) error {
	if a.kind == "refused" {
		return provider.Errorf(provider.FaultRequest, "refused")
	}
	if a.kind == "limited" {
		return provider.Errorf(provider.FaultRateLimit, "too fast")
	}
	if a.kind == "overflow" {
		return provider.Errorf(provider.FaultContext, "too long")
	}
	kind := provider.TextDelta
	if a.kind == "think" {
		kind = provider.ReasoningDelta
	}
	for range a.words {
		if !send(provider.Part{Kind: kind, Text: m.w.word()}) {
			return nil
		}
	}
	stop := session.StopEnd
	switch a.kind {
	case "broken":
		return provider.Errorf(provider.FaultNetwork, "it broke")
	case "stalled":
		for range 60 {
			if !send(provider.Part{}) {
				return nil
			}
		}
		return provider.Errorf(provider.FaultStalled, "silent")
	case "cut call":
		send(provider.Part{Kind: provider.CallStart, Name: "unsafe"})
		send(provider.Part{Kind: provider.CallDelta, Text: `{"pa`})
		return provider.Errorf(provider.FaultNetwork, "cut")
	case "calls":
		stop = session.StopToolUse
		for i, name := range a.calls {
			ok := send(provider.Part{Kind: provider.CallStart, Key: i, Name: name}) &&
				send(provider.Part{Kind: provider.CallDelta, Key: i, Text: `{"path":"a`}) &&
				send(provider.Part{Kind: provider.CallDelta, Key: i, Text: `.txt"}`}) &&
				send(provider.Part{Kind: provider.CallEnd, Key: i})
			if !ok {
				return nil
			}
		}
	case "think":
		send(provider.Part{Kind: provider.TextDelta, Text: m.w.word()})
	}
	send(provider.Part{Kind: provider.UsageReport, Usage: session.Usage{Input: 1, Output: 1}})
	send(provider.Part{Kind: provider.Finish, Stop: stop})
	return nil
}

// word returns a word that was never said before.
func (w *world) word() string {
	w.dice.Lock()
	defer w.dice.Unlock()
	w.words++
	return fmt.Sprintf("w%d ", w.words)
}

// rest waits in simulated time; it returns false when ctx has ended.
func rest(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
