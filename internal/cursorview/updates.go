package cursorview

import (
	"fmt"
	"math"
	"slices"

	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Updates turns the records of one session into the interaction updates of one client, in the order
// of the protocol's turn grammar (section 4.2). It has to see every record from a RunStarted on, or
// from the state that Begin was given. Checkpoints, heartbeats, requests to the client and what a
// client's own tools print are not its concern. It is not safe for concurrent use.
type Updates struct {
	cards Cards
	mode  agentv1.AgentMode

	run    session.RunID
	usage  session.Usage
	passes int  // passes that have told their usage
	over   bool // turn_ended was sent

	pass     int
	passAt   int64
	stepOpen bool // step_started was sent and step_completed was not
	ended    bool // the pass has ended, perhaps not its calls
	blocks   []block
	calls    map[session.CallID]*call
	order    []session.CallID // the calls of the pass
	thinking bool             // a thinking block is open at the client
	since    int64            // when it began
	summary  bool             // summary_started was sent

	steers map[session.ItemID]*session.User
	out    []*agentv1.AgentServerMessage
}

// NewUpdates returns the updates for a client that has seen nothing yet. Cards makes the cards of
// calls; it may be nil.
func NewUpdates(cards Cards) *Updates {
	return &Updates{
		cards: cards, mode: agentv1.AgentMode_AGENT_MODE_AGENT,
		calls: map[session.CallID]*call{}, steers: map[session.ItemID]*session.User{},
	}
}

// Begin makes the updates go on from s, as if its records had been applied already: nothing is sent
// for what is open in it, but what follows is.
func (u *Updates) Begin(s *session.State) {
	*u = *NewUpdates(u.cards)
	u.mode = WireMode(s.Mode, u.mode)
	for _, q := range s.Queue {
		u.steers[q.ID] = q
	}
	run := s.Run
	if run == nil {
		u.run = s.LastRun
		u.addUsage(s)
		return
	}
	u.run, u.pass, u.summary = run.ID, run.Pass, run.Compaction != nil
	u.addUsage(s)
	switch {
	case run.Live != nil:
		u.passAt, u.stepOpen = run.Live.At, true
		for _, b := range run.Live.Blocks {
			u.takeBlock(b)
		}
	case len(run.Calls) > 0:
		u.stepOpen, u.ended = true, true
		for _, c := range run.Calls {
			u.takeBlock(c)
		}
	}
	for _, t := range run.Batch {
		c := u.call(t.Call)
		c.started, c.startedAt, c.completed = true, t.At, t.Status != session.Streaming
	}
}

// addUsage adds up what the passes of the run have told, and finds when the last began.
func (u *Updates) addUsage(s *session.State) {
	for _, v := range slices.Backward(s.Settled) {
		switch item := v.(type) {
		case *session.Assistant:
			if item.Run != u.run {
				return
			}
			u.spend(item.Usage)
			if item.Pass == u.pass {
				u.passAt = item.At
			}
		case *session.Tool:
			if item.Run != u.run {
				return
			}
		case *session.User:
			if item.Note == session.NoteNone && item.Run != u.run {
				return
			}
		}
	}
}

func (u *Updates) spend(usage *session.Usage) {
	if usage != nil {
		u.usage = u.usage.Add(*usage)
		u.passes++
	}
}

// Apply moves the updates past r and returns what the client is to be sent, in order. It never
// returns turn_ended: what comes after a run that has ended is decided by its outcome. The messages
// belong to the caller.
func (u *Updates) Apply(r session.Record) []*agentv1.AgentServerMessage {
	u.out = nil
	switch e := r.Event.(type) {
	case session.RunStarted:
		u.run, u.pass, u.usage, u.passes, u.over = e.Run, 0, session.Usage{}, 0, false
	case session.ModeSet:
		u.mode = WireMode(e.Mode, u.mode)
	case session.SteerQueued:
		u.steers[e.Item] = &session.User{ID: e.Item, Prompt: e.Prompt, Steer: true, Blocks: e.Blocks}
	case session.SteerDelivered:
		u.appendUser(e.Item, r.At)
	case session.AbortRequested:
		clear(u.steers)
	case session.PassStarted, session.BlockStarted, session.Delta, session.BlockEnded, session.PassEnded:
		u.applyPass(r)
	case session.ToolStarted:
		u.startTool(e.Call, r.At)
	case session.ToolEnded:
		u.endTool(e, r.At)
	case session.CompactionStarted:
		u.summary = true
		u.send(r.At, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_SummaryStarted{SummaryStarted: &agentv1.SummaryStartedUpdate{}}})
	case session.CompactionEnded:
		u.endSummary(e, r.At)
	case session.RunEnded:
		u.endRun(r.At)
	default:
	}
	out := u.out
	u.out = nil
	return out
}

// TurnEnded returns the turn_ended of the last run, with the usage of all its passes (R52): input is
// the whole prompt, of which what a cache gave or took is a part. After it nothing is sent until the
// next run, and TurnEnded returns nil.
func (u *Updates) TurnEnded() *agentv1.AgentServerMessage {
	if u.over {
		return nil
	}
	u.over = true
	ended := &agentv1.TurnEndedUpdate{}
	if u.passes > 0 {
		ended.InputTokens = new(u.usage.Input + u.usage.CacheRead + u.usage.CacheWrite)
		ended.OutputTokens = new(u.usage.Output)
		ended.CacheReadTokens = new(u.usage.CacheRead)
		ended.CacheWriteTokens = new(u.usage.CacheWrite)
		ended.ReasoningTokens = new(u.usage.Reasoning)
	}
	return update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_TurnEnded{TurnEnded: ended}})
}

// send adds an update, after the end of a thinking block that is open.
func (u *Updates) send(at int64, m *agentv1.InteractionUpdate) {
	if u.over {
		return
	}
	if _, ok := m.GetMessage().(*agentv1.InteractionUpdate_ThinkingDelta); !ok {
		u.endThinking(at)
	}
	u.out = append(u.out, update(m))
}

func (u *Updates) endThinking(at int64) {
	if !u.thinking {
		return
	}
	u.thinking = false
	took := min(max(at-u.since, 0), math.MaxInt32)
	u.send(at, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ThinkingCompleted{
		ThinkingCompleted: &agentv1.ThinkingCompletedUpdate{ThinkingDurationMs: int32(took)},
	}})
}

func (u *Updates) appendUser(id session.ItemID, at int64) {
	user := u.steers[id]
	if user == nil {
		return
	}
	delete(u.steers, id)
	u.send(at, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_UserMessageAppended{
		UserMessageAppended: &agentv1.UserMessageAppendedUpdate{UserMessage: userMessage(user, u.mode)},
	}})
}

// endSummary tells of a compaction that was begun. One that only shortens is not shown.
func (u *Updates) endSummary(e session.CompactionEnded, at int64) {
	if !u.summary {
		return
	}
	completed := &agentv1.SummaryCompletedUpdate{}
	switch {
	case e.Error != "":
		completed.Failed = new(true)
	case e.Summary != "":
		u.send(at, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_Summary{Summary: &agentv1.SummaryUpdate{Summary: e.Summary}}})
	}
	u.summary = false
	u.send(at, &agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_SummaryCompleted{SummaryCompleted: completed}})
}

// endRun closes whatever is open, so that no client is left with a spinner.
func (u *Updates) endRun(at int64) {
	u.endThinking(at)
	for _, id := range u.order {
		if c := u.calls[id]; c.started && !c.completed {
			u.endTool(session.ToolEnded{Call: id, IsError: true, Output: "The run ended before the tool did."}, at)
		}
	}
	u.endSummary(session.CompactionEnded{Error: "the run ended"}, at)
	u.endStep(at)
	clear(u.steers)
}

func (u *Updates) modelCallID() string { return fmt.Sprintf("%d-%d", u.run, u.pass) }
