package cursorview

import (
	"bytes"
	"encoding/json"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/roost-dev/roost/internal/cursortool"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// step is something that was thought, said or done in a turn of the client's.
type step struct {
	text    string
	thought bool
	tool    *theirTool
}

// theirTool is a call in a turn of the client's, with its result.
type theirTool struct {
	name, input, output string
	failed              bool
	card                *agentv1.ToolCall
}

const unknownOutcome = "Interrupted: the result of this call is not known. Check before you run it again."

// toolNames says what the model knows a tool by whose card has a field. Others are called like their
// field.
var toolNames = map[protoreflect.Name]string{
	"shell_tool_call": "Shell", "delete_tool_call": "Delete", "glob_tool_call": "Glob", "grep_tool_call": "Grep",
	"read_tool_call": "Read", "update_todos_tool_call": "TodoWrite", "edit_tool_call": "Write", "ls_tool_call": "Ls",
	"read_lints_tool_call": "ReadLints", "create_plan_tool_call": "CreatePlan", "web_search_tool_call": "WebSearch",
	"task_tool_call": "Task", "read_mcp_resource_tool_call": "FetchMcpResource", "ask_question_tool_call": "AskQuestion",
	"switch_mode_tool_call": "SwitchMode", "write_shell_stdin_tool_call": "WriteShellStdin", "web_fetch_tool_call": "WebFetch",
	"await_tool_call": "AwaitShell", "pi_read_tool_call": "read", "pi_bash_tool_call": "bash", "pi_edit_tool_call": "edit",
	"pi_write_tool_call": "write", "pi_grep_tool_call": "grep", "pi_find_tool_call": "find", "pi_ls_tool_call": "ls",
}

// toolOf reads a card: what was called, and what came of it, in words for the model.
func toolOf(card *agentv1.ToolCall, cards Cards) *theirTool {
	card = proto.CloneOf(card)
	card.ToolCallId = nil
	cursortool.Fit(card, cursortool.MaxCard)
	t := &theirTool{name: "tool", input: "{}", output: unknownOutcome, failed: true, card: card}
	m := card.ProtoReflect()
	arm := m.WhichOneof(m.Descriptor().Oneofs().ByName("tool"))
	if arm == nil {
		t.card = cursortool.FailedCard(freshCard(cards, t.name, t.input), unknownOutcome)
		return t
	}
	t.name = strings.TrimSuffix(string(arm.Name()), "_tool_call")
	if name, ok := toolNames[arm.Name()]; ok {
		t.name = name
	}
	body := m.Get(arm).Message()
	if args := field(body, "args"); args != nil {
		t.input = argsJSON(args)
	}
	if args := card.GetMcpToolCall().GetArgs(); args != nil {
		t.name, t.input = mcpInput(args, t.name)
	}
	result := field(body, "result")
	if result == nil {
		t.card = cursortool.FailedCard(card, unknownOutcome)
		return t
	}
	t.failed = failed(result)
	if t.output = resultText(card, result); t.output == "" {
		t.output = "(no output)"
	}
	return t
}

// field returns a message inside another, or nil when it is not set.
func field(m protoreflect.Message, name protoreflect.Name) protoreflect.Message {
	f := m.Descriptor().Fields().ByName(name)
	if f == nil || f.Message() == nil || f.IsList() || f.IsMap() || !m.Has(f) {
		return nil
	}
	return m.Get(f).Message()
}

// failed reports whether a result is one of the outcomes that are no success.
func failed(result protoreflect.Message) bool {
	oneofs := result.Descriptor().Oneofs()
	for i := range oneofs.Len() {
		if f := result.WhichOneof(oneofs.Get(i)); f != nil && !oneofs.Get(i).IsSynthetic() {
			name := string(f.Name())
			return strings.Contains(name, "error") || strings.Contains(name, "rejected") || strings.Contains(name, "denied") ||
				strings.Contains(name, "not_") || strings.Contains(name, "fail") || strings.Contains(name, "timeout")
		}
	}
	return false
}

// argsJSON returns arguments as JSON, without the ids that are the protocol's own.
func argsJSON(args protoreflect.Message) string {
	object := map[string]json.RawMessage{}
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(args.Interface())
	if err != nil || json.Unmarshal(raw, &object) != nil {
		return "{}"
	}
	delete(object, "tool_call_id")
	if text, ok := object["stream_content"]; ok {
		delete(object, "stream_content")
		object["contents"] = text
	}
	return bounded(object)
}

func mcpInput(args *agentv1.McpArgs, name string) (string, string) {
	for _, n := range []string{args.GetToolName(), args.GetName()} {
		if n != "" {
			name = clean(n)
			break
		}
	}
	object := map[string]json.RawMessage{}
	for key, value := range args.GetArgs() {
		raw, err := protojson.Marshal(value)
		if err != nil {
			return name, "{}"
		}
		object[clean(key)] = raw
	}
	return name, bounded(object)
}

func bounded(object map[string]json.RawMessage) string {
	raw, err := json.Marshal(object)
	if err != nil || len(raw) > maxOutput {
		return "{}"
	}
	return string(raw)
}

// resultText returns what the model is told of a result.
func resultText(card *agentv1.ToolCall, result protoreflect.Message) string {
	if content := card.GetMcpToolCall().GetResult().GetSuccess().GetContent(); len(content) > 0 {
		var text strings.Builder
		for _, c := range content {
			text.WriteString(c.GetText().GetText())
		}
		return shortened(text.String())
	}
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(result.Interface())
	if err != nil {
		return ""
	}
	var compact bytes.Buffer // protojson varies its white space on purpose
	if json.Compact(&compact, raw) != nil {
		return ""
	}
	return shortened(compact.String())
}

func shortened(text string) string {
	if len(text) > maxOutput {
		text = text[:maxOutput] + "\n[shortened]"
	}
	return strings.ToValidUTF8(text, "?")
}
