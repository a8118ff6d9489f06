package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// What the server must stay within. The first fifth of the time is for warming up.
const (
	warmUp         = 0.2
	mayGrow        = 0.1  // of its mean may a figure grow over the rest, as a straight line fits it
	mayDrift       = 1.25 // times as many bytes on disk per byte of text may there be in the last third than in the first
	mayTakeCPU     = 0.6  // of a core may everyone take together
	leftGoroutines = 10   // more than at the start may be left at the end
	leftFiles      = 10
	leftHeap       = 4e6 // bytes
)

// trend is a straight line through points.
type trend struct {
	mean  float64
	slope float64 // per hour
	error float64 // the standard error of slope
	hours float64 // between the first point and the last
}

// fit finds the line with the least squares.
func fit(samples []sample, f func(sample) float64) trend {
	n := float64(len(samples))
	if n < 3 {
		return trend{slope: math.NaN()}
	}
	var t, y float64
	for _, x := range samples {
		t, y = t+x.at.Hours()/n, y+f(x)/n
	}
	var tt, ty float64
	for _, x := range samples {
		d := x.at.Hours() - t
		tt, ty = tt+d*d, ty+d*(f(x)-y)
	}
	slope, rest, next, before := ty/tt, 0.0, 0.0, 0.0
	for _, x := range samples {
		d := f(x) - y - slope*(x.at.Hours()-t)
		rest, next, before = rest+d*d, next+d*before, d
	}
	// What is high now is likely to be high a minute later as well, because clients stay for a while: then
	// the samples say less than as many independent ones.
	alike := 0.0
	if rest > 0 {
		alike = min(max(next/rest, 0), 0.9)
	}
	return trend{
		mean: y, slope: slope, error: math.Sqrt(rest / (n - 2) / tt * (1 + alike) / (1 - alike)),
		hours: (samples[len(samples)-1].at - samples[0].at).Hours(),
	}
}

// flat reports whether the figure does not grow, or not so much that it is more than chance.
func (l trend) flat() bool {
	return l.slope*l.hours <= mayGrow*l.mean || l.slope <= 2*l.error
}

func (l trend) String() string {
	return fmt.Sprintf("mean %s, %+.3g ± %.2g per hour, %+.1f %% over the time", number(l.mean), l.slope, l.error, 100*l.slope*l.hours/l.mean)
}

// check is a line of the verdict.
type check struct {
	what, limit, found string
	ok                 bool
}

// warm is the samples after the warm-up.
func (s *soak) warm() []sample {
	for i, x := range s.samples {
		if x.at >= time.Duration(warmUp*float64(s.duration)) {
			return s.samples[i:]
		}
	}
	return nil
}

// verdict writes what became of the server, and returns an error if that is not as it should
// be. Before is the server at the start, after when everyone has left, log what it has said.
func (s *soak) verdict(out io.Writer, before, after sample, log string) error {
	checks := append(s.growth(), s.faults(after)...)
	checks = append(checks, left(before, after)...)
	fmt.Fprintln(out, "\n| check | limit | found | verdict |\n|---|---|---|---|")
	good := true
	for _, c := range checks {
		verdict := "ok"
		if !c.ok {
			verdict, good = "**not ok**", false
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s |\n", c.what, c.limit, c.found, verdict)
	}
	fmt.Fprintf(out, "\n%d turns (%d aborted) in %d sessions, %d of them deleted; %s events, %s provider requests, %s of them made again; "+
		"%s watchers too slow, %s clients dropped.\n", s.lives.turns.Load(), s.lives.aborted.Load(), s.lives.sessions.Load(), s.lives.deleted.Load(),
		number(after.sum("roost_events_total")), number(after.sum("roost_provider_requests_total")), number(after.sum("roost_provider_retries_total")),
		number(after.sum("roost_watcher_resets_total")), number(after.sum("roost_stuck_clients_total")))
	for _, err := range s.lives.told {
		fmt.Fprintf(out, "\n- %v", err)
	}
	if good {
		fmt.Fprintln(out, "\nThe server stays as it is.")
		return nil
	}
	fmt.Fprintf(out, "\nThe server says: %.4000s\n", log)
	return errors.New("the server did not stay as it should")
}

// growth is what must not grow.
func (s *soak) growth() []check {
	warm := s.warm()
	var checks []check
	for _, f := range []struct {
		what string
		of   func(sample) float64
	}{
		{"RSS, MB", func(x sample) float64 { return x.resident / 1e6 }},
		{"goroutines", sample.goroutines},
		{"open files", sample.files},
	} {
		line := fit(warm, f.of)
		checks = append(checks, check{f.what, fmt.Sprintf("≤ %+.0f %%, or within two standard errors of none", 100*mayGrow), line.String(), line.flat()})
	}
	cores := 0.0
	if n := len(s.samples); n > 1 {
		cores = (s.samples[n-1].cpu - s.samples[0].cpu).Seconds() / (s.samples[n-1].at - s.samples[0].at).Seconds()
	}
	return append(checks,
		drift("database, bytes per byte of the most text that was in sessions", warm, func(x sample) float64 { return x.database() / x.peak }),
		drift("blobs and outputs, bytes per byte of text ever", warm, func(x sample) float64 { return x.blobs / x.written }),
		check{"processor, all together", fmt.Sprintf("≤ %s cores", number(mayTakeCPU)), number(cores), cores <= mayTakeCPU})
}

// drift checks that a figure is the same at the end as at the beginning.
func drift(what string, samples []sample, f func(sample) float64) check {
	third := len(samples) / 3
	mean := func(part []sample) (sum float64) {
		for _, x := range part {
			sum += f(x) / float64(len(part))
		}
		return sum
	}
	from, to := mean(samples[:third]), mean(samples[len(samples)-third:])
	return check{what, fmt.Sprintf("last third ≤ %s × first", number(mayDrift)), number(from) + " → " + number(to), third > 0 && to <= mayDrift*from}
}

// left is what must be gone once everyone has left.
func left(before, after sample) []check {
	var checks []check
	for _, f := range []struct {
		what  string
		more  float64
		unit  float64
		value func(sample) float64
	}{
		{"goroutines", leftGoroutines, 1, sample.goroutines},
		{"open files", leftFiles, 1, sample.files},
		{"heap, MB", leftHeap, 1e6, sample.heap},
	} {
		from, to := f.value(before), f.value(after)
		checks = append(checks, check{
			f.what + ", once everyone has left", "≤ start + " + number(f.more/f.unit),
			number(from/f.unit) + " → " + number(to/f.unit), to <= from+f.more,
		})
	}
	return append(checks, none("sessions in memory, watchers and runs then", after.sum("roost_sessions")+after.sum("roost_watchers")+after.sum("roost_runs")))
}

// faults is what must not have happened at all.
func (s *soak) faults(after sample) []check {
	return []check{
		none("errors that clients met, stuck runs, transcripts that are not whole", float64(s.lives.wrong.Load())),
		none("errors in the server's log", after.metrics[`roost_log_messages_total{level="error"}`]),
		none("panics", after.sum("roost_panics_total")),
		none("appends that failed", after.metrics[`roost_eventlog_appends_total{outcome="error"}`]),
	}
}

func none(what string, n float64) check { return check{what, "none", number(n), n == 0} }
