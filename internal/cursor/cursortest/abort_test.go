package cursortest

import (
	"context"
	"errors"
	"testing"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// untilAborted is a handler that only an abort ends.
func untilAborted(begun chan<- struct{}) map[string]Handler {
	return map[string]Handler{"ls_args": func(ctx context.Context, _ *Exec) error {
		close(begun)
		<-ctx.Done()
		return context.Cause(ctx)
	}}
}

func listDir(x *exchange) {
	x.exec(&agentv1.ExecServerMessage{Id: 1, Message: &agentv1.ExecServerMessage_LsArgs{LsArgs: new(agentv1.LsArgs)}})
}

// The end of the turn aborts what still runs.
func TestEndAborts(t *testing.T) {
	begun := make(chan struct{})
	s := newStub(t, false, within(func(x *exchange) { listDir(x); <-begun }))
	mustRun(t, s.client(func(o *Options) { o.Execs = untilAborted(begun) }), "hi")
}

// A stop aborts what runs once the server knows, while the stream goes on.
func TestStopAborts(t *testing.T) {
	begun := make(chan struct{})
	s := newStub(t, false, func(x *exchange) {
		x.checkpoint(1)
		listDir(x)
		if x.receive().GetConversationAction().GetCancelAction() == nil {
			t.Error("no cancel_action first")
		}
		if thrown := x.receive().GetExecClientControlMessage().GetThrow(); thrown.GetError() != errAborted.Error() {
			t.Errorf("the execution ended with %v", thrown)
		}
		x.turnEnded()
		x.checkpoint(2)
	})
	c := s.client(func(o *Options) { o.Execs = untilAborted(begun) })
	errs := make(chan error, 1)
	go func() { _, err := prompt(t, c, "hi"); errs <- err }()
	<-begun
	if err := c.Stop("enough"); err != nil {
		t.Error(err)
	}
	if err := <-errs; !errors.Is(err, ErrStopped) {
		t.Error(err)
	}
}
