package cursortool

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

func toolNames(defs []Definition) []string {
	var out []string
	for _, d := range defs {
		out = append(out, d.Name)
	}
	return out
}

func everything(mode agentv1.AgentMode) Offering {
	return Offering{Mode: mode, WebSearch: true, WebFetch: true, ReadLints: true, AskUser: true, MCP: someMCP()}
}

// What is offered in which mode (section 5.2, W37).
func TestOfferModes(t *testing.T) {
	const (
		reads  = "Read Glob Grep Ls ReadLints TodoWrite FetchMcpResource AskQuestion WebSearch WebFetch mcp_custom-user-tools_add mcp_opencode_myadd "
		write  = "Write PatchEdit Delete "
		run    = "Task Shell AwaitShell WriteShellStdin ForceBackgroundShell "
		change = "SwitchMode "
	)
	agent := everything(agentv1.AgentMode_AGENT_MODE_AGENT)
	child, readonly := agent, everything(agentv1.AgentMode_AGENT_MODE_PLAN)
	child.Subagent, readonly.Subagent = true, true
	for name, c := range map[string]struct {
		offering Offering
		want     string
	}{
		"agent":            {agent, reads + write + run + change},
		"unspecified":      {everything(agentv1.AgentMode_AGENT_MODE_UNSPECIFIED), reads + write + run + change},
		"multitask":        {everything(agentv1.AgentMode_AGENT_MODE_MULTITASK), reads + write + run + change},
		"plan":             {everything(agentv1.AgentMode_AGENT_MODE_PLAN), reads + run + "CreatePlan"},
		"ask":              {everything(agentv1.AgentMode_AGENT_MODE_ASK), reads},
		"debug":            {everything(agentv1.AgentMode_AGENT_MODE_DEBUG), reads + write + run},
		"child":            {child, strings.Replace(reads, "AskQuestion ", "", 1) + write + run + change},
		"child, read-only": {readonly, strings.Replace(reads, "AskQuestion ", "", 1) + run},
	} {
		got, want := toolNames(Offer(c.offering)), strings.Fields(c.want)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: offered are\n%v\nwant\n%v", name, got, want)
		}
	}
}

func TestOfferIsFiltered(t *testing.T) {
	none := toolNames(Offer(Offering{}))
	for _, name := range []string{"WebSearch", "WebFetch", "ReadLints", "AskQuestion", "FetchMcpResource"} {
		if slices.Contains(none, name) {
			t.Errorf("%s is offered though nothing speaks for it", name)
		}
	}
	o := everything(agentv1.AgentMode_AGENT_MODE_AGENT)
	o.Offers = func(arm string) bool { return arm == "edit_tool_call" || arm == "mcp_tool_call" }
	if got := toolNames(Offer(o)); !slices.Equal(got, []string{"Write", "PatchEdit", "mcp_custom-user-tools_add", "mcp_opencode_myadd"}) {
		t.Errorf("by the headers: %v", got)
	}
	o = everything(agentv1.AgentMode_AGENT_MODE_AGENT)
	o.MCP = manyMCP(mcpFunctions)
	if got := toolNames(Offer(o)); slices.Contains(got, callMCP) || !slices.Contains(got, "mcp_server-3_tool39") {
		t.Errorf("%d tools of servers: %v", mcpFunctions, got)
	}
	o.MCP = manyMCP(mcpFunctions + 1)
	defs := Offer(o)
	d := defs[len(defs)-1]
	if d.Name != callMCP || !strings.Contains(d.Description, "\n\nserver-4:\n- tool40: does a thing {") || strings.Contains(strings.Join(toolNames(defs), " "), "mcp_") {
		t.Errorf("many tools: %v, %q", toolNames(defs), d.Description)
	}
}

// Every definition is what the providers and the client take (R17), and always the same bytes.
func TestDefinitions(t *testing.T) {
	arms := (&agentv1.ToolCall{}).ProtoReflect().Descriptor().Oneofs().ByName("tool").Fields()
	defs := append(Offer(everything(agentv1.AgentMode_AGENT_MODE_AGENT)), Offer(everything(agentv1.AgentMode_AGENT_MODE_PLAN))...)
	for _, d := range defs {
		var schema map[string]any
		if err := json.Unmarshal(d.Schema, &schema); err != nil || schema["type"] != "object" || schema["properties"] == nil {
			t.Errorf("%s: the schema is %s", d.Name, d.Schema)
		}
		found := false
		for i := range arms.Len() {
			found = found || string(arms.Get(i).Name()) == d.Arm
		}
		if !found || d.Description == "" {
			t.Errorf("%s: arm %q, description %q", d.Name, d.Arm, d.Description)
		}
	}
	again, err := json.Marshal(Offer(everything(agentv1.AgentMode_AGENT_MODE_AGENT)))
	if err != nil {
		t.Fatal(err)
	}
	if once, err := json.Marshal(Offer(everything(agentv1.AgentMode_AGENT_MODE_AGENT))); err != nil || string(once) != string(again) {
		t.Error("two offerings of the same differ")
	}
}

func TestUnknownTool(t *testing.T) {
	set := NewSet(Offer(Offering{Mode: agentv1.AgentMode_AGENT_MODE_ASK}))
	for _, name := range []string{"read", "Write", "", "\xff"} {
		o := over(t, set.Begin(Call{Name: name, Input: `{"path":"x"}`}, toolEnv()).Start())
		if !o.IsError || !strings.Contains(o.Text, "The tools are: Read, Glob, Grep, Ls, TodoWrite.") {
			t.Errorf("%q: %q", name, o.Text)
		}
	}
	if got := len(NewSet(append(set.Definitions(), set.Definitions()...)).Definitions()); got != len(set.Definitions()) {
		t.Errorf("twice the same tools are %d", got)
	}
}
