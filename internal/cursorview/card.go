package cursorview

import (
	"encoding/json"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/roost-dev/roost/internal/cursortool"
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Cards makes the card of a call from its name and its arguments, which may be incomplete JSON.
// *cursortool.Set is one. A nil Cards stands for cursortool.Card.
type Cards interface {
	Card(name, input string) *agentv1.ToolCall
}

// freshCard returns a card without a result that the caller may change.
func freshCard(cards Cards, name, input string) *agentv1.ToolCall {
	if cards == nil {
		return cursortool.Card(name, input)
	}
	return cards.Card(name, input)
}

// stamp sets what every card has whatever its tool (section 4.2). A time of 0 is not set.
func stamp(card *agentv1.ToolCall, call session.CallID, started, completed int64) *agentv1.ToolCall {
	card.ToolCallId = new(string(call))
	stampArgs(card, string(call))
	if card.StartedAtMs == nil && started > 0 {
		card.StartedAtMs = new(uint64(started))
	}
	if card.CompletedAtMs == nil && completed > 0 {
		card.CompletedAtMs = new(uint64(completed))
	}
	return card
}

// stampArgs gives the arguments of a card the id of its call where they have room for one: that is
// what clients join a card and an execution by.
func stampArgs(card *agentv1.ToolCall, id string) {
	m := card.ProtoReflect()
	arm := m.WhichOneof(m.Descriptor().Oneofs().ByName("tool"))
	if arm == nil {
		return
	}
	tool := m.Mutable(arm).Message()
	args := tool.Descriptor().Fields().ByName("args")
	if args == nil || args.Message() == nil || args.IsList() || args.IsMap() {
		return
	}
	field := args.Message().Fields().ByName("tool_call_id")
	if field == nil || field.Kind() != protoreflect.StringKind {
		return
	}
	if a := tool.Mutable(args).Message(); a.Get(field).String() == "" {
		a.Set(field, protoreflect.ValueOfString(id))
	}
}

// details is session.Tool.Details of a call that a client has run.
type details struct {
	Card json.RawMessage `json:"card"`
}

// endedCard returns the card of a call with its result: the one that was kept with the result, else
// one that is made of the text.
func endedCard(cards Cards, name, input, output string, isError bool, kept json.RawMessage) *agentv1.ToolCall {
	var d details
	if json.Unmarshal(kept, &d) == nil && len(d.Card) > 0 {
		card := &agentv1.ToolCall{}
		if (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(d.Card, card) == nil && card.Tool != nil {
			return card
		}
	}
	return plainCard(cards, name, input, output, isError)
}

// plainCard returns the card of a call of whose result only the text is known. Cards that have no
// place for a text that is no error give way to one that has.
func plainCard(cards Cards, name, input, output string, isError bool) *agentv1.ToolCall {
	card := freshCard(cards, name, input)
	if isError {
		return cursortool.FailedCard(card, output)
	}
	card = cursortool.ResultCard(card, output, false)
	m := card.ProtoReflect()
	if arm := m.WhichOneof(m.Descriptor().Oneofs().ByName("tool")); arm != nil {
		if result := field(m.Get(arm).Message(), "result"); result != nil && !failed(result) {
			return card
		}
	}
	args := &agentv1.McpArgs{}
	object := &structpb.Struct{}
	if protojson.Unmarshal([]byte(input), object) == nil {
		args.Args = object.GetFields()
	}
	args.Name, args.ToolName = name, name
	other := &agentv1.ToolCall{Tool: &agentv1.ToolCall_McpToolCall{McpToolCall: &agentv1.McpToolCall{Args: args}}}
	return cursortool.ResultCard(other, output, false)
}

// EncodeCard returns card as it is kept in the Details of a tool's result, or nil when it cannot be
// written as JSON.
func EncodeCard(card *agentv1.ToolCall) json.RawMessage {
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(card)
	if err != nil {
		return nil
	}
	kept, err := json.Marshal(details{Card: raw})
	if err != nil {
		return nil
	}
	return kept
}
