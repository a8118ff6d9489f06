package cursortest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// good is a turn without a fault.
func good(text string) script {
	return func(x *exchange) {
		x.checkpoint(1)
		x.text(text)
		x.turnEnded()
		x.checkpoint(2)
	}
}

func transports(t *testing.T, test func(t *testing.T, http2 bool)) {
	t.Helper()
	t.Run("http1", func(t *testing.T) { test(t, false) })
	t.Run("h2c", func(t *testing.T) { test(t, true) })
}

func TestTurn(t *testing.T) {
	transports(t, func(t *testing.T, http2 bool) {
		s := newStub(t, http2, func(x *exchange) {
			x.checkpoint(7)
			x.think("hm")
			x.thought()
			x.text("hello ")
			x.text("world")
			x.turnEnded()
			x.checkpoint(8)
		})
		c := s.client(func(o *Options) { o.HTTP2, o.Gzip, o.Binary = http2, http2, http2 })
		res := mustRun(t, c, "hi")
		if res.Text != "hello world" || res.Thinking != "hm" || res.Usage.GetInputTokens() != 10 || len(res.Attempts) != 1 {
			t.Errorf("got %+v", res)
		}
		if res.Checkpoint.GetSelfSummaryCount() != 8 || c.Checkpoint().GetSelfSummaryCount() != 8 {
			t.Errorf("the checkpoint is %v", res.Checkpoint)
		}
		h := cursorwire.ReadHeaders(s.headers[0])
		if h.Token != "secret" || h.ClientVersion != "sdk-1.0.32" || h.Streaming == http2 ||
			h.RequestID != res.Attempts[0].RequestID || h.OriginalRequestID != h.RequestID {
			t.Errorf("headers: %+v", h)
		}
		res = mustRun(t, c, "again")
		if res.Attempts[0].State.GetSelfSummaryCount() != 8 {
			t.Errorf("the second turn is sent with %v", res.Attempts[0].State)
		}
	})
}

// A dropped stream is tried again, with a fresh id; from the checkpoint if one came.
func TestRetryResumes(t *testing.T) {
	transports(t, func(t *testing.T, http2 bool) {
		s := newStub(t, http2,
			func(x *exchange) { x.text("one "); x.drop() },
			func(x *exchange) {
				if x.run.GetAction().GetUserMessageAction() == nil || x.run.GetConversationState().GetSelfSummaryCount() != 0 {
					t.Errorf("without a checkpoint the second attempt is %v", x.run)
				}
				x.checkpoint(3)
				x.text("two ")
				x.noEnd()
			},
			func(x *exchange) {
				if x.run.GetAction().GetResumeAction() == nil || x.run.GetConversationState().GetSelfSummaryCount() != 3 {
					t.Errorf("after a checkpoint the attempt is %v", x.run)
				}
				x.checkpoint(4)
				x.text("three")
				x.turnEnded()
			})
		c := s.client(func(o *Options) { o.HTTP2 = http2 })
		res, err := prompt(t, c, "hi")
		if err != nil || res.Text != "one two three" {
			t.Fatalf("%q, %v", res.Text, err)
		}
		var actions []string
		ids := map[string]bool{}
		for i, a := range res.Attempts {
			actions, ids[a.RequestID] = append(actions, a.Action), true
			if h := cursorwire.ReadHeaders(s.headers[i]); h.RequestID != a.RequestID || h.OriginalRequestID != res.Attempts[0].RequestID {
				t.Errorf("attempt %d has the headers %+v", i, h)
			}
		}
		if want := []string{"user_message_action", "user_message_action", "resume_action"}; !slices.Equal(actions, want) || len(ids) != 3 {
			t.Errorf("actions %q, ids %v", actions, ids)
		}
		if !errors.Is(res.Attempts[1].Err, ErrNoEnd) || res.Attempts[2].Err != nil {
			t.Errorf("the attempts ended with %v, %v", res.Attempts[1].Err, res.Attempts[2].Err)
		}
	})
}

func TestRetryLimits(t *testing.T) {
	fast := func(o *Options) { o.Backoff = time.Microsecond }
	for _, test := range []struct {
		name     string
		script   script
		edit     func(*Options)
		attempts int
		class    Class
	}{
		{"server", func(x *exchange) { x.checkpoint(1); x.fail(cursorwire.NewError(cursorwire.Unavailable, "down")) }, fast, 4, ServerError},
		{"transport", func(x *exchange) { x.drop() }, fast, 11, TransportError},
		{"no turn_ended", func(x *exchange) { x.checkpoint(1) }, fast, 11, TransportError},
		{"off", func(x *exchange) { x.drop() }, func(o *Options) { o.NoRetry = true }, 1, TransportError},
		{"final", func(x *exchange) { x.fail(cursorwire.ProviderFailed("bad request", false)) }, fast, 1, NonRetriable},
		{"login", func(x *exchange) { x.fail(cursorwire.NotLoggedIn("who")) }, fast, 1, ActionRequired},
		{"stopped", func(x *exchange) { x.fail(cursorwire.Stopped("superseded")) }, fast, 1, Cancelled},
		{"canceled is transport", func(x *exchange) { x.fail(cursorwire.Stopped("superseded")) }, func(o *Options) {
			o.RetryCanceled, o.Backoff = true, time.Microsecond
		}, 11, TransportError},
		{"no progress", func(x *exchange) {
			if x.run.GetAction().GetUserMessageAction() != nil {
				x.checkpoint(1)
			}
			x.text("a")
			x.drop()
		}, fast, 3, NoProgress},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newStub(t, false, test.script)
			res, err := prompt(t, s.client(test.edit), "hi")
			f, ok := errors.AsType[*Failure](err)
			if !ok || f.Class != test.class || len(res.Attempts) != test.attempts {
				t.Errorf("%d attempts, %v", len(res.Attempts), err)
			}
		})
	}
}

// A checkpoint after turn_ended makes the turn good, however the stream ends.
func TestTerminalCheckpoint(t *testing.T) {
	s := newStub(t, false, func(x *exchange) { good("done")(x); x.noEnd() })
	if res := mustRun(t, s.client(nil), "hi"); res.Text != "done" || len(res.Attempts) != 1 {
		t.Errorf("%q in %d attempts", res.Text, len(res.Attempts))
	}
}

func TestServerGone(t *testing.T) {
	c := New(Options{BaseURL: "http://127.0.0.1:1", Backoff: time.Microsecond})
	defer c.Close()
	res, err := prompt(t, c, "hi")
	if f, ok := errors.AsType[*Failure](err); !ok || f.Class != TransportError || len(res.Attempts) != 11 {
		t.Errorf("%d attempts, %v", len(res.Attempts), err)
	}
}

func TestStall(t *testing.T) {
	silent := make(chan struct{})
	s := newStub(t, false, func(x *exchange) {
		x.checkpoint(1)
		<-x.ctx.Done()
		close(silent)
	}, good("back"))
	res := mustRun(t, s.client(func(o *Options) { o.StallAfter = 50 * time.Millisecond }), "hi")
	<-silent
	if !errors.Is(res.Attempts[0].Err, ErrStalled) || res.Text != "back" {
		t.Errorf("%q, %v", res.Text, res.Attempts[0].Err)
	}
}

// A question to a person pauses the detector, one for approval does not.
func TestStallPausedByQuestion(t *testing.T) {
	ask := &agentv1.InteractionQuery{Id: 1, Query: &agentv1.InteractionQuery_AskQuestionInteractionQuery{AskQuestionInteractionQuery: new(agentv1.AskQuestionInteractionQuery)}}
	search := &agentv1.InteractionQuery{Id: 1, Query: &agentv1.InteractionQuery_WebSearchRequestQuery{WebSearchRequestQuery: new(agentv1.WebSearchRequestQuery)}}
	for query, stalls := range map[*agentv1.InteractionQuery]bool{ask: false, search: true} {
		s := newStub(t, false, func(x *exchange) {
			x.checkpoint(1)
			x.send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_InteractionQuery{InteractionQuery: query}})
			x.heartbeat() // does not start the detector again
			if x.receive().GetInteractionResponse().GetId() == 1 {
				good("ok")(x)
			}
		}, good("retried"))
		c := s.client(func(o *Options) {
			o.StallAfter = 50 * time.Millisecond
			o.Answer = func(ctx context.Context, q *agentv1.InteractionQuery) *agentv1.InteractionResponse {
				select {
				case <-time.After(4 * o.StallAfter):
				case <-ctx.Done():
				}
				return DefaultAnswer(q)
			}
		})
		res := mustRun(t, c, "hi")
		if stalled := errors.Is(res.Attempts[0].Err, ErrStalled); stalled != stalls {
			t.Errorf("%v: stalled %v", query, stalled)
		}
	}
}

func TestCancelAndBreak(t *testing.T) {
	streaming := make(chan struct{}, 2)
	hang := func(x *exchange) { x.checkpoint(1); x.text("a"); streaming <- struct{}{}; <-x.ctx.Done() }
	s := newStub(t, false, hang, hang)
	c := s.client(nil)
	errs := make(chan error, 1)
	go func() { _, err := prompt(t, c, "hi"); errs <- err }()
	<-streaming
	if err := c.Break(); err != nil {
		t.Error(err)
	}
	<-streaming
	if err := c.Cancel(); err != nil {
		t.Error(err)
	}
	if err := <-errs; !errors.Is(err, ErrCancelled) {
		t.Error(err)
	}
	for _, a := range s.received() {
		if a.Message.GetConversationAction().GetCancelAction() != nil {
			t.Error("a cancel sent an append")
		}
	}
	if err := c.Cancel(); !errors.Is(err, ErrIdle) {
		t.Error(err)
	}
}

func TestStop(t *testing.T) {
	for _, obeys := range []bool{true, false} {
		streaming := make(chan struct{})
		s := newStub(t, false, func(x *exchange) {
			x.checkpoint(1)
			x.text("part")
			close(streaming)
			if x.receive().GetConversationAction().GetCancelAction().GetReason() != "enough" {
				t.Error("no cancel_action")
			}
			if !obeys {
				<-x.ctx.Done()
				return
			}
			x.turnEnded()
			x.checkpoint(2)
		})
		c := s.client(func(o *Options) { o.Linger = 500 * time.Millisecond })
		type outcome struct {
			res *Result
			err error
		}
		done := make(chan outcome, 1)
		go func() { res, err := prompt(t, c, "hi"); done <- outcome{res, err} }()
		<-streaming
		err := c.Stop("enough")
		out := <-done
		if !errors.Is(out.err, ErrStopped) || len(out.res.Violations) > 0 || (err == nil) != obeys || !obeys && !errors.Is(err, ErrLingered) {
			t.Errorf("obeys %v: %v, %v, %q", obeys, err, out.err, out.res.Violations)
		}
		if obeys && (out.res.Checkpoint.GetSelfSummaryCount() != 2 || out.res.Attempts[0].Err != nil) {
			t.Errorf("%+v", out.res.Attempts[0])
		}
	}
}

func TestSteer(t *testing.T) {
	state := func(x *exchange, id string, s *agentv1.ContextInjectionState) {
		x.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ContextInjectionState{ContextInjectionState: &agentv1.ContextInjectionStateUpdate{InjectionId: id, State: s}}})
	}
	queued := &agentv1.ContextInjectionState{State: &agentv1.ContextInjectionState_Queued{Queued: new(agentv1.ContextInjectionQueued)}}
	delivered := &agentv1.ContextInjectionState{State: &agentv1.ContextInjectionState_Delivered{Delivered: new(agentv1.ContextInjectionDelivered)}}
	for name, test := range map[string]struct {
		states []*agentv1.ContextInjectionState
		want   string
		err    error
	}{
		"delivered": {[]*agentv1.ContextInjectionState{queued, delivered}, "delivered", nil},
		"reverted":  {[]*agentv1.ContextInjectionState{queued}, SteerReverted, nil},
		"silence":   {nil, "", ErrSteerTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			streaming, over := make(chan struct{}), make(chan struct{})
			s := newStub(t, false, func(x *exchange) {
				x.checkpoint(1)
				close(streaming)
				inject := x.receive().GetConversationAction().GetInjectContextAction()
				if inject.GetExpectedRunId() != x.run.GetRunId() || inject.GetUserContext().GetUserMessage().GetText() != "left" {
					t.Errorf("injected %v", inject)
				}
				for _, st := range test.states {
					state(x, inject.GetInjectionId(), st)
				}
				if test.states == nil {
					<-over
				}
				x.turnEnded()
				x.checkpoint(2)
			})
			c := s.client(func(o *Options) { o.SteerWait = 200 * time.Millisecond })
			ended := make(chan struct{})
			go func() { defer close(ended); mustRun(t, c, "hi") }()
			<-streaming
			got, err := c.Steer(t.Context(), "left")
			close(over)
			<-ended
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// A queued message goes onto the open stream and comes again as a run with the same request id.
func TestQueue(t *testing.T) {
	streaming := make(chan struct{})
	s := newStub(t, false, func(x *exchange) {
		x.checkpoint(1)
		close(streaming)
		if m := cursorwire.UserMessage(x.receive().GetConversationAction()); m.GetText() != "next" {
			t.Errorf("on the open stream: %v", m)
		}
		good("first")(x)
	}, func(x *exchange) {
		if m := cursorwire.UserMessage(x.run.GetAction()); m.GetText() != "next" || m.GetMessageId() != "m2" || x.run.GetConversationState().GetSelfSummaryCount() != 2 {
			t.Errorf("the second run is %v", x.run)
		}
		good("second")(x)
	})
	c := s.client(nil)
	results := make(chan *Result, 1)
	go func() { results <- mustRun(t, c, "hi") }()
	<-streaming
	if err := c.Queue("next", "m2"); err != nil {
		t.Fatal(err)
	}
	res := <-results
	if res == nil || res.Text != "first" || len(res.Queued) != 1 || res.Queued[0].Text != "second" ||
		res.Queued[0].Attempts[0].RequestID != res.Attempts[0].RequestID {
		t.Errorf("%+v", res)
	}
	var seqs []int64
	for _, a := range s.received() {
		if a.Message.GetRunRequest() != nil {
			seqs = append(seqs, a.Seq)
		}
	}
	if !slices.Equal(seqs, []int64{0, 0}) {
		t.Errorf("run requests with the numbers %v", seqs)
	}
	if err := c.Queue("late", ""); !errors.Is(err, ErrIdle) {
		t.Error(err)
	}
}

// What is queued when a stream breaks is repeated on the next one.
func TestQueueOverRetry(t *testing.T) {
	streaming := make(chan struct{})
	takesQueued := func(x *exchange) {
		if m := cursorwire.UserMessage(x.receive().GetConversationAction()); m.GetMessageId() != "m2" {
			t.Errorf("got %v", m)
		}
	}
	s := newStub(t, false,
		func(x *exchange) { x.checkpoint(1); close(streaming); takesQueued(x); x.drop() },
		func(x *exchange) { takesQueued(x); good("first")(x) },
		good("second"))
	c := s.client(nil)
	results := make(chan *Result, 1)
	go func() { results <- mustRun(t, c, "hi") }()
	<-streaming
	if err := c.Queue("next", "m2"); err != nil {
		t.Fatal(err)
	}
	if res := <-results; len(res.Attempts) != 2 || len(res.Queued) != 1 || res.Queued[0].Text != "second" {
		t.Errorf("%+v", res)
	}
}

func TestOneRunAtATime(t *testing.T) {
	streaming := make(chan struct{})
	s := newStub(t, false, func(x *exchange) { x.checkpoint(1); close(streaming); <-x.ctx.Done() })
	c := s.client(nil)
	errs := make(chan error, 1)
	go func() { _, err := prompt(t, c, "hi"); errs <- err }()
	<-streaming
	if res, err := prompt(t, c, "second"); !errors.Is(err, ErrBusy) || res != nil {
		t.Error(err)
	}
	_ = c.Cancel()
	<-errs
}

func TestBackoff(t *testing.T) {
	for n, want := range []int{1, 2, 4, 8, 16, 32, 60, 60, 60} {
		d := backoff(time.Second, n)
		if low := time.Duration(want) * time.Second; d < low || d > low+low/5+1 {
			t.Errorf("retry %d after %v", n, d)
		}
	}
}

func TestNewID(t *testing.T) {
	if id := newID(); len(id) != 36 || strings.Count(id, "-") != 4 || id == newID() {
		t.Error(id)
	}
}
