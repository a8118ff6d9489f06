package cursorview

import (
	"slices"

	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Blob is content that a checkpoint refers to.
type Blob struct {
	ID   cursorwire.BlobID
	Data []byte
}

// Projector makes checkpoints of one session. It keeps what it has encoded, so that a checkpoint
// costs what is new since the last one and a few bytes for each turn. What it returns is a function
// of the state alone, but for the mode that a message is shown with: that is the mode in which the
// projector has first seen the message. The zero Projector is ready. It is not safe for concurrent
// use.
type Projector struct {
	// Cards makes the cards of calls that have none with their result. It may be nil.
	Cards Cards

	turns map[session.Item]*sealed
}

// sealed is what is kept of a turn: what is settled of it, and its blob as long as it does not grow.
type sealed struct {
	turn
	blob  Blob
	steps int // the steps in blob, or -1
}

// turn returns the turn that the transcript's items begin with and the blob of it. More are items in
// progress, which are shown but not kept. The results must not be changed.
func (p *Projector) turn(settled, more []session.Item, mode agentv1.AgentMode) (turn, Blob) {
	user := settled[0].(*session.User)
	t := p.turns[user]
	if t == nil || !slices.Equal(t.items, settled[:min(len(t.items), len(settled))]) {
		t = newTurn(user, mode)
		if p.turns == nil {
			p.turns = map[session.Item]*sealed{}
		}
		p.turns[user] = t
	}
	t.grow(p.Cards, settled)
	rest := slices.Concat(settled[len(t.items):], more)
	if len(rest) == 0 {
		if t.steps != len(t.turn.steps) {
			t.blob, t.steps = t.seal(), len(t.turn.steps)
		}
		return t.turn, t.blob
	}
	open := t.turn
	for len(rest) > 0 {
		n, _ := passLen(rest)
		open.add(p.Cards, rest[:n])
		rest = rest[n:]
	}
	return open, open.seal()
}

func newTurn(user *session.User, mode agentv1.AgentMode) *sealed {
	t := &sealed{steps: -1}
	t.items = []session.Item{user}
	m := userMessage(user, mode)
	t.user = mustEncode(m)
	for _, img := range m.GetSelectedContext().GetSelectedImages() {
		if id, ok := cursorwire.ParseBlobID(img.GetBlobId()); ok {
			t.images = append(t.images, id)
		}
	}
	return t
}

// forget drops what is kept of messages that are not in the transcript any more.
func (p *Projector) forget(items []session.Item, starts []int) {
	if len(p.turns) <= len(starts) {
		return
	}
	kept := make(map[session.Item]*sealed, len(starts))
	for _, i := range starts {
		if t := p.turns[items[i]]; t != nil {
			kept[items[i]] = t
		}
	}
	p.turns = kept
}
