package session

import (
	"encoding/json"
	"fmt"
)

// Limits on one run, against a model or provider that never comes to an end.
const (
	MaxPasses  = 1000 // passes of a run
	MaxBreaks  = 50   // broken streams and restarts of a run
	MaxAttempt = 6    // breaks of a pass in a row without progress
)

// Advance returns what follows from the state by itself, at the time at (milliseconds since
// 1970): the tools of a pass that has ended, a steer and the next pass, a broken pass taken
// up again, the end of the run. It returns nothing while the state waits for something
// outside (see [State.Effects]) or for a client. Apply what it returns and call it again,
// until it returns nothing.
func (s *State) Advance(at int64) []Event {
	run := s.Run
	switch {
	case run == nil:
		return nil
	case run.Live != nil:
		return s.advanceLive(at)
	case len(run.Batch) < len(run.Calls):
		return s.startTools()
	case len(run.Calls) > 0:
		return nil // tools are running
	case run.Aborting:
		return []Event{RunEnded{Outcome: RunAborted}}
	}
	return s.nextPass()
}

func (s *State) advanceLive(at int64) []Event {
	run := s.Run
	switch {
	case run.Aborting:
		return []Event{PassEnded{Status: Aborted}}
	case run.Wait != nil && at >= run.Wait.Until:
		return []Event{PassResumed{}}
	}
	return nil
}

// startTools answers the calls of a pass: each is started, or refused at once when it cannot
// be run. All events are one append, so either every call has begun or none.
func (s *State) startTools() []Event {
	var events []Event
	for _, c := range s.Run.Calls[len(s.Run.Batch):] {
		events = append(events, ToolStarted{Call: c.Call, Host: HostWorkspace})
		if why := s.refuse(c); why != "" {
			events = append(events, ToolEnded{Call: c.Call, IsError: true, Output: why})
		}
	}
	return events
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
	if c.Input == "" {
		return ""
	}
	var v any
	if err := json.Unmarshal([]byte(c.Input), &v); err != nil {
		return fmt.Sprintf("The arguments are not valid JSON (%v), so the tool was not run. Call it again with valid JSON.", err)
	}
	return ""
}

// nextPass decides what comes after a pass and its tools: a steer, another pass, or the end.
func (s *State) nextPass() []Event {
	run := s.Run
	switch {
	case run.failed != "":
		return []Event{RunEnded{Outcome: RunFailed, Error: run.failed}}
	case run.Breaks > MaxBreaks:
		return []Event{RunEnded{Outcome: RunFailed, Error: "the model's answers broke off too often"}}
	case run.Pass >= MaxPasses:
		return []Event{RunEnded{Outcome: RunFailed, Error: fmt.Sprintf("the run reached its limit of %d passes", MaxPasses)}}
	case len(s.Queue) > 0:
		return []Event{SteerDelivered{Item: s.Queue[0].ID}, s.passStarted()}
	}
	if _, said := s.Settled[len(s.Settled)-1].(*Assistant); said {
		return []Event{RunEnded{Outcome: RunCompleted}}
	}
	return []Event{s.passStarted()}
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

// Recover settles what was in progress when the process died (DESIGN 6): a pass is taken up
// again, a tool that may be repeated is left to [State.Effects], any other ends as an error.
// Apply the events, then go on with Advance.
func (s *State) Recover(repeatable func(tool string) bool, at int64) []Event {
	run := s.Run
	if run == nil {
		return nil
	}
	var events []Event
	if run.Live != nil && run.Wait == nil {
		events = s.Break("the server was restarted", true, 0, at)
	}
	for _, t := range run.Batch {
		if t.Status != Streaming || t.Host != HostWorkspace {
			continue
		}
		switch {
		case run.Aborting:
			events = append(events, ToolEnded{Call: t.Call, IsError: true, Output: withOutput(t.Output, "Aborted.")})
		case !repeatable(t.Name):
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
