package cursor

import (
	"encoding/json"
	"slices"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorview"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// checkpointPause is the least time between two checkpoints that nothing urgent asks for (section
// 6.3).
const checkpointPause = 250 * time.Millisecond

// checkpoints has the client keep the conversation's state. A checkpoint is sent when the client has
// confirmed every blob that it refers to, one at a time, and always the newest (section 6.4). It
// belongs to the driver's goroutine.
type checkpoints struct {
	wanted  bool // a newer one is to be made
	urgent  bool // at once
	last    time.Time
	making  *cursorview.Checkpoint // waits for its blobs
	mark    uint64
	again   bool // its blobs were sent a second time
	count   int  // sent in this attempt
	newest  *agentv1.ConversationStateStructure
	turns   int // in the newest
	project cursorview.Projector
	base    cursorview.Base
}

// want asks for a checkpoint of the newest state.
func (c *checkpoints) want(urgent bool) {
	c.wanted = true
	c.urgent = c.urgent || urgent
}

// idle reports whether the client has the newest state.
func (c *checkpoints) idle() bool { return !c.wanted && c.making == nil }

// due returns when the next is to be made, or the zero time.
func (c *checkpoints) due() time.Time {
	switch {
	case !c.wanted || c.making != nil:
		return time.Time{}
	case c.urgent:
		return time.Now()
	}
	return c.last.Add(checkpointPause)
}

// checkpoint makes, or goes on with, a checkpoint.
func (d *driver) checkpoint(now time.Time) {
	c := &d.ckpt
	if c.making == nil {
		if d.state == nil || !c.wanted || !c.urgent && now.Before(c.due()) {
			return
		}
		c.wanted, c.urgent, c.again = false, false, false
		c.base.NowMS = now.UnixMilli()
		made := c.project.Checkpoint(d.state, c.base)
		c.making, c.mark = &made, uint64(d.state.Seq)
		d.kv.imply(&made)
		d.addImages(&made)
		for _, b := range made.Blobs {
			d.kv.set(b.ID, b.Data)
		}
	}
	waiting := slices.ContainsFunc(c.making.Blobs, func(b cursorview.Blob) bool { return d.kv.inFlight(b.ID, true) })
	lacking := slices.ContainsFunc(c.making.Blobs, func(b cursorview.Blob) bool { return !d.kv.has[b.ID] })
	switch {
	case waiting:
		return
	case lacking && !c.again:
		c.again = true
		for _, b := range c.making.Blobs {
			d.kv.set(b.ID, b.Data)
		}
		return
	case lacking:
		d.log.Warn("the client does not keep blobs; the checkpoint leaves out what it lacks")
	}
	d.sendCheckpoint(now, d.confirmed(c.making))
}

// addImages makes the pictures that messages refer to the first of the blobs.
func (d *driver) addImages(made *cursorview.Checkpoint) {
	var images []cursorview.Blob
	for _, id := range made.Images {
		if d.kv.has[id] {
			continue
		}
		if data, err := d.server.opt.Blobs.Get(d.ctx, id.String()); err == nil {
			images = append(images, cursorview.Blob{ID: id, Data: data})
		}
	}
	made.Blobs = append(images, made.Blobs...)
}

// confirmed returns the state without the turns that the client lacks something of: a checkpoint
// that refers to what is not there ruins the conversation (section 6.4).
func (d *driver) confirmed(made *cursorview.Checkpoint) *agentv1.ConversationStateStructure {
	i := slices.IndexFunc(made.Blobs, func(b cursorview.Blob) bool { return !d.kv.has[b.ID] })
	if i < 0 {
		return made.State
	}
	state := proto.CloneOf(made.State)
	lacking := made.Blobs[i:]
	n := slices.IndexFunc(state.Turns, func(turn []byte) bool {
		return slices.ContainsFunc(lacking, func(b cursorview.Blob) bool { return string(b.ID.Bytes()) == string(turn) })
	})
	if n >= 0 {
		state.Turns = state.Turns[:n]
	}
	return state
}

func (d *driver) sendCheckpoint(now time.Time, state *agentv1.ConversationStateStructure) {
	c := &d.ckpt
	c.making, c.last, c.newest = nil, now, state
	c.count++
	c.turns = len(state.Turns)
	d.link.Send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_ConversationCheckpointUpdate{
		ConversationCheckpointUpdate: state,
	}}, c.mark)
}

// hold notes which blobs the client has anyway: the turns of the state that it came with, and what
// they refer to as far as this server knows it.
func (d *driver) hold(state *agentv1.ConversationStateStructure) {
	for _, entry := range state.GetTurns() {
		id, ok := cursorwire.ParseBlobID(entry)
		if !ok {
			continue
		}
		d.kv.has[id] = true
	}
}

// todosIn returns the list of a client's state.
func todosIn(state *agentv1.ConversationStateStructure) []*agentv1.TodoItem {
	var todos []*agentv1.TodoItem
	for _, data := range state.GetTodos() {
		item := new(agentv1.TodoItem)
		if proto.Unmarshal(data, item) == nil {
			todos = append(todos, item)
		}
	}
	return todos
}

// todosOf returns the list of the newest TodoWrite of a run, and whether there is one.
func todosOf(s *session.State, run session.RunID) ([]*agentv1.TodoItem, bool) {
	for _, item := range slices.Backward(s.Settled) {
		t, ok := item.(*session.Tool)
		if !ok {
			continue
		}
		if t.Run != run {
			break
		}
		var kept struct{ Card json.RawMessage }
		card := new(agentv1.ToolCall)
		if json.Unmarshal(t.Details, &kept) != nil || protojson.Unmarshal(kept.Card, card) != nil {
			continue
		}
		if todos := card.GetUpdateTodosToolCall().GetResult().GetSuccess(); todos != nil {
			return todos.GetTodos(), true
		}
	}
	return nil, false
}
