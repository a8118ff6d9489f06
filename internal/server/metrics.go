package server

import (
	"context"
	"os"
	"time"

	"github.com/roost-dev/roost/internal/actor"
	"github.com/roost-dev/roost/internal/datadir"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/telemetry"
)

// metricsPath is where a monitoring system reads how the server is doing.
const metricsPath = "/metrics"

// commitBounds are the limits of the histogram of commits: from a fast disk to one that makes
// people wait.
var commitBounds = []float64{0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5}

// observeLog adds what the database tells.
func observeLog(set *telemetry.Set, log *sqlitelog.Log, dir *datadir.Dir) {
	commits := set.Histogram("roost_commit_seconds", "Time of a commit of the event log, its sync included.", commitBounds)
	log.ObserveCommits(func(took time.Duration) { commits.Observe(took.Seconds()) })
	for _, f := range []struct{ label, name string }{
		{"main", sqlitelog.FileName}, {"wal", sqlitelog.FileName + "-wal"},
	} {
		path := dir.Join(f.name)
		set.GaugeFunc("roost_database_bytes", "Size of the database file and of its write-ahead log.", func() float64 {
			info, err := os.Stat(path)
			if err != nil {
				return 0 // the log of a database that was not written yet
			}
			return float64(info.Size())
		}, "file", f.label)
	}
}

// observeEngine adds how much the engine holds.
func observeEngine(set *telemetry.Set, engine *actor.Engine) {
	set.GaugeFunc("roost_sessions", "Sessions in memory.", func() float64 {
		sessions, _ := engine.Load()
		return float64(sessions)
	})
	set.GaugeFunc("roost_runs", "Runs in progress.", func() float64 {
		_, runs := engine.Load()
		return float64(runs)
	})
}

// watchedEngine is the engine as one front end sees it. Its watchers are counted.
type watchedEngine struct {
	*actor.Engine
	watchers *telemetry.Gauge
	slow     *telemetry.Counter
}

func watchedBy(set *telemetry.Set, engine *actor.Engine, client string) watchedEngine {
	return watchedEngine{
		Engine:   engine,
		watchers: set.Gauge("roost_watchers", "Subscriptions to sessions, by the protocol of their client.", "client", client),
		slow: set.Counter("roost_watcher_resets_total",
			"Times that a watcher was too slow and got the whole state instead of events.", "client", client),
	}
}

// Watch is that of the engine.
func (w watchedEngine) Watch(ctx context.Context, id session.ID, from *session.Position) (*live.Subscription, error) {
	sub, err := w.Engine.Watch(ctx, id, from)
	if err != nil {
		return nil, err
	}
	w.watchers.Add(1)
	sub.OnClose(func() { w.watchers.Add(-1) })
	sub.OnSlow(w.slow.Inc)
	return sub, nil
}

// stuckClients counts those that were given up because they do not read. A client of pi's
// protocol may stay: it costs its connection and nothing more.
func stuckClients(set *telemetry.Set, client string) func() {
	return set.Counter("roost_stuck_clients_total",
		"Clients that were dropped because they took nothing for a minute.", "client", client).Inc
}
