package cursortest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Prompt begins a turn.
type Prompt struct {
	// Text is the user's message. MessageID is empty, as the SDK leaves it, unless set.
	Text, MessageID string
	// Mode is sent if it is not zero.
	Mode agentv1.AgentMode
	// Action replaces the user's message.
	Action *agentv1.ConversationAction
	// Edit changes the run_request of every attempt before it is sent.
	Edit func(*agentv1.AgentRunRequest)
}

func (p Prompt) action() *agentv1.ConversationAction {
	if p.Action != nil {
		return p.Action
	}
	return userAction(&agentv1.UserMessage{Text: p.Text, MessageId: p.MessageID, Mode: p.Mode})
}

func userAction(m *agentv1.UserMessage) *agentv1.ConversationAction {
	return &agentv1.ConversationAction{Action: &agentv1.ConversationAction_UserMessageAction{
		UserMessageAction: &agentv1.UserMessageAction{UserMessage: m},
	}}
}

// run is a turn that goes on, with those of the messages queued behind it.
type run struct {
	c      *Client
	ctx    context.Context
	cancel context.CancelCauseFunc
	// id is the run's id, which is the request id of its first attempt.
	id      string
	edit    func(*agentv1.AgentRunRequest)
	done    chan struct{}
	checker *checker

	// For the goroutine of Run only.
	requestID         string // of the last attempt
	server, transport int    // retries so far
	stale             int    // resume attempts in a row without a checkpoint

	mu         sync.Mutex
	attempt    *attempt // nil between attempts
	stopped    bool
	closed     bool // nothing more can be queued
	queued     []*agentv1.UserMessage
	injections map[string]chan *agentv1.ContextInjectionState
}

// Run carries out one turn, and those of messages queued meanwhile, with the SDK's retries
// (section 1.5). The result is never nil, except with ErrBusy. The error is a [*Failure] otherwise:
// it is that of the last attempt, and wraps the cause of ctx, ErrCancelled or ErrStopped if the
// client ended the run.
func (c *Client) Run(ctx context.Context, p Prompt) (*Result, error) {
	r, err := c.begin(ctx, p)
	if err != nil {
		return nil, err
	}
	defer c.finish(r)
	res := new(Result)
	failure := r.turn(p.action(), r.id, res) //nolint:contextcheck // the run's context is made of ctx
	for failure == nil {
		m := r.nextQueued()
		if m == nil {
			break
		}
		next := new(Result)
		res.Queued = append(res.Queued, next)
		failure = r.turn(userAction(m), r.requestID, next) //nolint:contextcheck // as above
	}
	res.Violations = r.checker.found()
	if failure != nil {
		return res, failure
	}
	return res, nil
}

func (c *Client) begin(ctx context.Context, p Prompt) (*run, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active != nil {
		return nil, ErrBusy
	}
	r := &run{
		c: c, id: newID(), edit: p.Edit, done: make(chan struct{}), checker: newChecker(c),
		injections: map[string]chan *agentv1.ContextInjectionState{},
	}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	c.active = r
	return r, nil
}

func (c *Client) finish(r *run) {
	r.cancel(nil)
	c.mu.Lock()
	c.active = nil
	c.mu.Unlock()
	close(r.done)
}

// turn makes attempts until one is good or the failure final.
func (r *run) turn(action *agentv1.ConversationAction, requestID string, res *Result) *Failure {
	state := r.c.Checkpoint()
	r.server, r.transport, r.stale = 0, 0, 0
	for {
		r.requestID = requestID
		a := r.newAttempt(requestID, res)
		failure := a.run(r.request(state, action))
		if a.last != nil {
			res.Checkpoint = a.last
		}
		if failure == nil {
			return nil
		}
		if failure = r.retry(failure, a.record); failure != nil {
			return failure
		}
		if a.last != nil {
			state, action = a.last, &agentv1.ConversationAction{Action: &agentv1.ConversationAction_ResumeAction{ResumeAction: new(agentv1.ResumeAction)}}
		}
		requestID = newID()
	}
}

func (r *run) request(state *agentv1.ConversationStateStructure, action *agentv1.ConversationAction) *agentv1.AgentRunRequest {
	m := &agentv1.AgentRunRequest{
		ConversationState: proto.CloneOf(state), // Edit may change it
		Action:            action,
		ConversationId:    new(r.c.o.ConversationID),
		RequestedModel:    &agentv1.RequestedModel{ModelId: r.c.o.Model},
		RunId:             new(r.id),
		McpTools:          r.c.mcpTools(),
	}
	if s := r.c.o.Subagent; s != nil {
		m.SubagentTypeName = new(s.Type)
	}
	if r.edit != nil {
		r.edit(m)
	}
	return m
}

// retry waits before the next attempt, or returns why there is none.
func (r *run) retry(f *Failure, a *Attempt) *Failure {
	retries, limit := &r.transport, maxTransportRetries
	switch f.Class {
	case ServerError:
		retries, limit = &r.server, maxServerRetries
	case TransportError:
	default:
		return f
	}
	if r.c.o.NoRetry || *retries >= limit {
		return f
	}
	if r.noProgress(a) {
		return &Failure{NoProgress, "Agent turn stopped after repeated resume attempts made no progress", f}
	}
	*retries++
	delay := time.NewTimer(backoff(r.c.o.Backoff, r.server+r.transport))
	defer delay.Stop()
	select {
	case <-delay.C:
		return nil
	case <-r.ctx.Done():
		return cancelled(r.ctx)
	}
}

// noProgress tells whether two resume attempts in a row streamed something and brought no checkpoint.
func (r *run) noProgress(a *Attempt) bool {
	switch {
	case a.Checkpoints > 0:
		r.stale = 0
	case a.Action == resumeAction && len(a.Updates) > 0:
		r.stale++
	}
	return r.stale >= 2
}

// backoff is the delay before retry n, from 1: powers of two of second, at most 60 of them, and up to
// a fifth more.
func backoff(second time.Duration, n int) time.Duration {
	delay := second * time.Duration(min(60, 1<<n))
	return delay + rand.N(delay/5+1)
}

func cancelled(ctx context.Context) *Failure {
	cause := context.Cause(ctx)
	return &Failure{Cancelled, cause.Error(), cause}
}

// Cancel ends the run as the SDK does: it closes the stream and says nothing.
func (c *Client) Cancel() error {
	r := c.running()
	if r == nil {
		return ErrIdle
	}
	r.cancel(ErrCancelled)
	return nil
}

// Break ends the stream of the current attempt as a network failure does; the run tries again.
func (c *Client) Break() error {
	a := c.running().current()
	if a == nil {
		return ErrIdle
	}
	a.cancel(ErrBroken)
	return nil
}

// current is the attempt that goes on, or nil.
func (r *run) current() *attempt {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.attempt
}

// ErrLingered is for a server that did not end the stream in time after a cancel_action.
var ErrLingered = errors.New("the server did not end the stream in time after the cancel_action")

// Stop ends the run as the IDE does (section 7.5): a cancel_action, then, once that is acknowledged,
// its executions are aborted, and the stream may go on for Options.Linger. The run ends with ErrStopped.
// Stop returns ErrLingered if the server did not end the stream by itself, or what became of the
// append.
func (c *Client) Stop(reason string) error {
	r := c.running()
	if r == nil {
		return ErrIdle
	}
	r.mu.Lock()
	r.stopped = true
	a := r.attempt
	r.mu.Unlock()
	if a == nil {
		r.cancel(ErrStopped)
		<-r.done
		return nil
	}
	written := make(chan error, 1)
	a.stream.send(actionMessage(&agentv1.ConversationAction{Action: &agentv1.ConversationAction_CancelAction{
		CancelAction: &agentv1.CancelAction{Reason: reason},
	}}), written)
	linger := time.NewTimer(c.o.Linger)
	defer linger.Stop()
	err := a.await(written, linger.C)
	a.abortAll(errAborted)
	if err == nil {
		err = a.await(nil, linger.C)
	}
	a.cancel(ErrStopped)
	<-r.done
	return err
}

func actionMessage(action *agentv1.ConversationAction) *agentv1.AgentClientMessage {
	return &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ConversationAction{ConversationAction: action}}
}
