package cursorview

import (
	"bytes"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Plan says how a session comes to what its client's user sees.
type Plan struct {
	// Missing are blobs that have to be fetched from the client first, each once. While there are any,
	// nothing else is set: fetch them, let have know them, and call Reconcile again.
	Missing []cursorwire.BlobID
	// Keep is how many of the session's turns stay, and KeepItems the items of its transcript that
	// they are.
	Keep      int
	KeepItems int
	// Import are the items that come after them. Their ids are new in the session.
	Import []session.Item
	// Runs and Users are the newest run and the number of user items after the import, as
	// session.ItemsCopied has them.
	Runs  session.RunID
	Users uint32
	// Prefix are the client's entries for the first turns, kept or imported, as far as they can go on
	// standing for them (Base.Prefix).
	Prefix [][]byte
	// Items is the length of the transcript when the plan is carried out (Base.Items).
	Items int
	// Instructions are the system messages of a client that has its own; empty when it has none.
	Instructions string
}

// Reconcile compares an idle session with the state that a client sends, which is the truth about
// what its user sees (sections 6.6 and 6.8). A turn of the client is ours when it has our id, or when
// it begins with the same text; a turn that the client itself has lost counts as ours (R50). Turns of
// ours beyond those are taken back, other turns of the client are imported. A state without anything
// in it says nothing: then the history is on the server only, and all of it stays.
//
// Have returns a blob that the client is known to have; nil and true when it is known not to have it;
// false when it has not been asked. Nothing in a state is an error.
func Reconcile(s *session.State, p *Projector, client *agentv1.ConversationStateStructure, have func(cursorwire.BlobID) ([]byte, bool)) Plan {
	r := &reader{have: have}
	c := comparison{reader: r, s: s, p: p, starts: turnStarts(s.Settled), client: client}
	messages := r.rootMessages(client, len(client.GetTurns()) == 0)
	switch {
	case len(client.GetTurns()) > 0:
		c.compareTurns()
	case len(client.GetRootPromptMessagesJson()) > 0:
		if len(r.missing) == 0 {
			c.compareMessages(messages)
		}
	default:
		c.keep = len(c.starts)
	}
	if len(r.missing) > 0 {
		return Plan{Missing: r.missing}
	}
	im := importTurns(s, c.fresh)
	return Plan{
		Keep: c.keep, KeepItems: ItemsOf(s, c.keep), Import: im.items, Runs: im.run, Users: im.users,
		Prefix: c.prefix(im.turns), Items: ItemsOf(s, c.keep) + len(im.items), Instructions: instructions(messages),
	}
}

// comparison is one call of Reconcile.
type comparison struct {
	*reader
	s      *session.State
	p      *Projector
	starts []int
	client *agentv1.ConversationStateStructure

	keep   int
	fresh  []theirTurn
	usable []bool // whether the client's entry may go on standing for the turn
}

// compareTurns finds the first turn that is not ours and reads those from there on.
func (c *comparison) compareTurns() {
	entries := c.client.GetTurns()
	mine := c.p.project(c.s, c.starts, min(len(entries), len(c.starts)), WireMode(c.s.Mode, c.client.GetMode()))
	same := true
	for i, entry := range entries {
		if same && i < len(mine) && bytes.Equal(entry, mine[i].blob.ID.Bytes()) {
			c.keep++
			c.usable = append(c.usable, true)
			continue
		}
		t := c.turn(entry)
		if same && i < len(mine) {
			switch {
			case t.user == wanted:
				continue // nothing is decided before it is here
			case t.user == lost || t.is(mine[i].message()):
				// A stale copy of the last turn must not hide what was added to it meanwhile.
				stale := i == len(entries)-1 && len(t.entries) < len(mine[i].steps)
				c.keep++
				c.usable = append(c.usable, t.whole && !stale && isID(entry))
				continue
			}
		}
		same = false
		c.readSteps(&t, c.p.Cards)
		c.fresh = append(c.fresh, t)
		c.usable = append(c.usable, t.whole && isID(entry))
	}
}

func isID(entry []byte) bool {
	_, ok := cursorwire.ParseBlobID(entry)
	return ok
}

// compareMessages does the same with a client that sends its history as messages of a prompt.
func (c *comparison) compareMessages(messages []rootMessage) {
	turns := rootTurns(messages, c.p.Cards)
	for c.keep < min(len(turns), len(c.starts)) {
		user := c.s.Settled[c.starts[c.keep]].(*session.User)
		if !turns[c.keep].is(&agentv1.UserMessage{Text: userText(user.Blocks)}) {
			break
		}
		c.keep++
	}
	c.fresh = turns[c.keep:]
}

// prefix returns the entries up to the first that may not stand for its turn.
func (c *comparison) prefix(imported int) [][]byte {
	n := 0
	for n < min(len(c.usable), c.keep+imported) && c.usable[n] {
		n++
	}
	return c.client.GetTurns()[:n:n]
}

// projected is a turn of ours with its blob.
type projected struct {
	turn
	blob Blob
}

// project returns the first n turns of s.
func (p *Projector) project(s *session.State, starts []int, n int, mode agentv1.AgentMode) []projected {
	out := make([]projected, n)
	for i := range out {
		t, blob := p.turn(turnItems(s.Settled, starts, i), nil, mode)
		out[i] = projected{t, blob}
	}
	return out
}

// message returns the message that a turn of ours begins with.
func (t *projected) message() *agentv1.UserMessage {
	m := &agentv1.UserMessage{}
	if proto.Unmarshal(t.user.Data, m) != nil {
		return nil
	}
	return m
}
