package cursortest

import (
	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Turn is one turn of a checkpoint, with its blobs read.
type Turn struct {
	User  *agentv1.UserMessage
	Steps []*agentv1.ConversationStep
}

// checkpoint checks that the client has every blob that a checkpoint refers to, by now: a server waits
// until the client has confirmed them (section 6.4).
func (k *checker) checkpoint(s *agentv1.ConversationStateStructure) {
	_, missing := k.c.resolve(s)
	for _, text := range missing {
		k.broken("the checkpoint refers to %s", text)
	}
}

// Turns reads the turns of a checkpoint from the client's blobs. Missing says what is not there or
// cannot be read.
func (c *Client) Turns(s *agentv1.ConversationStateStructure) (turns []Turn, missing []string) {
	return c.resolve(s)
}

func (c *Client) resolve(s *agentv1.ConversationStateStructure) (turns []Turn, missing []string) {
	r := &resolver{c: c}
	for _, entry := range s.GetRootPromptMessagesJson() {
		r.bytes(entry, "the prompt message")
	}
	for _, entry := range s.GetTurns() {
		turn := new(agentv1.ConversationTurnStructure)
		if !r.message(entry, turn, "the turn") {
			continue
		}
		agent := turn.GetAgentConversationTurn()
		if agent == nil {
			continue
		}
		t := Turn{User: new(agentv1.UserMessage)}
		r.message(agent.GetUserMessage(), t.User, "the user message")
		for _, entry := range agent.GetSteps() {
			step := new(agentv1.ConversationStep)
			if r.message(entry, step, "the step") {
				t.Steps = append(t.Steps, step)
			}
		}
		turns = append(turns, t)
	}
	return turns, r.missing
}

type resolver struct {
	c       *Client
	missing []string
}

// bytes returns the content that an entry is, or refers to.
func (r *resolver) bytes(entry []byte, what string) (data []byte, ok bool) {
	id, isID := cursorwire.ParseBlobID(entry)
	if !isID {
		return entry, true
	}
	if data, ok = r.c.blobs.Get(entry); !ok {
		r.missing = append(r.missing, what+" "+id.String()+", which the client does not have")
	}
	return data, ok
}

func (r *resolver) message(entry []byte, m proto.Message, what string) bool {
	data, ok := r.bytes(entry, what)
	if !ok {
		return false
	}
	if err := proto.Unmarshal(data, m); err != nil {
		r.missing = append(r.missing, what+", which cannot be read: "+err.Error())
		return false
	}
	return true
}
