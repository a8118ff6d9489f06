package cursortest

import (
	"context"
	"errors"
	"time"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// ErrSteerTimeout is for a steer of which the server said nothing in time: the client sends it as a
// message of its own, later.
var ErrSteerTimeout = errors.New("the server said nothing of the steer in time")

// SteerReverted is the state of a steer that was not settled when the run ended.
const SteerReverted = "reverted"

// Steer injects a message into the run that goes on (section 3.2), and waits until the server has
// said what became of it: "delivered", "queued_for_next_turn", "cancelled" or "rejected", or
// SteerReverted. The error is ErrIdle, ErrSteerTimeout or that of ctx.
func (c *Client) Steer(ctx context.Context, text string) (state string, err error) {
	r := c.running()
	a := r.current()
	if a == nil {
		return "", ErrIdle
	}
	id := newID()
	states := make(chan *agentv1.ContextInjectionState, 8)
	r.mu.Lock()
	r.injections[id] = states
	r.mu.Unlock()
	a.stream.send(actionMessage(&agentv1.ConversationAction{Action: &agentv1.ConversationAction_InjectContextAction{
		InjectContextAction: &agentv1.InjectContextAction{
			InjectionId: id, ExpectedRunId: r.id,
			Payload: &agentv1.InjectContextAction_UserContext{UserContext: &agentv1.UserContextInjection{
				UserMessage: &agentv1.UserMessage{Text: text, MessageId: newID()},
			}},
		},
	}}), nil)
	limit := time.NewTimer(c.o.SteerWait)
	defer limit.Stop()
	for {
		select {
		case s := <-states:
			limit.Stop()
			if s.GetQueued() == nil {
				return arm(s, "state"), nil
			}
		case <-limit.C:
			return "", ErrSteerTimeout
		case <-r.done:
			return lastState(states), nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// lastState is for a run that has ended: what it said last may not have been looked at.
func lastState(states <-chan *agentv1.ContextInjectionState) string {
	for {
		select {
		case s := <-states:
			if s.GetQueued() == nil {
				return arm(s, "state")
			}
		default:
			return SteerReverted
		}
	}
}

// injected hands a state to whoever steers. States beyond the room for them are dropped.
func (r *run) injected(u *agentv1.ContextInjectionStateUpdate) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case r.injections[u.GetInjectionId()] <- u.GetState():
	default:
	}
}

// Queue sends a message while a run goes on (section 2.4): on the open stream, and again as a run of
// its own, with the same request id, when the stream has ended. The client never learns from the first
// stream that the message was taken. The second run has the first one's run id too; no trace shows
// what the SDK sends there.
func (c *Client) Queue(text, messageID string) error {
	r := c.running()
	if r == nil {
		return ErrIdle
	}
	m := &agentv1.UserMessage{Text: text, MessageId: messageID}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ErrIdle
	}
	r.queued = append(r.queued, m)
	if r.attempt != nil {
		r.attempt.stream.send(actionMessage(userAction(m)), nil)
	}
	return nil
}

// nextQueued returns nil if nothing is queued; from then on nothing can be.
func (r *run) nextQueued() *agentv1.UserMessage {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.queued) == 0 {
		r.closed = true
		return nil
	}
	m := r.queued[0]
	r.queued = r.queued[1:]
	return m
}
