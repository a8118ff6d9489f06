package actor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/catalog"
	"github.com/roost-dev/roost/internal/prompt"
	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

// Limits of one pass.
const (
	maxDelta  = 64 << 10 // bytes of one event
	maxAnswer = 8 << 20  // bytes of a whole answer
	maxBlocks = 2048     // blocks of a whole answer
)

// pass streams one request to a model.
type pass struct {
	job
	*inbox
	call  session.CallModel
	model catalog.Model
	log   *slog.Logger

	text      int // the open text block, or -1
	reasoning int // the open reasoning block, or -1
	calls     map[int]int
	size      int
}

// startPass sends the request of the current pass.
func (a *actor) startPass(call session.CallModel) *pass {
	ctx, j := a.newJob()
	p := &pass{job: j, inbox: newInbox(a.wake), call: call, log: a.log, text: -1, reasoning: -1, calls: make(map[int]int)}
	live := a.state.Run.Live
	for _, b := range live.Blocks {
		p.size += len(session.BlockText(b))
	}
	if n := len(live.Blocks); n > 0 {
		if _, ok := live.Blocks[n-1].(session.Text); ok {
			p.text = n - 1 // the rest of a cut text continues its block
		}
	}
	model, info, err := a.engine.cfg.Models.Find(live.Model)
	if err != nil {
		p.end(provider.Errorf(provider.FaultRequest, "%s", session.AsError(err).Message))
		close(p.over)
		return p
	}
	p.model = info
	state := a.state.Clone()
	go p.stream(ctx, model, func() *provider.Request {
		return a.engine.request(ctx, prompt.Request(state, info, a.offer(ctx, state)))
	})
	return p
}

// stream asks the model and gathers its answer. What the request takes to be made, such as
// starting a server of tools, is part of the work.
func (p *pass) stream(ctx context.Context, model provider.Model, request func() *provider.Request) {
	defer close(p.over)
	defer func() {
		if v := recover(); v != nil {
			p.log.Error("model failed", slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
			p.end(provider.Errorf(provider.FaultRequest, "the provider's answer could not be read: internal error (%v)", v))
		}
	}()
	for part, err := range model.Stream(ctx, request()) {
		if err != nil {
			p.end(err)
			return
		}
		if !p.push(ctx, part) {
			p.end(ctx.Err())
			return
		}
	}
	p.end(nil)
}

func (p *pass) effect() session.Effect { return p.call }

// collect makes events of the parts that wait, and of the end of the stream.
func (p *pass) collect(a *actor) {
	parts, last := p.take()
	defer p.release(parts)
	current := p.current(a.state)
	if current {
		for _, part := range parts {
			if why := p.part(a, part); why != "" {
				a.emit(a.state.Break(why, false, 0, a.now())...)
				p.stop(a.engine.cfg.Now())
				current = false
				break
			}
		}
	}
	if !last {
		return
	}
	p.collected = true
	p.cancel(nil)
	if current && p.stopAt.IsZero() {
		p.settle(a)
	}
}

// current reports whether the state still waits for this very request.
func (p *pass) current(s *session.State) bool {
	run := s.Run
	return run != nil && run.ID == p.call.Run && run.Live != nil && run.Live.Pass == p.call.Pass &&
		run.Breaks == p.call.Break && run.Wait == nil
}

// part makes events of one part. It returns why the answer must be cut off, or "".
func (p *pass) part(a *actor, part provider.Part) string {
	p.size += len(part.Text)
	if p.size > maxAnswer || len(a.state.Run.Live.Blocks) > maxBlocks {
		return fmt.Sprintf("the answer is larger than %d bytes or %d blocks", maxAnswer, maxBlocks)
	}
	switch part.Kind {
	case provider.TextDelta:
		p.reasoning = -1
		if p.text < 0 {
			p.text = a.open(session.Text{})
		}
		a.delta(p.text, part.Text)
	case provider.ReasoningDelta:
		p.text = -1
		if p.reasoning < 0 {
			p.reasoning = a.open(session.Reasoning{})
		}
		a.delta(p.reasoning, part.Text)
	case provider.ReasoningEnd:
		if p.reasoning < 0 {
			p.reasoning = a.open(session.Reasoning{Redacted: part.Redacted})
		}
		a.emit(session.BlockEnded{Index: p.reasoning, Signature: utf8Text(part.Signature), Redacted: part.Redacted})
		p.reasoning = -1
	case provider.CallStart:
		p.text, p.reasoning = -1, -1
		run := a.state.Run
		id := session.NewCallID(run.ID, run.Pass, len(run.Live.Calls()))
		p.calls[part.Key] = a.open(session.ToolCall{Call: id, Name: utf8Text(part.Name)})
	case provider.CallDelta:
		if i, ok := p.calls[part.Key]; ok {
			a.delta(i, part.Text)
		}
	case provider.CallEnd:
		if i, ok := p.calls[part.Key]; ok {
			a.emit(session.BlockEnded{Index: i})
		}
	case provider.UsageReport, provider.Finish:
	}
	return ""
}

func (a *actor) open(b session.Block) int {
	a.emit(session.BlockStarted{Block: b})
	return len(a.state.Run.Live.Blocks) - 1
}

// delta emits text in pieces that fit an event.
func (a *actor) delta(index int, text string) {
	text = utf8Text(text)
	for len(text) > maxDelta {
		cut := maxDelta
		for !utf8.RuneStart(text[cut]) {
			cut--
		}
		a.emit(session.Delta{Index: index, Text: text[:cut]})
		text = text[cut:]
	}
	if text != "" {
		a.emit(session.Delta{Index: index, Text: text})
	}
}

// settle makes the event that the end of the stream is.
func (p *pass) settle(a *actor) {
	finish, usage, err := p.outcome()
	if err == nil && finish == nil {
		err = provider.Errorf(provider.FaultNetwork, "the model's answer broke off")
	}
	if usage != nil {
		usage.Cost = catalog.Price(p.model.Cost, *usage)
	}
	if err == nil {
		a.emit(session.PassEnded{
			Status: session.Complete, Stop: finish.Stop, ResponseModel: utf8Text(finish.ResponseModel), Usage: usage,
		})
		return
	}
	fault, ok := errors.AsType[*provider.Error](err)
	if !ok {
		fault = provider.Errorf(provider.FaultNetwork, "the model could not be asked: %v", err)
	}
	if fault.Fault == provider.FaultContext {
		a.emit(faulty(a.state.Overflow(utf8Text(fault.Message), a.now()), fault)...)
		return
	}
	delay, retry := provider.Delay(a.state.Run.Attempt+1, fault)
	a.emit(faulty(a.state.Break(utf8Text(fault.Message), retry, delay.Milliseconds(), a.now()), fault)...)
}

// faulty adds to the end of a pass why it failed.
func faulty(events []session.Event, fault *provider.Error) []session.Event {
	for i, e := range events {
		if ended, ok := e.(session.PassEnded); ok && ended.Status == session.Failed {
			ended.Fault = faults[fault.Fault]
			events[i] = ended
		}
	}
	return events
}

var faults = map[provider.Fault]session.Fault{
	provider.FaultProtocol: session.FaultUnavailable, provider.FaultNetwork: session.FaultUnavailable,
	provider.FaultStalled: session.FaultUnavailable, provider.FaultRateLimit: session.FaultUnavailable,
	provider.FaultOverload: session.FaultUnavailable, provider.FaultAuth: session.FaultKey,
	provider.FaultContext: session.FaultContext, provider.FaultRequest: session.FaultRequest,
	provider.FaultFilter: session.FaultRequest,
}

func utf8Text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
