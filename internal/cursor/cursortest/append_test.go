package cursortest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// reads asks for n files that are not there, and returns the ids in the order of the answers.
func (x *exchange) reads(n uint32) (ids []uint32) {
	x.checkpoint(1)
	for id := uint32(1); id <= n; id++ {
		x.exec(&agentv1.ExecServerMessage{Id: id, Message: &agentv1.ExecServerMessage_ReadArgs{ReadArgs: &agentv1.ReadArgs{Path: "gone"}}})
	}
	for closed := uint32(0); closed < n; {
		m := x.receive()
		if m == nil {
			return nil
		}
		if r := m.GetExecClientMessage(); r.GetReadResult().GetFileNotFound() != nil {
			ids = append(ids, r.GetId())
		}
		if m.GetExecClientControlMessage().GetStreamClose() != nil {
			closed++
		}
	}
	return ids
}

// Whatever the network does to the order of appends and how often they come, each message has one
// number, and numbers have no gap.
func TestReorderAndDuplicate(t *testing.T) {
	s := newStub(t, false, func(x *exchange) {
		if got := x.reads(20); len(got) != 20 {
			t.Errorf("%d answers", len(got))
		}
		x.turnEnded()
		x.checkpoint(2)
	})
	c := s.client(func(o *Options) {
		o.Faults = Faults{Seed: 3, Reorder: Jitter(20 * time.Millisecond), Duplicate: Chance(0.5)}
	})
	mustRun(t, c, "hi")
	var seqs []int64
	messages := map[int64]*agentv1.AgentClientMessage{}
	twice := 0
	for _, a := range s.received() {
		seqs = append(seqs, a.Seq)
		if messages[a.Seq] != nil {
			twice++
		}
		messages[a.Seq] = a.Message
	}
	if slices.IsSorted(seqs) || twice == 0 || len(messages) < 41 {
		t.Errorf("%d messages, %d twice, in the order %v", len(messages), twice, seqs)
	}
	for seq := range int64(len(messages)) {
		if messages[seq] == nil {
			t.Errorf("no message %d", seq)
		}
	}
}

// The client has 16 appends on their way and no more, and waits for no reply before the next.
func TestInFlight(t *testing.T) {
	s := newStub(t, false, func(x *exchange) { x.reads(40); x.turnEnded(); x.checkpoint(2) })
	c := s.client(nil)
	counter := &roundTripper{RoundTripper: c.http.Transport, delay: 20 * time.Millisecond}
	c.http.Transport = counter
	mustRun(t, c, "hi")
	if counter.most < 16 || counter.most > 16+1 { // RunSSE is one
		t.Errorf("%d requests at once", counter.most)
	}
}

// A lost append is not noticed; a lost reply ends the attempt.
func TestDrop(t *testing.T) {
	isResult := func(_ *rand.Rand, a Append) bool { return a.Message.GetExecClientMessage() != nil }
	s := newStub(t, false, func(x *exchange) {
		x.checkpoint(1)
		x.exec(&agentv1.ExecServerMessage{Id: 1, Message: &agentv1.ExecServerMessage_ReadArgs{ReadArgs: new(agentv1.ReadArgs)}})
		time.AfterFunc(50*time.Millisecond, func() { x.in <- nil })
		if m := x.receive(); m != nil {
			t.Errorf("got %v", m)
		}
		good("done")(x)
	})
	if res := mustRun(t, s.client(func(o *Options) { o.Faults.Drop = isResult }), "hi"); len(res.Attempts) != 1 {
		t.Errorf("%d attempts", len(res.Attempts))
	}

	s = newStub(t, false, func(x *exchange) { x.reads(1); <-x.ctx.Done() }, good("again"))
	res := mustRun(t, s.client(func(o *Options) { o.Faults.DropResponse = isResult }), "hi")
	if !errors.Is(res.Attempts[0].Err, ErrLostReply) || res.Attempts[1].Action != resumeAction {
		t.Errorf("%+v", res.Attempts[0])
	}
}

func TestSameSeedSameFate(t *testing.T) {
	throw := func() (all []fate) {
		d := newDice(Faults{Seed: 9, Reorder: Jitter(time.Second), Drop: Chance(0.3)})
		for seq := range int64(50) {
			all = append(all, d.throw(Append{Seq: seq}))
		}
		return all
	}
	if !slices.Equal(throw(), throw()) {
		t.Error("one seed, two fates")
	}
}

// A test can send what no client would.
func TestAppendByHand(t *testing.T) {
	s := newStub(t, false, good("x"))
	c := s.client(nil)
	beat := &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ClientHeartbeat{ClientHeartbeat: new(agentv1.ClientHeartbeat)}}
	if err := c.Append(t.Context(), Append{"r", 5, beat}); err != nil || s.received()[0].Seq != 5 {
		t.Errorf("%v, %v", s.received(), err)
	}
}
