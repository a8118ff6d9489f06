package cursortest

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const resumeAction = "resume_action"

// attempt is one stream of a run. Its loop handles the server's messages one after the other; what
// takes time (executions, blobs, questions) has goroutines of its own.
type attempt struct {
	r      *run
	c      *Client
	res    *Result
	record *Attempt
	ctx    context.Context
	cancel context.CancelCauseFunc
	stream stream
	// gone is closed when the stream is over.
	gone  chan struct{}
	tasks sync.WaitGroup // end with ctx
	execs sync.WaitGroup // may go on after the stream

	// For the loop only.
	last     *agentv1.ConversationStateStructure
	terminal bool // a checkpoint came after turn_ended
	stall    *stall
	answered chan struct{} // a question to a person is answered

	mu     sync.Mutex
	aborts map[uint32]context.CancelCauseFunc
}

func (r *run) newAttempt(requestID string, res *Result) *attempt {
	a := &attempt{
		r: r, c: r.c, res: res, record: &Attempt{RequestID: requestID}, gone: make(chan struct{}),
		stall: newStall(r.c.o.StallAfter), answered: make(chan struct{}),
		aborts: map[uint32]context.CancelCauseFunc{},
	}
	a.ctx, a.cancel = context.WithCancelCause(r.ctx)
	res.Attempts = append(res.Attempts, a.record)
	return a
}

// run sends the request and follows the stream to its end. The failure is nil if the turn is over.
func (a *attempt) run(m *agentv1.AgentRunRequest) *Failure {
	a.record.Action, a.record.State = arm(m.GetAction(), "action"), proto.CloneOf(m.GetConversationState())
	a.r.checker.begin(a.record)
	id := identity{a.record.RequestID, a.r.id}
	if a.c.o.HTTP2 {
		a.stream = a.c.openBidi(a.ctx, id)
	} else {
		a.stream = a.c.openSSE(a.ctx, id)
	}
	a.stream.send(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_RunRequest{RunRequest: m}}, nil)
	a.join()
	err := a.loop()
	a.leave(err)
	if !errors.Is(err, io.EOF) {
		a.record.Err = err
	}
	a.r.checker.end(a.record, err)
	return a.judge(err)
}

// join makes the attempt the current one, and repeats on it what is still queued.
func (a *attempt) join() {
	a.r.mu.Lock()
	defer a.r.mu.Unlock()
	a.r.attempt = a
	for _, m := range a.r.queued {
		a.stream.send(actionMessage(userAction(m)), nil)
	}
	if a.r.stopped {
		a.cancel(ErrStopped)
	}
}

// leave ends what belongs to the stream. After a failure of the connection the executions go on, and
// the next attempt waits for them; their results are lost.
func (a *attempt) leave(err error) {
	a.r.mu.Lock()
	a.r.attempt = nil
	a.r.mu.Unlock()
	a.cancel(nil)
	close(a.gone)
	a.stream.close()
	a.tasks.Wait()
	a.stall.stop()
	if errors.Is(err, io.EOF) || errors.Is(err, ErrStopped) || a.terminal {
		a.abortAll(errAborted)
	}
	a.execs.Wait()
}

// judge says what the end of the stream means (sections 1.5 and 4.2).
func (a *attempt) judge(err error) *Failure {
	a.r.mu.Lock()
	stopped := a.r.stopped
	a.r.mu.Unlock()
	switch {
	case stopped:
		return &Failure{Cancelled, ErrStopped.Error(), ErrStopped}
	case a.r.ctx.Err() != nil:
		return cancelled(a.r.ctx)
	case a.terminal, errors.Is(err, io.EOF) && a.record.TurnEnded:
		return nil
	case errors.Is(err, io.EOF):
		return &Failure{TransportError, ErrNoTurnEnded.Error(), ErrNoTurnEnded}
	default:
		return classify(err, a.c.o.RetryCanceled)
	}
}

// sendError is for what could not be sent; the stream itself has not ended.
type sendError struct{ error }

// Unwrap returns what is wrong.
func (e *sendError) Unwrap() error { return e.error }

// arrival is what the server sent, or why nothing more comes.
type arrival struct {
	message *agentv1.AgentServerMessage
	err     error
	at      time.Time
}

// loop returns io.EOF after a clean end.
func (a *attempt) loop() error {
	arrivals := make(chan arrival)
	a.tasks.Go(func() { a.receive(arrivals) })
	beat := time.NewTicker(a.c.o.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case in := <-arrivals:
			if in.err != nil {
				return in.err
			}
			a.stall.reset()
			a.handle(in)
		case err := <-a.stream.failed():
			return &sendError{err}
		case <-a.stall.timer.C:
			return ErrStalled
		case <-a.answered:
			a.stall.resume()
		case <-beat.C:
			a.stream.send(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ClientHeartbeat{ClientHeartbeat: new(agentv1.ClientHeartbeat)}}, nil)
		case <-a.ctx.Done():
			return context.Cause(a.ctx)
		}
	}
}

func (a *attempt) receive(out chan<- arrival) {
	put := func(in arrival) bool {
		in.at = time.Now()
		select {
		case out <- in:
			return true
		case <-a.ctx.Done():
			return false
		}
	}
	resp, err := a.stream.body()
	if err != nil {
		put(arrival{err: err})
		return
	}
	defer func() { _ = resp.Body.Close() }()
	r, err := newReceiver(resp)
	if err != nil {
		put(arrival{err: err})
		return
	}
	for {
		m, err := r.next()
		if !put(arrival{message: m, err: err}) || err != nil {
			return
		}
	}
}

func (a *attempt) handle(in arrival) {
	a.record.Messages++
	if a.c.o.Watch != nil {
		a.c.o.Watch(a.record.RequestID, in.message)
	}
	a.r.checker.message(in.message, in.at)
	switch m := in.message.GetMessage().(type) {
	case *agentv1.AgentServerMessage_InteractionUpdate:
		a.res.add(a.record, m.InteractionUpdate)
		if s := m.InteractionUpdate.GetContextInjectionState(); s != nil {
			a.r.injected(s)
		}
	case *agentv1.AgentServerMessage_ConversationCheckpointUpdate:
		a.record.Checkpoints++
		a.last = m.ConversationCheckpointUpdate
		a.terminal = a.record.TurnEnded
		a.c.SetCheckpoint(a.last)
	case *agentv1.AgentServerMessage_ExecServerMessage:
		a.exec(m.ExecServerMessage)
	case *agentv1.AgentServerMessage_ExecServerControlMessage:
		a.abort(m.ExecServerControlMessage.GetAbort().GetId())
	case *agentv1.AgentServerMessage_KvServerMessage:
		a.tasks.Go(func() { a.blob(m.KvServerMessage) })
	case *agentv1.AgentServerMessage_InteractionQuery:
		a.query(m.InteractionQuery)
	}
}

// blob carries out a request about a blob.
func (a *attempt) blob(m *agentv1.KvServerMessage) {
	f := &a.c.o.Blobs
	if f.Silent != nil && f.Silent(m) {
		return
	}
	if f.Latency != nil {
		wait := time.NewTimer(f.Latency(m))
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-a.ctx.Done():
			return
		}
	}
	answer := a.c.blobs.answer(m)
	a.stream.send(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_KvClientMessage{KvClientMessage: answer}}, nil)
}

// await waits for a reply; without one to wait for, for the end of the stream.
func (a *attempt) await(written <-chan error, limit <-chan time.Time) error {
	select {
	case err := <-written:
		return err
	case <-a.gone:
		return nil
	case <-limit:
		return ErrLingered
	}
}
