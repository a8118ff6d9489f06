package cursorview

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// gone stands in for a text that the client does not have any more.
const gone = "[This message is not available any more.]"

// reader resolves the entries of a client's state and collects what has to be fetched first.
type reader struct {
	have    func(cursorwire.BlobID) ([]byte, bool)
	missing []cursorwire.BlobID
	asked   map[cursorwire.BlobID]bool
	size    int // bytes read
	steps   int // steps read
}

// found is what became of an entry.
type found int

const (
	here   found = iota
	lost         // the client has said that it lacks the blob, or it cannot be read
	wanted       // it has to be fetched
)

// read returns the content of an entry, which is its own when it is not the id of a blob. A small
// state can name a large blob many times, so there is a limit on what is read.
func (r *reader) read(entry []byte) ([]byte, found) {
	if r.size > maxRead {
		return nil, lost
	}
	id, ok := cursorwire.ParseBlobID(entry)
	if !ok {
		r.size += len(entry)
		return entry, here
	}
	data, known := r.have(id)
	switch {
	case !known:
		if r.asked == nil {
			r.asked = map[cursorwire.BlobID]bool{}
		}
		if !r.asked[id] {
			r.asked[id] = true
			r.missing = append(r.missing, id)
		}
		return nil, wanted
	case data == nil:
		return nil, lost
	}
	r.size += len(data)
	return data, here
}

// decode reads an entry into m. Bytes that are no such message count as lost.
func (r *reader) decode(entry []byte, m proto.Message) found {
	data, f := r.read(entry)
	if f == here && proto.Unmarshal(data, m) != nil {
		return lost
	}
	return f
}

// theirTurn is a turn as the client has it.
type theirTurn struct {
	user    found
	id      string // of the message; may be empty
	text    string
	entries [][]byte // the steps, unread
	steps   []step
	whole   bool // every part that was read was there
}

// turn reads a turn up to its message.
func (r *reader) turn(entry []byte) theirTurn {
	var structure agentv1.ConversationTurnStructure
	if f := r.decode(entry, &structure); f != here {
		return theirTurn{user: f, text: gone}
	}
	if shell := structure.GetShellConversationTurn(); shell != nil {
		var command agentv1.ShellCommand
		t := theirTurn{user: r.decode(shell.GetShellCommand(), &command), text: gone}
		if t.user == here {
			t.text, t.whole = "$ "+clean(command.GetCommand()), true
		}
		return t
	}
	t := theirTurn{entries: structure.GetAgentConversationTurn().GetSteps(), text: gone}
	var m agentv1.UserMessage
	if t.user = r.decode(structure.GetAgentConversationTurn().GetUserMessage(), &m); t.user != here {
		return t
	}
	t.id, t.text, t.whole = m.GetMessageId(), clean(m.GetText()), true
	if m.GetText() != "" || len(m.GetTextBlobId()) == 0 {
		return t
	}
	data, f := r.read(m.GetTextBlobId())
	t.user, t.text = f, gone
	if f == here {
		t.text = clean(string(data))
	}
	return t
}

// readSteps reads the steps of a turn.
func (r *reader) readSteps(t *theirTurn, cards Cards) {
	for _, entry := range t.entries {
		if r.steps++; r.steps > maxItems {
			t.whole = false
			return
		}
		var s agentv1.ConversationStep
		if r.decode(entry, &s) != here {
			t.whole = false
			t.steps = append(t.steps, step{text: gone})
			continue
		}
		switch m := s.GetMessage().(type) {
		case *agentv1.ConversationStep_AssistantMessage:
			t.steps = append(t.steps, step{text: clean(m.AssistantMessage.GetText())})
		case *agentv1.ConversationStep_ThinkingMessage:
			t.steps = append(t.steps, step{text: clean(m.ThinkingMessage.GetText()), thought: true})
		case *agentv1.ConversationStep_ToolCall:
			t.steps = append(t.steps, step{tool: toolOf(m.ToolCall, cards)})
		}
	}
}

// is reports whether the turn is the one of ours that a message begins. Texts are compared without
// regard to white space. Our text may be longer than what a client has of the same message, by what
// it had attached.
func (t *theirTurn) is(ours *agentv1.UserMessage) bool {
	mine, theirs := strings.Fields(clean(ours.GetText())), strings.Fields(t.text)
	if slices.Equal(mine, theirs) {
		return true
	}
	return t.id != "" && t.id == ours.GetMessageId() && strings.Contains(strings.Join(mine, " "), strings.Join(theirs, " "))
}

// clean returns text as a session may hold it. It never becomes longer by more than the notice.
func clean(text string) string {
	if len(text) > maxText {
		text = text[:maxText] + "\n[shortened]"
	}
	return strings.ToValidUTF8(text, "?")
}
