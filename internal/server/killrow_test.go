package server

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/cursor/cursortest"
	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// A tool that may be repeated was running: it runs again, and its result is that of a call that nothing has
// interrupted.
func TestKillDuringARepeatableTool(t *testing.T) {
	asked, answer := make(chan struct{}, 9), make(chan struct{})
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		select {
		case <-answer:
			_, _ = w.Write([]byte("seen"))
		case <-r.Context().Done():
		}
	}))
	defer page.Close()
	h := newHome(t, "")
	h.scripted("rules: [{default: true, passes: [[{tool: {name: fetch, input: {url: "+page.URL+"}}}], [{text: 'done'}]]}]",
		"web: {allow_private: true}\npermissions: {without_client: allow}\n")
	h.start()
	c := h.dial()
	id := h.create(c, "go")
	fetched := func(what string) {
		t.Helper()
		select {
		case <-asked:
		case <-h.context().Done():
			c.With(id, func(v *pi.View) { t.Fatalf("%s has not come:\n%s\n%s", what, tell(v), h.read("log")) })
		}
	}
	fetched("the request")
	h.restart()
	fetched("the request after the kill")
	close(answer)
	c = h.dial()
	h.attach(c, id)
	h.until(c, id, "the end of the run", idle)
	c.With(id, func(v *pi.View) {
		if got := tell(v); strings.Count(got, "fetch complete: ") != 1 || !strings.Contains(got, "seen") || !strings.HasSuffix(got, "assistant complete: done\n") {
			t.Errorf("transcript:\n%s", got)
		}
	})
}

// An abort was acknowledged and its tool had not ended: the run ends as aborted, and the model is not asked.
func TestKillDuringAnAbort(t *testing.T) {
	h := newHome(t, `rules: [{default: true, passes: [[{tool: {name: bash, input: {command: 'trap "" TERM; echo began; while :; do sleep 0.1; done'}}}], [{text: never}]]}]`)
	h.start()
	c := h.dial()
	id := h.create(c, "go")
	h.until(c, id, "output", func(v *pi.View) bool { return strings.Contains(tell(v), "began") })
	if _, err := h.api().Abort(h.context(), id); err != nil {
		t.Fatal(err)
	}
	h.restart()
	c = h.dial()
	h.attach(c, id)
	h.until(c, id, "the end of the run", idle)
	c.With(id, func(v *pi.View) {
		if got := tell(v); strings.Contains(got, "never") || strings.Count(got, "bash error: began") != 1 {
			t.Errorf("transcript:\n%s", got)
		}
	})
	s, err := h.api().Session(h.context(), id, 0, 0)
	if err != nil || s.Session.LastRun.GetOutcome() != roostv1.Outcome_OUTCOME_ABORTED {
		t.Errorf("%v, %v", s, err)
	}
}

// slowSummary is a model that takes its time for a summary.
const slowSummary = `
rules:
  - {contains: Write the summary, passes: [[{delay: 1s}, {text: in short}]]}
  - {default: true, passes: [[{text: 'an answer that is long enough to be summarised, word after word', repeat: 20}]]}
`

// A compaction was going on: it is made once, and the session goes on from it.
func TestKillDuringACompaction(t *testing.T) {
	h := newHome(t, slowSummary)
	h.start()
	c := h.dial()
	id := h.create(c, "one")
	h.until(c, id, "the answer", idle)
	for _, text := range []string{"two", "three"} {
		h.do(c, &piwire.Prompt{SessionID: id, Text: text})
		h.until(c, id, "the answer", idle)
	}
	if _, err := h.api().Compact(h.context(), id); err != nil {
		t.Fatal(err)
	}
	h.until(c, id, "the compaction", func(v *pi.View) bool { return v.Snapshot.Phase == piwire.PhaseCompaction })
	h.restart()
	c = h.dial()
	h.attach(c, id)
	h.until(c, id, "the end of the compaction", idle)
	h.do(c, &piwire.Prompt{SessionID: id, Text: "four"})
	h.until(c, id, "the answer", func(v *pi.View) bool { return idle(v) && strings.Count(tell(v), "user: ") == 4 })
	h.stop(syscall.SIGKILL)
	log, err := sqlitelog.Open(filepath.Join(h.dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	state, err := eventlog.Restore(t.Context(), log, session.ID(id))
	if err != nil || state.Summary != "in short" {
		t.Errorf("the summary is %q, %v", state.Summary, err)
	}
}

// A Cursor client had asked for a compaction.
func TestCursorKillDuringACompaction(t *testing.T) {
	h := newHome(t, slowSummary)
	h.start()
	began := newLatch()
	c := h.editor(cursortest.Options{Backoff: 300 * time.Millisecond, Watch: when(began, func(m *agentv1.AgentServerMessage) bool {
		return m.GetInteractionUpdate().GetSummaryStarted() != nil
	})})
	for range 3 {
		h.turn(c, cursortest.Prompt{Text: "go"})
	}
	wait := h.began(c, cursortest.Prompt{Action: &agentv1.ConversationAction{
		Action: &agentv1.ConversationAction_SummarizeAction{SummarizeAction: &agentv1.SummarizeAction{}},
	}})
	began.wait(h)
	h.restart()
	r, err := wait()
	if err != nil {
		t.Fatalf("%v; %s", err, explain(r))
	}
	if s := r.Checkpoint; len(s.GetTurns()) != 3 || s.GetSelfSummaryCount() != 1 {
		t.Errorf("%d turns, %d summaries; %s", len(s.GetTurns()), s.GetSelfSummaryCount(), explain(r))
	}
	h.turn(c, cursortest.Prompt{Text: "go on"})
}

// A Cursor client's steer was queued: it stays queued, and is in the transcript once.
func TestCursorKillWithAQueuedSteer(t *testing.T) {
	h := newHome(t, `
rules:
  - {contains: hurry, passes: [[{text: " hurried"}]]}
  - {default: true, passes: [[{text: 'one two three', every: 500ms}, {delay: 1s}]]}
`)
	h.start()
	said, queued := newLatch(), newLatch()
	c := h.editor(cursortest.Options{Backoff: 300 * time.Millisecond, Watch: func(_ string, m *agentv1.AgentServerMessage) {
		if m.GetInteractionUpdate().GetTextDelta() != nil {
			said.open()
		}
		if m.GetInteractionUpdate().GetContextInjectionState().GetState().GetQueued() != nil {
			queued.open()
		}
	}})
	wait := h.began(c, cursortest.Prompt{Text: "go"})
	said.wait(h)
	steered := make(chan error, 1)
	go func() {
		_, err := c.Steer(h.context(), "hurry")
		steered <- err
	}()
	queued.wait(h)
	h.restart()
	r, err := wait()
	if err != nil {
		t.Fatalf("%v; %s", err, explain(r))
	}
	if err := <-steered; err != nil && !errors.Is(err, cursortest.ErrSteerTimeout) {
		t.Error(err)
	}
	if got := h.transcript(c.ConversationID()); strings.Count(got, "user: hurry\n") != 1 || strings.Count(got, " hurried") != 1 || strings.Count(got, "one two three") != 1 {
		t.Errorf("pi sees:\n%s", got)
	}
}

// A Cursor client has stopped its run when the process ends: the run does not go on.
func TestCursorKillDuringAnAbort(t *testing.T) {
	h := newHome(t, shellThenSay)
	h.start()
	h.fifo("fifo")
	started := newLatch()
	c := h.editor(cursortest.Options{Watch: when(started, shellStarted)})
	wait := h.began(c, cursortest.Prompt{Text: "go"})
	started.wait(h)
	if err := c.Stop("enough"); err != nil {
		t.Error(err)
	}
	h.stop(syscall.SIGKILL)
	if _, err := wait(); !errors.Is(err, cursortest.ErrStopped) {
		t.Error(err)
	}
	h.start()
	p := h.dial()
	h.attach(p, c.ConversationID())
	h.until(p, c.ConversationID(), "the end of the run", idle)
	if r := h.turn(c, cursortest.Prompt{Text: "hurry"}); r.Text != " hurried" {
		t.Error(explain(r))
	}
	if got := h.transcript(c.ConversationID()); strings.Contains(got, " said ") || strings.Count(got, "Shell error") != 1 {
		t.Errorf("pi sees:\n%s", got)
	}
}
