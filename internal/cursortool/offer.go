package cursortool

import (
	"bytes"
	"encoding/json"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Offering says what a run may use.
type Offering struct {
	Mode      agentv1.AgentMode
	Subagent  bool                  // the run is that of a subagent: its subagent_type_name is set
	Offers    func(arm string) bool // by the client's headers (section 1.4); nil allows all
	WebSearch bool
	WebFetch  bool
	ReadLints bool
	MCP       []MCPTool // see MCPTools
	Agents    Agents
	AskUser   bool // somebody can be asked
}

// Offer returns the tools of a run, in a stable order (section 5.2). In ask mode nothing is offered
// that writes files or runs commands or agents (W37); MCP tools are, since many of them only look
// something up and the client asks its user about the others. A subagent has the tools of agent mode
// but for questions; when it is to be read-only it runs in plan mode and has none that write.
func Offer(o Offering) []Definition {
	var out []Definition
	add := func(d Definition) {
		if o.Offers == nil || o.Offers(d.Arm) {
			out = append(out, d)
		}
	}
	for _, k := range registry() {
		if !o.has(k.class) {
			continue
		}
		d := Definition{Name: k.name, Description: k.description, Schema: compact(k.schema), Arm: k.arm}
		if k.name == "Task" {
			d = o.Agents.define(d)
		}
		add(d)
	}
	for _, d := range mcpDefinitions(o.MCP) {
		add(d)
	}
	return out
}

// has reports whether tools of a class are offered.
func (o *Offering) has(c class) bool {
	plan := o.Mode == agentv1.AgentMode_AGENT_MODE_PLAN
	ask := o.Mode == agentv1.AgentMode_AGENT_MODE_ASK
	debug := o.Mode == agentv1.AgentMode_AGENT_MODE_DEBUG
	switch c {
	case looks:
		return true
	case writes:
		return !ask && !plan
	case runs:
		return !ask
	case lints:
		return o.ReadLints
	case searches:
		return o.WebSearch
	case fetches:
		return o.WebFetch
	case asks:
		return o.AskUser && !o.Subagent
	case switches:
		return !plan && !ask && !debug
	case planning:
		return plan && !o.Subagent
	case resources:
		return len(o.MCP) > 0
	}
	return false
}

// compact returns a schema of this package without white space. It panics if it is not JSON.
func compact(schema string) json.RawMessage {
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(schema)); err != nil {
		panic(err)
	}
	return b.Bytes()
}
