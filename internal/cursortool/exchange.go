package cursortool

import (
	"errors"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

var errNotObject = errors.New("the arguments must be a JSON object")

// quiet is a machine that waits whatever happens. Others embed it for what they do not expect.
type quiet struct{}

// Result waits.
func (quiet) Result(int, *agentv1.ExecClientMessage) Step { return Step{} }

// Closed waits.
func (quiet) Closed(int) Step { return Step{} }

// Thrown waits.
func (quiet) Thrown(int, string, bool) Step { return Step{} }

// Answered waits.
func (quiet) Answered(*agentv1.InteractionResponse) Step { return Step{} }

// Finished waits.
func (quiet) Finished(Outcome) Step { return Step{} }

// Tick waits.
func (quiet) Tick(time.Time) Step { return Step{} }

// settled is the machine of a call that is over at its start; nothing else of it is called.
type settled struct{ Outcome }

// Start ends the call.
func (s settled) Start() Step { return Step{Done: &s.Outcome} }

// Result waits.
func (settled) Result(int, *agentv1.ExecClientMessage) Step { return Step{} }

// Closed waits.
func (settled) Closed(int) Step { return Step{} }

// Thrown waits.
func (settled) Thrown(int, string, bool) Step { return Step{} }

// Answered waits.
func (settled) Answered(*agentv1.InteractionResponse) Step { return Step{} }

// Finished waits.
func (settled) Finished(Outcome) Step { return Step{} }

// Tick waits.
func (settled) Tick(time.Time) Step { return Step{} }

// refuse returns the machine of a call that cannot be carried out, for the reason in text.
func refuse(card *agentv1.ToolCall, text string) Machine {
	return settled{Outcome{Text: text, IsError: true, Card: FailedCard(card, text)}}
}

// addHooks appends what the user's hooks have to say to the text, and copies it to the card.
func (o *Outcome) addHooks(hooks []*agentv1.HookAdditionalContext) {
	for _, h := range hooks {
		if text := strings.TrimSpace(clean(h.GetContent())); text != "" {
			o.Text += "\n\n[" + clean(h.GetHookEventName()) + " hook] " + cutMiddle(text, hookText)
		}
	}
	if o.Card != nil {
		o.Card.HookAdditionalContexts = append(o.Card.HookAdditionalContexts, hooks...)
	}
}

// exchange is the part that most machines have in common: one request at a time, the answers to it,
// and another way when the client does not have the first one.
type exchange struct {
	quiet
	tool string // its name, for texts
	card *agentv1.ToolCall
	env  *Env

	begin func() Step // the first step
	sent  int         // requests so far
	take  func(*agentv1.ExecClientMessage) Step
	lost  func(reason string, unsupported bool) Step
	hooks []*agentv1.HookAdditionalContext
}

// way is one request that may carry out a call, and what to do with a result of its kind. take
// returns false for a result of another kind.
type way struct {
	request Request
	take    func(*agentv1.ExecClientMessage) (Step, bool)
}

// ways puts the usual way and the one with pi's tools into the order in which they are to be tried.
func (env *Env) ways(usual, pi way) []way {
	switch {
	case env.PiOnly:
		return []way{pi, usual}
	case env.NoPi:
		return []way{usual}
	default:
		return []way{usual, pi}
	}
}

// Start makes the first request.
func (x *exchange) Start() Step { return x.begin() }

// ask makes a request; take gets results of any kind, lost is called when there will be none.
func (x *exchange) ask(r Request, take func(*agentv1.ExecClientMessage) Step, lost func(string, bool) Step) Step {
	x.sent++
	x.take, x.lost = take, lost
	return Step{Requests: []Request{r}}
}

// try asks in the first of several ways, and in the next one when the client does not have it.
func (x *exchange) try(ways ...way) Step {
	w := ways[0]
	take := func(m *agentv1.ExecClientMessage) Step {
		if missing(m) && len(ways) > 1 {
			return x.try(ways[1:]...)
		}
		if st, ok := w.take(m); ok {
			return st
		}
		return x.fail(foreign(m))
	}
	lost := func(reason string, unsupported bool) Step {
		if unsupported && len(ways) > 1 {
			return x.try(ways[1:]...)
		}
		return x.fail(reason)
	}
	return x.ask(w.request, take, lost)
}

// second asks in another way too, after an answer that may be wrong; stay is what to do when that
// brings nothing.
func (x *exchange) second(w way, stay func() Step) Step {
	take := func(m *agentv1.ExecClientMessage) Step {
		if m.GetPiGrepResult().GetSuccess() == nil {
			return stay()
		}
		st, _ := w.take(m)
		return st
	}
	return x.ask(w.request, take, func(string, bool) Step { return stay() })
}

// Result takes a message for the request that is under way.
func (x *exchange) Result(n int, m *agentv1.ExecClientMessage) Step {
	if n != x.sent-1 {
		return Step{}
	}
	x.hooks = append(x.hooks, m.GetHookAdditionalContexts()...)
	if m.GetMessage() == nil { // a notice of hooks, which ends nothing
		return Step{}
	}
	return x.take(m)
}

// Closed fails the request: there was no result.
func (x *exchange) Closed(n int) Step {
	if n != x.sent-1 {
		return Step{}
	}
	return x.lost("the client ended the request without a result. It is not known whether anything was done", false)
}

// Thrown fails the request.
func (x *exchange) Thrown(n int, reason string, unsupported bool) Step {
	if n != x.sent-1 {
		return Step{}
	}
	return x.lost(first(strings.TrimSpace(clean(reason)), "the client could not do it and gave no reason"), unsupported)
}

// done ends the call; card is the call's with the result.
func (x *exchange) done(o Outcome) Step {
	if o.Text == "" {
		o.Text = "(no output)"
	}
	o.addHooks(x.hooks)
	if proto.Size(o.Card) > MaxCard { // parts of it may be the client's own message
		o.Card = proto.CloneOf(o.Card)
		Fit(o.Card, MaxCard)
	}
	return Step{Done: &o}
}

// fail ends the call with an error.
func (x *exchange) fail(reason string) Step {
	return x.failCard(reason, FailedCard(x.card, reason))
}

// failCard is fail with a card that says it in its own words.
func (x *exchange) failCard(reason string, card *agentv1.ToolCall) Step {
	return x.done(Outcome{Text: x.tool + " error: " + sentence(reason), IsError: true, Card: card})
}

// refused ends the call because a person, or a rule of theirs, said no.
func (x *exchange) refused(reason string) Step {
	text := "The user refused this " + x.tool + because(reason) + ". Nothing was done. Do not call it again with the same arguments: take another way, or ask the user."
	return x.done(Outcome{Text: text, IsError: true, Card: RejectedCard(x.card, clean(reason))})
}

// sentence returns a reason as one that ends.
func sentence(s string) string {
	s = strings.TrimSpace(clean(s))
	if s == "" || strings.ContainsAny(s[len(s)-1:], ".!?:)]}") {
		return s
	}
	return s + "."
}
