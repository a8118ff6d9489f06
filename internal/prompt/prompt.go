// Package prompt decides what a model is told: the system prompt, the context of the
// session, the transcript, and what of it is left when it grows too long. Everything here is
// a pure function of its arguments, so a request can always be made again, byte for byte.
//
//	system                                   the same for every session
//	environment, rules, skills               a note among the items, from the first message on
//	(summary, and the last message before it)  until the next compaction
//	items, append-only                       a change of mode, rules or skills is a note among them
//
// Nothing above the end changes, so that each request begins with the bytes of the one before
// and providers find it in their caches (SPEC cursor 8.4).
package prompt

import (
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

// Request returns the request of the current pass of s, whose state must not change any more:
// the system prompt, and of the transcript what [Shrink] has left.
func Request(s *session.State, m catalog.Model, tools []provider.Tool) *provider.Request {
	r := base(s, m, tools)
	r.System = System(session.ModeAgent)
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
	r.Continue = r.Continue || cutOff(s.Settled)
	return r
}

// cutOff reports whether items end in the middle of an answer, which may have been cut off
// more than once: a resumed run goes on with it.
func cutOff(items []session.Item) bool {
	for _, item := range slices.Backward(items) {
		a, ok := item.(*session.Assistant)
		if !ok || a.Status == session.Complete {
			return false
		}
		if hasText(a) {
			return true
		}
	}
	return false
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
	return &session.User{Note: session.NoteContext, Blocks: []session.Block{session.Text{Text: text}}}
}
