package cursortool

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// turn is one request that a machine is expected to make, and what becomes of it.
type turn struct {
	want   string // protojson of the ExecServerMessage
	answer string // protojson of the ExecClientMessage; or one of the words below
}

// What may become of a request instead of an answer.
const (
	closes      = "closes"
	throws      = "throws"
	unsupported = "unsupported"
)

func toolEnv() *Env {
	return &Env{Root: "/home/dev/project", Session: "agent-1", Model: "parent-model", Shells: NewShells()}
}

// begin returns the machine of a call of a tool that is on offer in agent mode.
func begin(t rapid.TB, tool, input string, env *Env) Machine {
	t.Helper()
	set := NewSet(Offer(Offering{Mode: agentv1.AgentMode_AGENT_MODE_AGENT, AskUser: true, ReadLints: true, MCP: someMCP(), Agents: env.Agents}))
	return set.Begin(Call{ID: "call1-0-0", Name: tool, Input: input}, env)
}

// play runs a machine against a script and returns how it ended.
func play(t rapid.TB, m Machine, script ...turn) *Outcome {
	t.Helper()
	st := m.Start()
	sent := 0
	for i, s := range script {
		if st.Done != nil {
			t.Fatalf("turn %d: the call is over: %q", i, st.Done.Text)
		}
		if len(st.Requests) != 1 {
			t.Fatalf("turn %d: %d requests, want 1", i, len(st.Requests))
		}
		sameRequest(t, i, s.want, st.Requests[0].Message)
		n := sent
		sent++
		switch s.answer {
		case closes:
			st = m.Closed(n)
		case throws:
			st = m.Thrown(n, "ENOENT in the handler", false)
		case unsupported:
			st = m.Thrown(n, "No handler found for server message of type x", true)
		default:
			st = m.Result(n, execMessage(t, s.answer))
		}
	}
	o := over(t, st)
	if size := proto.Size(o.Card); size > MaxCard {
		t.Errorf("the card has %d bytes", size)
	}
	return o
}

func sameRequest(t rapid.TB, i int, want string, got *agentv1.ExecServerMessage) {
	t.Helper()
	if want == "" {
		return
	}
	expected := &agentv1.ExecServerMessage{}
	if err := protojson.Unmarshal([]byte(want), expected); err != nil {
		t.Fatalf("turn %d: %v", i, err)
	}
	if !proto.Equal(expected, got) {
		raw, _ := protojson.MarshalOptions{UseProtoNames: true}.Marshal(got)
		t.Fatalf("turn %d: the request is\n%s\nwant\n%s", i, raw, want)
	}
}

// outcome is what a test expects of one.
type outcome struct {
	text    string // all of it, or "…" and a part
	isError bool
	card    string // a part of its JSON, without white space
}

func (w outcome) check(t testing.TB, o *Outcome) {
	t.Helper()
	if part, some := strings.CutPrefix(w.text, "…"); some && !strings.Contains(o.Text, part) || !some && o.Text != w.text {
		t.Errorf("text is %q, want %q", o.Text, w.text)
	}
	if o.IsError != w.isError {
		t.Errorf("IsError is %v", o.IsError)
	}
	if card := cardJSON(t, o.Card); !strings.Contains(card, w.card) {
		t.Errorf("the card is\n%s\nwant in it\n%s", card, w.card)
	}
}

// cardJSON returns a card as compact JSON with the names of the protocol.
func cardJSON(t testing.TB, card *agentv1.ToolCall) string {
	t.Helper()
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(card)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	if raw, err = json.Marshal(v); err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// scenario is a call and what becomes of it.
type scenario struct {
	name  string
	tool  string
	input string
	env   func(*Env)
	turns []turn
	want  outcome
}

func runScenarios(t *testing.T, all []scenario) {
	t.Helper()
	for _, s := range all {
		t.Run(s.name, func(t *testing.T) {
			env := toolEnv()
			if s.env != nil {
				s.env(env)
			}
			s.want.check(t, play(t, begin(t, s.tool, s.input, env), s.turns...))
		})
	}
}
