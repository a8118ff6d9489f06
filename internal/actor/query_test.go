package actor

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

// asks is a judge that asks about the tool "risky", unless the session has a grant, and
// refuses the tool "never".
func asks(c *Config) {
	c.Judge = func(s *session.State, call session.ToolCall) session.Verdict {
		switch {
		case call.Name == "never":
			return session.Verdict{Refusal: "A rule forbids it."}
		case call.Name == "risky" && !slices.Contains(s.Grants, "risky"):
			return session.Verdict{Query: &session.Query{Reason: "it is risky", Grants: []string{"risky"}}}
		}
		return session.Verdict{}
	}
}

func TestQuery(t *testing.T) {
	for name, c := range map[string]struct {
		answer session.Answer
		want   []string
	}{
		"allowed": {session.Answer{Allow: true}, []string{`tool risky ok "risky{}"`}},
		"denied":  {session.Answer{Reason: "Not now."}, []string{`tool risky error "The person did not allow it. Not now."`}},
	} {
		t.Run(name, func(t *testing.T) {
			simulate(t, func(t *testing.T) {
				r := newRigWith(t, asks, []tool.Tool{echo("risky"), echo("never"), echo("fine")}, calls("fine {}", "risky {}", "never {}"), says("ok"))
				defer func() { r.stop() }()
				id := r.create()
				r.do(id, session.Prompt{Text: "go"})
				synctest.Wait()
				// The question outlives the process, and what needs none has not waited.
				r.crash()
				synctest.Wait()
				s := r.state(id)
				if got := s.Tool("call1-1-0"); got.Status != session.Complete {
					t.Errorf("the tool that needs no answer is %v", got.Status)
				}
				if q := s.Tool("call1-1-1").Query; q == nil || q.Reason != "it is risky" {
					t.Fatalf("nobody is asked: %+v", q)
				}
				r.refused(id, session.Answer{Call: "call1-1-0", Allow: true}, session.NotFound)
				c.answer.Call = "call1-1-1"
				r.do(id, c.answer)
				// Exactly one answer wins.
				r.refused(id, session.Answer{Call: "call1-1-1"}, session.NotFound)
				want := append([]string{`user "go"`, `assistant complete calls fine({}) calls risky({}) calls never({})`, `tool fine ok "fine{}"`}, c.want...)
				r.wants(id, append(want, `tool never error "A rule forbids it."`, `assistant complete "ok"`)...)
			})
		})
	}
}

func TestRememberedAnswer(t *testing.T) {
	simulate(t, func(t *testing.T) {
		var kept []string
		r := newRigWith(t, func(c *Config) {
			asks(c)
			c.Remember = func(_ string, grants []string) error { kept = append(kept, grants...); return nil }
		}, []tool.Tool{echo("risky")}, calls("risky {}"), calls("risky {}"), says("ok"))
		defer func() { r.stop() }()
		id := r.create()
		r.do(id, session.Prompt{Text: "go"})
		synctest.Wait()
		r.do(id, session.Answer{Call: "call1-1-0", Allow: true, Scope: session.Always})
		s := r.settle(id) // the second call is not asked about
		if len(kept) != 1 || kept[0] != "risky" || len(s.Grants) != 1 {
			t.Errorf("kept %v, the session has %v", kept, s.Grants)
		}
		r.replays(s)
	})
}

func TestAbortWhileAsking(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRigWith(t, asks, []tool.Tool{echo("risky")}, calls("risky {}"))
		defer r.stop()
		id := r.create()
		r.do(id, session.Prompt{Text: "go"})
		synctest.Wait()
		r.do(id, session.Abort{})
		r.refused(id, session.Answer{Call: "call1-1-0", Allow: true}, session.NotFound)
		r.wants(id, `user "go"`, `assistant complete calls risky({})`, `tool risky error "Aborted before the tool was run."`)
	})
}

func TestModesThatChangeNothing(t *testing.T) {
	simulate(t, func(t *testing.T) {
		r := newRig(t, []tool.Tool{echo("bash"), echo("read")}, calls("bash {}", "read {}"), says("ok"))
		defer r.stop()
		id := r.create()
		r.refused(id, session.SetMode{Mode: "odd"}, session.Invalid)
		r.do(id, session.SetMode{Mode: session.ModeAsk})
		r.do(id, session.Prompt{Text: "go"})
		s := r.settle(id)
		if got := s.Settled[3].(*session.Tool); got.Status != session.Failed {
			t.Errorf("bash in the mode ask: %+v", got)
		}
		if got := s.Settled[4].(*session.Tool); got.Status != session.Complete {
			t.Errorf("read in the mode ask: %+v", got)
		}
		req := r.model.asked(0)
		if len(req.Tools) != 1 || req.Tools[0].Name != "read" {
			t.Errorf("the model is offered %v", req.Tools)
		}
		if u, ok := req.Items[0].(*session.User); !ok || u.Note != session.NoteMode {
			t.Errorf("the model is not told of the mode: %+v", req.Items[0])
		}
	})
}
