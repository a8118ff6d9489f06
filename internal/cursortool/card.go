package cursortool

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// FailedCard returns a copy of card whose result is an error of the card's own kind with that text:
// for calls that ended without the client (refused, aborted, interrupted). It is never nil.
func FailedCard(card *agentv1.ToolCall, text string) *agentv1.ToolCall {
	return endedCard(card, text, "error", "spawn_error")
}

// RejectedCard is FailedCard with a result that says that the user refused, where the kind of card
// has one.
func RejectedCard(card *agentv1.ToolCall, reason string) *agentv1.ToolCall {
	return endedCard(card, reason, "rejected", "error", "spawn_error")
}

// endedCard sets the first of the named arms that the card's result has. What it repeats of the
// arguments (a path, a command) is copied.
func endedCard(card *agentv1.ToolCall, text string, arms ...protoreflect.Name) *agentv1.ToolCall {
	out := &agentv1.ToolCall{}
	if card != nil {
		out = proto.CloneOf(card)
	}
	m := out.ProtoReflect()
	tool := m.WhichOneof(m.Descriptor().Oneofs().ByName("tool"))
	if tool == nil {
		out.Tool = &agentv1.ToolCall_McpToolCall{McpToolCall: &agentv1.McpToolCall{}}
		tool = m.WhichOneof(m.Descriptor().Oneofs().ByName("tool"))
	}
	body := m.Mutable(tool).Message()
	field := body.Descriptor().Fields().ByName("result")
	if field == nil || field.Message() == nil {
		return out
	}
	result := body.NewField(field).Message()
	for _, name := range arms {
		arm := result.Descriptor().Fields().ByName(name)
		if arm == nil || arm.Message() == nil {
			continue
		}
		end := result.Mutable(arm).Message()
		copySame(end, body)
		for _, name := range []protoreflect.Name{"error", "error_message", "reason"} {
			if f := end.Descriptor().Fields().ByName(name); f != nil && f.Kind() == protoreflect.StringKind {
				end.Set(f, protoreflect.ValueOfString(clean(text)))
			}
		}
		break
	}
	body.Set(field, protoreflect.ValueOfMessage(result))
	return out
}

// copySame copies the strings of the arguments that the result has under the same name.
func copySame(end, body protoreflect.Message) {
	field := body.Descriptor().Fields().ByName("args")
	if field == nil || !body.Has(field) {
		return
	}
	args := body.Get(field).Message()
	for _, name := range []protoreflect.Name{"path", "command", "working_directory", "uri", "url"} {
		from, to := args.Descriptor().Fields().ByName(name), end.Descriptor().Fields().ByName(name)
		if from != nil && to != nil && from.Kind() == protoreflect.StringKind && to.Kind() == protoreflect.StringKind {
			end.Set(to, args.Get(from))
		}
	}
}
