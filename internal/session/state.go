package session

import (
	"slices"
	"strings"
)

// State is what the events of a session add up to. It belongs to one goroutine; others get
// a [State.Clone]. Fields are for reading: only Apply changes them.
type State struct {
	Head
	// Settled holds the items that never change again, in transcript order.
	Settled []Item
	// Queue holds the steers that wait for the next pause between passes.
	Queue []*User
	// Run is the run in progress, nil while the session is idle.
	Run *Run
}

// Head is the part of a state that does not grow with the transcript.
type Head struct {
	ID        ID
	Cwd       string
	Name      string
	Model     ModelRef
	Thinking  Thinking
	Parent    ID
	Origin    string
	CreatedAt int64 // milliseconds since 1970
	UpdatedAt int64 // milliseconds since 1970
	Seq       Seq   // of the last event applied

	LastRun     RunID // the newest run, also while it is in progress
	LastOutcome Outcome
	LastError   string
	LastFault   Fault
	Users       uint32 // user items ever made, which their ids count
	Usage       Usage  // of all passes and compactions

	Mode    Mode     // ModeAgent when empty
	Context string   // the hash of what the model knows of the project
	Grants  []string // what may be done without asking again

	// What the model is told in place of old items.
	Summary    string
	Summarized int // items before it are replaced by Summary
	Shortened  int // tool outputs of items before it are shortened
	Compacted  int // items there were when that changed last

	RunSeq   Seq               // of the event that began the newest run
	TakenUps []Seq             // of each TakenUp of that run, the first maxTakenUps; shared by clones
	Front    map[string][]byte // what front ends remember; shared by clones, so never changed in place
}

// Run is a run in progress.
type Run struct {
	ID       RunID
	Prompt   string
	At       int64 // when it began, milliseconds since 1970
	Pass     int   // passes begun
	Aborting bool
	Offer    string   // the blob with the tools that a client runs, or empty
	Issued   []CallID // calls of Batch that a client may have begun to run
	Attempt  int      // breaks of the current pass since it last made progress
	Breaks   int      // breaks of the whole run, which tell requests apart and are limited

	// Live is the assistant item that streams in, nil between passes.
	Live *Assistant
	// Wait is set while a broken pass waits to be taken up again.
	Wait *Wait
	// Compaction is set while old items are summarised.
	Compaction *Compaction
	// Calls are the calls of the last pass until all have results, and Batch their items in
	// the same order.
	Calls []ToolCall
	Batch []*Tool

	manual      bool     // it began as a compaction that somebody asked for
	resume      bool     // it began as another try at what the run before left unanswered
	last        bool     // a result has said that the run ends with it
	repeats     []CallID // calls of Batch that may be repeated
	compactions int      // compactions since the last pass that succeeded
	overflowed  bool     // the current pass did not fit the context window before

	texts   []*strings.Builder // the text of each block of Live
	outputs []*strings.Builder // the output of each item of Batch
	cut     bool               // the calls are those of a cut pass
	stop    StopReason         // how the last pass ended
	failed  string             // why the last pass failed, "" when it did not
	fault   Fault
}

// Wait is a pause before a broken pass is taken up again.
type Wait struct {
	Reason   string
	Until    int64 // milliseconds since 1970
	Overflow bool  // the context has to be made smaller first
}

// Compaction is a summary in the making.
type Compaction struct{ Through int }

// Phase is what a session is doing.
type Phase uint8

// The phases.
const (
	PhaseIdle Phase = iota
	PhaseTurn
	PhaseRetry
	PhaseCompaction
)

// Phase returns what the session is doing.
func (s *State) Phase() Phase {
	switch {
	case s.Run == nil:
		return PhaseIdle
	case s.Run.Compaction != nil:
		return PhaseCompaction
	case s.Run.Wait != nil:
		return PhaseRetry
	}
	return PhaseTurn
}

// Transcript returns every item in order, the ones in progress last. The slice is new.
func (s *State) Transcript() []Item {
	items := make([]Item, len(s.Settled), len(s.Settled)+8)
	copy(items, s.Settled)
	return append(items, s.Unsettled()...)
}

// Unsettled returns the items in progress, in transcript order: the tools of the last pass,
// or the answer that streams in.
func (s *State) Unsettled() []Item {
	if s.Run == nil {
		return nil
	}
	var items []Item
	for _, t := range s.Run.Batch {
		items = append(items, t)
	}
	if s.Run.Live != nil {
		items = append(items, s.Run.Live)
	}
	return items
}

// Tool returns the item of a call of the last pass, or nil.
func (s *State) Tool(call CallID) *Tool {
	if s.Run != nil {
		for _, t := range s.Run.Batch {
			if t.Call == call {
				return t
			}
		}
	}
	return nil
}

// Clone returns a copy that later changes of s do not reach. Its cost is that of the items
// in progress, not of the transcript. The copy may be read by many goroutines at once, or
// be folded further by one.
func (s *State) Clone() *State {
	c := *s
	c.Settled = slices.Clip(s.Settled)
	c.Queue = append([]*User(nil), s.Queue...)
	if s.Run != nil {
		r := *s.Run
		r.texts, r.outputs = nil, nil
		r.Calls = slices.Clip(r.Calls)
		r.Issued, r.repeats = slices.Clip(r.Issued), slices.Clip(r.repeats)
		if r.Live != nil {
			live := *r.Live
			live.Blocks = append([]Block(nil), live.Blocks...)
			r.Live = &live
		}
		r.Batch = make([]*Tool, len(s.Run.Batch))
		for i, t := range s.Run.Batch {
			item := *t
			r.Batch[i] = &item
		}
		c.Run = &r
	}
	return &c
}

// FindPrompt returns the user item that a prompt or steer with the client's id made, queued
// ones included, or nil. An empty id finds nothing.
func (s *State) FindPrompt(id string) *User {
	if id == "" {
		return nil
	}
	for _, u := range s.Queue {
		if u.Prompt == id {
			return u
		}
	}
	for _, v := range slices.Backward(s.Settled) {
		if u, ok := v.(*User); ok && u.Prompt == id {
			return u
		}
	}
	return nil
}

// MayRepeat reports whether running a call twice does no harm.
func (r *Run) MayRepeat(call CallID) bool { return slices.Contains(r.repeats, call) }
