package cursortool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

func TestTask(t *testing.T) {
	request := func(model, more string) string {
		return fmt.Sprintf(`{"subagent_args":{"tool_call_id":"call1-0-0","subagent_type":"explore","model_id":%q,"prompt":"look","parent_conversation_id":"agent-1","environment":"SUBAGENT_EXECUTION_ENVIRONMENT_LOCAL"%s}}`, model, more)
	}
	const agentMode = `,"mode":"TASK_MODE_AGENT"`
	const input = `{"description":"d","prompt":"look","subagent_type":"explore"`
	done := func(text string) string {
		return fmt.Sprintf(`{"subagent_result":{"success":{"agent_id":"agent-2","final_message":%q,"tool_call_count":3}}}`, text)
	}
	override := func(model string) func(*Env) {
		return func(e *Env) { e.Agents.Overrides = map[string]string{"explore": model} }
	}
	runScenarios(t, []scenario{
		{
			name: "not read-only unless it is said (R13)", tool: "Task", input: input + `}`,
			turns: []turn{{request("parent-model", agentMode), done("found it")}},
			want:  outcome{"found it\n[Agent id, to resume it: agent-2]", false, `"success":{"agent_id":"agent-2","conversation_steps":[{"assistant_message":{"text":"found it"}}]}`},
		},
		{name: "read-only", tool: "Task", input: input + `,"readonly":true}`, turns: []turn{{request("parent-model", `,"readonly":true,"mode":"TASK_MODE_PLAN"`), done("x")}}, want: outcome{"…x", false, `"mode":"TASK_MODE_PLAN"`}},
		{name: "the model of the call", tool: "Task", input: input + `,"model":"fast"}`, turns: []turn{{request("fast", agentMode), done("x")}}, want: outcome{"…x", false, `"model":"fast"`}},
		{name: "the user's model (R12)", tool: "Task", input: input + `,"model":"fast"}`, env: override("mine"), turns: []turn{{request("mine", agentMode), done("x")}}, want: outcome{"…x", false, `"model":"mine"`}},
		{name: "the parent's by the user's wish", tool: "Task", input: input + `,"model":"fast"}`, env: override("inherit"), turns: []turn{{request("parent-model", agentMode), done("x")}}, want: outcome{"…x", false, `"model":"parent-model"`}},
		{name: "switched off (R12)", tool: "Task", input: input + `}`, env: override("disabled"), want: outcome{"…switched agents of the type \"explore\" off", true, `"error"`}},
		{
			name: "a model that is not there", tool: "Task", input: input + `,"model":"fast"}`, env: func(e *Env) { e.Agents.Models = []string{"m1", "m2"} },
			want: outcome{`…no model "fast" for subagents. The models are: m1, m2`, true, `"error"`},
		},
		{
			name: "a kind of the user's own", tool: "Task", input: `{"prompt":"p","subagent_type":"reviewer","resume":"agent-9"}`, env: func(e *Env) { e.Agents.Types = []AgentType{{"reviewer", "reads"}} },
			turns: []turn{{`{"subagent_args":{"tool_call_id":"call1-0-0","subagent_type":"reviewer","model_id":"parent-model","prompt":"p","parent_conversation_id":"agent-1","environment":"SUBAGENT_EXECUTION_ENVIRONMENT_LOCAL","mode":"TASK_MODE_AGENT","resume_agent_id":"agent-9"}}`, done("x")}},
			want:  outcome{"…x", false, `"subagent_type":{"custom":{"name":"reviewer"}}`},
		},
		{name: "no such kind", tool: "Task", input: `{"prompt":"p","subagent_type":"reviewer"}`, want: outcome{"…The types are: generalPurpose, explore, shell, browser-use", true, `"error"`}},
		{
			name: "in the background (R14)", tool: "Task", input: input + `,"run_in_background":true}`,
			turns: []turn{{request("parent-model", agentMode+`,"run_in_background":true`), `{"subagent_result":{"success":{"agent_id":"agent-2","background_reason":"SUBAGENT_BACKGROUND_REASON_AGENT_REQUEST"}}}`}},
			want:  outcome{"…works on in the background", false, `"is_background":true`},
		},
		{
			name: "attachments", tool: "Task", input: input + `,"attachments":["a.txt"]}`,
			turns: []turn{{strings.Replace(request("parent-model", agentMode), `"look"`, `"look\n\nFiles for this task:\n- /home/dev/project/a.txt"`, 1), done("")}},
			want:  outcome{"…finished without a message", false, `"attachments":["a.txt"]`},
		},
		{
			name: "an error", tool: "Task", input: input + `}`,
			turns: []turn{{"", `{"subagent_result":{"error":{"agent_id":"agent-2","error":"it died"}}}`}},
			want:  outcome{"Task error: it died. Its id is agent-2.", true, `"result":{"error":{"error":"it died"}}`},
		},
		{name: "the client has none", tool: "Task", input: input + `}`, turns: []turn{{"", unsupported}}, want: outcome{"…No handler found", true, `"error"`}},
		{name: "no prompt", tool: "Task", input: `{"subagent_type":"explore"}`, want: outcome{"…prompt is required", true, `"error"`}},
		{name: "no kind", tool: "Task", input: `{"prompt":"x"}`, want: outcome{"…subagent_type is required", true, `"error"`}},
	})
}

// The schema names the kinds and models that there are (R12).
func TestTaskDefinition(t *testing.T) {
	defs := Offer(Offering{Mode: agentv1.AgentMode_AGENT_MODE_AGENT, Agents: Agents{
		Types: []AgentType{{"reviewer", "reads what was written"}}, Models: []string{"m1"}, Overrides: map[string]string{"shell": "disabled"},
	}})
	d := defs[slices.IndexFunc(defs, func(d Definition) bool { return d.Name == "Task" })]
	var schema struct {
		Properties map[string]struct{ Enum []string }
	}
	if err := json.Unmarshal(d.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	if got := schema.Properties["subagent_type"].Enum; !slices.Equal(got, []string{"generalPurpose", "explore", "browser-use", "reviewer"}) {
		t.Errorf("kinds are %v", got)
	}
	if got := schema.Properties["model"].Enum; !slices.Equal(got, []string{"m1"}) {
		t.Errorf("models are %v", got)
	}
	if !strings.Contains(d.Description, "- reviewer: reads what was written") {
		t.Errorf("the description is %q", d.Description)
	}
}

func TestTodoWrite(t *testing.T) {
	old := func(e *Env) {
		e.Todos = []*agentv1.TodoItem{{Id: "1", Content: "one", Status: agentv1.TodoStatus_TODO_STATUS_IN_PROGRESS, CreatedAt: 7}}
	}
	runScenarios(t, []scenario{
		{
			name: "replaced", tool: "TodoWrite", env: old, input: `{"merge":false,"todos":[{"id":"2","content":"two","status":"pending"},{"id":3,"content":"three","status":"cancelled"}]}`,
			want: outcome{"The list now:\n- [pending] 2: two\n- [cancelled] 3: three", false, `"result":{"success":{"todos":[{"content":"two","id":"2","status":"TODO_STATUS_PENDING"},{"content":"three","id":"3","status":"TODO_STATUS_CANCELLED"}],"total_count":2}}`},
		},
		{
			name: "merged", tool: "TodoWrite", env: old, input: `{"merge":true,"todos":[{"id":"1","status":"completed"},{"id":"2","content":"two"}]}`,
			want: outcome{"The list now:\n- [completed] 1: one\n- [pending] 2: two", false, `"created_at":"7"`},
		},
		{name: "content stays without merge? no", tool: "TodoWrite", env: old, input: `{"merge":false,"todos":[{"id":"1","status":"completed"}]}`, want: outcome{"…a new one needs its content", true, `"error"`}},
		{name: "cleared", tool: "TodoWrite", env: old, input: `{"merge":false,"todos":[]}`, want: outcome{"The list is empty now.", false, `"success":{}`}},
		{name: "a status that is none", tool: "TodoWrite", input: `{"merge":false,"todos":[{"id":"1","content":"x","status":"done"}]}`, want: outcome{"…todos[0].status must be", true, `"error"`}},
		{name: "no id", tool: "TodoWrite", input: `{"merge":false,"todos":[{"content":"x","status":"pending"}]}`, want: outcome{"…todos[0].id is required", true, `"error"`}},
		{name: "no todos", tool: "TodoWrite", input: `{"merge":true}`, want: outcome{"…todos is required", true, `"error"`}},
	})
	t.Run("what lasts", func(t *testing.T) {
		env := toolEnv()
		old(env)
		o := play(t, begin(t, "TodoWrite", `{"merge":true,"todos":[{"id":"1","status":"completed"}]}`, env))
		if !o.HasTodos || len(o.Todos) != 1 || o.Todos[0].GetStatus() != agentv1.TodoStatus_TODO_STATUS_COMPLETED {
			t.Errorf("todos are %v", o.Todos)
		}
		if env.Todos[0].GetStatus() != agentv1.TodoStatus_TODO_STATUS_IN_PROGRESS {
			t.Error("the list of the conversation was changed in place")
		}
	})
}
