package cursortool

import (
	"encoding/json"
	"sync"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// kind is one of the tools that this package knows by name.
type kind struct {
	name, arm   string
	class       class
	description string
	schema      string // JSON
	// begin gets arguments that are a JSON object.
	begin func(Call, json.RawMessage, *Env) Machine
	// card gets an object too, in which anything may be missing or of another type.
	card func(json.RawMessage) *agentv1.ToolCall
}

// class says when a tool is offered.
type class int

const (
	looks     class = iota // changes nothing
	writes                 // changes files
	runs                   // runs commands, or agents that do
	lints                  // needs the client's diagnostics
	searches               // needs a search of the web
	fetches                // needs to get web pages
	asks                   // needs somebody to answer
	switches               // changes the mode
	planning               // ends the making of a plan
	resources              // needs MCP servers
)

// registry returns all kinds in the order in which they are offered. GenerateImage, which the
// protocol has as well, is not among them: neither the client nor this server can make pictures, and
// a tool that only pretends to makes a model tell the user of a file that is not there.
func registry() []kind {
	return []kind{
		{"Read", "read_tool_call", looks, readDescription, readSchema, beginRead, readCard},
		{"Write", "edit_tool_call", writes, writeDescription, writeSchema, beginWrite, writeCard},
		{"PatchEdit", "edit_tool_call", writes, patchDescription, patchSchema, beginPatch, patchCard},
		{"Delete", "delete_tool_call", writes, deleteDescription, deleteSchema, beginDelete, deleteCard},
		{"Glob", "glob_tool_call", looks, globDescription, globSchema, beginGlob, globCard},
		{"Grep", "grep_tool_call", looks, grepDescription, grepSchema, beginGrep, grepCard},
		{"Ls", "ls_tool_call", looks, lsDescription, lsSchema, beginLs, lsCard},
		{"ReadLints", "read_lints_tool_call", lints, lintsDescription, lintsSchema, beginLints, lintsCard},
		{"Task", "task_tool_call", runs, taskDescription, taskSchema, beginTask, taskCard},
		{"TodoWrite", "update_todos_tool_call", looks, todoDescription, todoSchema, beginTodo, todoCard},
		{"FetchMcpResource", "read_mcp_resource_tool_call", resources, resourceDescription, resourceSchema, beginResource, resourceCard},

		// Shells, questions to the user, the web: the other files of this package.
		{"Shell", "shell_tool_call", runs, shellDescription, shellSchema, beginShell, shellCard},
		{"AwaitShell", "await_tool_call", runs, awaitDescription, awaitSchema, beginAwait, awaitCard},
		{"WriteShellStdin", "write_shell_stdin_tool_call", runs, stdinDescription, stdinSchema, beginStdin, stdinCard},
		{"ForceBackgroundShell", "shell_tool_call", runs, forceDescription, forceSchema, beginForce, forceCard},
		{"AskQuestion", "ask_question_tool_call", asks, askDescription, askSchema, beginAsk, askCard},
		{"CreatePlan", "create_plan_tool_call", planning, planDescription, planSchema, beginPlan, planCard},
		{"SwitchMode", "switch_mode_tool_call", switches, modeDescription, modeSchema, beginMode, modeCard},
		{"WebSearch", "web_search_tool_call", searches, searchDescription, searchSchema, beginSearch, searchCard},
		{"WebFetch", "web_fetch_tool_call", fetches, fetchDescription, fetchSchema, beginFetch, fetchCard},
		// End of shells, questions and the web.
	}
}

var kinds = sync.OnceValue(func() map[string]kind {
	m := map[string]kind{}
	for _, k := range registry() {
		m[k.name] = k
	}
	return m
})
