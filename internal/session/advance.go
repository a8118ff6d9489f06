package session

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Limits on one run, against a model or provider that never comes to an end.
const (
	MaxPasses  = 1000 // passes of a run
	MaxBreaks  = 50   // broken streams and restarts of a run
	MaxAttempt = 6    // breaks of a pass in a row without progress
	MaxRepeats = 4    // failures of one call with the same arguments before it is refused
	MaxRefused = 4    // times it is refused before the run is ended
)

// MaxCompactions limits how often the context is made smaller without a pass that succeeds.
const MaxCompactions = 3

// Policy is what the rules of the session depend on beside its events. Its answers become
// events, so a replay asks nobody. It is called by one goroutine and does no I/O.
type Policy interface {
	// Judge says whether a call of the last pass may run.
	Judge(s *State, c ToolCall) Verdict
	// Shrink says how to make the context smaller, and false when it is small enough. With
	// force it must not be small enough: a provider has said so.
	Shrink(s *State, force bool) (Shrink, bool)
}

// Verdict is whether a call may run: at once, after its Query has been answered, or not at
// all, because of Refusal.
type Verdict struct {
	Host    Host // who runs it
	Query   *Query
	Limit   int64  // milliseconds that the query is open; 0 for ever
	Refusal string // for the model

	Repeatable bool // running it twice does no harm
}

// Shrink makes the context smaller: the items before Summarize are summarised, unless it is
// no further than they are already; and tool outputs before Shorten are shortened.
type Shrink struct {
	Summarize int
	Shorten   int
}

// Advance returns what follows from the state by itself, at the time at (milliseconds since
// 1970): the tools of a pass that has ended, a steer and the next pass, a smaller context, a
// broken pass taken up again, the end of the run. It returns nothing while the state waits
// for something outside (see [State.Effects]) or for a client. Apply what it returns and call
// it again, until it returns nothing.
func (s *State) Advance(p Policy, at int64) []Event {
	run := s.Run
	switch {
	case run == nil:
		return nil
	case run.Compaction != nil:
		if run.Aborting {
			return []Event{s.compactionFailed("aborted")}
		}
		return nil
	case run.Live != nil:
		return s.advanceLive(p, at)
	case len(run.Batch) < len(run.Calls):
		return s.startTools(p, at)
	case len(run.Calls) > 0:
		return s.endUnanswered(at)
	case run.Aborting:
		return []Event{RunEnded{Outcome: RunAborted}}
	}
	return s.nextPass(p)
}

func (s *State) advanceLive(p Policy, at int64) []Event {
	run := s.Run
	switch {
	case run.Aborting:
		return []Event{PassEnded{Status: Aborted}}
	case run.Wait != nil && run.Wait.Overflow:
		if events := s.shrink(p, true); events != nil {
			return events
		}
		return []Event{PassEnded{Status: Failed, Error: run.Wait.Reason}}
	case run.Wait != nil && at >= run.Wait.Until:
		return []Event{PassResumed{}}
	}
	return nil
}

// endUnanswered ends the calls that have waited for an answer long enough, and all that wait
// for an answer or a client when the run is aborted. Otherwise the tools are running, or somebody is asked.
func (s *State) endUnanswered(at int64) []Event {
	var events []Event
	for _, t := range s.Run.Batch {
		switch {
		case t.Status != Streaming:
		case t.Host == HostClient && s.Run.Aborting:
			events = append(events, ToolEnded{Call: t.Call, IsError: true, Output: withOutput(t.Output, s.abortedInClient(t.Call))})
		case t.Query == nil:
		case s.Run.Aborting:
			events = append(events, ToolEnded{Call: t.Call, IsError: true, Output: "Aborted before the tool was run."})
		case t.Query.Until > 0 && at >= t.Query.Until:
			events = append(events,
				QueryAnswered{Call: t.Call, Reason: "nobody answered in time"},
				ToolEnded{Call: t.Call, IsError: true, Output: "The person was asked whether this may run, and nobody answered in time."})
		}
	}
	return events
}

func (s *State) abortedInClient(call CallID) string {
	if slices.Contains(s.Run.Issued, call) {
		return "Aborted. The tool had been started, so it may have taken effect."
	}
	return "Aborted before the tool was run."
}

// startTools answers the calls of a pass: each is started, or refused at once when it cannot
// be run. All events are one append, so either every call has begun or none.
func (s *State) startTools(p Policy, at int64) []Event {
	var events []Event
	for _, c := range s.Run.Calls[len(s.Run.Batch):] {
		why := s.refuse(c)
		var verdict Verdict
		if why == "" {
			verdict = p.Judge(s, c)
			why = verdict.Refusal
		}
		if why != "" {
			events = append(events, ToolStarted{Call: c.Call}, ToolEnded{Call: c.Call, IsError: true, Output: why})
			continue
		}
		if verdict.Query != nil && verdict.Limit > 0 {
			verdict.Query.Until = at + verdict.Limit
		}
		events = append(events, ToolStarted{Call: c.Call, Host: verdict.Host, Query: verdict.Query, Repeatable: verdict.Repeatable})
	}
	return events
}

// shrink makes the context smaller, or returns nothing when it is small enough or cannot be
// made smaller.
func (s *State) shrink(p Policy, force bool) []Event {
	if s.Run.compactions >= MaxCompactions {
		return nil
	}
	how, ok := p.Shrink(s, force)
	switch {
	case !ok:
		return nil
	case how.Summarize > s.Summarized:
		return []Event{CompactionStarted{Through: how.Summarize}}
	case how.Shorten > s.Shortened:
		return []Event{CompactionEnded{Summarized: s.Summarized, Summary: s.Summary, Shortened: how.Shorten}}
	}
	return nil
}

// EndCompaction returns the end of the compaction in progress: with a summary, or with why there
// is none. Without one, old tool outputs are shortened as far as a summary would have gone,
// so that the context is smaller all the same.
func (s *State) EndCompaction(summary string, usage *Usage, failure string) Event {
	if failure != "" || summary == "" {
		ended := s.compactionFailed(failure)
		ended.Usage = usage
		return ended
	}
	through := s.Run.Compaction.Through
	return CompactionEnded{Summarized: through, Summary: summary, Shortened: max(s.Shortened, through), Usage: usage}
}

func (s *State) compactionFailed(why string) CompactionEnded {
	ended := CompactionEnded{Summarized: s.Summarized, Summary: s.Summary, Shortened: s.Shortened, Error: why}
	if !s.Run.Aborting {
		ended.Shortened = max(s.Shortened, s.Run.Compaction.Through)
	}
	return ended
}

// refuse says why a call must not be run, in words for the model, or "".
func (s *State) refuse(c ToolCall) string {
	run := s.Run
	switch {
	case run.Aborting:
		return "Aborted before the tool was run."
	case run.failed != "":
		return "The answer ended with an error, so the tool was not run."
	case !c.Complete && run.cut:
		return "The connection to the model broke before the arguments were complete, so the tool was not run. Call it again."
	case run.stop == StopLength:
		return "The answer reached the limit of its length, so the tool was not run. Call it again with shorter arguments, or in several steps."
	case !c.Complete:
		return "The arguments were not complete, so the tool was not run. Call it again."
	}
	if n := s.failures(c); n >= MaxRepeats {
		return fmt.Sprintf("This call has failed %d times with these arguments, so it was not run again. Do something else, or tell the person what is in the way.", n)
	}
	if c.Input == "" {
		return ""
	}
	var v any
	if err := json.Unmarshal([]byte(c.Input), &v); err != nil {
		return fmt.Sprintf("The arguments are not valid JSON (%v), so the tool was not run. Call it again with valid JSON.", err)
	}
	return ""
}

// failures counts how often a call has failed in this run with the same arguments.
func (s *State) failures(c ToolCall) int {
	n := 0
	for _, v := range slices.Backward(s.Settled) {
		switch item := v.(type) {
		case *Tool:
			if item.Run != s.Run.ID {
				return n
			}
			if item.Name == c.Name && item.Input == c.Input && item.Status == Failed {
				n++
			}
		case *User:
			return n // the person has said something about it
		case *Assistant:
		}
	}
	return n
}

// stuck reports whether the model goes on with a call that is refused for failing.
func (s *State) stuck() bool {
	last, ok := s.Settled[len(s.Settled)-1].(*Tool)
	return ok && last.Status == Failed && s.failures(ToolCall{Name: last.Name, Input: last.Input}) >= MaxRepeats+MaxRefused
}

// nextPass decides what comes after a pass and its tools: a steer, a smaller context, another
// pass, or the end.
func (s *State) nextPass(p Policy) []Event {
	run := s.Run
	switch {
	case run.failed != "":
		return s.endFailed(run.failed, run.fault)
	case run.Breaks > MaxBreaks:
		return s.endFailed("the model's answers broke off too often", FaultNone)
	case s.stuck():
		return s.endFailed("the model repeats a call that keeps failing", FaultNone)
	case run.Pass >= MaxPasses:
		return s.endFailed(fmt.Sprintf("the run reached its limit of %d passes", MaxPasses), FaultNone)
	}
	asked, unread := s.asked()
	switch {
	case run.last && len(s.Queue) == 0:
		return []Event{RunEnded{Outcome: RunCompleted}}
	case len(s.Queue) > 0 && !unread:
		return []Event{SteerDelivered{Item: s.Queue[0].ID}} // one at a time
	case !asked:
		return []Event{RunEnded{Outcome: RunCompleted}}
	}
	if events := s.shrink(p, false); events != nil {
		return events
	}
	return []Event{s.passStarted()}
}

// asked reports whether the transcript ends with something that the model has to answer,
// tool results or a message of this run, and whether it is such a message. Notes do not
// count: they are for the next time the model is asked.
func (s *State) asked() (asked, unread bool) {
	if s.Run.resume && s.Run.Pass == 0 {
		return s.Unanswered(), false
	}
	for _, v := range slices.Backward(s.Settled) {
		switch item := v.(type) {
		case *Assistant:
			return false, false
		case *Tool:
			return item.Run == s.Run.ID, false
		case *User:
			if item.Note == NoteNone {
				unread = item.Run == s.Run.ID
				return unread, unread
			}
		}
	}
	return false, false
}

// Unanswered reports whether the settled transcript ends with something that no model has
// answered to the end: a message, tool results, or an answer that broke off.
func (s *State) Unanswered() bool {
	for _, v := range slices.Backward(s.Settled) {
		switch item := v.(type) {
		case *Assistant:
			return item.Status != Complete
		case *Tool:
			return true
		case *User:
			if item.Note == NoteNone {
				return true
			}
		}
	}
	return false
}

func (s *State) passStarted() Event {
	pass := s.Run.Pass + 1
	return PassStarted{Pass: pass, Item: passItemID(s.Run.ID, pass), Model: s.Model}
}

// Break returns what follows when the stream of the current pass ends with an error. A pass
// that may be repeated is taken up again after delay milliseconds; but once a call has
// begun, the answer is settled as it is and the calls are answered, because no model can
// continue inside a call.
func (s *State) Break(reason string, retry bool, delay, at int64) []Event {
	run := s.Run
	switch {
	case run.Aborting:
		return []Event{PassEnded{Status: Aborted, Error: reason}}
	case len(run.Live.Calls()) > 0 && retry:
		return []Event{PassEnded{Status: Complete, Stop: StopToolUse, Cut: true}}
	case !retry || run.Attempt+1 >= MaxAttempt || run.Breaks >= MaxBreaks:
		return []Event{PassEnded{Status: Failed, Error: reason}}
	}
	return []Event{PassInterrupted{Reason: reason, ResumeAt: at + delay}}
}

// Overflow returns what follows when the request of the current pass did not fit the model's
// context window: it is made smaller once and the pass repeated.
func (s *State) Overflow(reason string, at int64) []Event {
	run := s.Run
	if run.Aborting || run.overflowed || len(run.Live.Calls()) > 0 {
		return s.Break(reason, false, 0, at)
	}
	return []Event{PassInterrupted{Reason: reason, ResumeAt: at, Overflow: true}}
}

// Recover settles what was in progress when the process died (DESIGN 6): a pass is taken up
// again, a tool that may be repeated is left to [State.Effects], any other ends as an error. Repeatable
// speaks for the calls of older logs, which do not say it themselves.
// Apply the events, then go on with Advance.
func (s *State) Recover(repeatable func(tool string) bool, at int64) []Event {
	run := s.Run
	if run == nil {
		return nil
	}
	events := []Event{TakenUp{}}
	if run.Live != nil && run.Wait == nil && run.Compaction == nil {
		events = append(events, s.Break("the server was restarted", true, 0, at)...)
	}
	for _, t := range run.Batch {
		if t.Status != Streaming || t.Host != HostWorkspace || t.Query != nil {
			continue
		}
		switch {
		case run.Aborting:
			events = append(events, ToolEnded{Call: t.Call, IsError: true, Output: withOutput(t.Output, "Aborted.")})
		case !run.MayRepeat(t.Call) && !repeatable(t.Name):
			events = append(events, ToolEnded{Call: t.Call, IsError: true, Output: withOutput(t.Output, "Interrupted: the server was restarted while the tool ran, so its outcome is unknown. Check before you run it again.")})
		case t.Output != "":
			events = append(events, ToolOutput{Call: t.Call, Replace: true})
		}
	}
	return events
}

func withOutput(output, notice string) string {
	if output == "" {
		return notice
	}
	return output + "\n\n" + notice
}
