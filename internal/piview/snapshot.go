package piview

import (
	"slices"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
)

// Limits on what a client has to keep of an over-long transcript.
const (
	maxItems   = 1_000_000 // elements of an array (SPEC 1.2)
	reserve    = 256 << 10 // bytes of a message beside its settled items
	shortText  = 2000      // bytes of an old output or argument when the transcript is too large
	keptImages = 8         // newest items whose images stay when the transcript is too large
)

// Snapshot projects the state of a session (SPEC 2.6), so that its message has at most limit
// bytes: of a longer transcript the old images are left out first, then old tool outputs are
// shortened, then the oldest items are dropped. The revision is the sequence number of the
// state's last event, so it never falls, not even over a restart.
func Snapshot(s *session.State, attached bool, limit int, images Images) (*piwire.SessionSnapshot, error) {
	snapshot := &piwire.SessionSnapshot{
		ID: string(s.ID), Cwd: s.Cwd, CreatedAt: piwire.ClampCount(s.CreatedAt), UpdatedAt: piwire.ClampCount(s.UpdatedAt),
		Phase: phase(s.Phase()), Model: Model(s.Model), ThinkingLevel: piwire.ThinkingLevel(s.Thinking),
		Attached: attached, Locked: true, Revision: piwire.ClampCount(int64(s.Seq)),
	}
	if s.Name != "" {
		snapshot.Name = &s.Name
	}
	size := reserve
	for _, u := range queue(s.Queue, limit/4) {
		size += len(session.BlockText(u.Blocks[0]))
		snapshot.QueuedSteer = append(snapshot.QueuedSteer, Item(u, images))
	}
	snapshot.QueuedSteerCount = int64(len(s.Queue))
	transcript, err := fit(shown(s.Transcript()), limit-size, images)
	snapshot.Transcript = transcript
	return snapshot, err
}

// shown returns what people are shown of items, which may be changed: version 1 has no word
// for what only the model is told.
func shown(items []session.Item) []session.Item {
	return slices.DeleteFunc(items, func(i session.Item) bool {
		u, ok := i.(*session.User)
		return ok && u.Note != session.NoteNone
	})
}

// queue cuts the texts of steers so that together they have at most limit bytes. They are
// whole again in the transcript.
func queue(steers []*session.User, limit int) []*session.User {
	size := 0
	for _, u := range steers {
		size += len(session.BlockText(u.Blocks[0]))
	}
	if size <= limit {
		return steers
	}
	short := make([]*session.User, len(steers))
	for i, u := range steers {
		text := cut(session.BlockText(u.Blocks[0]), limit/len(steers))
		short[i] = &session.User{ID: u.ID, At: u.At, Blocks: []session.Block{session.Text{Text: text}}}
	}
	return short
}

// cut returns the beginning of a text of more than n bytes, and a notice.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return piwire.SafeText(text[:n]) + "\n[shortened]"
}

// fit encodes items, each once, and makes them small enough together.
func fit(items []session.Item, limit int, images Images) ([]piwire.Item, error) {
	if len(items) > maxItems {
		items = items[len(items)-maxItems:]
	}
	for _, try := range []func(session.Item, int) piwire.Item{
		func(i session.Item, _ int) piwire.Item { return Item(i, images) },
		func(i session.Item, age int) piwire.Item {
			if age < keptImages {
				return Item(i, images)
			}
			return Item(i, noImages)
		},
		func(i session.Item, age int) piwire.Item {
			if age < keptImages {
				return Item(i, noImages)
			}
			return Item(shorten(i), noImages)
		},
	} {
		out, size, err := encode(items, limit, try)
		if err != nil || size <= limit {
			return out, err
		}
	}
	return newest(items, limit)
}

func noImages(session.Image) ([]byte, bool) { return nil, false }

// encode projects and encodes items until they are larger than limit. The function gets an
// item's age: 0 for the newest.
func encode(items []session.Item, limit int, project func(session.Item, int) piwire.Item) ([]piwire.Item, int, error) {
	out := make([]piwire.Item, 0, len(items))
	size := 0
	for n, i := range items {
		raw, err := piwire.EncodeItem(project(i, len(items)-1-n))
		if err != nil {
			return nil, 0, err
		}
		out = append(out, raw)
		if size += raw.Size(); size > limit {
			break
		}
	}
	return out, size, nil
}

// newest keeps as many of the newest items as fit, shortened.
func newest(items []session.Item, limit int) ([]piwire.Item, error) {
	size, first := 0, len(items)
	out := make([]piwire.Item, len(items))
	for n := len(items) - 1; n >= 0; n-- {
		raw, err := piwire.EncodeItem(Item(shorten(items[n]), noImages))
		if err != nil {
			return nil, err
		}
		if size += raw.Size(); size > limit {
			break
		}
		out[n], first = raw, n
	}
	return out[first:], nil
}

// shorten cuts what makes items large and is of least use later: tool outputs, details, and
// the arguments of calls, which then are no JSON any more and are shown as text.
func shorten(i session.Item) session.Item {
	switch i := i.(type) {
	case *session.Tool:
		short := *i
		short.Details, short.Output, short.Input = nil, cut(i.Output, shortText), cut(i.Input, shortText)
		return &short
	case *session.Assistant:
		if i.Status == session.Streaming {
			return i // what follows is added to what is shown
		}
		short := *i
		short.Blocks = slices.Clone(i.Blocks)
		for n, b := range short.Blocks {
			if call, ok := b.(session.ToolCall); ok {
				call.Input = cut(call.Input, shortText)
				short.Blocks[n] = call
			}
		}
		return &short
	}
	return i
}

func phase(p session.Phase) piwire.Phase {
	switch p {
	case session.PhaseIdle:
		return piwire.PhaseIdle
	case session.PhaseTurn:
		return piwire.PhaseTurn
	case session.PhaseRetry:
		return piwire.PhaseRetry
	case session.PhaseCompaction:
		return piwire.PhaseCompaction
	}
	return piwire.PhaseIdle
}

// Model projects a model's name.
func Model(m session.ModelRef) piwire.ModelRef {
	return piwire.ModelRef{Provider: m.Provider, ID: m.ID}
}

// Metadata projects an entry of the index of sessions.
func Metadata(m session.Meta) piwire.SessionMetadata {
	updated := piwire.ClampCount(m.UpdatedAt)
	w := piwire.SessionMetadata{
		ID: string(m.ID), CreatedAt: piwire.ClampCount(m.CreatedAt), UpdatedAt: &updated,
		ParentSessionID: string(m.Parent), Cwd: m.Cwd,
	}
	if m.Name != "" {
		w.SessionName = &m.Name
	}
	return w
}

// ModelMetadata projects what is known of a model.
func ModelMetadata(m catalog.Model) piwire.ModelMetadata {
	w := piwire.ModelMetadata{
		Provider: m.Ref.Provider, ID: m.Ref.ID, Name: m.Name, API: m.API, Reasoning: m.Reasoning,
		ContextWindow: max(1, piwire.ClampCount(int64(m.ContextWindow))), MaxTokens: max(1, piwire.ClampCount(int64(m.MaxOutput))),
		Cost: piwire.ModelCost{
			Input: money(m.Cost.Input), Output: money(m.Cost.Output),
			CacheRead: money(m.Cost.CacheRead), CacheWrite: money(m.Cost.CacheWrite),
		},
		Authenticated: m.Authenticated,
	}
	if w.Name == "" {
		w.Name = m.Ref.ID
	}
	if w.API == "" {
		w.API = "unknown"
	}
	for _, i := range m.Input {
		w.Input = append(w.Input, piwire.InputKind(i))
	}
	for _, t := range m.ThinkingLevels {
		w.SupportedThinkingLevels = append(w.SupportedThinkingLevels, piwire.ThinkingLevel(t))
	}
	if len(w.SupportedThinkingLevels) == 0 {
		w.SupportedThinkingLevels = []piwire.ThinkingLevel{piwire.ThinkingOff}
	}
	return w
}
