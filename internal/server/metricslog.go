package server

import (
	"context"

	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/telemetry"
)

// countedLog is an event log that counts what happens to sessions: whatever does is appended.
type countedLog struct {
	eventlog.Log
	appends, failed, events, retries *telemetry.Counter
	created, deleted                 *telemetry.Counter
	runs                             map[session.Outcome]*telemetry.Counter
	calls                            map[bool]*telemetry.Counter // by whether they failed
}

func newCountedLog(set *telemetry.Set, log eventlog.Log) *countedLog {
	const (
		appends, appendsHelp   = "roost_eventlog_appends_total", "Batches of events that were to be appended to the event log, by what came of it."
		sessions, sessionsHelp = "roost_sessions_total", "Sessions that were created and deleted since the start."
		runs, runsHelp         = "roost_runs_total", "Runs that have ended, by their outcome."
		calls, callsHelp       = "roost_tool_calls_total", "Tool calls that have ended, those that clients run included, by their outcome."
	)
	return &countedLog{
		Log:     log,
		appends: set.Counter(appends, appendsHelp, "outcome", "ok"),
		failed:  set.Counter(appends, appendsHelp, "outcome", "error"),
		events:  set.Counter("roost_events_total", "Events that were appended to the event log."),
		retries: set.Counter("roost_provider_retries_total", "Requests to providers that were made again, to go on with an answer that had failed or broken off."),
		created: set.Counter(sessions, sessionsHelp, "change", "created"),
		deleted: set.Counter(sessions, sessionsHelp, "change", "deleted"),
		runs: map[session.Outcome]*telemetry.Counter{
			session.RunCompleted: set.Counter(runs, runsHelp, "outcome", "completed"),
			session.RunAborted:   set.Counter(runs, runsHelp, "outcome", "aborted"),
			session.RunFailed:    set.Counter(runs, runsHelp, "outcome", "failed"),
		},
		calls: map[bool]*telemetry.Counter{
			false: set.Counter(calls, callsHelp, "outcome", "ok"),
			true:  set.Counter(calls, callsHelp, "outcome", "error"),
		},
	}
}

// Append is that of the log.
func (l *countedLog) Append(ctx context.Context, id session.ID, after session.Seq, records []session.Record) error {
	if err := l.Log.Append(ctx, id, after, records); err != nil {
		l.failed.Inc()
		return err
	}
	l.appends.Inc()
	l.events.Add(uint64(len(records)))
	for _, r := range records {
		switch e := r.Event.(type) {
		case session.Created:
			l.created.Inc()
		case session.PassResumed:
			l.retries.Inc()
		case session.ToolEnded:
			l.calls[e.IsError].Inc()
		case session.RunEnded:
			l.runs[e.Outcome].Inc()
		}
	}
	return nil
}

// Delete is that of the log.
func (l *countedLog) Delete(ctx context.Context, id session.ID) error {
	err := l.Log.Delete(ctx, id)
	if err == nil {
		l.deleted.Inc()
	}
	return err
}
