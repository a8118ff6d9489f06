package cursortool

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// MCPTool is a tool of an MCP server that the client can call.
type MCPTool struct {
	Route
	Description string
	Schema      json.RawMessage // as every provider takes it
}

// maxMCPTools bounds how many tools a client can bring.
const maxMCPTools = 2000

// MCPTools gathers the MCP tools of a run from everywhere a client may name them (section 5.6): the
// request itself, the request context, and the descriptions of servers in both. Of several with the
// same server and name the first one counts. Both arguments may be nil. The order is by server and
// name, so it does not depend on the client's.
func MCPTools(run *agentv1.AgentRunRequest, ctx *agentv1.RequestContext) []MCPTool {
	var g gathered
	g.definitions(run.GetMcpTools().GetMcpTools())
	g.definitions(ctx.GetTools())
	g.descriptors(run.GetMcpFileSystemOptions().GetMcpDescriptors())
	g.descriptors(ctx.GetMcpFileSystemOptions().GetMcpDescriptors())
	g.descriptors(ctx.GetMcpMetaToolOptions().GetMcpDescriptors())
	slices.SortFunc(g.tools, func(a, b MCPTool) int {
		return cmp.Or(strings.Compare(a.Provider, b.Provider), strings.Compare(a.Tool, b.Tool))
	})
	return g.tools
}

type gathered struct {
	tools []MCPTool
	seen  map[[2]string]bool
}

func (g *gathered) definitions(defs []*agentv1.McpToolDefinition) {
	for _, d := range defs {
		tool := first(d.GetToolName(), d.GetName())
		provider := first(d.GetProviderIdentifier(), strings.TrimSuffix(strings.TrimSuffix(d.GetName(), tool), "-"))
		g.add(Route{Provider: provider, Server: provider, Tool: tool, Name: first(d.GetName(), provider+"-"+tool)},
			d.GetDescription(), d.GetInputSchema(), d.GetInputSchemaJson())
	}
}

func (g *gathered) descriptors(servers []*agentv1.McpDescriptor) {
	for _, s := range servers {
		id := first(s.GetServerIdentifier(), s.GetServerName())
		for _, d := range s.GetTools() {
			g.add(Route{Provider: id, Server: id, Tool: d.GetToolName(), Name: id + "-" + d.GetToolName()},
				d.GetDescription(), d.GetInputSchema(), d.GetInputSchemaJson())
		}
	}
}

func (g *gathered) add(r Route, description string, schema *structpb.Value, text string) {
	r = Route{Provider: clean(r.Provider), Server: clean(r.Server), Tool: clean(r.Tool), Name: clean(r.Name)}
	key := [2]string{r.Provider, r.Tool}
	if r.Tool == "" || g.seen[key] || len(g.tools) == maxMCPTools {
		return
	}
	if g.seen == nil {
		g.seen = map[[2]string]bool{}
	}
	g.seen[key] = true
	g.tools = append(g.tools, MCPTool{Route: r, Description: clean(description), Schema: mcpSchema(schema, text)})
}

// label is the name of the server for the model.
func (r Route) label() string { return first(r.Provider, r.Server) }

// mcpDefinitions returns one function for each tool, or one for all when they are many (section 5.6).
func mcpDefinitions(tools []MCPTool) []Definition {
	if len(tools) > mcpFunctions {
		return []Definition{manyTools(tools)}
	}
	names := functionNames(tools)
	out := make([]Definition, len(tools))
	for i, t := range tools {
		out[i] = Definition{
			Name: names[i], Description: cutMiddle(first(t.Description, t.Tool+" of the MCP server "+t.label()), 8<<10),
			Schema: t.Schema, Arm: "mcp_tool_call", MCP: &t.Route,
		}
	}
	return out
}

// mcpList bounds the list of tools in the description of the one function for all, in bytes.
const mcpList = 64 << 10

func manyTools(tools []MCPTool) Definition {
	d := Definition{Name: callMCP, Schema: compact(callMCPSchema), Arm: "mcp_tool_call"}
	var b strings.Builder
	b.WriteString("Call a tool of an MCP server of the user's client. The servers and their tools, with the schemas of their arguments:")
	// With long schemas there is room for the names only.
	full := 0
	for _, t := range tools {
		full += len(t.Description) + len(t.Schema) + len(t.Tool) + 8
	}
	server := ""
	for _, t := range tools {
		d.Routes = append(d.Routes, t.Route)
		if t.label() != server || len(d.Routes) == 1 {
			server = t.label()
			fmt.Fprintf(&b, "\n\n%s:", server)
		}
		fmt.Fprintf(&b, "\n- %s", t.Tool)
		switch {
		case full <= mcpList:
			fmt.Fprintf(&b, ": %s %s", t.Description, t.Schema)
		case b.Len() < mcpList:
			fmt.Fprintf(&b, ": %s", cutMiddle(strings.Join(strings.Fields(t.Description), " "), 200))
		}
	}
	d.Description = b.String()
	return d
}

var notInNames = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

// maxName is the length of a function's name that every provider takes.
const maxName = 64

// functionNames returns the names of the functions of tools: mcp_SERVER_TOOL of letters, digits, "_"
// and "-". A name that is too long, or that two tools would have, ends with a digest, so that it is
// always the same for the same tools.
func functionNames(tools []MCPTool) []string {
	names := make([]string, len(tools))
	count := map[string]int{}
	for i, t := range tools {
		names[i] = "mcp_" + notInNames.ReplaceAllString(t.label(), "_") + "_" + notInNames.ReplaceAllString(t.Tool, "_")
		count[names[i]]++
	}
	for i, t := range tools {
		if len(names[i]) > maxName || count[names[i]] > 1 {
			sum := sha256.Sum256([]byte(t.label() + "\x00" + t.Tool))
			digest := "_" + hex.EncodeToString(sum[:6])
			names[i] = names[i][:min(len(names[i]), maxName-len(digest))] + digest
		}
	}
	return names
}
