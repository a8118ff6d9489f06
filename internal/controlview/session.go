package controlview

import (
	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// Position projects a position.
func Position(p session.Position) *roostv1.Position {
	return &roostv1.Position{Epoch: uint64(p.Epoch), Seq: uint64(p.Seq)}
}

// Session projects a state without its transcript.
func Session(s *session.State) *roostv1.Session {
	w := &roostv1.Session{
		Id: string(s.ID), Name: text(s.Name), Cwd: text(s.Cwd), Model: model(s.Model), Thinking: string(s.Thinking),
		Parent: string(s.Parent), Origin: text(s.Origin), CreatedAt: stamp(s.CreatedAt), UpdatedAt: stamp(s.UpdatedAt),
		ItemCount: uint32(len(s.Settled) + len(s.Unsettled())), Usage: usage(&s.Usage),
		Mode: mode(s.Mode),
	}
	for _, u := range s.Queue {
		w.Queue = append(w.Queue, Item(u))
	}
	ended := s.LastRun
	if s.Run != nil {
		w.Run = run(s.Run)
		ended--
	}
	if ended > 0 {
		w.LastRun = &roostv1.RunResult{Id: uint32(ended), Outcome: outcome(s.LastOutcome), Error: text(s.LastError)}
	}
	return w
}

func run(r *session.Run) *roostv1.Run {
	w := &roostv1.Run{
		Id: uint32(r.ID), PromptId: text(r.Prompt), StartedAt: stamp(r.At), Pass: uint32(r.Pass), Aborting: r.Aborting,
		Compacting: r.Compaction != nil,
	}
	if r.Wait != nil {
		w.Retry = &roostv1.Retry{Reason: text(r.Wait.Reason), ResumeAt: stamp(r.Wait.Until)}
	}
	return w
}

// maxPage is how many bytes of items a page holds at most, unless a single one is larger or
// those in progress are.
const maxPage = 2 << 20

// Items projects a page of the transcript: at most limit of the items before the one with
// index before, the newest ones, and fewer when they are large; at least one. Before 0 is the
// end of the transcript, where the items in progress are always part of the page. It returns
// the index of the first item of the page.
func Items(s *session.State, before, limit int) (items []*roostv1.Item, first int) {
	settled, always := s.Settled, s.Unsettled()
	if before > 0 {
		all := s.Transcript()
		settled, always = all[:min(before, len(all))], nil
	}
	size := 0
	for _, i := range always {
		size += weight(i)
	}
	first = len(settled)
	for n := len(always); first > 0 && n < max(1, limit); n++ {
		if size += weight(settled[first-1]); size > maxPage && n > 0 {
			break
		}
		first--
	}
	items = make([]*roostv1.Item, 0, len(settled)-first+len(always))
	for _, i := range settled[first:] {
		items = append(items, Item(i))
	}
	for _, i := range always {
		items = append(items, Item(i))
	}
	return items, first
}

// weight is about how many bytes an item takes on the wire.
func weight(i session.Item) int {
	const overhead = 128
	size := overhead
	switch i := i.(type) {
	case *session.User:
		for _, b := range i.Blocks {
			size += overhead + len(session.BlockText(b))
		}
	case *session.Assistant:
		for _, b := range i.Blocks {
			size += overhead + len(session.BlockText(b))
		}
	case *session.Tool:
		size += len(i.Input) + len(i.Output) + len(i.Details) + overhead*len(i.Images)
	}
	return size
}

// Summary projects an entry of the index of sessions.
func Summary(m session.Meta) *roostv1.SessionSummary {
	return &roostv1.SessionSummary{
		Id: string(m.ID), Name: text(m.Name), Cwd: text(m.Cwd), Model: model(m.Model), Thinking: string(m.Thinking),
		Parent: string(m.Parent), Origin: text(m.Origin), CreatedAt: stamp(m.CreatedAt), UpdatedAt: stamp(m.UpdatedAt),
		Active: m.Active,
	}
}

// Model projects what is known of a model.
func Model(m catalog.Model) *roostv1.Model {
	w := &roostv1.Model{
		Model: model(m.Ref), Name: text(m.Name), ContextWindow: uint32(m.ContextWindow), MaxOutput: uint32(m.MaxOutput),
		Input: m.Input, Authenticated: m.Authenticated, InputCost: m.Cost.Input, OutputCost: m.Cost.Output,
		CacheReadCost: m.Cost.CacheRead, CacheWriteCost: m.Cost.CacheWrite,
	}
	for _, t := range m.ThinkingLevels {
		w.ThinkingLevels = append(w.ThinkingLevels, string(t))
	}
	return w
}

// mode gives the mode of a session that has not been given one.
func mode(m session.Mode) string {
	if m == "" {
		m = session.ModeAgent
	}
	return string(m)
}

func model(m session.ModelRef) string {
	if m.IsZero() {
		return ""
	}
	return text(m.String())
}
