package cursorview_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/cursorview"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/testkit"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// reconcile answers what Reconcile wants to have until it is content, as a client would.
func reconcile(t require, s *session.State, p *cursorview.Projector, client *agentv1.ConversationStateStructure, blobs store) cursorview.Plan {
	t.Helper()
	known := map[cursorwire.BlobID]bool{}
	have := func(id cursorwire.BlobID) ([]byte, bool) {
		if !known[id] {
			return nil, false
		}
		return blobs.have(id)
	}
	for range 6 {
		plan := cursorview.Reconcile(s, p, client, have)
		if len(plan.Missing) == 0 {
			return plan
		}
		if plan.Keep != 0 || plan.Import != nil || plan.Prefix != nil {
			t.Fatalf("a verdict beside missing blobs: %+v", plan)
		}
		for _, id := range plan.Missing {
			if known[id] {
				t.Fatalf("%s is asked for twice", id)
			}
			known[id] = true
		}
	}
	t.Fatalf("more than five rounds")
	return cursorview.Plan{}
}

// apply carries out a plan with the session's own commands.
func apply(t require, s *session.State, plan cursorview.Plan) {
	t.Helper()
	events, err := s.Decide(session.Replace{Keep: plan.KeepItems, Copies: []session.ItemsCopied{{Items: plan.Import, LastRun: plan.Runs, Users: plan.Users}}})
	if err != nil {
		t.Fatalf("replace: %v", err)
	}
	for _, e := range events {
		s.Apply(session.Record{Seq: s.Seq + 1, At: 1, Event: e})
	}
	if len(s.Settled) != plan.Items {
		t.Fatalf("%d items instead of %d", len(s.Settled), plan.Items)
	}
	seen := map[session.ItemID]bool{}
	calls := map[session.CallID]int{}
	for _, item := range s.Settled {
		if seen[item.ItemID()] {
			t.Fatalf("item %s is there twice", item.ItemID())
		}
		seen[item.ItemID()] = true
		switch item := item.(type) {
		case *session.Assistant:
			for _, c := range item.Calls() {
				calls[c.Call]++
			}
		case *session.Tool:
			calls[item.Call] += 10
		case *session.User:
		}
	}
	for call, n := range calls {
		if n != 11 {
			t.Fatalf("call %s: %d uses and results", call, n)
		}
	}
}

// keeps returns a session of some turns, and what a client has of it.
func keeps(t require, texts ...string) (*teller, *cursorview.Projector, *agentv1.ConversationStateStructure, store) {
	t.Helper()
	h, p, blobs := newTeller(), &cursorview.Projector{}, store{}
	for _, text := range texts {
		h.turn(text)
	}
	c := p.Checkpoint(h.state, cursorview.Base{})
	blobs.put(t, c)
	return h, p, c.State, blobs
}

// What is said of a client's state, turn by turn (6.6, 6.8, R26, R50).
func TestReconcile(t *testing.T) {
	without := func(state *agentv1.ConversationStateStructure, turns ...int) *agentv1.ConversationStateStructure {
		out := proto.CloneOf(state)
		out.Turns = nil
		for _, i := range turns {
			out.Turns = append(out.Turns, state.GetTurns()[i])
		}
		return out
	}
	_, _, other, otherBlobs := keeps(t, "one", "else", "more")
	for _, c := range []struct {
		name   string
		client func(mine *agentv1.ConversationStateStructure, blobs store) *agentv1.ConversationStateStructure
		keep   int
		texts  []string
		prefix int
	}{
		{"the same", func(m *agentv1.ConversationStateStructure, _ store) *agentv1.ConversationStateStructure { return m }, 3, nil, 3},
		{"shorter: rewind", func(m *agentv1.ConversationStateStructure, _ store) *agentv1.ConversationStateStructure {
			return without(m, 0, 1)
		}, 2, nil, 2},
		{"another branch", func(_ *agentv1.ConversationStateStructure, _ store) *agentv1.ConversationStateStructure { return other }, 1, []string{"else", "more"}, 3},
		{"changed in the middle", func(m *agentv1.ConversationStateStructure, _ store) *agentv1.ConversationStateStructure {
			out := proto.CloneOf(m)
			out.Turns[1] = other.GetTurns()[1]
			return out
		}, 1, []string{"else", "three"}, 3},
		{"longer", func(m *agentv1.ConversationStateStructure, _ store) *agentv1.ConversationStateStructure {
			out := proto.CloneOf(m)
			out.Turns = append(out.Turns, other.GetTurns()[1])
			return out
		}, 3, []string{"else"}, 4},
		{"nothing at all", func(*agentv1.ConversationStateStructure, store) *agentv1.ConversationStateStructure { return nil }, 3, nil, 0},
		{"a new chat under an old id", func(*agentv1.ConversationStateStructure, store) *agentv1.ConversationStateStructure {
			return &agentv1.ConversationStateStructure{RootPromptMessagesJson: [][]byte{[]byte(`{"role":"system","content":"Be brief."}`)}}
		}, 0, nil, 0},
		{"all blobs lost", func(m *agentv1.ConversationStateStructure, blobs store) *agentv1.ConversationStateStructure {
			clear(blobs)
			out := proto.CloneOf(m)
			for i := range out.Turns {
				out.Turns[i] = bytes.Repeat([]byte{byte(i)}, 32)
			}
			return out
		}, 3, nil, 0},
		{"inline turns", func(m *agentv1.ConversationStateStructure, blobs store) *agentv1.ConversationStateStructure {
			out := proto.CloneOf(m)
			for i, entry := range out.Turns {
				id, _ := cursorwire.ParseBlobID(entry)
				out.Turns[i] = blobs[id]
			}
			return out
		}, 3, nil, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			h, p, mine, blobs := keeps(t, "one", "two", "three")
			client := c.client(mine, blobs)
			for id, data := range otherBlobs {
				if len(blobs) > 0 {
					blobs[id] = data
				}
			}
			plan := reconcile(t, h.state, p, client, blobs)
			var texts []string
			for _, item := range plan.Import {
				if u, ok := item.(*session.User); ok {
					texts = append(texts, session.BlockText(u.Blocks[0]))
				}
			}
			if plan.Keep != c.keep || !slices.Equal(texts, c.texts) || len(plan.Prefix) != c.prefix {
				t.Fatalf("keep %d, import %q, prefix of %d", plan.Keep, texts, len(plan.Prefix))
			}
			apply(t, h.state, plan)
			got := p.Checkpoint(h.state, cursorview.Base{State: client, Prefix: plan.Prefix, Items: plan.Items})
			if want := len(client.GetTurns()); client.GetTurns() != nil && len(got.State.GetTurns()) != want {
				t.Errorf("%d turns instead of %d", len(got.State.GetTurns()), want)
			}
		})
	}
}

// A client that has a turn of its own making keeps it; one whose copy is older than ours gets ours.
func TestTurnsOfAnotherMaking(t *testing.T) {
	h, p, mine, blobs := keeps(t, "one", "two")
	user := &agentv1.UserMessage{Text: " two\n", MessageId: "theirs"}
	build := func(steps ...*agentv1.ConversationStep) []byte {
		put := func(m proto.Message) []byte {
			id, data, err := cursorwire.EncodeBlob(m)
			if err != nil {
				t.Fatal(err)
			}
			blobs[id] = data
			return id.Bytes()
		}
		turn := &agentv1.AgentConversationTurnStructure{UserMessage: put(user)}
		for _, s := range steps {
			turn.Steps = append(turn.Steps, put(s))
		}
		return put(&agentv1.ConversationTurnStructure{Turn: &agentv1.ConversationTurnStructure_AgentConversationTurn{AgentConversationTurn: turn}})
	}
	text := &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: "so"}}}
	full := build(text, text, text, text)
	stale := build(text)
	for _, c := range []struct {
		name   string
		turns  [][]byte
		keep   int
		prefix int
	}{
		{"as much as ours", [][]byte{mine.GetTurns()[0], full}, 2, 2},
		{"less than ours", [][]byte{mine.GetTurns()[0], stale}, 2, 1},
		{"less, but over", [][]byte{mine.GetTurns()[0], stale, full}, 2, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := reconcile(t, h.state, p, &agentv1.ConversationStateStructure{Turns: c.turns}, blobs)
			if plan.Keep != c.keep || len(plan.Prefix) != c.prefix {
				t.Errorf("keep %d, prefix of %d", plan.Keep, len(plan.Prefix))
			}
		})
	}
}

// A turn that goes on after the client was told of it is told anew, though the client's entry is the
// prefix.
func TestPrefixOfATurnThatGoesOn(t *testing.T) {
	h, p, mine, blobs := keeps(t, "one", "two")
	plan := reconcile(t, h.state, p, mine, blobs)
	base := cursorview.Base{State: mine, Prefix: plan.Prefix, Items: plan.Items}
	if c := p.Checkpoint(h.state, base); len(c.Blobs) != 0 || !slices.EqualFunc(c.State.GetTurns(), mine.GetTurns(), bytes.Equal) {
		t.Fatalf("%d blobs though nothing is new", len(c.Blobs))
	}
	h.tell(session.RunStarted{Run: 3, Resume: true})
	h.pass()
	h.say("And another thing.")
	c := p.Checkpoint(h.state, base)
	blobs.put(t, c)
	lines := story(t, c.State, blobs)
	if len(c.State.GetTurns()) != 2 || lines[len(lines)-1] != "text And another thing." {
		t.Errorf("turns %q", lines)
	}
}

// A client's system messages are its instructions, whether it has turns or not.
func TestInstructions(t *testing.T) {
	blobs := store{}
	var roots [][]byte
	for _, text := range []string{`{"role":"system","content":"Be brief."}`, `{"role":"system","content":[{"type":"text","text":"Be kind."}]}`, `{"role":"user","content":"hi"}`, `{"role":"assistant","content":"ho"}`, `{"role":"user","content":"x"}`} {
		id := cursorwire.BlobIDOf([]byte(text))
		blobs[id] = []byte(text)
		roots = append(roots, id.Bytes())
	}
	_, _, mine, more := keeps(t, "hi")
	maps.Copy(blobs, more)
	for name, turns := range map[string][][]byte{"turns": mine.GetTurns(), "no turns": nil} {
		plan := reconcile(t, newTeller().state, &cursorview.Projector{}, &agentv1.ConversationStateStructure{RootPromptMessagesJson: roots, Turns: turns}, blobs)
		if plan.Instructions != "Be brief.\n\nBe kind." {
			t.Errorf("%s: %q", name, plan.Instructions)
		}
		if len(plan.Import) == 0 {
			t.Errorf("%s: nothing is imported", name)
		}
	}
}

// A history that comes as the messages of a prompt, without turns.
func TestImportOfMessages(t *testing.T) {
	client := &agentv1.ConversationStateStructure{}
	for _, text := range []string{
		`{"role":"system","content":"Be brief."}`, `{"role":"assistant","content":"before any question"}`,
		`{"role":"user","content":"one"}`,
		`{"role":"assistant","content":[{"type":"reasoning","text":"hm"},{"type":"text","text":"look"},{"type":"tool-call","toolCallId":"x","toolName":"read","args":{"path":"/a"}},{"type":"tool-call","toolCallId":"y","toolName":"Grep","args":{}}]}`,
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"x","toolName":"read","result":"alpha"},{"type":"tool-result","toolCallId":"z","result":"nobody asked"}]}`,
		`{"role":"tool","content":[{"type":"tool-result","toolCallId":"x","output":{"type":"text","value":"twice"}}]}`,
		`{"role":"assistant","content":"done"}`, `not JSON`, `{"role":"user","content":[{"type":"text","text":"two"},{"type":"image"}]}`,
	} {
		client.RootPromptMessagesJson = append(client.RootPromptMessagesJson, []byte(text))
	}
	h := newTeller()
	plan := reconcile(t, h.state, &cursorview.Projector{}, client, store{})
	var got []string
	for _, item := range plan.Import {
		switch item := item.(type) {
		case *session.User:
			got = append(got, fmt.Sprintf("%s run %d %q", item.ID, item.Run, session.BlockText(item.Blocks[0])))
		case *session.Assistant:
			line := fmt.Sprintf("%s stop %d", item.ID, item.Stop)
			for _, b := range item.Blocks {
				line += fmt.Sprintf(" %T %q", b, session.BlockText(b))
			}
			got = append(got, line)
		case *session.Tool:
			got = append(got, fmt.Sprintf("%s %s status %d %q %q", item.ID, item.Name, item.Status, item.Input, item.Output))
		}
	}
	check(t, got, []string{
		`u1 run 1 "one"`,
		`a1-1 stop 3 session.Reasoning "hm" session.Text "look" session.ToolCall "{\"path\":\"/a\"}" session.ToolCall "{}"`,
		`t1-1-0 read status 1 "{\"path\":\"/a\"}" "alpha"`,
		`t1-1-1 Grep status 2 "{}" "Interrupted: the result of this call is not known. Check before you run it again."`,
		`a1-2 stop 1 session.Text "done"`,
		`u2 run 2 "two"`,
	})
	apply(t, h.state, plan)
	again := reconcile(t, h.state, &cursorview.Projector{}, client, store{})
	if again.Keep != 2 || len(again.Import) != 0 {
		t.Errorf("the second time keeps %d and imports %d items", again.Keep, len(again.Import))
	}
}

// Whatever a client holds, an item of it fits an event of the log, which has 256 KiB.
func TestImportedItemsAreOfLimitedSize(t *testing.T) {
	huge := strings.Repeat("\x01\xff\"", 1<<20)
	client := &agentv1.ConversationStateStructure{}
	encode := func(m proto.Message) []byte {
		_, data, err := cursorwire.EncodeBlob(m)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	args := &agentv1.ShellArgs{Command: strings.Repeat("\x01", 1<<20)}
	shell := &agentv1.ToolCall{Tool: &agentv1.ToolCall_ShellToolCall{ShellToolCall: &agentv1.ShellToolCall{
		Args: args, Result: &agentv1.ShellResult{Result: &agentv1.ShellResult_Success{Success: &agentv1.ShellSuccess{Stdout: huge}}},
	}}}
	turn := &agentv1.AgentConversationTurnStructure{UserMessage: encode(&agentv1.UserMessage{Text: huge})}
	for _, s := range []*agentv1.ConversationStep{
		{Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: huge}}},
		{Message: &agentv1.ConversationStep_ThinkingMessage{ThinkingMessage: &agentv1.ThinkingMessage{Text: huge}}},
		{Message: &agentv1.ConversationStep_ToolCall{ToolCall: shell}},
		{Message: &agentv1.ConversationStep_ToolCall{ToolCall: &agentv1.ToolCall{}}},
	} {
		turn.Steps = append(turn.Steps, encode(s))
	}
	client.Turns = [][]byte{encode(&agentv1.ConversationTurnStructure{Turn: &agentv1.ConversationTurnStructure_AgentConversationTurn{AgentConversationTurn: turn}})}
	plan := reconcile(t, newTeller().state, &cursorview.Projector{}, client, store{})
	for _, item := range plan.Import {
		n := 0
		switch item := item.(type) {
		case *session.User:
			n = len(session.BlockText(item.Blocks[0]))
		case *session.Assistant:
			for _, b := range item.Blocks {
				n += len(session.BlockText(b))
			}
		case *session.Tool:
			n = len(item.Input) + len(item.Output) + len(item.Details)
		}
		if n > 250<<10 || n == 0 {
			t.Errorf("%s has %d bytes", item.ItemID(), n)
		}
	}
	if len(plan.Import) < 5 {
		t.Errorf("%d items", len(plan.Import))
	}
}

// What a client has lost is replaced by a word about it, and what follows is imported all the same.
func TestImportWithoutSomeBlobs(t *testing.T) {
	h, _, mine, blobs := keeps(t, "one", "two")
	var turn agentv1.ConversationTurnStructure
	id, _ := cursorwire.ParseBlobID(mine.GetTurns()[0])
	if err := proto.Unmarshal(blobs[id], &turn); err != nil {
		t.Fatal(err)
	}
	for _, entry := range [][]byte{turn.GetAgentConversationTurn().GetUserMessage(), turn.GetAgentConversationTurn().GetSteps()[0]} {
		id, _ := cursorwire.ParseBlobID(entry)
		delete(blobs, id)
	}
	empty := newTeller()
	p := &cursorview.Projector{}
	plan := reconcile(t, empty.state, p, mine, blobs)
	apply(t, empty.state, plan)
	if len(plan.Prefix) != 0 || cursorview.Turns(empty.state) != 2 || len(empty.state.Settled) != len(h.state.Settled) {
		t.Fatalf("prefix of %d, %d turns, %d items", len(plan.Prefix), cursorview.Turns(empty.state), len(empty.state.Settled))
	}
	c := p.Checkpoint(empty.state, cursorview.Base{State: mine, Prefix: plan.Prefix, Items: plan.Items})
	blobs.put(t, c)
	if lines := story(t, c.State, blobs); !strings.Contains(lines[0], "not available") || !slices.Contains(lines, "user two") {
		t.Errorf("lines %q", lines)
	}
}

// Checkpoint and Reconcile fit: nothing is to be done for the session itself, a fork at any turn has
// that many turns and says the same, and so has a fork of the fork.
func TestForks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := settledPrefix(testkit.History(t))
		p := &cursorview.Projector{}
		blobs := store{}
		c := p.Checkpoint(s, cursorview.Base{})
		blobs.put(t, c)
		same := reconcile(t, s, p, c.State, blobs)
		if same.Keep != cursorview.Turns(s) || same.KeepItems != len(s.Settled) || len(same.Import) != 0 {
			t.Fatalf("the session against itself: %+v", same)
		}
		for generation := range 2 {
			k := rapid.IntRange(0, len(c.State.GetTurns())).Draw(t, fmt.Sprintf("k%d", generation))
			state := proto.CloneOf(c.State)
			state.Turns = state.Turns[:k]
			fork := newTeller().state
			q := &cursorview.Projector{}
			plan := reconcile(t, fork, q, state, blobs)
			apply(t, fork, plan)
			if cursorview.Turns(fork) != k || len(plan.Prefix) != k {
				t.Fatalf("%d turns and a prefix of %d after a fork at %d", cursorview.Turns(fork), len(plan.Prefix), k)
			}
			with := q.Checkpoint(fork, cursorview.Base{State: state, Prefix: plan.Prefix, Items: plan.Items})
			if len(with.Blobs) != 0 || !slices.EqualFunc(with.State.GetTurns(), state.GetTurns(), bytes.Equal) {
				t.Fatalf("%d blobs of a fork that the client has", len(with.Blobs))
			}
			want := story(t, state, blobs)
			c = q.Checkpoint(fork, cursorview.Base{State: state})
			blobs.put(t, c)
			got := story(t, c.State, blobs)
			hidden := func(line string) bool { return strings.HasPrefix(line, "thinking The model's") }
			if !slices.Equal(got, slices.DeleteFunc(want, hidden)) {
				t.Fatalf("fork at %d\n%q\nof\n%q", k, got, want)
			}
		}
	})
}

// settledPrefix returns the state at the last moment of a history at which the session was idle.
func settledPrefix(records []session.Record) *session.State {
	idle := &session.State{}
	s := &session.State{}
	for _, r := range records {
		s.Apply(r)
		if s.Run == nil {
			idle = s.Clone()
		}
	}
	return idle
}

// The client's turns may be anything: the plan can be carried out, and the checkpoint is whole.
func FuzzReconcile(f *testing.F) {
	h, _, mine, blobs := keeps(f, "one", "two")
	state, err := proto.Marshal(mine)
	if err != nil {
		f.Fatal(err)
	}
	var all []byte
	for _, id := range slices.SortedFunc(func(yield func(cursorwire.BlobID) bool) {
		for id := range blobs {
			if !yield(id) {
				return
			}
		}
	}, func(a, b cursorwire.BlobID) int { return bytes.Compare(a[:], b[:]) }) {
		f.Add(state, blobs[id])
		all = append(all, blobs[id]...)
	}
	inline, err := proto.Marshal(&agentv1.ConversationStateStructure{Turns: [][]byte{all}, RootPromptMessagesJson: [][]byte{[]byte(`{"role":"user","content":[{"type":"tool-call"}]}`)}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(inline, all)
	root, err := proto.Marshal(&agentv1.ConversationStateStructure{RootPromptMessagesJson: [][]byte{
		[]byte(`{"role":"user","content":"a"}`), []byte(`{"role":"assistant","content":[{"type":"tool-call","toolName":"read","args":{"path":"\ud800"}}]}`),
	}})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(root, []byte{})
	f.Fuzz(func(t *testing.T, state, blob []byte) {
		client := &agentv1.ConversationStateStructure{}
		if proto.Unmarshal(state, client) != nil {
			return
		}
		have := func(id cursorwire.BlobID) ([]byte, bool) {
			if data, ok := blobs[id]; ok && id[0]&1 == 0 {
				return data, true
			}
			return blob, true // every other id is the one blob
		}
		for _, s := range []*session.State{newTeller().state, h.state.Clone()} {
			p := &cursorview.Projector{}
			plan := cursorview.Reconcile(s, p, client, have)
			apply(t, s, plan)
			c := p.Checkpoint(s, cursorview.Base{State: client, Prefix: plan.Prefix, Items: plan.Items})
			if len(c.State.GetTurns()) != cursorview.Turns(s) {
				t.Fatalf("%d turns of %d", len(c.State.GetTurns()), cursorview.Turns(s))
			}
		}
	})
}
