package cursor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/live"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// driver serves one link: it finds out what the client wants, has the session do it, tells the
// client what happens, and has it carry out the tool calls. All of it is one goroutine, that of
// drive; other goroutines reach it through channels.
type driver struct {
	server *Server
	link   link
	log    *slog.Logger
	ctx    context.Context // of the whole drive
	taken  chan struct{}   // closed when another driver takes the session over
	over   chan struct{}   // closed when this one has ended
	back   chan func() error
	work   sync.WaitGroup

	id           session.ID
	attempt      attempt
	images       bool                    // the model takes pictures
	begun        session.RunID           // the run that this attempt has begun; 0 for none
	instructions string                  // the client's system prompt as its state has it
	request      *agentv1.RequestContext // what is known of the client's surroundings; nil when unknown

	kv    kv
	tools toolbox
	ckpt  checkpoints

	follow  follow
	state   *session.State // the newest that the client is told of; nil before the session is followed
	began   map[session.CallID]session.Seq
	report  session.Report
	acks    []func(error)
	later   []*agentv1.ConversationAction // for when there is a run
	journal sync.Map                      // seqnos of messages that were kept before they were applied
}

// How a drive ends early.
var (
	errGone  = errors.New("the client has left")
	errTaken = errors.New("another attempt has taken the session over")
)

// drive serves the link to its end.
func (d *driver) drive(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	d.ctx = ctx
	defer d.work.Wait()
	defer cancel()
	d.back = make(chan func() error)
	d.began = make(map[session.CallID]session.Seq)
	d.kv, d.tools = newKV(func(m *agentv1.AgentServerMessage) { d.link.Send(m, 0) }), newToolbox()
	var first received
	select {
	case r, ok := <-d.link.Received():
		if !ok {
			d.link.End(nil)
			return
		}
		first = r
	case <-ctx.Done():
		d.link.End(cursorwire.Interrupted("the server is shutting down"))
		return
	}
	done := first.Done
	first.Done = func(error) {
		if done != nil {
			done(nil) // whatever is wrong is said in the stream, where the client can tell what it is
			done = nil
		}
	}
	err := d.serve(ctx, &first)
	first.Done(nil)
	for _, ack := range d.acks {
		ack(nil)
	}
	d.interrupt(err)
	d.link.End(d.ending(err))
	d.awaitLastWords(err)
	d.detach() //nolint:contextcheck // it has a time of its own, when the drive's is over
}

// awaitLastWords waits until what is queued has been written, which counts as what the client has been
// told: it would be told it again. It waits for no client that has left, and not long for any other.
func (d *driver) awaitLastWords(err error) {
	if errors.Is(err, errGone) || errors.Is(err, errTaken) {
		return
	}
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	select {
	case <-d.link.Gone():
	case <-d.taken:
	case <-timer.C:
	}
}

// interrupt closes what is open at a client whose stream ends with an error.
func (d *driver) interrupt(err error) {
	if err == nil || !d.follow.told {
		return
	}
	for _, m := range d.follow.updates.Interrupt(time.Now().UnixMilli()) {
		d.link.Send(m, 0)
	}
}

// ending is what the stream ends with.
func (d *driver) ending(err error) *cursorwire.Error {
	wire, isWire := errors.AsType[*cursorwire.Error](err)
	switch {
	case err == nil || errors.Is(err, errGone):
		return nil
	case isWire:
		return wire
	case errors.Is(err, errTaken):
		return cursorwire.Stopped("superseded by a newer attempt")
	case errors.Is(err, context.Canceled), errors.Is(err, live.ErrClosed):
		return cursorwire.Interrupted("the server is shutting down")
	}
	d.log.Warn("a run could not be served", slog.Any("error", err))
	return wireError(err)
}

// wireError maps the kinds of error of the sessions to what a client does about them (section 1.5).
func wireError(err error) *cursorwire.Error {
	e := session.AsError(err)
	switch e.Kind {
	case session.Invalid, session.NotFound, session.TooLarge, session.Forbidden:
		return cursorwire.Refused("Request Refused", e.Message)
	case session.Unauthenticated:
		return cursorwire.NotLoggedIn(e.Message)
	case session.Provider:
		return cursorwire.ProviderFailed(e.Message, true)
	case session.Busy, session.Locked, session.Unavailable, session.Canceled, session.Internal:
	}
	return cursorwire.Interrupted(e.Message)
}

// pump handles what comes until ok says so or limit has passed (0 is for ever). It reports whether ok did.
func (d *driver) pump(ctx context.Context, limit time.Duration, ok func() bool) (bool, error) {
	var end time.Time
	if limit > 0 {
		end = time.Now().Add(limit)
	}
	inbox, connected := d.link.Received(), d.link.Connected()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if err := d.settle(ctx); err != nil {
			return false, err
		}
		now := time.Now()
		if ok() {
			return true, nil
		}
		if !end.IsZero() && !now.Before(end) {
			return false, nil
		}
		timer.Reset(d.sleep(now, end))
		news, room := d.follow.news, d.link.Room()
		if room != nil {
			news = nil
		}
		var err error
		select {
		case r, open := <-inbox:
			if !open {
				inbox = nil
				break
			}
			err = d.receiveAll(ctx, r, inbox)
		case n := <-news:
			err = d.update(ctx, n)
		case <-room:
		case f := <-d.back:
			err = f()
		case <-connected:
			connected = nil
		case <-timer.C:
		case <-d.link.Gone():
			err = errGone
		case <-d.taken:
			err = errTaken
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return false, err
		}
	}
}

// settle does what follows from what has come: calls that can start, results for the session,
// acknowledgements, checkpoints.
func (d *driver) settle(ctx context.Context) error {
	now := time.Now()
	d.kv.expire(now)
	if err := d.tickCalls(ctx, now); err != nil {
		return err
	}
	d.finishReady()
	if err := d.startQueued(ctx); err != nil {
		return err
	}
	if err := d.flush(ctx); err != nil {
		return err
	}
	d.checkpoint(now)
	return nil
}

// flush gives the session what the client has reported, and acknowledges it once that lasts.
func (d *driver) flush(ctx context.Context) error {
	report := d.report
	d.report = session.Report{}
	var err error
	if len(report.Issued)+len(report.Output)+len(report.Ended)+len(report.Keep) > 0 || report.Mode != "" {
		err = d.tell(ctx, report)
	}
	for _, ack := range d.acks {
		ack(nil)
	}
	d.acks = nil
	return err
}

// tellAgain is when a report is repeated that the session could not take: its disk was full for a
// moment, or it is being loaded again.
var tellAgain = []time.Duration{50 * time.Millisecond, 500 * time.Millisecond, 3 * time.Second}

// tell gives the session a report. A client's results are not to be had twice, so what cannot be
// taken is told again. Whether the session has it is not known then: results count once, and output
// is left out, because it would not.
func (d *driver) tell(ctx context.Context, r session.Report) error {
	for n := 0; ; n++ {
		_, err := d.server.opt.Engine.Do(ctx, d.id, r)
		if kind := session.AsError(err).Kind; err == nil || n == len(tellAgain) || kind != session.Unavailable && kind != session.Internal {
			return err
		}
		r.Output = nil
		select {
		case <-time.After(tellAgain[n]):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// sleep is how long nothing happens by itself.
func (d *driver) sleep(now, end time.Time) time.Duration {
	next := now.Add(time.Hour)
	var due time.Time
	if d.state != nil { // there is no checkpoint without
		due = d.ckpt.due()
	}
	for _, at := range []time.Time{end, d.kv.deadline(), d.tools.nextTick(), due} {
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return max(0, next.Sub(now))
}

// maxBatch is how many messages share one append to the event log.
const maxBatch = 256

// receiveAll handles r and whatever else has arrived.
func (d *driver) receiveAll(ctx context.Context, r received, inbox <-chan received) error {
	for range maxBatch {
		if err := d.receive(ctx, r); err != nil {
			return err
		}
		select {
		case next, open := <-inbox:
			if !open {
				return nil
			}
			r = next
		default:
			return nil
		}
	}
	return nil
}

// receive handles one message of the client.
func (d *driver) receive(ctx context.Context, r received) error {
	d.acks = append(d.acks, r.Done)
	if _, kept := d.journal.LoadAndDelete(r.Seq); kept {
		d.report.Keep = append(d.report.Keep, session.FrontSet{Key: appendKey(d.link.RequestID(), r.Seq)})
	}
	switch m := r.Message.GetMessage().(type) {
	case *agentv1.AgentClientMessage_ExecClientMessage:
		return d.execResult(ctx, m.ExecClientMessage)
	case *agentv1.AgentClientMessage_ExecClientControlMessage:
		return d.execControl(ctx, m.ExecClientControlMessage)
	case *agentv1.AgentClientMessage_KvClientMessage:
		d.kv.answer(m.KvClientMessage)
	case *agentv1.AgentClientMessage_InteractionResponse:
		return d.answered(ctx, m.InteractionResponse)
	case *agentv1.AgentClientMessage_ConversationAction:
		return d.action(ctx, m.ConversationAction)
	case *agentv1.AgentClientMessage_ClientHeartbeat:
		d.heartbeat()
	case *agentv1.AgentClientMessage_RunRequest, *agentv1.AgentClientMessage_PrewarmRequest:
	}
	return nil
}

// keepEarly is how the transport keeps a message that has overtaken others. It is called by other
// goroutines.
func (d *driver) keepEarly(seq int64, data []byte) error {
	value := append([]byte{0}, data...)
	if len(data) > inlineAppend {
		hash, err := d.server.opt.Blobs.Put(d.ctx, data)
		if err != nil {
			return err
		}
		value = append([]byte{1}, hash...)
	}
	d.journal.Store(seq, true)
	_, err := d.server.opt.Engine.Do(d.ctx, d.id, session.Report{
		Keep: []session.FrontSet{{Key: appendKey(d.link.RequestID(), seq), Value: value}},
	})
	return err
}

// readEarly returns a message that keepEarly has kept, or nil.
func (d *driver) readEarly(value []byte) *agentv1.AgentClientMessage {
	if len(value) == 0 {
		return nil
	}
	data := value[1:]
	if value[0] == 1 {
		var err error
		if data, err = d.server.opt.Blobs.Get(d.ctx, string(data)); err != nil {
			return nil
		}
	}
	m := new(agentv1.AgentClientMessage)
	if proto.Unmarshal(data, m) != nil {
		return nil
	}
	return m
}

func (d *driver) sendUpdate(u *agentv1.InteractionUpdate) {
	d.link.Send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_InteractionUpdate{InteractionUpdate: u}}, 0)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
