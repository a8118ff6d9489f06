package cursortool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// maxInput bounds the arguments of a call, in bytes.
const maxInput = 8 << 20

// Set is the tools on offer for a run. It is immutable and safe for concurrent use.
type Set struct {
	defs   []Definition
	byName map[string]Definition
}

// NewSet returns the set of defs, in their order. Of two with one name the first one counts.
func NewSet(defs []Definition) *Set {
	s := &Set{byName: make(map[string]Definition, len(defs))}
	for _, d := range defs {
		if _, twice := s.byName[d.Name]; twice {
			continue
		}
		s.byName[d.Name] = d
		s.defs = append(s.defs, d)
	}
	return s
}

// Definitions returns what the model is told of the tools, in a stable order.
func (s *Set) Definitions() []Definition { return slices.Clone(s.defs) }

// Begin returns the machine of a call; it always returns one. For a tool that is not on offer, and
// for arguments that do not fit, its first step ends the call with a text for the model that says
// what is wrong.
func (s *Set) Begin(call Call, env *Env) Machine {
	def, ok := s.byName[call.Name]
	if !ok {
		return refuse(s.Card(call.Name, call.Input), s.unknown(call.Name))
	}
	args, err := arguments(call.Input)
	if err != nil {
		return refuse(s.Card(call.Name, call.Input), fmt.Sprintf("%s error: %v", call.Name, err))
	}
	if def.Name != callMCP && def.MCP != nil {
		return beginMCP(call, *def.MCP, def.Description, args, env)
	}
	if def.Name == callMCP {
		return beginCallMCP(call, def.Routes, args, env)
	}
	k, ok := kinds()[def.Name]
	if !ok {
		return refuse(s.Card(call.Name, call.Input), call.Name+" error: this version of the server does not know the tool any more. Use another one.")
	}
	return k.begin(call, args, env)
}

func (s *Set) unknown(name string) string {
	names := make([]string, len(s.defs))
	for i, d := range s.defs {
		names[i] = d.Name
	}
	return fmt.Sprintf("There is no tool %q here. Names are case-sensitive. The tools are: %s.", cutBefore(clean(name), 100), strings.Join(names, ", "))
}

// Card returns the card of a call of which the arguments may be incomplete JSON, since the model is
// still writing: what can be read so far. It is never nil. Its tool_call_id is left to the caller.
func (s *Set) Card(name, input string) *agentv1.ToolCall {
	def, ok := s.byName[name]
	switch {
	case !ok:
		card := Card(name, input)
		if card.GetMcpToolCall() != nil { // as a tool of some server a client would try to run it
			return &agentv1.ToolCall{Tool: &agentv1.ToolCall_TruncatedToolCall{TruncatedToolCall: &agentv1.TruncatedToolCall{}}}
		}
		return card
	case name == callMCP:
		return callMCPCard(def.Routes, partial(input))
	case def.MCP != nil:
		return mcpCard(*def.MCP, def.Description, partial(input))
	default:
		return Card(name, input)
	}
}

// Card is Set.Card for tools that are in no set: the client's usual ones by their names, those of
// the workspace (read, bash, edit, write, grep, find, ls) as the ones of pi, which Cursor's clients
// know too, and anything else as a tool of an MCP server "roost".
func Card(name, input string) *agentv1.ToolCall {
	args := partial(input)
	if k, ok := kinds()[name]; ok {
		return k.card(args)
	}
	if card := piCard(name, args); card != nil {
		return card
	}
	return mcpCard(Route{Provider: "roost", Server: "roost", Tool: clean(name), Name: "roost-" + clean(name)}, "", args)
}

// Path returns the file that a call edits (Write, PatchEdit) in the client's notation and in one
// spelling, or "" when it edits none. Edits of one path must be made one after the other.
func Path(call Call, env *Env) string {
	if call.Name != "Write" && call.Name != "PatchEdit" {
		return ""
	}
	var in editInput
	peek(partial(call.Input), &in)
	if in.path() == "" {
		return ""
	}
	return spelled(resolve(env.Root, in.path()))
}

// arguments returns the arguments of a call as a JSON object.
func arguments(input string) (json.RawMessage, error) {
	if strings.TrimSpace(input) == "" {
		return json.RawMessage("{}"), nil
	}
	if len(input) > maxInput {
		return nil, fmt.Errorf("the arguments have %d bytes, more than the %d that are possible: do it in smaller steps", len(input), maxInput)
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(input), &object); err != nil {
		return nil, fmt.Errorf("the arguments are not a complete JSON object (%w): write the call again", err)
	}
	if object == nil {
		return nil, errNotObject
	}
	return json.RawMessage(input), nil
}
