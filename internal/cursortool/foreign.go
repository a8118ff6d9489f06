package cursortool

import (
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// foreign returns what a result of a kind that was not asked for says of itself: its error, if it is
// one. Clients answer like that for what they do not carry out.
func foreign(m *agentv1.ExecClientMessage) string {
	msg := m.ProtoReflect()
	arm := msg.WhichOneof(msg.Descriptor().Oneofs().ByName("message"))
	if arm == nil {
		return "the client gave no result"
	}
	if text := complaint(msg.Get(arm).Message(), 0); text != "" {
		return text
	}
	return "the client answered with something else (" + string(arm.Name()) + ")"
}

// complaint looks for the first text of an error in a result.
func complaint(m protoreflect.Message, depth int) string {
	if depth == 4 {
		return ""
	}
	var text string
	for _, name := range []protoreflect.Name{"error", "reason", "error_message", "client_visible_error"} {
		f := m.Descriptor().Fields().ByName(name)
		if f != nil && f.Kind() == protoreflect.StringKind && !f.IsList() {
			if text = strings.TrimSpace(clean(m.Get(f).String())); text != "" {
				return text
			}
		}
	}
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Message() != nil && !f.IsList() && !f.IsMap() {
			text = complaint(v.Message(), depth+1)
		}
		return text == ""
	})
	return text
}

// missing reports whether a result says that the client lacks what the request needs, though it
// knows the kind: an SDK without ripgrep, a client whose grep cannot list files.
func missing(m *agentv1.ExecClientMessage) bool {
	text := m.GetGrepResult().GetError().GetError()
	return strings.Contains(text, "Ripgrep path not configured") || strings.Contains(text, "received an empty pattern")
}
