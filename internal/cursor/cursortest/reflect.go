package cursortest

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// arm is the name of the arm that is set in a oneof of m, or "".
func arm(m proto.Message, oneof protoreflect.Name) string {
	r := m.ProtoReflect()
	field := r.WhichOneof(r.Descriptor().Oneofs().ByName(oneof))
	if field == nil {
		return ""
	}
	return string(field.Name())
}

// toolCallID is the tool_call_id in the arguments of an execution, or "".
func toolCallID(m proto.Message) string {
	r := m.ProtoReflect()
	field := r.WhichOneof(r.Descriptor().Oneofs().ByName("message"))
	if field == nil {
		return ""
	}
	args := r.Get(field).Message()
	id := args.Descriptor().Fields().ByName("tool_call_id")
	if id == nil {
		return ""
	}
	return args.Get(id).String()
}
