package cursortest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

func readOf(id uint32, call string) *agentv1.ExecServerMessage {
	return &agentv1.ExecServerMessage{Id: id, Message: &agentv1.ExecServerMessage_ReadArgs{ReadArgs: &agentv1.ReadArgs{Path: "x", ToolCallId: call}}}
}

// within plays a script inside of an otherwise good turn.
func within(play script) script {
	return func(x *exchange) {
		x.checkpoint(1)
		play(x)
		x.turnEnded()
		x.checkpoint(2)
	}
}

// after plays a script after turn_ended.
func after(play script) script {
	return func(x *exchange) {
		x.checkpoint(1)
		x.turnEnded()
		play(x)
		x.checkpoint(2)
	}
}

func TestViolations(t *testing.T) {
	unknown := cursorwire.BlobIDOf([]byte("unknown")).Bytes()
	for name, test := range map[string]struct {
		script script
		want   string
	}{
		"none": {within(func(x *exchange) {
			x.think("a")
			x.thought()
			x.text("b")
			x.started("c")
			x.exec(readOf(1, "c"))
			x.completed("c")
		}), ""},
		"nothing after the end": {after(func(x *exchange) { x.heartbeat() }), ""},
		"never completed":       {within(func(x *exchange) { x.started("c") }), `the call "c" started and never completed`},
		"completed twice":       {within(func(x *exchange) { x.started("c"); x.completed("c"); x.completed("c") }), `the call "c" completed twice`},
		"not started":           {within(func(x *exchange) { x.completed("c") }), `the call "c" completed and had not started`},
		"started twice":         {within(func(x *exchange) { x.started("c"); x.started("c"); x.completed("c") }), `the call "c" started twice`},
		"no card": {within(func(x *exchange) {
			x.started("c")
			x.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ToolCallCompleted{ToolCallCompleted: &agentv1.ToolCallCompletedUpdate{CallId: "c"}}})
		}), `the call "c" completed without a tool_call`},
		"other id": {within(func(x *exchange) {
			x.update(&agentv1.InteractionUpdate{Message: &agentv1.InteractionUpdate_ToolCallStarted{ToolCallStarted: &agentv1.ToolCallStartedUpdate{CallId: "c", ToolCall: card("d")}}})
			x.completed("c")
		}), `the call "c" started with the tool_call_id "d"`},
		"thinking not completed": {within(func(x *exchange) { x.think("a"); x.text("b") }), "text before thinking_completed"},
		"thinking at the end":    {within(func(x *exchange) { x.think("a") }), "turn_ended before thinking_completed"},
		"thinking before a tool": {within(func(x *exchange) { x.think("a"); x.started("c"); x.completed("c") }), "a tool call before thinking_completed"},
		"no thinking":            {within(func(x *exchange) { x.thought() }), "thinking_completed without thinking"},
		"empty text":             {within(func(x *exchange) { x.text("") }), "an empty text_delta"},
		"text after the end":     {after(func(x *exchange) { x.text("b") }), "text_delta after turn_ended"},
		"exec after the end":     {after(func(x *exchange) { x.exec(readOf(1, "")) }), "an execution after turn_ended"},
		"query after the end": {after(func(x *exchange) {
			x.send(&agentv1.AgentServerMessage{Message: &agentv1.AgentServerMessage_InteractionQuery{InteractionQuery: new(agentv1.InteractionQuery)}})
		}), "a query after turn_ended"},
		"exec before its start": {within(func(x *exchange) { x.exec(readOf(1, "c")); x.started("c"); x.completed("c") }), `the execution 1 of the call "c", which has not started`},
		"exec id again":         {within(func(x *exchange) { x.exec(readOf(1, "")); x.exec(readOf(1, "")) }), "the execution id 1 was used before"},
		"no checkpoint":         {func(x *exchange) { x.text("a"); x.turnEnded() }, "no checkpoint in this attempt"},
		"silence":               {within(func(*exchange) { <-time.After(200 * time.Millisecond) }), "silence of"},
		"wrong blob id":         {within(func(x *exchange) { x.setBlob(unknown, []byte("other")) }), "the blob " + cursorwire.BlobIDOf([]byte("unknown")).String() + " has the hash"},
		"missing turn":          {within(func(x *exchange) { x.state(&agentv1.ConversationStateStructure{Turns: [][]byte{unknown}}) }), "the checkpoint refers to the turn"},
		"missing prompt": {within(func(x *exchange) {
			x.state(&agentv1.ConversationStateStructure{RootPromptMessagesJson: [][]byte{unknown}})
		}), "the checkpoint refers to the prompt message"},
		"missing step": {within(func(x *exchange) { x.turn(new(agentv1.UserMessage), unknown) }), "the checkpoint refers to the step"},
		"missing message": {within(func(x *exchange) {
			x.state(&agentv1.ConversationStateStructure{Turns: [][]byte{x.put(agentTurn(unknown))}})
		}), "the checkpoint refers to the user message"},
		"unreadable turn": {within(func(x *exchange) { x.state(&agentv1.ConversationStateStructure{Turns: [][]byte{{0xff}}}) }), "which cannot be read"},
		"error after the end": {func(x *exchange) {
			x.checkpoint(1)
			x.turnEnded()
			x.fail(cursorwire.Refused("no", "more"))
		}, "an error after turn_ended"},
		"error with an open card": {func(x *exchange) { x.checkpoint(1); x.started("c"); x.fail(cursorwire.Refused("no", "more")) }, "never completed"},
		"error at once":           {func(x *exchange) { x.fail(cursorwire.Refused("no", "more")) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, false, test.script)
			res, _ := prompt(t, s.client(func(o *Options) {
				if name == "silence" {
					o.MaxGap = 150 * time.Millisecond
				}
			}), "hi")
			found := slices.ContainsFunc(res.Violations, func(v string) bool { return strings.Contains(v, test.want) })
			if test.want == "" && len(res.Violations) > 0 || test.want != "" && (!found || len(res.Violations) != 1) {
				t.Errorf("violations %q, want %q", res.Violations, test.want)
			}
		})
	}
}

func agentTurn(user []byte, steps ...[]byte) *agentv1.ConversationTurnStructure {
	return &agentv1.ConversationTurnStructure{Turn: &agentv1.ConversationTurnStructure_AgentConversationTurn{
		AgentConversationTurn: &agentv1.AgentConversationTurnStructure{UserMessage: user, Steps: steps},
	}}
}

// turn sends a checkpoint with one turn, whose blobs the client gets first.
func (x *exchange) turn(user *agentv1.UserMessage, steps ...[]byte) {
	x.state(&agentv1.ConversationStateStructure{Turns: [][]byte{x.put(agentTurn(x.put(user), steps...))}})
}

// A call that started in one attempt may end in the next.
func TestCallOverAttempts(t *testing.T) {
	s := newStub(t, false,
		func(x *exchange) { x.checkpoint(1); x.started("c"); x.drop() },
		within(func(x *exchange) { x.completed("c") }))
	mustRun(t, s.client(nil), "hi")
}

func TestCallIDOfAnEarlierRun(t *testing.T) {
	s := newStub(t, false, within(func(x *exchange) { x.started("c"); x.completed("c") }))
	c := s.client(nil)
	mustRun(t, c, "hi")
	if res, _ := prompt(t, c, "hi"); len(res.Violations) != 1 || !strings.Contains(res.Violations[0], "earlier run") {
		t.Errorf("violations %q", res.Violations)
	}
}

// What a checkpoint says of the turns can be read back, once its blobs are confirmed.
func TestTurns(t *testing.T) {
	step := &agentv1.ConversationStep{Message: &agentv1.ConversationStep_AssistantMessage{AssistantMessage: &agentv1.AssistantMessage{Text: "hello"}}}
	s := newStub(t, false, func(x *exchange) {
		x.turn(&agentv1.UserMessage{Text: "hi"}, x.put(step))
		x.turnEnded()
	})
	c := s.client(func(o *Options) {
		o.Blobs.Latency = func(*agentv1.KvServerMessage) time.Duration { return 2 * time.Millisecond }
	})
	res := mustRun(t, c, "hi")
	turns, missing := c.Turns(res.Checkpoint)
	if len(missing) > 0 || len(turns) != 1 || turns[0].User.GetText() != "hi" || !proto.Equal(turns[0].Steps[0], step) || c.Blobs().Len() != 3 {
		t.Errorf("%v, missing %q", turns, missing)
	}
}

// A checkpoint that comes before the client has its blobs is seen, however soon they follow.
func TestCheckpointBeforeConfirmation(t *testing.T) {
	user := &agentv1.UserMessage{Text: "hi"}
	id, data, err := cursorwire.EncodeBlob(user)
	if err != nil {
		t.Fatal(err)
	}
	s := newStub(t, false, func(x *exchange) {
		x.setBlob(id.Bytes(), data)
		turn, err := proto.Marshal(agentTurn(id.Bytes()))
		if err != nil {
			t.Error(err)
		}
		x.state(&agentv1.ConversationStateStructure{Turns: [][]byte{turn}})
		x.receive()
		x.turnEnded()
	})
	c := s.client(func(o *Options) {
		o.Blobs.Latency = func(*agentv1.KvServerMessage) time.Duration { return 50 * time.Millisecond }
	})
	if res, _ := prompt(t, c, "hi"); len(res.Violations) != 1 {
		t.Errorf("violations %q", res.Violations)
	}
}
