package session

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// maxLiveOutput bounds the output that a running tool shows, in bytes: twice what a result
// may hold, so that trimming is rare.
const maxLiveOutput = 100 << 10

// maxTakenUps bounds what a session remembers of how often a run was taken up.
const maxTakenUps = 64

// Apply moves s past r. Events come from Decide, Advance or Recover of the same state, or
// from the event log, so they fit; one that does not is a broken invariant and panics.
func (s *State) Apply(r Record) {
	if r.Seq != s.Seq+1 {
		panic(fmt.Sprintf("session %s: event %d applied after %d", s.ID, r.Seq, s.Seq))
	}
	s.Seq, s.UpdatedAt = r.Seq, r.At
	switch e := r.Event.(type) {
	case Created:
		s.ID, s.Cwd, s.Name, s.Parent, s.Origin = e.ID, e.Cwd, e.Name, e.Parent, e.Origin
		s.Model, s.Thinking, s.CreatedAt = e.Model, e.Thinking, r.At
	case Renamed:
		s.Name = e.Name
	case ModelSet:
		s.Model, s.Thinking = e.Model, e.Thinking
	case ThinkingSet:
		s.Thinking = e.Thinking
	case ModeSet:
		s.Mode = e.Mode
		if e.Offer != "" {
			s.Run.Offer = e.Offer
		}
	case ItemsCopied, Rewound, NoteAdded, CompactionStarted, CompactionEnded:
		s.applyContext(r)
	case RunStarted:
		s.LastRun, s.RunSeq, s.TakenUps = e.Run, r.Seq, nil
		s.Run = &Run{
			ID: e.Run, Prompt: e.Prompt, At: r.At, Offer: e.Offer,
			manual: e.Item == "" && !e.Resume, resume: e.Resume,
		}
		if e.Item != "" {
			s.Users++
			s.settle(&User{ID: e.Item, Run: e.Run, Prompt: e.Prompt, Blocks: e.Blocks, At: r.At})
		}
	case SteerQueued:
		s.Users++
		s.Queue = append(s.Queue, &User{ID: e.Item, Run: s.Run.ID, Prompt: e.Prompt, Steer: true, Blocks: e.Blocks, At: r.At})
	case SteerDelivered:
		s.deliver(e.Item)
	case PassStarted, BlockStarted, Delta, BlockEnded, PassInterrupted, PassResumed, PassEnded:
		s.applyPass(r)
	case ToolStarted, ToolIssued, ToolOutput, ToolEnded, QueryAnswered:
		s.applyTool(r)
	case FrontSet:
		s.Front = maps.Clone(s.Front)
		if len(e.Value) == 0 {
			delete(s.Front, e.Key)
			break
		}
		if s.Front == nil {
			s.Front = make(map[string][]byte)
		}
		s.Front[e.Key] = e.Value
	case TakenUp:
		if len(s.TakenUps) < maxTakenUps {
			s.TakenUps = append(slices.Clip(s.TakenUps), r.Seq)
		}
	case AbortRequested:
		s.Run.Aborting, s.Queue = true, nil
	case RunEnded:
		s.LastOutcome, s.LastError, s.LastFault = e.Outcome, e.Error, e.Fault
		s.Run, s.Queue = nil, nil
	default:
		panic(fmt.Sprintf("session: unknown event %T", e))
	}
}

// applyContext folds what changes the transcript or what the model is told of it.
func (s *State) applyContext(r Record) {
	switch e := r.Event.(type) {
	case ItemsCopied:
		s.Settled = append(s.Settled, e.Items...)
		s.LastRun, s.Users = max(s.LastRun, e.LastRun), max(s.Users, e.Users)
	case Rewound:
		s.Settled = slices.Clip(s.Settled[:e.Items])
		s.Shortened, s.Compacted = min(s.Shortened, e.Items), min(s.Compacted, e.Items)
		if s.Summarized > e.Items {
			s.Summary, s.Summarized = "", 0
		}
	case NoteAdded:
		s.Users++
		s.settle(&User{ID: e.Item, Run: s.LastRun, Note: e.Note, Blocks: []Block{Text{Text: e.Text}}, At: r.At})
		if e.Context != "" {
			s.Context = e.Context
		}
	case CompactionStarted:
		s.Run.Compaction = &Compaction{Through: e.Through}
		s.Run.compactions++
	case CompactionEnded:
		if s.Run.Compaction == nil {
			s.Run.compactions++
		}
		s.Run.Compaction = nil
		s.Summary, s.Summarized, s.Shortened, s.Compacted = e.Summary, e.Summarized, e.Shortened, len(s.Settled)
		if e.Usage != nil {
			s.Usage = s.Usage.Add(*e.Usage)
		}
		if w := s.Run.Wait; w != nil {
			s.Run.Wait = &Wait{Reason: w.Reason, Until: w.Until}
		}
	}
}

func (s *State) settle(i Item) { s.Settled = append(s.Settled, i) }

func (s *State) deliver(id ItemID) {
	for i, u := range s.Queue {
		if u.ID == id {
			s.Queue = append(s.Queue[:i:i], s.Queue[i+1:]...)
			s.Run.last = false
			s.settle(u)
			return
		}
	}
	panic(fmt.Sprintf("session %s: steer %s is not queued", s.ID, id))
}

func (s *State) applyPass(r Record) {
	run := s.Run
	switch e := r.Event.(type) {
	case PassStarted:
		run.Pass, run.Attempt, run.stop, run.failed, run.overflowed = e.Pass, 0, StopNone, "", false
		run.Live = &Assistant{ID: e.Item, Run: run.ID, Pass: e.Pass, Model: e.Model, At: r.At}
		run.texts = nil
	case BlockStarted:
		run.Attempt = 0
		run.Live.Blocks = append(run.Live.Blocks, e.Block)
	case Delta:
		run.Attempt = 0
		run.grow(e.Index, e.Text)
	case BlockEnded:
		run.endBlock(e)
	case PassInterrupted:
		run.Attempt++
		run.Breaks++
		run.Wait = &Wait{Reason: e.Reason, Until: e.ResumeAt, Overflow: e.Overflow}
		run.overflowed = run.overflowed || e.Overflow
	case PassResumed:
		run.Wait = nil
	case PassEnded:
		s.endPass(e)
	}
}

// grow adds text to block i. The builder's string shares its memory, and memory that was
// handed out is never written again, so clones keep reading what they have.
func (r *Run) grow(i int, text string) {
	for len(r.texts) < len(r.Live.Blocks) {
		r.texts = append(r.texts, nil)
	}
	b := r.texts[i]
	if b == nil {
		b = new(strings.Builder)
		b.WriteString(BlockText(r.Live.Blocks[i]))
		r.texts[i] = b
	}
	b.WriteString(text)
	switch block := r.Live.Blocks[i].(type) {
	case Text:
		block.Text = b.String()
		r.Live.Blocks[i] = block
	case Reasoning:
		block.Text = b.String()
		r.Live.Blocks[i] = block
	case ToolCall:
		block.Input = b.String()
		r.Live.Blocks[i] = block
	case Image:
		panic("session: an answer has no images")
	}
}

func (r *Run) endBlock(e BlockEnded) {
	switch block := r.Live.Blocks[e.Index].(type) {
	case Reasoning:
		block.Signature, block.Redacted = e.Signature, e.Redacted
		r.Live.Blocks[e.Index] = block
	case ToolCall:
		block.Complete = true
		r.Live.Blocks[e.Index] = block
	case Text, Image:
	}
}

func (s *State) endPass(e PassEnded) {
	run := s.Run
	live := run.Live
	live.Status, live.Stop, live.Error = e.Status, e.Stop, e.Error
	live.ResponseModel, live.Usage = e.ResponseModel, e.Usage
	if e.Usage != nil {
		s.Usage = s.Usage.Add(*e.Usage)
	}
	run.Live, run.texts, run.Wait = nil, nil, nil
	run.stop, run.cut, run.failed = e.Stop, e.Cut, ""
	if e.Cut {
		run.Breaks++
	}
	if e.Status == Failed {
		run.failed, run.fault = e.Error, e.Fault
	} else {
		run.compactions = 0
	}
	run.Calls = live.Calls()
	s.settle(live)
}

func (s *State) applyTool(r Record) {
	run := s.Run
	switch e := r.Event.(type) {
	case ToolStarted:
		call := run.Calls[len(run.Batch)]
		if call.Call != e.Call {
			panic(fmt.Sprintf("session %s: tool %s started in place of %s", s.ID, e.Call, call.Call))
		}
		run.Batch = append(run.Batch, &Tool{
			ID: toolItemID(e.Call), Run: run.ID, Call: e.Call, Name: call.Name, Input: call.Input, Host: e.Host,
			Query: e.Query, At: r.At,
		})
		if e.Repeatable {
			run.repeats = append(slices.Clip(run.repeats), e.Call)
		}
	case ToolIssued:
		run.Issued = append(slices.Clip(run.Issued), e.Call)
	case QueryAnswered:
		s.Tool(e.Call).Query = nil
		s.Grants = append(slices.Clip(s.Grants), e.Grants...)
	case ToolOutput:
		run.output(e)
	case ToolEnded:
		t := s.Tool(e.Call)
		t.Status, t.Output, t.Images, t.Details, t.Query = Complete, e.Output, e.Images, e.Details, nil
		if e.IsError {
			t.Status = Failed
		}
		run.last = run.last || e.Last
		s.settleBatch()
	}
}

// output adds to what a running tool shows, and keeps its end when it grows too long.
func (r *Run) output(e ToolOutput) {
	for len(r.outputs) < len(r.Batch) {
		r.outputs = append(r.outputs, nil)
	}
	for i, t := range r.Batch {
		if t.Call != e.Call {
			continue
		}
		b := r.outputs[i]
		if b == nil || e.Replace || b.Len()+len(e.Text) > maxLiveOutput {
			b = new(strings.Builder)
			if !e.Replace {
				b.WriteString(tail(t.Output, maxLiveOutput/2))
			}
			r.outputs[i] = b
		}
		b.WriteString(e.Text)
		t.Output = b.String()
	}
}

// tail returns the last whole lines of s within limit bytes, or the end of its last line.
func tail(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	s = strings.ToValidUTF8(s[len(s)-limit:], "")
	if _, rest, ok := strings.Cut(s, "\n"); ok {
		return rest
	}
	return s
}

// settleBatch moves the tools of a pass into the transcript once each has its result.
func (s *State) settleBatch() {
	run := s.Run
	if len(run.Batch) < len(run.Calls) {
		return
	}
	for _, t := range run.Batch {
		if t.Status == Streaming {
			return
		}
	}
	for _, t := range run.Batch {
		s.settle(t)
	}
	run.Calls, run.Batch, run.Issued, run.outputs = nil, nil, nil, nil
}
