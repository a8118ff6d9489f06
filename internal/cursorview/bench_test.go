package cursorview_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorview"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// long returns a session of 10,000 items in turns of four.
func long() *teller {
	h := newTeller()
	for n := range 2_500 {
		h.turn(fmt.Sprintf("question %d %s", n, strings.Repeat("words ", 50)))
	}
	return h
}

// BenchmarkCheckpoint is the first checkpoint of a long session, and one after a new item: with all
// blobs, as of a client that has nothing, and with a prefix.
func BenchmarkCheckpoint(b *testing.B) {
	h := long()
	b.Run("first", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var p cursorview.Projector
			p.Checkpoint(h.state, cursorview.Base{})
		}
	})
	var p cursorview.Projector
	client := p.Checkpoint(h.state, cursorview.Base{}).State
	for range client.GetTurns() { // as clients with prompts of their own
		client.RootPromptMessagesJson = append(client.RootPromptMessagesJson, make([]byte, 32))
	}
	h.prompt("", "the newest question")
	for name, base := range map[string]cursorview.Base{"next": {}, "next with prefix": {State: client, Prefix: client.GetTurns(), Items: 10_000}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			run := h.state.Run.ID
			n := len(h.state.Settled)
			for b.Loop() {
				h.state.Settled = append(h.state.Settled[:n:n], &session.Assistant{
					ID: "a", Run: run, Pass: 1, Status: session.Complete, Blocks: []session.Block{session.Text{Text: "an answer"}},
				})
				p.Checkpoint(h.state, base)
			}
		})
	}
}

// BenchmarkReconcile compares a long session with a client that has all of it, as at the begin of
// each run, and imports it into an empty one.
func BenchmarkReconcile(b *testing.B) {
	h := long()
	var p cursorview.Projector
	c := p.Checkpoint(h.state, cursorview.Base{})
	blobs := store{}
	for _, blob := range c.Blobs {
		blobs[blob.ID] = blob.Data
	}
	b.Run("same", func(b *testing.B) {
		for b.Loop() {
			cursorview.Reconcile(h.state, &p, c.State, blobs.have)
		}
	})
	b.Run("import", func(b *testing.B) {
		for b.Loop() {
			cursorview.Reconcile(newTeller().state, &cursorview.Projector{}, c.State, blobs.have)
		}
	})
}

// A checkpoint after one more item encodes no turn but the last, however many there are.
func TestCheckpointCostsTheNewTurn(t *testing.T) {
	cost := func(turns int) float64 {
		h := newTeller()
		for range turns {
			h.turn("again")
		}
		var p cursorview.Projector
		p.Checkpoint(h.state, cursorview.Base{})
		h.turn("new")
		return testing.AllocsPerRun(10, func() { p.Checkpoint(h.state, cursorview.Base{}) })
	}
	if few, many := cost(10), cost(1_000); many > few+1_200 {
		t.Errorf("%v allocations with 10 turns and %v with 1000", few, many)
	}
}

// A small state that names large blobs again and again does not cost more than a large one.
func TestStateThatRepeatsItself(t *testing.T) {
	step, data, err := cursorwire.EncodeBlob(&agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{
		AssistantMessage: &agentv1.AssistantMessage{Text: strings.Repeat("x", 100)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	turn := &agentv1.AgentConversationTurnStructure{}
	for range 10_000 {
		turn.Steps = append(turn.Steps, step.Bytes())
	}
	id, turnData, err := cursorwire.EncodeBlob(&agentv1.ConversationTurnStructure{Turn: &agentv1.ConversationTurnStructure_AgentConversationTurn{AgentConversationTurn: turn}})
	if err != nil {
		t.Fatal(err)
	}
	client := &agentv1.ConversationStateStructure{}
	for range 10_000 {
		client.Turns = append(client.Turns, id.Bytes())
	}
	blobs := store{step: data, id: turnData}
	read, raw := 0, 0
	plan := cursorview.Reconcile(newTeller().state, &cursorview.Projector{}, client, func(id cursorwire.BlobID) ([]byte, bool) {
		data, known := blobs.have(id)
		read += len(data)
		return data, known
	})
	for _, item := range plan.Import {
		if a, ok := item.(*session.Assistant); ok {
			raw += len(a.Blocks)
		}
	}
	if read > 300<<20 || raw > 50_000 || len(plan.Import) == 0 || proto.Size(client) > 1<<20 {
		t.Errorf("%d items with %d blocks of %d bytes", len(plan.Import), raw, read)
	}
}
