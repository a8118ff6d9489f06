package cursor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/roost-dev/roost/internal/cursortool"
	"github.com/roost-dev/roost/internal/cursorview"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Limits on what the client does for a call.
const (
	closeGrace  = 1500 * time.Millisecond // for a result that an exec's close has overtaken
	silence     = 60 * time.Second        // of an exec that has sent heartbeats
	safetyNet   = 30 * time.Minute        // of an exec that may ask a person and sends no heartbeats
	maxText     = 100 << 10               // bytes of a result for the model
	maxCard     = 48 << 10                // bytes of a result for the client
	maxRequests = 64                      // of one call; they share the numbers of one event
)

// call is a tool call that the client carries out.
type call struct {
	id       session.CallID
	began    session.Seq // of the event that started it; its requests are numbered from it
	machine  cursortool.Machine
	path     string // of the file that it edits
	running  bool   // its machine has been started
	requests []*exec
	query    uint32 // that is open, or 0
	wake     time.Time
	outcome  *cursortool.Outcome // waits for images
	issued   bool
	over     bool
}

// exec is one request of a call, or one of the driver's own.
type exec struct {
	id       uint32
	call     *call
	n        int
	patience time.Duration
	active   time.Time // when the client last said something about it
	beats    bool      // it has sent heartbeats
	closed   time.Time // when it was closed without having ended the call
	over     bool
	own      func(*agentv1.ExecClientMessage) // of the driver itself; nil result when it failed
}

// calls are the tool calls that this attempt carries out. They belong to the driver's goroutine.
type toolbox struct {
	set     *cursortool.Set
	env     cursortool.Env
	byID    map[session.CallID]*call
	order   []*call
	execs   map[uint32]*exec
	queries map[uint32]*call
	query   uint32                                  // the number of the last query
	own     uint32                                  // the number of the driver's last own exec
	early   map[uint32][]*agentv1.ExecClientMessage // results that were kept before this attempt, by exec id
}

func newToolbox() toolbox {
	return toolbox{
		byID: make(map[session.CallID]*call), execs: make(map[uint32]*exec), queries: make(map[uint32]*call),
		env: cursortool.Env{Shells: cursortool.NewShells()},
	}
}

// startCalls takes up the calls of the newest state that wait for this client, in their order.
func (d *driver) startCalls(ctx context.Context) error {
	run := d.state.Run
	if run == nil || run.Offer == "" || run.Aborting {
		return nil
	}
	if err := d.loadTools(ctx, run.Offer); err != nil {
		return err
	}
	for _, t := range run.Batch {
		if t.Host != session.HostClient || t.Status != session.Streaming || d.tools.byID[t.Call] != nil {
			continue
		}
		c := &call{id: t.Call, began: d.began[t.Call], issued: slices.Contains(run.Issued, t.Call)}
		use := cursortool.Call{ID: t.Call, Name: t.Name, Input: t.Input}
		c.path = cursortool.Path(use, &d.tools.env)
		c.machine = d.tools.set.Begin(use, &d.tools.env)
		d.tools.byID[t.Call] = c
		d.tools.order = append(d.tools.order, c)
		if c.issued && !d.takeEarly(c) {
			d.end(c, &cursortool.Outcome{
				Text: "Interrupted: the connection to the client was lost while the tool ran there, so its outcome is unknown. Check before you run it again.", IsError: true,
			})
		}
	}
	return d.startQueued(ctx)
}

// startQueued starts the machines that nothing holds up: edits of one file go one after the other.
func (d *driver) startQueued(ctx context.Context) error {
	busy := make(map[string]bool)
	for _, c := range slices.Clone(d.tools.order) {
		if c.running || c.path != "" && busy[c.path] {
			busy[c.path] = true
			continue
		}
		busy[c.path] = true
		c.running = true
		if err := d.step(ctx, c, c.machine.Start()); err != nil {
			return err
		}
	}
	return nil
}

// takeEarly gives a call that was issued before this attempt what the client has sent about it
// since, and reports whether that ended it.
func (d *driver) takeEarly(c *call) bool {
	first := execID(c.began, 0)
	step := c.machine.Start()
	c.running = true
	for range step.Requests {
		c.requests = append(c.requests, &exec{call: c, n: len(c.requests), over: true})
	}
	for id := first; id < first+maxRequests; id++ {
		for _, m := range d.tools.early[id] {
			if step.Done != nil {
				break
			}
			step = c.machine.Result(int(id-first), m)
			d.report.Output = appendOutput(d.report.Output, c.id, step.Output)
		}
	}
	if step.Done == nil {
		return false
	}
	d.end(c, step.Done)
	return true
}

// execID is the number of a request: that of the event that started its call tells it from all
// others of the conversation, also those of other processes.
func execID(began session.Seq, n int) uint32 { return uint32(began)*maxRequests + uint32(n) }

// step does what a machine asks for.
func (d *driver) step(ctx context.Context, c *call, s cursortool.Step) error {
	d.report.Output = appendOutput(d.report.Output, c.id, s.Output)
	for _, u := range s.Live {
		if delta := u.GetToolCallDelta(); delta != nil && d.state != nil && d.state.Run != nil {
			delta.ModelCallId = fmt.Sprintf("%d-%d", d.state.Run.ID, d.state.Run.Pass)
		}
		d.sendUpdate(u)
	}
	for _, n := range s.Abort {
		if n < len(c.requests) {
			d.abortExec(c.requests[n])
		}
	}
	for _, r := range s.Requests {
		if err := d.perform(ctx, c, r); err != nil {
			return err
		}
	}
	if s.Query != nil {
		d.tools.query++
		s.Query.Id, c.query = d.tools.query, d.tools.query
		d.tools.queries[s.Query.Id] = c
		d.link.Send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_InteractionQuery{InteractionQuery: s.Query}}, 0)
	}
	if s.Wake > 0 {
		c.wake = time.Now().Add(s.Wake)
	}
	if s.Local != nil {
		d.local(ctx, c, s.Local)
	}
	if s.Done != nil {
		d.finishCall(c, s.Done)
	}
	return nil
}

// perform asks the client for an execution. One that must not run twice is recorded first.
func (d *driver) perform(ctx context.Context, c *call, r cursortool.Request) error {
	n := len(c.requests)
	if n >= maxRequests {
		return d.step(ctx, c, c.machine.Thrown(n, fmt.Sprintf("it takes more than %d requests", maxRequests), false))
	}
	if r.Unsafe && !c.issued {
		c.issued = true
		d.report.Issued = append(d.report.Issued, c.id)
		if err := d.flush(ctx); err != nil {
			return err
		}
	}
	e := &exec{id: execID(c.began, n), call: c, n: n, patience: r.Patience, active: time.Now()}
	c.requests = append(c.requests, e)
	d.sendExec(e, r.Message)
	return nil
}

func (d *driver) sendExec(e *exec, m *agentv1.ExecServerMessage) {
	d.tools.execs[e.id] = e
	m.Id, m.ExecId = e.id, fmt.Sprintf("%s-%d", d.link.RequestID(), e.id)
	d.link.Send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_ExecServerMessage{ExecServerMessage: m}}, 0)
}

// ask has the client execute something for the driver itself; f gets the answer, nil if there is none.
func (d *driver) ask(m *agentv1.ExecServerMessage, patience time.Duration, f func(*agentv1.ExecClientMessage)) {
	d.tools.own++ // below the number of every call: event 1 is that of the creation
	d.sendExec(&exec{id: d.tools.own, patience: patience, active: time.Now(), own: f}, m)
}

func (d *driver) abortExec(e *exec) {
	if e.over {
		return
	}
	e.over = true
	d.link.Send(abortMessage(e.id), 0)
}

func abortMessage(exec uint32) *agentv1.AgentServerMessage {
	return &agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_ExecServerControlMessage{
		ExecServerControlMessage: &agentv1.ExecServerControlMessage{
			Message: &agentv1.ExecServerControlMessage_Abort{Abort: &agentv1.ExecServerAbort{Id: exec}},
		},
	}}
}

// execResult takes a message about an execution. What nobody waits for is passed over.
func (d *driver) execResult(ctx context.Context, m *agentv1.ExecClientMessage) error {
	e := d.tools.execs[m.GetId()]
	switch {
	case e == nil || e.over:
		if d.tools.env.Shells.Result(m.GetId(), m) {
			return d.poke(ctx)
		}
		return nil
	case e.own != nil:
		e.over = true
		delete(d.tools.execs, e.id)
		e.own(m)
		return nil
	}
	e.active = time.Now()
	return d.step(ctx, e.call, e.call.machine.Result(e.n, m))
}

// execControl takes the end, the failure or the heartbeat of an execution (section 3.4).
func (d *driver) execControl(ctx context.Context, m *agentv1.ExecClientControlMessage) error {
	now := time.Now()
	find := func(id uint32) *exec {
		if e := d.tools.execs[id]; e != nil && !e.over {
			return e
		}
		return nil
	}
	switch c := m.GetMessage().(type) {
	case *agentv1.ExecClientControlMessage_Heartbeat:
		if e := find(c.Heartbeat.GetId()); e != nil {
			e.active, e.beats = now, true
			e.hear()
		}
	case *agentv1.ExecClientControlMessage_StreamClose:
		e := find(c.StreamClose.GetId())
		switch {
		case e != nil && e.closed.IsZero():
			e.closed = now
		case e == nil && d.tools.env.Shells.Closed(c.StreamClose.GetId()):
			return d.poke(ctx)
		}
	case *agentv1.ExecClientControlMessage_Throw:
		if e := find(c.Throw.GetId()); e != nil {
			return d.fail(ctx, e, c.Throw.GetError(), unsupported(c.Throw))
		}
	}
	return nil
}

// hear tells a machine that its client is at work, though it says nothing new.
func (e *exec) hear() {
	if e.call == nil {
		return
	}
	if m, ok := e.call.machine.(interface{ Heard() }); ok {
		m.Heard()
	}
}

// heartbeat takes the client's own heartbeat for those of executions if it sends none of these.
func (d *driver) heartbeat() {
	for _, e := range d.tools.execs {
		if !e.over && !e.beats {
			e.hear()
		}
	}
}

// unsupported reports whether a client has no handler for a kind of execution.
func unsupported(t *agentv1.ExecClientThrow) bool {
	return strings.Contains(t.GetError(), "No handler found") || strings.Contains(t.GetErrorCode(), "unknown_exec")
}

// fail ends an execution without result.
func (d *driver) fail(ctx context.Context, e *exec, reason string, unsupported bool) error {
	e.over = true
	if e.own != nil {
		delete(d.tools.execs, e.id)
		e.own(nil)
		return nil
	}
	if reason == "" {
		reason = "the client gave no reason"
	}
	return d.step(ctx, e.call, e.call.machine.Thrown(e.n, reason, unsupported))
}

// answered takes the answer to a query.
func (d *driver) answered(ctx context.Context, r *agentv1.InteractionResponse) error {
	c := d.tools.queries[r.GetId()]
	if c == nil {
		return nil
	}
	delete(d.tools.queries, r.GetId())
	c.query = 0
	return d.step(ctx, c, c.machine.Answered(r))
}

// local runs what a machine wants done here, in a goroutine of its own.
func (d *driver) local(ctx context.Context, c *call, work func(context.Context) cursortool.Outcome) {
	d.work.Go(func() {
		o := func() (o cursortool.Outcome) {
			defer func() {
				if v := recover(); v != nil {
					d.log.Error("tool failed", slog.Any("panic", v), slog.String("stack", string(debug.Stack())))
					o = cursortool.Outcome{Text: "The tool failed: internal error.", IsError: true}
				}
			}()
			return work(ctx)
		}()
		select {
		case d.back <- func() error {
			if c.over {
				return nil
			}
			return d.step(ctx, c, c.machine.Finished(o))
		}:
		case <-ctx.Done():
		}
	})
}

// poke tells the calls that wait for a background shell that there is news.
func (d *driver) poke(ctx context.Context) error {
	for _, c := range slices.Clone(d.tools.order) {
		if !c.wake.IsZero() {
			c.wake = time.Time{}
			if err := d.step(ctx, c, c.machine.Tick(time.Now())); err != nil {
				return err
			}
		}
	}
	return nil
}

// tickCalls does what the time asks for: the wakes of machines, executions that were closed without
// a result, and those that nobody hears of any more.
func (d *driver) tickCalls(ctx context.Context, now time.Time) error {
	for _, c := range slices.Clone(d.tools.order) {
		if c.wake.IsZero() || now.Before(c.wake) {
			continue
		}
		c.wake = time.Time{}
		if err := d.step(ctx, c, c.machine.Tick(now)); err != nil {
			return err
		}
	}
	for _, e := range d.tools.execs {
		var err error
		switch {
		case e.over:
		case !e.closed.IsZero() && !now.Before(e.closed.Add(closeGrace)):
			if e.own != nil {
				err = d.fail(ctx, e, "it ended without a result", false)
				break
			}
			e.over = true
			err = d.step(ctx, e.call, e.call.machine.Closed(e.n))
		case !now.Before(e.deadline()):
			d.abortExec(e)
			err = d.fail(ctx, e, "the client has not been heard of it for too long", false)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// deadline is when an execution is given up if nothing is heard of it.
func (e *exec) deadline() time.Time {
	switch {
	case e.patience > 0:
		return e.active.Add(e.patience)
	case e.beats:
		return e.active.Add(silence)
	}
	return e.active.Add(safetyNet)
}

// nextTick returns when tickCalls has something to do, or the zero time.
func (t *toolbox) nextTick() time.Time {
	var next time.Time
	sooner := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for _, c := range t.order {
		if !c.wake.IsZero() {
			sooner(c.wake)
		}
	}
	for _, e := range t.execs {
		switch {
		case e.over:
		case !e.closed.IsZero():
			sooner(e.closed.Add(closeGrace))
		default:
			sooner(e.deadline())
		}
	}
	return next
}

// finishCall ends a call once the images that the client holds are here.
func (d *driver) finishCall(c *call, o *cursortool.Outcome) {
	c.outcome = o
	d.calledOff(c)
	for _, image := range o.Images {
		if id, ok := cursorwire.ParseBlobID(image.Blob); ok && len(image.Data) == 0 {
			d.kv.get(id)
		}
	}
	d.finishReady()
}

// finishReady ends the calls whose images have arrived.
func (d *driver) finishReady() {
	for _, c := range slices.Clone(d.tools.order) {
		if c.outcome == nil {
			continue
		}
		waiting := false
		for _, image := range c.outcome.Images {
			if id, ok := cursorwire.ParseBlobID(image.Blob); ok && len(image.Data) == 0 {
				_, known := d.kv.have(id)
				waiting = waiting || !known
			}
		}
		if !waiting {
			d.end(c, c.outcome)
		}
	}
}

// calledOff gives up what the call still waits for. Executions stay known, so that late messages
// about them are told from those of background shells.
func (d *driver) calledOff(c *call) {
	for _, e := range c.requests {
		e.over = true
	}
	if c.query != 0 {
		delete(d.tools.queries, c.query)
		c.query = 0
	}
	c.wake = time.Time{}
}

// end adds the outcome of a call to the report.
func (d *driver) end(c *call, o *cursortool.Outcome) {
	d.calledOff(c)
	for _, e := range c.requests {
		delete(d.tools.execs, e.id)
	}
	c.over = true
	d.tools.order = slices.DeleteFunc(d.tools.order, func(other *call) bool { return other == c })
	if o.Shell != nil {
		o.Shell.Exec = execID(c.began, max(0, len(c.requests)-1))
		d.tools.env.Shells.Add(*o.Shell)
	}
	ended := session.ToolEnded{Call: c.id, IsError: o.IsError, Output: cut(o.Text, maxText), Last: o.EndsTurn}
	card := o.Card
	if card == nil {
		card = cursortool.FailedCard(d.cardOf(c.id), o.Text)
	}
	card.ToolCallId = new(string(c.id))
	ended.Details = details(card)
	for _, image := range o.Images {
		d.keepImage(&ended, image)
	}
	if o.HasTodos {
		d.tools.env.Todos = o.Todos
		d.ckpt.base.Todos, d.ckpt.base.HasTodos = o.Todos, true
	}
	if o.Plan != nil {
		d.ckpt.base.Plan = o.Plan
	}
	if o.Mode != agentv1.AgentMode_AGENT_MODE_UNSPECIFIED {
		d.switchMode(o.Mode)
	}
	d.report.Ended = append(d.report.Ended, ended)
}

// cardOf is the card of a call of the newest state.
func (d *driver) cardOf(id session.CallID) *agentv1.ToolCall {
	if d.state != nil {
		if t := d.state.Tool(id); t != nil {
			return d.tools.set.Card(t.Name, t.Input)
		}
	}
	return d.tools.set.Card("", "")
}

// keepImage adds a picture to a result.
func (d *driver) keepImage(e *session.ToolEnded, image cursortool.Image) {
	data := image.Data
	if id, ok := cursorwire.ParseBlobID(image.Blob); ok && len(data) == 0 {
		data, _ = d.kv.have(id)
	}
	if len(data) == 0 {
		e.Output += "\n[a picture could not be had from the client]"
		return
	}
	hash, err := d.server.opt.Blobs.Put(d.ctx, data)
	if err != nil {
		e.Output += "\n[a picture could not be kept]"
		return
	}
	e.Images = append(e.Images, session.Image{MIME: image.MIME, Blob: hash, Size: int64(len(data))})
}

// details is what a session keeps of a call for those who show it.
func details(card *agentv1.ToolCall) json.RawMessage {
	cursortool.Fit(card, maxCard)
	return cursorview.EncodeCard(card)
}

func appendOutput(list []session.ToolOutput, id session.CallID, text string) []session.ToolOutput {
	if text == "" {
		return list
	}
	text = strings.ToValidUTF8(text, "\uFFFD")
	if n := len(list) - 1; n >= 0 && list[n].Call == id && len(list[n].Text)+len(text) <= maxText {
		list[n].Text += text
		return list
	}
	return append(list, session.ToolOutput{Call: id, Text: text})
}

// cut shortens text to at most limit bytes of whole characters, with a notice.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "\n[cut]"
}
