package cursortool

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

func someMCP() []MCPTool {
	return []MCPTool{
		{Route{"custom-user-tools", "custom-user-tools", "add", "custom-user-tools-add"}, "adds two numbers", openSchema},
		{Route{"opencode", "opencode", "myadd", "opencode-myadd"}, "", openSchema},
	}
}

func TestMCP(t *testing.T) {
	const request = `{"mcp_args":{"name":"custom-user-tools-add","tool_name":"add","provider_identifier":"custom-user-tools","server_identifier":"custom-user-tools","args":{"a":2,"b":3},"tool_call_id":"call1-0-0"}}`
	const tool, input = "mcp_custom-user-tools_add", `{"a":2,"b":3}`
	png := base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n"))
	runScenarios(t, []scenario{
		{
			name: "sdk", tool: tool, input: input,
			turns: []turn{{request, `{"id":1,"mcp_result":{"success":{"content":[{"text":{"text":"sum=5"}}]}},"local_execution_time_ms":74}`}},
			want:  outcome{"sum=5", false, `"result":{"success":{"content":[{"text":{"text":"sum=5"}}]}}`},
		},
		{
			name: "opencode", tool: "mcp_opencode_myadd", input: input,
			turns: []turn{{`{"mcp_args":{"name":"opencode-myadd","tool_name":"myadd","provider_identifier":"opencode","server_identifier":"opencode","args":{"a":2,"b":3},"tool_call_id":"call1-0-0"}}`, `{"mcp_result":{"success":{"content":[{"text":{"text":"5"}}]}},"exec_id":"exec-1"}`}},
			want:  outcome{"5", false, `"tool_name":"myadd"`},
		},
		{
			name: "an error of the tool", tool: tool, input: input,
			turns: []turn{{request, `{"mcp_result":{"success":{"content":[{"text":{"text":"too big"}}],"is_error":true}}}`}},
			want:  outcome{"too big", true, `"is_error":true`},
		},
		{
			name: "structured", tool: tool, input: input,
			turns: []turn{{request, `{"mcp_result":{"success":{"structured_content":{"sum":5}}}}`}},
			want:  outcome{`{"sum":5}`, false, `"structured_content":{"sum":5}`},
		},
		{
			name: "no server", tool: tool, input: input,
			turns: []turn{{request, `{"mcp_result":{"server_not_found":{"name":"x","available_servers":["a","b"]}}}`}},
			want:  outcome{`mcp_custom-user-tools_add error: there is no server "x". The servers are: a, b.`, true, `"error":{"error":"there is no server`},
		},
		{
			name: "no tool", tool: tool, input: input,
			turns: []turn{{request, `{"mcp_result":{"tool_not_found":{"name":"x","available_tools":["a"]}}}`}},
			want:  outcome{`…the server has no tool "x". Its tools are: a.`, true, `"error"`},
		},
		{
			name: "rejected", tool: tool, input: input,
			turns: []turn{{request, `{"mcp_result":{"rejected":{"reason":"not now"}}}`}},
			want:  outcome{"…: not now. Nothing was done.", true, `"rejected":{"reason":"not now"}`},
		},
		{
			name: "denied", tool: tool, input: input,
			turns: []turn{{request, `{"mcp_result":{"permission_denied":{"error":"policy"}}}`}},
			want:  outcome{"…does not permit it: policy", true, `"permission_denied":{"error":"policy"}`},
		},
		{
			name: "allowed only", tool: tool, input: input,
			turns: []turn{{request, `{"mcp_result":{"approved":{}}}`}},
			want:  outcome{"…has not made it", true, `"error"`},
		},
		{
			name: "a picture", tool: tool, input: input,
			turns: []turn{{request, `{"mcp_result":{"success":{"content":[{"image":{"data":"` + png + `","mime_type":"image/jpeg"}}]}}}`}},
			want:  outcome{"[image/png, 8 bytes]", false, `"image"`},
		},
		{
			name: "numbers that do not fit", tool: tool, input: `{"id":9007199254740993,"x":1e400,"y":1.5}`,
			turns: []turn{{`{"mcp_args":{"name":"custom-user-tools-add","tool_name":"add","provider_identifier":"custom-user-tools","server_identifier":"custom-user-tools","args":{"id":"9007199254740993","x":"1e400","y":1.5},"tool_call_id":"call1-0-0"}}`, closes}},
			want:  outcome{"…It is not known whether anything was done", true, `"y":1.5`},
		},
	})
}

func TestMCPIsLimited(t *testing.T) {
	var content []string
	for range 30 {
		content = append(content, `{"text":{"text":"`+strings.Repeat("x", 5000)+`"}}`)
	}
	o := play(t, begin(t, "mcp_opencode_myadd", `{}`, toolEnv()), turn{"", `{"mcp_result":{"success":{"content":[` + strings.Join(content, ",") + `]}}}`})
	if len(o.Text) > mcpText+200 || !strings.Contains(o.Text, "left out") {
		t.Errorf("%d bytes", len(o.Text))
	}
}

func manyMCP(n int) []MCPTool {
	var out []MCPTool
	for i := range n {
		id := fmt.Sprintf("server-%d", i/10)
		out = append(out, MCPTool{Route{id, id, fmt.Sprintf("tool%d", i), fmt.Sprintf("%s-tool%d", id, i)}, "does a thing", openSchema})
	}
	return out
}

func TestCallMcpTool(t *testing.T) {
	set := NewSet(Offer(Offering{Mode: agentv1.AgentMode_AGENT_MODE_ASK, MCP: manyMCP(41)}))
	call := func(input string) Machine {
		return set.Begin(Call{ID: "call1-0-0", Name: callMCP, Input: input}, toolEnv())
	}
	for _, input := range []string{
		`{"server":"server-3","toolName":"tool33","arguments":{"a":1}}`,
		`{"server":"server-3","tool_name":"tool33","arguments":"{\"a\":1}"}`,
	} {
		o := play(t, call(input), turn{
			`{"mcp_args":{"name":"server-3-tool33","tool_name":"tool33","provider_identifier":"server-3","server_identifier":"server-3","args":{"a":1},"tool_call_id":"call1-0-0"}}`,
			`{"mcp_result":{"success":{"content":[{"text":{"text":"ok"}}]}}}`,
		})
		outcome{"ok", false, `"tool_name":"tool33"`}.check(t, o)
	}
	outcome{`…no server "x". The servers are: server-0, server-1, server-2, server-3, server-4`, true, `"tool_name":"y"`}.check(t, play(t, call(`{"server":"x","toolName":"y"}`)))
	outcome{`…has no tool "y". Its tools are: tool40`, true, `"error"`}.check(t, play(t, call(`{"server":"server-4","toolName":"y"}`)))
	outcome{"…server and toolName are required", true, `"error"`}.check(t, play(t, call(`{}`)))
	outcome{"…must be a JSON object", true, `"error"`}.check(t, play(t, call(`{"server":"server-3","toolName":"tool33","arguments":[1]}`)))
	// A definition lasts as JSON.
	raw, err := json.Marshal(set.Definitions())
	if err != nil {
		t.Fatal(err)
	}
	var defs []Definition
	if err := json.Unmarshal(raw, &defs); err != nil {
		t.Fatal(err)
	}
	again := NewSet(defs).Begin(Call{Name: callMCP, Input: `{"server":"server-0","toolName":"tool0"}`}, toolEnv())
	if st := again.Start(); len(st.Requests) != 1 {
		t.Error("the kept definitions do not know the tools")
	}
}

func TestMCPTools(t *testing.T) {
	run, ctx := &agentv1.AgentRunRequest{}, &agentv1.RequestContext{}
	for text, m := range map[string]interface{ Reset() }{
		`{"mcp_tools":{"mcp_tools":[{"name":"custom-user-tools-add","tool_name":"add","provider_identifier":"custom-user-tools","description":"first","input_schema":{"type":"object","properties":{"a":{"type":"number"}}}}]}}`: run,
		`{"tools":[{"name":"custom-user-tools-add","tool_name":"add","provider_identifier":"custom-user-tools","description":"again"},{"name":"pi-agent-x","provider_identifier":"pi-agent","tool_name":"x"},{"name":"","tool_name":""}],
		 "mcp_file_system_options":{"mcp_descriptors":[{"server_name":"Docs","server_identifier":"docs","tools":[{"tool_name":"find","input_schema_json":"{\"$schema\":\"x\"}"}]}]},
		 "mcp_meta_tool_options":{"mcp_descriptors":[{"server_name":"Docs","server_identifier":"docs","tools":[{"tool_name":"find"},{"tool_name":"get"}]}]}}`: ctx,
	} {
		var err error
		switch m := m.(type) {
		case *agentv1.AgentRunRequest:
			err = protojson.Unmarshal([]byte(text), m)
		case *agentv1.RequestContext:
			err = protojson.Unmarshal([]byte(text), m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	tools := MCPTools(run, ctx)
	var got []string
	for _, tool := range tools {
		got = append(got, tool.Provider+"/"+tool.Tool+"/"+tool.Name+"/"+tool.Description)
	}
	want := "custom-user-tools/add/custom-user-tools-add/first docs/find/docs-find/ docs/get/docs-get/ pi-agent/x/pi-agent-x/"
	if strings.Join(got, " ") != want {
		t.Errorf("tools are %v", got)
	}
	if string(tools[0].Schema) != `{"properties":{"a":{"type":"number"}},"type":"object"}` || string(tools[1].Schema) != string(openSchema) {
		t.Errorf("schemas are %s and %s", tools[0].Schema, tools[1].Schema)
	}
	if got := MCPTools(nil, nil); len(got) != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// Schemas of MCP servers become what every provider takes (R17).
func TestMCPSchema(t *testing.T) {
	for in, want := range map[string]string{
		``:                  `{"properties":{},"type":"object"}`,
		`[]`:                `{"properties":{},"type":"object"}`,
		`{"type":`:          `{"properties":{},"type":"object"}`,
		`{}`:                `{"properties":{},"type":"object"}`,
		`{"type":"string"}`: `{"properties":{},"type":"object"}`,
		`{"type":["object","null"],"properties":{"a":true}}`:                                          `{"properties":{"a":{}},"type":"object"}`,
		`{"$schema":"http://x","$id":"y","type":"object","properties":{"$schema":{"type":"string"}}}`: `{"properties":{"$schema":{"type":"string"}},"type":"object"}`,
		`{"properties":{"a":{}},"required":["a","a","b",3]}`:                                          `{"properties":{"a":{}},"required":["a"],"type":"object"}`,
		`{"anyOf":[{"properties":{"a":{"type":"number"}},"required":["a"]},{"properties":{"b":{}}}]}`: `{"properties":{"a":{"type":"number"},"b":{}},"type":"object"}`,
		`{"allOf":[{"properties":{"a":{}},"required":["a"]}]}`:                                        `{"properties":{"a":{}},"required":["a"],"type":"object"}`,
		strings.Repeat(`{"properties":{"a":`, 100) + `{}` + strings.Repeat(`}}`, 100):                 `{"properties":{},"type":"object"}`,
	} {
		if got := string(mcpSchema(nil, in)); got != want {
			t.Errorf("%.80s becomes\n%s\nwant\n%s", in, got, want)
		}
	}
}

func TestFunctionNames(t *testing.T) {
	valid := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	tools := []MCPTool{
		{Route: Route{Provider: "a_b", Tool: "c"}},
		{Route: Route{Provider: "a", Tool: "b_c"}},
		{Route: Route{Provider: "größe", Tool: "tööl"}},
		{Route: Route{Provider: strings.Repeat("s", 60), Tool: "t1"}},
		{Route: Route{Provider: strings.Repeat("s", 60), Tool: "t2"}},
		{Route: Route{Provider: "s", Tool: "plain"}},
	}
	names := functionNames(tools)
	seen := map[string]bool{}
	for i, n := range names {
		if !valid.MatchString(n) || seen[n] {
			t.Errorf("name %d is %q", i, n)
		}
		seen[n] = true
	}
	if names[5] != "mcp_s_plain" {
		t.Errorf("a plain name is %q", names[5])
	}
	// The order of the tools does not matter.
	if again := functionNames([]MCPTool{tools[1], tools[0]}); again[0] != names[1] || again[1] != names[0] {
		t.Errorf("names depend on the order: %v", again)
	}
}

func TestFetchMcpResource(t *testing.T) {
	const request = `{"read_mcp_resource_exec_args":{"server":"docs","uri":"doc://1","tool_call_id":"call1-0-0"}}`
	const input = `{"server":"docs","uri":"doc://1"}`
	runScenarios(t, []scenario{
		{
			name: "text", tool: "FetchMcpResource", input: input,
			turns: []turn{{request, `{"read_mcp_resource_exec_result":{"success":{"uri":"doc://1","text":"hello"}}}`}},
			want:  outcome{"hello", false, `"text":"hello"`},
		},
		{
			name: "to a file", tool: "FetchMcpResource", input: `{"server":"docs","uri":"doc://1","downloadPath":"out/x"}`,
			turns: []turn{{`{"read_mcp_resource_exec_args":{"server":"docs","uri":"doc://1","tool_call_id":"call1-0-0","download_path":"/home/dev/project/out/x"}}`, `{"read_mcp_resource_exec_result":{"success":{"uri":"doc://1","download_path":"/home/dev/project/out/x"}}}`}},
			want:  outcome{"Written to /home/dev/project/out/x.", false, `"download_path"`},
		},
		{
			name: "a picture", tool: "FetchMcpResource", input: input,
			turns: []turn{{request, `{"read_mcp_resource_exec_result":{"success":{"uri":"doc://1","blob":"` + base64.StdEncoding.EncodeToString([]byte("GIF89a")) + `"}}}`}},
			want:  outcome{"[image/gif, 6 bytes]", false, `"blob"`},
		},
		{
			name: "other bytes", tool: "FetchMcpResource", input: input,
			turns: []turn{{request, `{"read_mcp_resource_exec_result":{"success":{"uri":"doc://1","blob":"AAEC","mime_type":"application/zip"}}}`}},
			want:  outcome{"…application/zip, 3 bytes, which cannot be shown", false, `"blob"`},
		},
		{
			name: "not found", tool: "FetchMcpResource", input: input,
			turns: []turn{{request, `{"read_mcp_resource_exec_result":{"not_found":{"uri":"doc://1"}}}`}},
			want:  outcome{"…no resource doc://1", true, `"not_found"`},
		},
		{
			name: "rejected", tool: "FetchMcpResource", input: input,
			turns: []turn{{request, `{"read_mcp_resource_exec_result":{"rejected":{"uri":"doc://1","reason":"no"}}}`}},
			want:  outcome{"…refused", true, `"rejected":{"reason":"no","uri":"doc://1"}`},
		},
		{name: "nothing", tool: "FetchMcpResource", input: `{}`, want: outcome{"…server and uri are required", true, `"error"`}},
	})
}
