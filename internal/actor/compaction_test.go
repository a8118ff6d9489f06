package actor

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

// big is a tool whose result has about n tokens.
func big(n int) fakeTool {
	return fakeTool{name: "big", repeatable: true, run: func(context.Context, tool.Call, func(tool.Progress)) tool.Result {
		return tool.Result{Text: strings.Repeat("word ", n)}
	}}
}

// overflows refuses the request as too large.
func overflows() answer { return breaks(provider.FaultContext, "") }

// summaryOf is what the last request was told in place of old items.
func told(req *provider.Request) string {
	var b strings.Builder
	for _, i := range req.Items {
		if u, ok := i.(*session.User); ok {
			b.WriteString(session.BlockText(u.Blocks[0]) + "\n")
		}
	}
	return b.String()
}

// grow makes a session of about n × 5,000 tokens in n runs.
func grow(r *rig, n int) session.ID {
	r.t.Helper()
	id := r.create()
	for range n {
		r.model.answers = append(r.model.answers, calls("big {}"), says("ok"))
		r.do(id, session.Prompt{Text: "grow"})
		r.settle(id)
	}
	return id
}

func TestCompactionBeforeTheWindowIsFull(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, []tool.Tool{big(5000)})
		defer func() { r.stop() }()
		id := grow(r, 30)
		s := r.state(id)
		if s.Shortened == 0 {
			t.Error("old outputs were not shortened")
		}
		if len(s.Settled) != 30*4 {
			t.Errorf("%d items are left of the history", len(s.Settled))
		}
		if last := s.Settled[len(s.Settled)-1].(*session.Assistant); last.Status != session.Complete {
			t.Errorf("the last answer is %v", last.Status)
		}
		r.replays(s)
	})
}

func TestCompactionOnDemand(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, []tool.Tool{big(5000)})
		defer func() { r.stop() }()
		id := grow(r, 12)
		n := r.model.count()
		r.model.answers = append(r.model.answers[:n], says("the summary"))
		before := len(r.state(id).Settled)
		r.do(id, session.Compact{})
		synctest.Wait()
		s := r.settle(id)
		if s.Summary != "the summary" || s.Summarized == 0 || len(s.Settled) != before || s.LastOutcome != session.RunCompleted {
			t.Fatalf("summary %q of %d items, %d are left, outcome %v", s.Summary, s.Summarized, len(s.Settled), s.LastOutcome)
		}
		r.do(id, session.Prompt{Text: "and on"})
		s = r.settle(id)
		req := r.model.asked(r.model.count() - 1)
		if text := told(req); !strings.Contains(text, "the summary") || !strings.Contains(text, "and on") || len(req.Items) >= before {
			t.Errorf("the model is told %d items:\n%s", len(req.Items), text)
		}
		r.replays(s)
	})
}

// A steer during a compaction is delivered once, afterwards; a crash starts the summary again.
func TestSteerAndCrashDuringCompaction(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, []tool.Tool{big(5000)})
		defer func() { r.stop() }()
		id := grow(r, 12)
		n := r.model.count()
		r.model.answers = append(r.model.answers[:n], hangs("half a summ"), says("the summary"), says("steered"))
		r.do(id, session.Compact{})
		synctest.Wait()
		if p := r.state(id).Phase(); p != session.PhaseCompaction {
			t.Fatalf("phase %v", p)
		}
		r.refused(id, session.Prompt{Text: "no"}, session.Busy)
		r.do(id, session.Steer{Text: "a steer"})
		r.crash()
		s := r.settle(id)
		if s.Summary != "the summary" {
			t.Errorf("summary %q", s.Summary)
		}
		if got := tell(s); strings.Count(got, "a steer") != 1 || !strings.HasSuffix(got, "user \"a steer\"\nassistant complete \"steered\"\n") {
			t.Errorf("transcript ends %s", got[max(0, len(got)-200):])
		}
	})
}

func TestAbortStopsACompaction(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, []tool.Tool{big(5000)})
		defer func() { r.stop() }()
		id := grow(r, 12)
		n := r.model.count()
		r.model.answers = append(r.model.answers[:n], hangs("half"))
		r.do(id, session.Compact{})
		synctest.Wait()
		began := time.Now()
		r.do(id, session.Abort{})
		s := r.settle(id)
		if s.Summary != "" || s.LastOutcome != session.RunAborted || time.Since(began) > 2*time.Second {
			t.Errorf("summary %q, outcome %v after %v", s.Summary, s.LastOutcome, time.Since(began))
		}
		r.do(id, session.Prompt{Text: "still there"})
		if s := r.settle(id); s.LastOutcome != session.RunCompleted {
			t.Errorf("the next run ended %v", s.LastOutcome)
		}
	})
}

// A request that is too large is made smaller once and repeated; if that does not help, the
// run ends with an error and the session stays usable.
func TestOverflow(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, []tool.Tool{big(5000)})
		defer func() { r.stop() }()
		id := grow(r, 12)
		n := r.model.count()
		r.model.answers = append(r.model.answers[:n], overflows(), says("the summary"), says("it fits"), overflows(), says("another"), overflows())
		r.do(id, session.Prompt{Text: "too much"})
		s := r.settle(id)
		if got := tell(s); s.LastOutcome != session.RunCompleted || !strings.HasSuffix(got, "user \"too much\"\nassistant complete \"it fits\"\n") {
			t.Errorf("outcome %v: %s", s.LastOutcome, got[max(0, len(got)-200):])
		}
		r.do(id, session.Prompt{Text: "and again"})
		s = r.settle(id)
		if s.LastOutcome != session.RunFailed {
			t.Errorf("outcome %v", s.LastOutcome)
		}
		r.do(id, session.Prompt{Text: "usable"})
		if s := r.settle(id); s.LastOutcome != session.RunCompleted {
			t.Errorf("afterwards: %v %q", s.LastOutcome, s.LastError)
		}
	})
}

// A summary that cannot be had is no reason to lose the session.
func TestSummaryFails(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, []tool.Tool{big(5000)})
		defer func() { r.stop() }()
		id := grow(r, 12)
		n := r.model.count()
		r.model.answers = append(r.model.answers[:n], breaks(provider.FaultAuth, "half a summary"), says("ok"))
		r.do(id, session.Compact{})
		s := r.settle(id)
		if s.Summary != "" || s.Shortened == 0 || s.LastOutcome != session.RunCompleted {
			t.Errorf("summary %q, shortened %d, outcome %v", s.Summary, s.Shortened, s.LastOutcome)
		}
		r.do(id, session.Prompt{Text: "on"})
		if s := r.settle(id); s.LastOutcome != session.RunCompleted {
			t.Errorf("the next run ended %v", s.LastOutcome)
		}
	})
}

// Compactions that never help come to an end.
func TestEndlessCompaction(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, []tool.Tool{big(5000)})
		defer func() { r.stop() }()
		id := grow(r, 12)
		n := r.model.count()
		r.model.answers = r.model.answers[:n]
		for range 40 {
			r.model.answers = append(r.model.answers, overflows())
		}
		r.do(id, session.Prompt{Text: "too much"})
		s := r.settle(id)
		if s.LastOutcome != session.RunFailed || r.model.count() > n+6 {
			t.Errorf("outcome %v after %d requests", s.LastOutcome, r.model.count()-n)
		}
	})
}

// Switched off, the context is made smaller only when a provider says that it must be.
func TestCompactionSwitchedOff(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRigWith(t, func(c *Config) { c.Compaction.Off = true }, []tool.Tool{big(5000)})
		defer func() { r.stop() }()
		id := grow(r, 30)
		if s := r.state(id); s.Summarized != 0 || s.Shortened != 0 {
			t.Errorf("summarised %d, shortened %d", s.Summarized, s.Shortened)
		}
		n := r.model.count()
		r.model.answers = append(r.model.answers[:n], overflows(), says("the summary"), says("it fits"))
		r.do(id, session.Prompt{Text: "more"})
		if s := r.settle(id); s.Summary != "the summary" || s.LastOutcome != session.RunCompleted {
			t.Errorf("summary %q, outcome %v", s.Summary, s.LastOutcome)
		}
	})
}

// A session of many runs stays in proportion: what a pass is told does not grow, and neither
// do the events that are kept beside the items.
func TestLongSession(t *testing.T) {
	simulate(t, func(t *testing.T) {
		runs := 5000
		if testing.Short() {
			runs = 500
		}
		r := newRig(t, []tool.Tool{big(200)})
		defer func() { r.stop() }()
		id := grow(r, runs)
		s := r.state(id)
		if s.Users != uint32(runs) || s.LastRun != session.RunID(runs) || s.LastOutcome != session.RunCompleted {
			t.Errorf("%d messages, run %d ended %v", s.Users, s.LastRun, s.LastOutcome)
		}
		snapshot, err := r.log.Load(t.Context(), id)
		if err != nil || int(s.Seq-snapshot.Head.Seq) > 50 {
			t.Errorf("%d events are kept, %v", s.Seq-snapshot.Head.Seq, err)
		}
		size := 0
		for _, i := range r.model.asked(r.model.count() - 1).Items {
			if x, ok := i.(*session.Tool); ok {
				size += len(x.Output)
			}
		}
		if size > 500<<10 {
			t.Errorf("the last pass is told %d bytes of results", size)
		}
	})
}
