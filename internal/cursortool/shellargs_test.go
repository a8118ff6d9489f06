package cursortool

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

func TestShellArgs(t *testing.T) {
	in := `{"command":"go test ./...","description":"Run tests","working_directory":"sub","block_until_ms":"90000.5",
		"notify_on_output":{"pattern":"FAIL","reason":"a test fails","debounce_ms":500,"notification_limit":3}}`
	got := beginShell(Call{ID: "c1"}, json.RawMessage(in), shellEnv()).Start().Requests[0].Message.GetShellStreamArgs()
	want := &agentv1.ShellArgs{
		Command: "go test ./...", WorkingDirectory: "/home/dev/project/sub", Timeout: 90000, ToolCallId: "c1",
		TimeoutBehavior: agentv1.TimeoutBehavior_TIMEOUT_BEHAVIOR_BACKGROUND, HardTimeout: new(int32(86_400_000)),
		FileOutputThresholdBytes: new(uint64(40_000)), Description: new("Run tests"), ConversationId: new("conv"),
		SimpleCommands: []string{"go test ./..."},
		ParsingResult: &agentv1.ShellCommandParsingResult{ExecutableCommands: []*agentv1.ShellCommandParsingResult_ExecutableCommand{{
			Name: "go", FullText: "go test ./...", Args: []*agentv1.ShellCommandParsingResult_ExecutableCommandArg{
				{Type: "word", Value: "test"}, {Type: "word", Value: "./..."},
			},
		}}},
		OutputNotification: &agentv1.ShellOutputNotificationConfig{
			Pattern: "FAIL", Reason: "a test fails", Debounce: new(500.0), NotificationLimit: new(int32(3)),
		},
	}
	if !proto.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}

	got = beginShell(Call{}, json.RawMessage(`{"command":"a\n  && b","block_until_ms":1e300}`), &Env{Shells: NewShells()}).Start().Requests[0].Message.GetShellStreamArgs()
	if got.GetCommand() != "a\n  && b" || got.GetTimeout() != math.MaxInt32 || !got.GetParsingResult().GetParsingFailed() ||
		len(got.GetSimpleCommands()) != 0 || got.GetWorkingDirectory() != "" {
		t.Errorf("got %v", got)
	}
	if got = beginShell(Call{}, json.RawMessage(`{"command":"a"}`), shellEnv()).Start().Requests[0].Message.GetShellStreamArgs(); got.GetTimeout() != 30_000 || got.GetWorkingDirectory() != "/home/dev/project" {
		t.Errorf("defaults: %v", got)
	}
}

func TestShellInputThatDoesNotFit(t *testing.T) {
	for input, want := range map[string]string{
		`{}`:                                  "command is required",
		`{"command":" \n"}`:                   "command is required",
		`{"command":7}`:                       "command must not be a number",
		`{"command":"a","block_until_ms":-1}`: "not a number of milliseconds",
		`{"command":"a","block_until_ms":"soon"}`:  "not a number of milliseconds",
		`{"command":"a","block_until_ms":"NaN"}`:   "not a number of milliseconds",
		`{"command":"a","block_until_ms":{"a":1}}`: "not a number of milliseconds",
	} {
		st := beginShell(Call{}, json.RawMessage(input), shellEnv()).Start()
		if o := over(t, st); !o.IsError || !strings.Contains(o.Text, want) || len(st.Requests) != 0 {
			t.Errorf("%s: got %q, want %q", input, o.Text, want)
		}
	}
}

// The client's list of allowed commands must not be told that a line is one command when it is more
// (W39).
func TestSimpleCommand(t *testing.T) {
	for _, command := range []string{"ls", "git status", "go test ./... -run=TestX", "make -j4 CC=gcc", "/usr/bin/env"} {
		if simpleCommand(command) == nil {
			t.Errorf("%q is simple", command)
		}
	}
	for _, command := range []string{
		"", " ", "a && b", "a;b", "a|b", "a&", "a\nb", "a\rb", "a\tb", "a > f", "a < f", "$(a)", "`a`", "a $X", "a '", `a "b"`, `a \b`, "a *", "a ?", "a [b]",
		"a ~", "~", "a #b", "{a,b}", "(a)", "!a", "X=1 a", "if a", "time a", "exec a", "eval a", ". a", "source a", "ä", "a\x00",
	} {
		if words := simpleCommand(command); words != nil {
			t.Errorf("%q is not simple, got %q", command, words)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		command := rapid.StringOf(rapid.RuneFrom([]rune("ab c-./=&|;<>()$`\\\"'\n\t*?[]{}~#!"))).Draw(t, "command")
		if words := simpleCommand(command); words != nil && strings.ContainsAny(command, "&|;<>()$`\\\"'\n\t*?[]{}~#!") {
			t.Fatalf("%q passes as the simple command %q", command, words)
		}
	})
}

func TestShellIDs(t *testing.T) {
	for text, want := range map[string]uint32{`7`: 7, `"7"`: 7, `" 966297 "`: 966297, `7.0`: 7, `4294967295`: math.MaxUint32} {
		var id shellID
		if err := json.Unmarshal([]byte(text), &id); err != nil || uint32(id) != want {
			t.Errorf("%s: got %d, %v", text, id, err)
		}
	}
	for _, text := range []string{`-1`, `4294967296`, `1.5`, `"x"`, `""`, `true`, `[1]`, `"NaN"`, `"Inf"`} {
		var id shellID
		if err := json.Unmarshal([]byte(text), &id); err == nil {
			t.Errorf("%s: got %d, want an error", text, id)
		}
	}
}

// A card can be made of whatever a model has written so far.
func TestCardsOfUnfinishedCalls(t *testing.T) {
	cards := map[string]func(json.RawMessage) *agentv1.ToolCall{
		"shell_tool_call": shellCard, "await_tool_call": awaitCard, "write_shell_stdin_tool_call": stdinCard,
		"ask_question_tool_call": askCard, "create_plan_tool_call": planCard, "switch_mode_tool_call": modeCard,
		"web_search_tool_call": searchCard, "web_fetch_tool_call": fetchCard,
	}
	for want, card := range cards {
		for _, input := range []string{
			``, `{}`, `null`, `[1]`, `{"command":1,"shell_id":"x","questions":[{"options":[{}]}],"url":[],"plan":null}`,
			`{"command":"ls","shell_id":3,"chars":"a","questions":[{"id":"q","prompt":"?","options":[{"id":"a","label":"A"}]}],"plan":"p","target_mode_id":"plan","search_term":"s","url":"u"}`,
		} {
			m := card(json.RawMessage(input)).ProtoReflect()
			if got := m.WhichOneof(m.Descriptor().Oneofs().ByName("tool")); got == nil || string(got.Name()) != want {
				t.Errorf("%s of %s: %v", want, input, m.Interface())
			}
		}
	}
	if got := forceCard(json.RawMessage(`{"tool_call_id":"c0"}`)).GetShellToolCall().GetArgs().GetToolCallId(); got != "c0" {
		t.Errorf("a move to the background is shown for %q", got)
	}
	if got := shellCard(json.RawMessage(`{"command":"ls","description":5}`)).GetShellToolCall().GetArgs().GetCommand(); got != "ls" {
		t.Errorf("what fits is lost: %q", got)
	}
}

// What a model is told of the tools is a schema that names all that it requires.
func TestSchemasNameWhatTheyRequire(t *testing.T) {
	for _, k := range registry() {
		var s struct {
			Type       string                     `json:"type"`
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		}
		if err := json.Unmarshal([]byte(k.schema), &s); err != nil || s.Type != "object" || len(s.Properties) == 0 || k.description == "" {
			t.Errorf("%s: %v, type %q", k.name, err, s.Type)
		}
		for _, name := range s.Required {
			if s.Properties[name] == nil {
				t.Errorf("%s requires %s, which it does not have", k.name, name)
			}
		}
	}
}
