package prompt

import (
	"slices"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

// Limits says when the context of a session is made smaller. The zero value has useful ones.
type Limits struct {
	Off     bool // only when a provider or a person demands it
	Reserve int  // tokens of the window that are kept free; 0 means 16,384, and at most a quarter of the window
	Keep    int  // tokens of the newest items that are kept as they are; 0 means 20,000
}

// goal is what part of the trigger the context is to fill after it was made smaller, so that
// it is not made smaller again at once.
const goal = 0.6

func (l Limits) trigger(m catalog.Model) int {
	reserve := l.Reserve
	if reserve == 0 {
		reserve = 16_384
	}
	return m.ContextWindow - min(reserve, m.ContextWindow/4)
}

func (l Limits) keep(trigger int) int {
	keep := l.Keep
	if keep == 0 {
		keep = 20_000
	}
	return min(keep, int(float64(trigger)*goal)-SummaryTokens)
}

// sent returns the items that a model is told of s: what it was told of the project, then
// the summary in place of old items, with the last message of the person before the newer
// ones unless they begin with one, then these. It costs in proportion to the newer ones.
func sent(s *session.State) []session.Item {
	from := min(s.Summarized, len(s.Settled))
	items := ShortenOld(s.Settled[from:], s.Shortened-from, OldOutput)
	if from == 0 {
		return items
	}
	var head []session.Item
	for _, item := range s.Settled[:from] {
		if u, ok := item.(*session.User); ok && u.Note == session.NoteContext {
			head = append(head, item)
		}
	}
	head = append(head, message(summaryText(s.Summary)))
	if len(items) == 0 || !fromPerson(items[0]) {
		for _, item := range slices.Backward(s.Settled[:from]) {
			if fromPerson(item) {
				head = append(head, item)
				break
			}
		}
	}
	return append(head, items...)
}

// used is about how many tokens the next request of s takes.
func used(s *session.State, tools []provider.Tool) int {
	after := session.ItemID("")
	if s.Compacted > 0 && s.Compacted <= len(s.Settled) {
		after = s.Settled[s.Compacted-1].ItemID()
	}
	return Used(sent(s), after, System(session.ModeAgent), tools)
}

// Shrink says how to make the context of s smaller, or false when it is small enough or
// cannot be. First old tool outputs are shortened, if that is enough; then all but the newest
// items are summarised. With force it is not small enough, whatever the estimate, and nothing
// less than a summary will do.
func Shrink(s *session.State, m catalog.Model, l Limits, tools []provider.Tool, force bool) (session.Shrink, bool) {
	trigger := l.trigger(m)
	size := used(s, tools)
	if !force && (l.Off || size <= trigger) {
		return session.Shrink{}, false
	}
	for keep := l.keep(trigger); keep > 0; keep /= 4 {
		cut := Cut(s.Settled, keep)
		if cut > s.Shortened && !force {
			shorter := Estimate(ShortenOld(s.Settled[s.Summarized:max(s.Summarized, cut)], cut, OldOutput), "", nil)
			saved := Estimate(s.Settled[s.Summarized:max(s.Summarized, cut)], "", nil) - shorter
			if float64(size-saved) <= goal*float64(trigger) {
				return session.Shrink{Shorten: cut}, true
			}
		}
		if cut > s.Summarized {
			return session.Shrink{Summarize: cut, Shorten: cut}, true
		}
	}
	if n := len(s.Settled); n > s.Shortened {
		return session.Shrink{Shorten: n}, true
	}
	return session.Shrink{}, false
}

// Summary returns the request for a summary of the items of s before through.
func Summary(s *session.State, through int, m catalog.Model) *provider.Request {
	items := slices.DeleteFunc(slices.Clone(s.Settled[s.Summarized:through]), func(i session.Item) bool {
		u, ok := i.(*session.User)
		return ok && u.Note == session.NoteContext
	})
	r := CompactionRequest(Summarize{
		Model: s.Model, Items: items, Previous: s.Summary, Files: FilesOf(s.Settled[:through]),
		Budget: m.ContextWindow/2 - SummaryTokens,
	})
	r.CacheKey = string(s.ID)
	return r
}

// ModeNote tells a model that the mode has changed.
func ModeNote(m session.Mode) string {
	return NoteMark + "\n\nThe mode has changed, and what was said of the old one no longer holds. " + modeText(m)
}
