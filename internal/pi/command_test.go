package pi_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/roost-dev/roost/internal/pi"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

// The table of commands, idle and busy (SPEC 3.4).
func TestCommands(t *testing.T) {
	const (
		busy     = "busy: The session is busy; wait until it is idle, or abort"
		noSteer  = "busy: There is no active prompt to steer"
		noAbort  = "busy: There is no active prompt to abort"
		noPrompt = "busy: The session is busy with another prompt; steer it, abort it, or wait until it is idle"
	)
	for _, c := range []struct {
		cmd  piwire.Command
		idle string
		busy string
	}{
		{&piwire.Create{}, "create s2 idle", "create s2 idle"},
		{&piwire.Attach{SessionID: "s1"}, "attach s1 idle", "attach s1 turn"},
		{&piwire.Detach{SessionID: "s1"}, "detach s1", "detach s1"},
		{&piwire.Prompt{SessionID: "s1"}, "prompt s1 idle", noPrompt},
		{&piwire.Steer{SessionID: "s1", Text: "x"}, noSteer, "steer s1 turn queue=1"},
		{&piwire.Abort{SessionID: "s1"}, noAbort, "abort s1 idle"},
		{&piwire.SetModel{SessionID: "s1", Model: piwire.ModelRef{Provider: "test", ID: "other"}}, "set_model s1 idle", busy},
		{&piwire.SetThinking{SessionID: "s1", ThinkingLevel: piwire.ThinkingHigh}, "set_thinking s1 idle", busy},
		{&piwire.List{}, "list of 1", "list of 1"},
	} {
		t.Run(string(c.cmd.CommandName()), func(t *testing.T) {
			for _, during := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t)
					p := r.attached(r.create())
					want := c.idle
					if during {
						want = c.busy
						r.model.then(hangs("thinking"))
						p.ask("0", &piwire.Prompt{SessionID: "s1"})
						p.take()
					}
					p.ask("1", c.cmd)
					if got := tellAnswer(answerOf(t, p.take(), "1")); got != want {
						t.Errorf("busy %v: got %q, want %q", during, got, want)
					}
				})
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	const detached = "invalid_request: Connection is not attached to session "
	for name, c := range map[string]struct {
		cmd  piwire.Command
		want string
	}{
		"prompt":                  {&piwire.Prompt{SessionID: "s1"}, detached + "s1"},
		"steer":                   {&piwire.Steer{SessionID: "s1"}, detached + "s1"},
		"abort":                   {&piwire.Abort{SessionID: "nope"}, detached + "nope"},
		"set_model":               {&piwire.SetModel{SessionID: "s1", Model: piwire.ModelRef{Provider: "test", ID: "other"}}, detached + "s1"},
		"set_thinking":            {&piwire.SetThinking{SessionID: "s1", ThinkingLevel: "off"}, detached + "s1"},
		"attach an unknown":       {&piwire.Attach{SessionID: "nope"}, "not_found: there is no such session"},
		"attach a path":           {&piwire.Attach{SessionID: "../../etc"}, "not_found: there is no such session"},
		"create with odd model":   {&piwire.Create{Model: &piwire.ModelRef{Provider: "test", ID: "no"}}, "invalid_request: no model test/no"},
		"create in no directory":  {&piwire.Create{Cwd: "/does/not/exist"}, "invalid_request: cwd must be an existing directory of the server"},
		"create in a relative":    {&piwire.Create{Cwd: "tmp"}, "invalid_request: cwd must be an absolute path"},
		"create with odd thought": {&piwire.Create{ThinkingLevel: piwire.ThinkingMax}, `invalid_request: test/model has no thinking level "max"; it has [off high]`},
		"a very long session id":  {&piwire.Prompt{SessionID: strings.Repeat("x", 1<<20)}, (detached + strings.Repeat("x", 1000))[:len("invalid_request: ")+500]},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.create()
				p := r.ready()
				p.ask("1", c.cmd)
				if got := tellAnswer(answerOf(t, p.take(), "1")); got != c.want {
					t.Errorf("got %q, want %q", got, c.want)
				}
				p.ask("2", &piwire.List{}) // an error never closes the connection
				p.wants("answer 2 list of 1")
			})
		})
	}
}

func TestInternalErrorsStayPrivate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		p := r.ready()
		r.engine.set(nil, &provider.Error{Message: "secret"})
		p.ask("1", list.Command)
		p.wants("answer 1 internal_error: Internal server error")
	})
}

// Answers may overtake each other; a slow one holds up no other.
func TestAnswersOvertake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.create()
		p := r.ready()
		block := make(chan struct{})
		r.engine.set(block, nil)
		p.ask("slow", &piwire.List{})
		p.take()
		r.engine.set(nil, nil)
		p.ask("fast", &piwire.Attach{SessionID: id})
		p.wants("session s1 idle", "answer fast attach s1 idle", "server 1")
		close(block)
		p.wants("answer slow list of 1")
	})
}

// Whatever is open, an abort gets through (SPEC 9.25).
func TestAbortPassesEverythingThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *pi.Options) { o.MaxRequests = 4 })
		r.model.then(slices.Repeat([]answer{hangs("x")}, 10)...)
		p := r.ready()
		var ids []string
		for range 10 {
			ids = append(ids, r.create())
		}
		for _, id := range ids {
			p.ask("a"+id, &piwire.Attach{SessionID: id})
			p.take()
			p.ask("p"+id, &piwire.Prompt{SessionID: id})
			p.take()
		}
		p.ask("abort", &piwire.Abort{SessionID: "s10"})
		got := p.take()
		if a := tellAnswer(answerOf(t, got, "abort")); a != "abort s10 idle" {
			t.Errorf("abort: %s", a)
		}
		if a := tellAnswer(answerOf(t, got, "ps10")); a != "prompt s10 idle" {
			t.Errorf("prompt: %s", a)
		}
	})
}

func TestOpenRequestsOfASessionAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.model.then(calls("stuck {}"))
		p := r.attached(r.create())
		p.ask("0", &piwire.Prompt{SessionID: "s1"})
		p.take()
		for range 300 {
			p.ask("a", &piwire.Steer{SessionID: "s1"}) // answered at once, so they do not count
			p.take()
		}
		for range 255 {
			p.ask("b", &piwire.Abort{SessionID: "s1"}) // answered when the tool has ended
		}
		p.take()
		p.ask("c", &piwire.Abort{SessionID: "s1"})
		got := p.take()
		if p.ended() || len(got) != 1 || tell(got)[0] != "answer c busy: 256 requests of this session are open, which is the limit" {
			t.Errorf("got %q", tell(got))
		}
		time.Sleep(time.Minute) // the tool is given up
		got = p.take()
		if a := answerOf(t, got, "0"); a == nil || tellAnswer(a) != "prompt s1 idle" {
			t.Errorf("got %q", tell(got))
		}
	})
}

func TestPromptAnswersAtTheEnd(t *testing.T) {
	for accepted, want := range map[bool][]string{
		false: {"", "prompt s1 idle"},
		true:  {"prompt s1 turn", ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(o *pi.Options) { o.PromptAccepted = accepted })
			goOn := make(chan struct{})
			r.model.then(until(goOn, "a", "b"))
			p := r.attached(r.create())
			p.ask("1", &piwire.Prompt{SessionID: "s1"})
			for n, w := range want {
				got := p.take()
				switch a := answerOf(t, got, "1"); {
				case a == nil && w == "":
				case a == nil || tellAnswer(a) != w:
					t.Errorf("accepted %v, step %d: %q, want %q", accepted, n, tell(got), w)
				}
				if n == 0 {
					close(goOn)
				} else if last := distinct(tell(got)); !slices.Contains(last, "session s1 idle") {
					t.Errorf("the end is not told: %q", last)
				}
			}
		})
	}
}

// An abort and a provider's error end a prompt with ok.
func TestPromptEndsOK(t *testing.T) {
	for name, a := range map[string]answer{"abort": hangs("x"), "refused": breaks(provider.FaultRequest)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.model.then(a)
				p := r.attached(r.create())
				p.ask("1", &piwire.Prompt{SessionID: "s1"})
				got := p.take()
				status := piwire.AssistantError
				if name == "abort" {
					p.ask("2", &piwire.Abort{SessionID: "s1"})
					got, status = p.take(), piwire.AssistantAborted
				}
				s := answerOf(t, got, "1").Result.(*piwire.SessionResult).Session
				last := s.Transcript[len(s.Transcript)-1].(*piwire.AssistantItem)
				if s.Phase != piwire.PhaseIdle || last.Status != status {
					t.Errorf("phase %s, %s", s.Phase, last.Status)
				}
			})
		})
	}
}

// Once idle has been told, a prompt is accepted (trap 47).
func TestPromptRightAfterIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		id := r.create()
		c := r.connect()
		for range 50 {
			if _, err := c.Session(t.Context(), &piwire.Attach{SessionID: id}); err != nil {
				t.Fatal(err)
			}
			if _, err := c.Session(t.Context(), &piwire.Prompt{SessionID: id, Text: "x"}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestEveryKindHasACode(t *testing.T) {
	for k := session.Internal; k <= session.Canceled; k++ {
		if pi.Code(k) == "" {
			t.Errorf("kind %s has no code", k)
		}
	}
}
