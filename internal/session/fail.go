package session

// Fail returns the events that end the run in progress with an error of roost itself, so
// that the session is idle afterwards whatever state its run was in.
func (s *State) Fail(reason string) []Event {
	run := s.Run
	if run == nil {
		return nil
	}
	var events []Event
	if run.Compaction != nil {
		events = append(events, s.compactionFailed(reason))
	}
	for _, t := range run.Batch {
		if t.Status == Streaming {
			events = append(events, ToolEnded{Call: t.Call, IsError: true, Output: withOutput(t.Output, "Interrupted: "+reason)})
		}
	}
	calls := run.Calls[len(run.Batch):]
	if run.Live != nil {
		events = append(events, PassEnded{Status: Failed, Error: reason})
		calls = run.Live.Calls()
	}
	for _, c := range calls {
		events = append(events, ToolStarted{Call: c.Call}, ToolEnded{Call: c.Call, IsError: true, Output: "Interrupted: " + reason})
	}
	return append(events, s.endFailed(reason, FaultNone)...)
}

// endFailed ends the run with an error. The steers that wait were acknowledged, so they are in the
// transcript, for the next time the model is asked.
func (s *State) endFailed(reason string, fault Fault) []Event {
	var events []Event
	for _, u := range s.Queue {
		events = append(events, SteerDelivered{Item: u.ID})
	}
	return append(events, RunEnded{Outcome: RunFailed, Error: reason, Fault: fault})
}
