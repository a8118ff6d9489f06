package cursor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"

	"github.com/roost-dev/roost/internal/cursortool"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// start has the session begin what the action asks for, and reports whether there is a run now
// (section 3.1).
func (d *driver) start(ctx context.Context) (bool, error) {
	do := d.server.opt.Engine.Do
	switch a := d.attempt.action.GetAction().(type) {
	case *agentv1.ConversationAction_ResumeAction:
		return d.resume(ctx)
	case *agentv1.ConversationAction_SummarizeAction:
		return d.compact(ctx)
	case *agentv1.ConversationAction_ShellCommandAction:
		// The client runs it and shows it; the model is to know of it.
		text := "[The user ran this command themselves]\n" + a.ShellCommandAction.GetShellCommand().GetCommand()
		_, err := do(ctx, d.id, session.Tell{Text: text})
		return false, err
	}
	text, images, err := d.message(ctx)
	if err != nil {
		return false, err
	}
	if text == "" && len(images) == 0 {
		return false, nil
	}
	if strings.HasPrefix(text, "/summarize") {
		return d.compact(ctx)
	}
	s, err := d.server.opt.Engine.State(ctx, d.id)
	if err != nil {
		return false, err
	}
	offer, err := d.offer(ctx)
	if err != nil {
		return false, err
	}
	surroundings, err := d.surroundings(ctx, s)
	if err != nil {
		return false, err
	}
	p := session.Prompt{ID: d.attempt.promptID(), Text: text, Context: surroundings, Offer: offer, Keep: d.marks(s)}
	if len(images) > 0 {
		p.Blocks = append([]session.Block{session.Text{Text: text}}, images...)
	}
	r, err := do(ctx, d.id, p)
	d.noteRun(r, s)
	return r.Run != 0, err
}

// noteRun notes the run that a command has begun in s. A command that was obeyed before has begun none.
func (d *driver) noteRun(r session.Receipt, s *session.State) {
	if r.Run > s.LastRun {
		d.begun = r.Run
	}
}

func (d *driver) compact(ctx context.Context) (bool, error) {
	r, err := d.server.opt.Engine.Do(ctx, d.id, session.Compact{})
	d.begun = r.Run
	if e, ok := errors.AsType[*session.Error](err); ok && e.Kind == session.Invalid {
		return false, nil // there is nothing to compact
	}
	return err == nil, err
}

// action takes an action on the running stream (section 3.2). Before there is a run it waits.
func (d *driver) action(ctx context.Context, a *agentv1.ConversationAction) error {
	if d.follow.sub == nil {
		if a.GetCancelAction() != nil {
			return cursorwire.Stopped("canceled before the run began")
		}
		d.later = append(d.later, a)
		return nil
	}
	switch a := a.GetAction().(type) {
	case *agentv1.ConversationAction_UserMessageAction:
		// A message without an id comes again as a run of its own when this one has ended, and
		// could not be told from this one then (section 2.4).
		m := a.UserMessageAction.GetUserMessage()
		if m.GetMessageId() != "" {
			text, _ := renderMessage(m, d.kv.have)
			return d.steer(ctx, limitID(m.GetMessageId()), text, "")
		}
	case *agentv1.ConversationAction_StartPlanAction:
		if m := a.StartPlanAction.GetUserMessage(); m.GetMessageId() != "" {
			text, _ := renderMessage(m, d.kv.have)
			return d.steer(ctx, limitID(m.GetMessageId()), text, "")
		}
	case *agentv1.ConversationAction_InjectContextAction:
		return d.inject(ctx, a.InjectContextAction)
	case *agentv1.ConversationAction_CancelAction:
		return d.cancel(ctx, a.CancelAction)
	case *agentv1.ConversationAction_AsyncAskQuestionCompletionAction:
		c := a.AsyncAskQuestionCompletionAction
		return d.steer(ctx, limitID("answer:"+c.GetOriginalToolCallId()), answerText(c), "")
	case *agentv1.ConversationAction_BackgroundTaskCompletionAction:
		text := completionText(a.BackgroundTaskCompletionAction)
		return d.steer(ctx, limitID("done:"+cursorwire.BlobIDOf([]byte(text)).String()), text, "")
	case *agentv1.ConversationAction_CancelSubagentAction:
		d.cancelSubagent(a.CancelSubagentAction.GetSubagentId())
	case *agentv1.ConversationAction_BackgroundShellAction, *agentv1.ConversationAction_BackgroundSubagentAction:
		// The execution itself will say that it goes on in the background.
	default:
		d.log.Info("an action was passed over because a run is in progress", slog.String("action", fmt.Sprintf("%T", a)))
	}
	return nil
}

// steer queues a message into the run. One that comes too late is left to the client, which sends
// what it does not find in the history as a run of its own.
func (d *driver) steer(ctx context.Context, id, text, injection string) error {
	r, err := d.server.opt.Engine.Do(ctx, d.id, session.Steer{ID: id, Text: text})
	if err != nil {
		if injection != "" {
			d.link.Send(injectionMessage(injection, rejected), 0)
		}
		return nil
	}
	if injection == "" {
		return nil
	}
	state := queued
	if s, err := d.server.opt.Engine.State(ctx, d.id); err == nil && !slices.ContainsFunc(s.Queue, func(u *session.User) bool { return u.ID == r.Item }) {
		state = delivered // it was known, and is in the history
	}
	if state == queued {
		d.follow.steers[r.Item] = injection
	}
	d.link.Send(injectionMessage(injection, state), 0)
	return nil
}

// inject is how the official SDK steers (section 3.2).
func (d *driver) inject(ctx context.Context, a *agentv1.InjectContextAction) error {
	id := a.GetInjectionId()
	if want := a.GetExpectedRunId(); want != "" && want != d.attempt.identity {
		d.link.Send(injectionMessage(id, rejected), 0)
		return nil
	}
	text, _ := renderMessage(a.GetUserContext().GetUserMessage(), d.kv.have)
	if c := a.GetSystemContext(); c != nil {
		text = fmt.Sprintf("[From %s, not from the user]\n%s", c.GetProducer(), c.GetContent())
	}
	prompt := a.GetUserContext().GetUserMessage().GetMessageId()
	if prompt == "" {
		prompt = "injection:" + id
	}
	return d.steer(ctx, limitID(prompt), text, id)
}

type injectionState int

const (
	queued injectionState = iota
	delivered
	rejected
)

func injectionMessage(id string, state injectionState) *agentv1.AgentServerMessage {
	s := &agentv1.ContextInjectionState{}
	switch state {
	case queued:
		s.State = &agentv1.ContextInjectionState_Queued{Queued: &agentv1.ContextInjectionQueued{}}
	case delivered:
		s.State = &agentv1.ContextInjectionState_Delivered{Delivered: &agentv1.ContextInjectionDelivered{}}
	case rejected:
		s.State = &agentv1.ContextInjectionState_Rejected{Rejected: &agentv1.ContextInjectionRejected{Reason: "the run cannot take it"}}
	}
	return &agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_InteractionUpdate{InteractionUpdate: &agentv1.InteractionUpdate{
		Message: &agentv1.InteractionUpdate_ContextInjectionState{ContextInjectionState: &agentv1.ContextInjectionStateUpdate{InjectionId: id, State: s}},
	}}}
}

// rejectSteers settles the injections that the run has ended without, before its end is told.
func (d *driver) rejectSteers() {
	for item, id := range d.follow.steers {
		delete(d.follow.steers, item)
		d.link.Send(injectionMessage(id, rejected), 0)
	}
}

// cancel ends the run as the client's user wants it (section 7.5).
func (d *driver) cancel(ctx context.Context, a *agentv1.CancelAction) error {
	for _, c := range d.tools.order {
		for _, e := range c.requests {
			d.abortExec(e)
		}
	}
	if d.state != nil {
		d.report.Ended = append(d.report.Ended, d.resolutions(d.state, a.GetInterruptedPendingToolCallResolutions())...)
	}
	if err := d.flush(ctx); err != nil {
		return err
	}
	_, err := d.server.opt.Engine.Do(ctx, d.id, session.Abort{})
	if e, ok := errors.AsType[*session.Error](err); ok && e.Kind == session.Busy {
		return nil // it has ended
	}
	return err
}

// cancelSubagent gives up the executions of a subagent, or of all when it is not known which.
func (d *driver) cancelSubagent(id string) {
	for _, c := range d.tools.order {
		t := d.state.Tool(c.id)
		if t == nil || t.Name != "Task" {
			continue
		}
		if known := resumedAgent(t.Input); known != "" && id != "" && known != id {
			continue
		}
		for _, e := range c.requests {
			if !e.over {
				d.link.Send(abortMessage(e.id), 0)
			}
		}
	}
}

// resumedAgent is the subagent that a call of Task goes on with; it is empty for a new one, whose
// id only the client knows.
func resumedAgent(input string) string {
	var args struct {
		Resume string `json:"resume"`
	}
	_ = json.Unmarshal([]byte(input), &args)
	return args.Resume
}

// resolutions are the client's own results of calls that its user has interrupted.
func (d *driver) resolutions(s *session.State, r *agentv1.InterruptedPendingToolCallResolutions) []session.ToolEnded {
	var ended []session.ToolEnded
	for _, one := range r.GetResolutions() {
		t := s.Tool(session.CallID(one.GetToolCallId()))
		if t == nil || t.Status != session.Streaming {
			continue
		}
		card := cursortool.Card(t.Name, t.Input)
		text := ""
		if result := one.GetShellResult(); result != nil {
			text = protojson.Format(result)
			if shell := card.GetShellToolCall(); shell != nil {
				shell.Result = result
			}
		}
		if result := one.GetTaskResult(); result != nil {
			text = protojson.Format(result)
			if task := card.GetTaskToolCall(); task != nil {
				task.Result = result
			}
		}
		card.ToolCallId = new(string(t.Call))
		ended = append(ended, session.ToolEnded{
			Call: t.Call, IsError: true, Output: cut("Interrupted by the user. As far as it came: "+text, maxText), Details: details(card),
		})
	}
	return ended
}

// switchMode changes the mode of the run in progress, and what tools it has.
func (d *driver) switchMode(m agentv1.AgentMode) {
	d.ckpt.base.Mode = m
	d.report.Mode = sessionMode(m)
	if offer, err := d.offer(d.ctx); err == nil {
		d.report.Offer = offer
	}
}
