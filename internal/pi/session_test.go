package pi_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	client "github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/eventlog/memlog"
	"github.com/roost-dev/roost/internal/piwire"
)

// create, then list, detach, detach again, attach (SPEC 6.5.2).
func TestLifeOfASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.ready()
		name := "n"
		p.ask("1", &piwire.Create{Cwd: "/", Name: &name})
		s := answerOf(t, p.take(), "1").Result.(*piwire.SessionResult).Session
		if s.ID != "s1" || s.Cwd != "/" || *s.Name != "n" || !s.Attached || !s.Locked {
			t.Errorf("created %+v", s)
		}
		if now := time.Now().UnixMilli(); s.CreatedAt != now || s.UpdatedAt != now { // simulated
			t.Errorf("created at %d and %d, want %d", s.CreatedAt, s.UpdatedAt, now)
		}
		p.ask("2", &piwire.List{})
		m := answerOf(t, p.take(), "2").Result.(*piwire.ListResult).Sessions[0]
		if m.ID != "s1" || *m.SessionName != "n" || m.Cwd != "/" {
			t.Errorf("listed %+v", m)
		}
		p.ask("3", &piwire.Detach{SessionID: "s1"})
		p.wants("answer 3 detach s1", "server 2")
		p.ask("4", &piwire.Detach{SessionID: "s1"})
		p.wants("answer 4 detach s1")
		p.ask("5", &piwire.Attach{SessionID: "s1"})
		p.wants("session s1 idle", "answer 5 attach s1 idle", "server 3")
	})
}

// Progress and snapshots reach only who is attached, to any number of sessions.
func TestAttachmentsAreIndependent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.create()
		r.create()
		both, one, none := r.attached("s1", "s2"), r.attached("s2"), r.ready()
		both.take()
		one.take()
		both.ask("1", &piwire.Prompt{SessionID: "s1"})
		if got := both.take(); len(got) < 5 || answerOf(t, got, "1") == nil {
			t.Errorf("got %q", tell(got))
		}
		one.wants()
		none.wants()
	})
}

// Every attached connection controls the session, and sees what the others do.
func TestTwoConnectionsShareASession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.model.then(hangs("x"))
		r.create()
		a, b := r.attached("s1"), r.attached("s1")
		a.take()
		a.ask("1", &piwire.Prompt{SessionID: "s1"})
		b.take()
		b.ask("2", &piwire.Steer{SessionID: "s1", Text: "more"})
		b.wants("session s1 turn queue=1", "answer 2 steer s1 turn queue=1")
		b.ask("3", &piwire.Abort{SessionID: "s1"})
		b.take()
		if got := answerOf(t, a.take(), "1"); tellAnswer(got) != "prompt s1 idle" {
			t.Errorf("prompt: %s", tellAnswer(got))
		}
	})
}

func TestDetachDuringOwnPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		goOn := make(chan struct{})
		r.model.then(until(goOn, "a", "b"))
		p := r.attached(r.create())
		p.ask("1", &piwire.Prompt{SessionID: "s1"})
		p.take()
		p.ask("2", &piwire.Detach{SessionID: "s1"})
		p.wants("answer 2 detach s1", "server 2")
		p.ask("3", &piwire.Steer{SessionID: "s1"})
		p.wants("answer 3 invalid_request: Connection is not attached to session s1")
		close(goOn)
		p.wants("answer 1 prompt s1 idle detached")
		if n := r.server.Attachments(); n != 0 {
			t.Errorf("%d attachments are left", n)
		}
	})
}

// A prompt and a detach in one write: the prompt is obeyed or refused, and answered.
func TestDetachRightBehindAPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.ready()
		for range 100 {
			id := r.create()
			p.ask("0", &piwire.Attach{SessionID: id})
			p.take()
			p.send(&piwire.Request{ID: "1", Command: &piwire.Prompt{SessionID: id}}, &piwire.Request{ID: "2", Command: &piwire.Detach{SessionID: id}})
			got := tellAnswer(answerOf(t, p.take(), "1"))
			if !slices.Contains([]string{"prompt " + id + " idle", "prompt " + id + " idle detached", "invalid_request: Connection is not attached to session " + id}, got) {
				t.Fatalf("got %q", got)
			}
		}
		if n := r.server.Attachments(); n != 0 {
			t.Errorf("%d attachments are left", n)
		}
	})
}

// Whoever attaches again while a prompt is open gets the prompt's answer as attached.
func TestAttachAgainDuringOwnPrompt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		goOn := make(chan struct{})
		r.model.then(until(goOn, "a", "b"))
		p := r.attached(r.create())
		p.ask("1", &piwire.Prompt{SessionID: "s1"})
		p.take() // requests are served side by side: a detach may overtake the prompt
		p.ask("2", &piwire.Detach{SessionID: "s1"})
		p.take()
		p.ask("3", &piwire.Attach{SessionID: "s1"})
		p.wants("session s1 turn", "answer 3 attach s1 turn", "server 3")
		close(goOn)
		got := p.take()
		if a := tellAnswer(answerOf(t, got, "1")); a != "prompt s1 idle" {
			t.Errorf("prompt: %s", a)
		}
		if n := r.server.Attachments(); n != 2 {
			t.Errorf("%d entries for one attachment, want 2", n)
		}
	})
}

// Many attaches of one session in one write make one attachment, and all are answered.
func TestAttachManyTimesAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.create()
		p := r.ready()
		var all []piwire.ClientMessage
		for range 20 {
			all = append(all, &piwire.Request{ID: "1", Command: &piwire.Attach{SessionID: "s1"}})
		}
		p.send(all...)
		n := 0
		for _, line := range tell(p.take()) {
			if line == "answer 1 attach s1 idle" {
				n++
			}
		}
		if n != 20 || r.server.Attachments() != 2 {
			t.Errorf("%d answers, %d entries", n, r.server.Attachments())
		}
	})
}

// A disconnect does not stop the turn; a later client sees all of it.
func TestDisconnectDuringATurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		goOn := make(chan struct{})
		r.model.then(until(goOn, "first ", "second"))
		p := r.attached(r.create())
		p.ask("1", &piwire.Prompt{SessionID: "s1", Text: "hi"})
		p.take()
		p.close()
		synctest.Wait()
		if n := r.server.Attachments(); n != 0 {
			t.Errorf("%d attachments are left", n)
		}
		q := r.ready()
		q.ask("1", &piwire.Attach{SessionID: "s1"})
		s := answerOf(t, q.take(), "1").Result.(*piwire.SessionResult).Session
		live := s.Transcript[1].(*piwire.AssistantItem)
		if live.Status != piwire.AssistantStreaming || live.Content[0].(*piwire.Text).Text != "first " {
			t.Errorf("the unfinished item is %+v", live)
		}
		close(goOn)
		q.take()
		q.ask("2", &piwire.Attach{SessionID: "s1"})
		s = answerOf(t, q.take(), "2").Result.(*piwire.SessionResult).Session
		if text := s.Transcript[1].(*piwire.AssistantItem).Content[0].(*piwire.Text).Text; s.Phase != piwire.PhaseIdle || text != "first second" {
			t.Errorf("phase %s, text %q", s.Phase, text)
		}
	})
}

// After a restart sessions are there with their settings, and none is busy without a driver.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.model.then(hangs("first "), says("second"))
		p := r.attached(r.create())
		p.ask("1", &piwire.SetThinking{SessionID: "s1", ThinkingLevel: piwire.ThinkingHigh})
		p.take()
		p.ask("2", &piwire.Prompt{SessionID: "s1"})
		p.take()
		r.restart()
		if !p.ended() {
			t.Error("the old connection lives")
		}
		c := r.connect()
		s, err := c.Session(t.Context(), &piwire.Attach{SessionID: "s1"})
		if err != nil || s.ThinkingLevel != piwire.ThinkingHigh {
			t.Fatalf("%+v, %v", s, err)
		}
		settle()
		c.With("s1", func(v *client.View) {
			if v.Snapshot.Phase != piwire.PhaseIdle {
				t.Errorf("phase %s", v.Snapshot.Phase)
			}
		})
	})
}

// A deleted session is told to all; who was attached is so no more.
func TestRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.model.then(hangs("x"))
		r.create()
		a, b := r.attached("s1"), r.ready()
		a.ask("1", &piwire.Prompt{SessionID: "s1"})
		a.take()
		b.take()
		r.delete("s1")
		got := tell(a.take())
		slices.Sort(got)
		if want := []string{"answer 1 not_found: there is no such session", "removed s1", "server 2"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		b.wants("removed s1", "server 2")
		a.ask("2", &piwire.Prompt{SessionID: "s1"})
		a.wants("answer 2 invalid_request: Connection is not attached to session s1")
		a.ask("3", &piwire.Attach{SessionID: "s1"})
		a.wants("answer 3 not_found: there is no such session")
		if n := r.server.Attachments(); n != 0 {
			t.Errorf("%d attachments are left", n)
		}
	})
}

// Attached, but the session is gone and the client has not been told yet: not_found.
func TestCommandOnADeadSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.quiet = true
		a := r.attached(r.create())
		r.delete("s1")
		a.take()
		a.ask("1", &piwire.Prompt{SessionID: "s1"})
		a.wants("answer 1 not_found: there is no such session")
	})
}

// A session that fails is taken up again, and its clients notice a snapshot at most.
func TestFailedAppendIsSurvived(t *testing.T) {
	for name, fault := range map[string]memlog.Fault{"before": memlog.Before, "after": memlog.After, "full": memlog.Full} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				a := r.attached(r.create())
				r.log.Fail(1, fault)
				a.ask("1", &piwire.Prompt{SessionID: "s1"})
				got := a.take()
				if e := answerOf(t, got, "1"); e == nil || a.ended() {
					t.Fatalf("got %q", tell(got))
				}
				settle()
				a.take()
				a.ask("2", &piwire.Prompt{SessionID: "s1"})
				settle()
				if e := answerOf(t, a.take(), "2"); e == nil || tellAnswer(e) != "prompt s1 idle" {
					t.Errorf("got %v", e)
				}
			})
		})
	}
}
