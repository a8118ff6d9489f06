package cursortool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// callMCP is the function that stands for all tools of MCP servers when they are too many for
// functions of their own.
const callMCP = "CallMcpTool"

const callMCPSchema = `{
"type": "object",
"properties": {
	"server": {"type": "string", "minLength": 1, "description": "The server"},
	"toolName": {"type": "string", "minLength": 1, "description": "The tool"},
	"arguments": {"type": "object", "description": "The tool's arguments"}
},
"required": ["server", "toolName"]
}`

// callInput is what a model gives to CallMcpTool.
type callInput struct {
	Server    string          `json:"server"`
	Tool      string          `json:"toolName"`
	ToolSnake string          `json:"tool_name"`
	Arguments json.RawMessage `json:"arguments"`
}

func (in *callInput) tool() string { return first(in.Tool, in.ToolSnake) }

// route finds the tool that a call names.
func (in *callInput) route(routes []Route) (Route, error) {
	if in.Server == "" || in.tool() == "" {
		return Route{}, errors.New("server and toolName are required")
	}
	var servers, tools []string
	for _, r := range routes {
		here := in.Server == r.Server || in.Server == r.Provider
		if here && in.tool() == r.Tool {
			return r, nil
		}
		if here {
			tools = append(tools, r.Tool)
		}
		if !slices.Contains(servers, r.label()) {
			servers = append(servers, r.label())
		}
	}
	if len(tools) > 0 {
		return Route{}, fmt.Errorf("the server %q has no tool %q. Its tools are: %s", clean(in.Server), cutBefore(clean(in.tool()), 100), strings.Join(tools, ", "))
	}
	return Route{}, fmt.Errorf("there is no server %q. The servers are: %s", cutBefore(clean(in.Server), 100), strings.Join(servers, ", "))
}

// guess returns the route of a card whose call is not complete.
func (in *callInput) guess(routes []Route) Route {
	if r, err := in.route(routes); err == nil {
		return r
	}
	return Route{Provider: clean(in.Server), Server: clean(in.Server), Tool: clean(in.tool()), Name: clean(in.Server + "-" + in.tool())}
}

func callMCPCard(routes []Route, args json.RawMessage) *agentv1.ToolCall {
	var in callInput
	peek(args, &in)
	return mcpCard(in.guess(routes), "", in.arguments())
}

// arguments returns the arguments of the tool, which some models write as a string.
func (in *callInput) arguments() json.RawMessage {
	raw := in.Arguments
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = json.RawMessage(strings.TrimSpace(text))
	}
	if len(raw) == 0 || string(raw) == "null" {
		return json.RawMessage("{}")
	}
	return raw
}

func beginCallMCP(call Call, routes []Route, args json.RawMessage, env *Env) Machine {
	var in callInput
	err := decode(args, &in)
	var route Route
	if err == nil {
		route, err = in.route(routes)
	}
	if err != nil {
		return refuse(callMCPCard(routes, args), "CallMcpTool error: "+err.Error())
	}
	return beginMCP(call, route, "", in.arguments(), env)
}

func mcpCard(route Route, description string, args json.RawMessage) *agentv1.ToolCall {
	values, err := mcpValues(args)
	if err != nil {
		values = nil
	}
	c := &agentv1.McpToolCall{Args: mcpArgs(route, values)}
	if description != "" {
		c.Description = new(cutMiddle(clean(description), 1<<10))
	}
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_McpToolCall{McpToolCall: c}}
}

func mcpArgs(route Route, values map[string]*structpb.Value) *agentv1.McpArgs {
	return &agentv1.McpArgs{
		Name: clean(route.Name), Args: values, ProviderIdentifier: clean(route.Provider),
		ToolName: clean(route.Tool), ServerIdentifier: clean(route.Server),
	}
}

// mcpValues returns the arguments of a tool in the protocol's form, in which all numbers are of
// double precision.
func mcpValues(args json.RawMessage) (map[string]*structpb.Value, error) {
	d := json.NewDecoder(bytes.NewReader(args))
	d.UseNumber()
	var object map[string]any
	if err := d.Decode(&object); err != nil || object == nil {
		return nil, errNotObject
	}
	out := make(map[string]*structpb.Value, len(object))
	for name, v := range object {
		value, err := structpb.NewValue(exactNumbers(v))
		if err != nil {
			return nil, fmt.Errorf("the argument %s: %w", clean(name), err)
		}
		out[clean(name)] = value
	}
	return out, nil
}

// exactNumbers replaces numbers by float64, and those that would not stay the same by their text.
func exactNumbers(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if n, whole := v.Int64(); err != nil || whole == nil && int64(f) != n {
			return v.String()
		}
		return f
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, e := range v {
			out[clean(name)] = exactNumbers(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = exactNumbers(e)
		}
		return out
	case string:
		return clean(v)
	default:
		return v
	}
}

// beginMCP calls a tool of an MCP server of the client (section 5.6). The client asks its user.
func beginMCP(call Call, route Route, description string, args json.RawMessage, env *Env) Machine {
	card := mcpCard(route, description, args)
	values, err := mcpValues(args)
	if err != nil {
		return refuse(card, call.Name+" error: "+err.Error())
	}
	request := mcpArgs(route, values)
	request.ToolCallId = string(call.ID)
	x := &exchange{tool: call.Name, env: env, card: card}
	x.begin = func() Step {
		return x.try(way{
			Request{Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_McpArgs{McpArgs: request}}, Unsafe: true},
			func(m *agentv1.ExecClientMessage) (Step, bool) {
				if r := m.GetMcpResult(); r != nil {
					return mcpResult(x, r), true
				}
				return Step{}, false
			},
		})
	}
	return x
}

func mcpResult(x *exchange, res *agentv1.McpResult) Step {
	set := func(r *agentv1.McpToolResult) { x.card.GetMcpToolCall().Result = r }
	switch r := res.GetResult().(type) {
	case *agentv1.McpResult_Success:
		set(&agentv1.McpToolResult{Result: &agentv1.McpToolResult_Success{Success: r.Success}})
		text, images := mcpContent(r.Success)
		return x.done(Outcome{Text: text, Images: images, IsError: r.Success.GetIsError(), Card: x.card})
	case *agentv1.McpResult_Rejected:
		return x.refused(r.Rejected.GetReason())
	case *agentv1.McpResult_PermissionDenied:
		set(&agentv1.McpToolResult{Result: &agentv1.McpToolResult_PermissionDenied{PermissionDenied: r.PermissionDenied}})
		return x.failCard("the client does not permit it"+because(r.PermissionDenied.GetError()), x.card)
	case *agentv1.McpResult_ToolNotFound:
		return x.fail(fmt.Sprintf("the server has no tool %q. Its tools are: %s", clean(r.ToolNotFound.GetName()), names(r.ToolNotFound.GetAvailableTools())))
	case *agentv1.McpResult_ServerNotFound:
		return x.fail(fmt.Sprintf("there is no server %q. The servers are: %s", clean(r.ServerNotFound.GetName()), names(r.ServerNotFound.GetAvailableServers())))
	case *agentv1.McpResult_Approved:
		return x.fail("the client has only said that the call is allowed, and has not made it")
	default:
		return x.fail(first(clean(res.GetError().GetError()), "the client gave no result of the tool"))
	}
}

func names(all []string) string {
	if len(all) == 0 {
		return "(none)"
	}
	return cutBefore(clean(strings.Join(all, ", ")), grepLine)
}

// mcpContent returns what the model gets of a result.
func mcpContent(ok *agentv1.McpSuccess) (string, []Image) {
	var texts []string
	var images []Image
	items := ok.GetContent()
	for _, c := range items[:min(len(items), mcpItems)] {
		if p := c.GetImage(); p != nil {
			note, image := mcpImage(p)
			texts, images = append(texts, note), append(images, image...)
			continue
		}
		texts = append(texts, clean(c.GetText().GetText()))
		if at := c.GetText().GetOutputLocation(); at.GetFilePath() != "" {
			texts = append(texts, fmt.Sprintf("[All of it, %d bytes, is in %s]", at.GetSizeBytes(), clean(at.GetFilePath())))
		}
	}
	if len(items) > mcpItems {
		texts = append(texts, fmt.Sprintf("[%d more parts were left out.]", len(items)-mcpItems))
	}
	text := strings.Join(texts, "\n")
	if structured := ok.GetStructuredContent(); text == "" && structured != nil {
		if raw, err := protojson.Marshal(structured); err == nil {
			text = string(raw)
		}
	}
	return first(cutMiddle(text, mcpText), "(no content)"), images
}

func mcpImage(p *agentv1.McpImageContent) (note string, image []Image) {
	mime := imageMIME(p.GetData())
	switch {
	case mime == "":
		return fmt.Sprintf("[A picture of a kind that cannot be shown: %s, %d bytes]", clean(p.GetMimeType()), len(p.GetData())), nil
	case len(p.GetData()) > maxImage:
		return fmt.Sprintf("[A picture of %d bytes, more than the %d that can be shown]", len(p.GetData()), maxImage), nil
	default:
		return fmt.Sprintf("[%s, %d bytes]", mime, len(p.GetData())), []Image{{MIME: mime, Data: p.GetData()}}
	}
}
