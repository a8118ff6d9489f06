// Package prompt decides what a model is told: the system prompt, the context of the
// session, the transcript, and what of it is left when it grows too long. Everything here is
// a pure function of its arguments, so a request can always be made again, byte for byte.
//
//	system: what holds in every mode, then the mode      frozen with the session's Context
//	first message: environment, rules, skills            frozen with the session's Context
//	(summary, and the last message before the cut)       frozen with a Compaction
//	items, append-only                                   a change of Context is a Note among them
//
// Nothing above the end ever changes, so that each request begins with the bytes of the one
// before and providers find it in their caches (SPEC cursor 8.4).
package prompt

import (
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

// Input is all that a request depends on. Context is what held when the session began, or
// at its last compaction; what has changed since is in the transcript as notes.
type Input struct {
	State      *session.State // must not change any more
	Context    Context
	Model      catalog.Model
	Tools      []provider.Tool // as the model sees them, in a fixed order
	Compaction *Compaction     // nil while the whole transcript is sent
}

// Build returns the request of the current pass. As long as Context, Model, Tools and
// Compaction stay the same, the request begins with everything of the one before; only a
// pass that is taken up again ends in a note that the next request does not have.
func Build(in Input) *provider.Request {
	r := base(in.State, in.Model, in.Tools)
	r.System = System(in.Context.Mode)
	items := in.Compaction.apply(in.State.Settled)
	items = slices.Concat([]session.Item{message(Preamble(in.Context))}, items, r.Items[len(in.State.Settled):])
	if !in.Model.Images() {
		items = withoutImages(items)
	}
	r.Items = items
	return r
}

// Request returns the request of the current pass of s, whose state must not change any more:
// the system prompt, and of the transcript what [Shrink] has left.
func Request(s *session.State, m catalog.Model, tools []provider.Tool) *provider.Request {
	r := base(s, m, tools)
	r.System = System(ModeAgent)
	r.Items = slices.Concat(sent(s), r.Items[len(s.Settled):])
	if !m.Images() {
		r.Items = withoutImages(r.Items)
	}
	return r
}

// base is a request with the settled items, and what was said of the current pass before it
// broke.
func base(s *session.State, m catalog.Model, tools []provider.Tool) *provider.Request {
	r := &provider.Request{
		Model: s.Model, Items: s.Settled, Tools: tools,
		Thinking: s.Thinking, MaxOutput: m.MaxOutput, CacheKey: string(s.ID),
	}
	if live := s.Run.Live; live != nil {
		r.Model = live.Model
		if hasText(live) {
			r.Items = slices.Concat(s.Settled, []session.Item{live})
			r.Continue = true
		}
	}
	return r
}

func hasText(a *session.Assistant) bool {
	for _, b := range a.Blocks {
		if t, ok := b.(session.Text); ok && strings.TrimSpace(t.Text) != "" {
			return true
		}
	}
	return false
}

// message is a user item that only the model sees.
func message(text string) *session.User {
	return &session.User{Blocks: []session.Block{session.Text{Text: text}}}
}
