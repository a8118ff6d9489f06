package cursorview_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/cursortool"
	"github.com/roost-dev/roost/internal/cursorview"
	"github.com/roost-dev/roost/internal/cursorwire"
	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/testkit"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

var updateGolden = flag.Bool("update", false, "write the files in testdata")

// store is what a client keeps: the blobs it was sent.
type store map[cursorwire.BlobID][]byte

func (s store) put(t require, c cursorview.Checkpoint) {
	t.Helper()
	known := map[cursorwire.BlobID]bool{}
	for _, b := range c.Blobs {
		if cursorwire.BlobIDOf(b.Data) != b.ID {
			t.Fatalf("blob %s has another hash", b.ID)
		}
		var turn agentv1.ConversationTurnStructure
		if proto.Unmarshal(b.Data, &turn) == nil && slices.ContainsFunc(c.State.GetTurns(), func(e []byte) bool { return bytes.Equal(e, b.ID.Bytes()) }) {
			for _, child := range append(turn.GetAgentConversationTurn().GetSteps(), turn.GetAgentConversationTurn().GetUserMessage()) {
				if id, _ := cursorwire.ParseBlobID(child); !known[id] {
					t.Fatalf("blob %s comes before %x", b.ID, child)
				}
			}
		}
		known[b.ID] = true
		s[b.ID] = b.Data
	}
}

func (s store) have(id cursorwire.BlobID) ([]byte, bool) {
	data, ok := s[id]
	if ok && data == nil {
		data = []byte{}
	}
	if !ok {
		return nil, true
	}
	return data, true
}

// require is what *testing.T and *rapid.T have in common.
type require interface {
	Helper()
	Fatalf(format string, args ...any)
}

// story says what a client sees in a state.
func story(t require, c *agentv1.ConversationStateStructure, blobs store) []string {
	t.Helper()
	read := func(entry []byte, m proto.Message) {
		id, ok := cursorwire.ParseBlobID(entry)
		data, there := blobs[id]
		if !ok || !there {
			t.Fatalf("entry %x is no blob that was sent", entry)
		}
		if err := proto.Unmarshal(data, m); err != nil {
			t.Fatalf("blob %s: %v", id, err)
		}
	}
	var lines []string
	for _, entry := range c.GetTurns() {
		var turn agentv1.ConversationTurnStructure
		read(entry, &turn)
		var user agentv1.UserMessage
		read(turn.GetAgentConversationTurn().GetUserMessage(), &user)
		lines = append(lines, "user "+user.GetText())
		for _, s := range turn.GetAgentConversationTurn().GetSteps() {
			var step agentv1.ConversationStep
			read(s, &step)
			switch m := step.GetMessage().(type) {
			case *agentv1.ConversationStep_AssistantMessage:
				lines = append(lines, "text "+m.AssistantMessage.GetText())
			case *agentv1.ConversationStep_ThinkingMessage:
				lines = append(lines, "thinking "+m.ThinkingMessage.GetText())
			case *agentv1.ConversationStep_ToolCall:
				card := proto.CloneOf(m.ToolCall)
				card.ToolCallId, card.StartedAtMs = nil, nil
				raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(card)
				if err != nil {
					t.Fatalf("card: %v", err)
				}
				lines = append(lines, fmt.Sprintf("tool %x", raw))
			}
		}
	}
	return lines
}

// A projected session, byte for byte (11.3, fixture 5).
func TestGoldenCheckpoint(t *testing.T) {
	h := newTeller()
	h.tell(session.NoteAdded{Item: "u1", Note: session.NoteContext, Text: "rules"})
	h.turn("first")
	h.prompt("msg-2", "second")
	h.pass()
	i := h.block(session.Reasoning{}, "hm")
	h.tell(session.BlockEnded{Index: i})
	h.call("Shell", `{"command":"ls"}`)
	h.call("Nothing", `{"a":1}`)
	h.endPass(session.StopToolUse)
	h.tell(session.ToolStarted{Call: "call2-1-0", Host: session.HostClient}, session.ToolStarted{Call: "call2-1-1"})
	h.tell(session.ToolEnded{Call: "call2-1-1", Output: "refused", IsError: true})

	p := cursorview.Projector{Cards: mcpCards{}}
	c := p.Checkpoint(h.state, cursorview.Base{Window: 200_000, NowMS: 5})
	blobs := store{}
	blobs.put(t, c)
	type line struct {
		ID, Hex string
	}
	golden := struct {
		State   json.RawMessage
		Pending []string
		Blobs   []line
	}{Pending: c.State.GetPendingToolCalls()}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(c.State)
	if err != nil {
		t.Fatal(err)
	}
	golden.State = json.RawMessage(fmt.Sprintf("%q", fmt.Sprintf("%x", raw)))
	for _, b := range c.Blobs {
		golden.Blobs = append(golden.Blobs, line{b.ID.String(), fmt.Sprintf("%x", b.Data)})
	}
	got, err := json.MarshalIndent(golden, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join("testdata", "checkpoint.json")
	if *updateGolden {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("the bytes have changed:\n%s", got)
	}
	if d := c.State.GetTokenDetails(); d.GetUsedTokens() != 20 || d.GetMaxTokens() != 200_000 {
		t.Errorf("token details %v", d)
	}
	if want := []string{`{"id":"1","role":"assistant","content":[{"type":"reasoning","text":"hm"},{"type":"tool-call","toolCallId":"call2-1-0","toolName":"Shell","args":{"command":"ls"}}]}`}; !slices.Equal(c.State.GetPendingToolCalls(), want) {
		t.Errorf("pending %s", c.State.GetPendingToolCalls())
	}
	lines := story(t, c.State, blobs)
	for i, want := range []string{"user first", "text Let me look.", "tool ", "text It says alpha to first", "user second", "thinking hm", "tool ", "tool "} {
		if i >= len(lines) || !strings.HasPrefix(lines[i], want) {
			t.Fatalf("line %d of %q is not %q", i, lines, want)
		}
	}
}

// What the session does not know of a client's state stays; what it knows better does not.
func TestBaseIsKept(t *testing.T) {
	h := newTeller()
	h.turn("first")
	base := &agentv1.ConversationStateStructure{
		RootPromptMessagesJson: [][]byte{[]byte(`{"role":"system"}`)}, PreviousWorkspaceUris: []string{"file:///w"},
		Turns: [][]byte{bytes.Repeat([]byte{1}, 32)}, PendingToolCalls: []string{"old"}, ReadPaths: []string{"/a"},
		SelfSummaryCount: 2, Mode: agentv1.AgentMode_AGENT_MODE_MULTITASK.Enum(), Todos: [][]byte{{10, 1, 'x'}},
		TokenDetails: &agentv1.ConversationTokenDetails{UsedTokens: 1, MaxTokens: 77}, ConversationStartedTimestampMs: proto.Uint64(3),
	}
	base.ProtoReflect().SetUnknown([]byte{0x82, 0x02, 1, 'u'}) // field 32, goal_state
	before := proto.CloneOf(base)
	var p cursorview.Projector
	got := p.Checkpoint(h.state, cursorview.Base{
		State: base, HasTodos: true, Todos: []*agentv1.TodoItem{{Id: "1", Content: "do"}},
		Plan: &cursortool.Plan{ID: "p1", Text: "the plan", URI: "file:///plan.md"},
	}).State
	if !proto.Equal(base, before) {
		t.Error("the base was changed")
	}
	want := proto.CloneOf(base)
	want.Turns, want.PendingToolCalls = got.GetTurns(), nil
	want.Todos = [][]byte{{10, 1, '1', 18, 2, 'd', 'o'}}
	want.TokenDetails = &agentv1.ConversationTokenDetails{UsedTokens: 20, MaxTokens: 77}
	want.Plan = append([]byte{10, 8}, "the plan"...)
	want.Plans = map[string]*agentv1.PlanRegistryEntry{"p1": {Id: "p1", Path: "/plan.md"}}
	if !proto.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", protojson.Format(got), protojson.Format(want))
	}
	if len(got.GetTurns()) != 1 || bytes.Equal(got.GetTurns()[0], base.GetTurns()[0]) {
		t.Errorf("turns %x", got.GetTurns())
	}
}

func TestModeOfACheckpoint(t *testing.T) {
	for _, c := range []struct {
		mode         session.Mode
		client, want agentv1.AgentMode
	}{
		{session.ModeAgent, agentv1.AgentMode_AGENT_MODE_UNSPECIFIED, agentv1.AgentMode_AGENT_MODE_AGENT},
		{"", agentv1.AgentMode_AGENT_MODE_PLAN, agentv1.AgentMode_AGENT_MODE_AGENT},
		{session.ModeAgent, agentv1.AgentMode_AGENT_MODE_MULTITASK, agentv1.AgentMode_AGENT_MODE_MULTITASK},
		{session.ModePlan, agentv1.AgentMode_AGENT_MODE_MULTITASK, agentv1.AgentMode_AGENT_MODE_PLAN},
		{session.ModeAsk, agentv1.AgentMode_AGENT_MODE_AGENT, agentv1.AgentMode_AGENT_MODE_ASK},
		{session.ModeDebug, agentv1.AgentMode_AGENT_MODE_AGENT, agentv1.AgentMode_AGENT_MODE_DEBUG},
	} {
		var p cursorview.Projector
		s := &session.State{Head: session.Head{Mode: c.mode}}
		if got := p.Checkpoint(s, cursorview.Base{Mode: c.client}).State.GetMode(); got != c.want {
			t.Errorf("%s with %s: %s", c.mode, c.client, got)
		}
	}
	for _, mode := range session.Modes {
		if got := cursorview.SessionMode(cursorview.WireMode(mode, 0)); got != mode {
			t.Errorf("%s became %s", mode, got)
		}
	}
	if got := cursorview.SessionMode(agentv1.AgentMode_AGENT_MODE_TRIAGE); got != session.ModeAgent {
		t.Errorf("triage is %s", got)
	}
}

// After a compaction the turns are listed still, there is one archive more, and the context is
// smaller (R28).
func TestCheckpointAfterACompaction(t *testing.T) {
	h := newTeller()
	h.turn("first")
	h.turn("second")
	var p cursorview.Projector
	before := p.Checkpoint(h.state, cursorview.Base{}).State
	n := cursorview.ItemsOf(h.state, 1)
	h.tell(session.RunStarted{Run: 3}, session.CompactionStarted{Through: n}, session.CompactionEnded{Summarized: n, Summary: "so far"}, session.RunEnded{})
	after := p.Checkpoint(h.state, cursorview.Base{State: before})
	var summary agentv1.ConversationSummary
	if err := proto.Unmarshal(after.State.GetSummary(), &summary); err != nil || summary.GetSummary() != "so far" {
		t.Errorf("summary %v, %v", &summary, err)
	}
	if len(after.State.GetTurns()) != 2 || len(after.State.GetSummaryArchives()) != 1 || after.State.GetSelfSummaryCount() != 1 {
		t.Errorf("state %s", protojson.Format(after.State))
	}
	if used := after.State.GetTokenDetails().GetUsedTokens(); used >= before.GetTokenDetails().GetUsedTokens() {
		t.Errorf("%d tokens are used after %d", used, before.GetTokenDetails().GetUsedTokens())
	}
	again := p.Checkpoint(h.state, cursorview.Base{State: after.State})
	if !proto.Equal(again.State, after.State) {
		t.Error("a second checkpoint counts the same compaction again")
	}
	blobs := store{}
	blobs.put(t, after)
	fork := cursorview.Reconcile(newTeller().state, &cursorview.Projector{}, after.State, blobs.have)
	if cursorview.Turns(&session.State{Settled: fork.Import}) != 2 {
		t.Errorf("imported %d items", len(fork.Import))
	}
}

// What was said before an error, and what is being said, is in the checkpoint (R27); a call whose
// arguments still stream in is not, since nobody would end it.
func TestCheckpointOfAnAnswerInProgress(t *testing.T) {
	h := newTeller()
	h.turn("one")
	h.prompt("", "two")
	h.pass()
	h.say("half an ans")
	h.block(session.ToolCall{Call: "call2-1-0", Name: "Shell"}, `{"command":"r`)
	var p cursorview.Projector
	look := func() []string {
		c := p.Checkpoint(h.state, cursorview.Base{})
		blobs := store{}
		blobs.put(t, c)
		if lines := story(t, c.State, blobs); len(lines) > 4 && lines[0] == "user one" {
			return lines[4:]
		}
		t.Fatal("the first turn is gone")
		return nil
	}
	check(t, look(), []string{"user two", "text half an ans"})
	h.tell(session.PassEnded{Status: session.Failed, Error: "502"})
	h.tell(session.ToolStarted{Call: "call2-1-0"}, session.ToolEnded{Call: "call2-1-0", IsError: true, Output: "not run"})
	h.tell(session.RunEnded{Outcome: session.RunFailed, Error: "502"})
	lines := look()
	if len(lines) != 3 || !strings.HasPrefix(lines[2], "tool ") {
		t.Errorf("after the error %q", lines)
	}
}

// An image is named by the hash that both sides have for it.
func TestImagesOfAMessage(t *testing.T) {
	id := cursorwire.BlobIDOf([]byte("png"))
	h := newTeller()
	h.tell(session.RunStarted{Run: 1, Item: "u1", Prompt: "run:7", Blocks: []session.Block{
		session.Text{Text: "look"}, session.Image{MIME: "image/png", Blob: id.String(), Size: 3}, session.Image{Blob: "odd"},
	}})
	var p cursorview.Projector
	c := p.Checkpoint(h.state, cursorview.Base{})
	var m agentv1.UserMessage
	if err := proto.Unmarshal(c.Blobs[0].Data, &m); err != nil {
		t.Fatal(err)
	}
	images := m.GetSelectedContext().GetSelectedImages()
	if m.GetMessageId() != "u1" || len(images) != 1 || !bytes.Equal(images[0].GetBlobId(), id.Bytes()) || !slices.Equal(c.Images, []cursorwire.BlobID{id}) {
		t.Errorf("message %v, images %v", &m, c.Images)
	}
}

// A projector that has followed a session and a new one say the same, and neither changes it.
func TestCheckpointIsAFunctionOfTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		records := testkit.History(t)
		s, earlier := &session.State{}, &session.State{}
		var p cursorview.Projector
		for _, r := range records {
			s.Apply(r)
			if rapid.IntRange(0, 9).Draw(t, "remember") == 0 {
				earlier = s.Clone()
			}
			p.Checkpoint(earlier, cursorview.Base{}) // it may be of another length, or of turns that are no more
			if _, ok := r.Event.(session.ModeSet); ok {
				p = cursorview.Projector{} // the mode is the one thing that is remembered
			}
			if rapid.IntRange(0, 3).Draw(t, "look") > 0 {
				continue
			}
			before := mustSay(t, s)
			got := p.Checkpoint(s, cursorview.Base{})
			fresh := cursorview.Projector{}
			want := fresh.Checkpoint(s.Clone(), cursorview.Base{})
			if after := mustSay(t, s); after != before {
				t.Fatalf("the state was changed:\n%s\n%s", before, after)
			}
			if s.Mode == "" || s.Mode == session.ModeAgent {
				if !proto.Equal(got.State, want.State) || !slices.EqualFunc(got.Blobs, want.Blobs, func(a, b cursorview.Blob) bool { return a.ID == b.ID }) {
					t.Fatalf("got\n%s\nwant\n%s", protojson.Format(got.State), protojson.Format(want.State))
				}
			}
			if len(got.State.GetTurns()) != cursorview.Turns(s) {
				t.Fatalf("%d turns of %d", len(got.State.GetTurns()), cursorview.Turns(s))
			}
			blobs := store{}
			blobs.put(t, got)
			story(t, got.State, blobs)
		}
	})
}

func mustSay(t *rapid.T, s *session.State) string {
	raw, err := json.Marshal(s.Transcript())
	if err != nil {
		t.Fatalf("%v", err)
	}
	return string(raw)
}
