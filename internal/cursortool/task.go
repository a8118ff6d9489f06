package cursortool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const taskDescription = `Give a task to another agent, which works on it by itself and returns its last message. ` +
	`It knows nothing of this conversation: say in the prompt all that it needs and what it shall return. ` +
	`Several can work at once. With run_in_background you go on at once and are told when it has finished.`

const taskSchema = `{
"type": "object",
"properties": {
	"description": {"type": "string", "description": "The task in three to five words, for the user"},
	"prompt": {"type": "string", "minLength": 1, "description": "The task"},
	"subagent_type": {"type": "string", "description": "Which kind of agent"},
	"model": {"type": "string", "description": "Which model it uses; yours when left out"},
	"readonly": {"type": "boolean", "description": "It must not change anything; false when left out"},
	"resume": {"type": "string", "description": "The id of an agent that shall go on with this prompt"},
	"attachments": {"type": "array", "items": {"type": "string"}, "description": "Paths of files for it"},
	"run_in_background": {"type": "boolean", "description": "Do not wait for it"}
},
"required": ["description", "prompt", "subagent_type"]
}`

// agentTypes are the kinds of subagents that every client of the protocol has.
var agentTypes = []AgentType{
	{"generalPurpose", "any task of several steps"},
	{"explore", "finds its way in a code base and answers questions about it"},
	{"shell", "runs commands"},
	{"browser-use", "uses a web browser"},
}

// types returns the kinds of subagents that a call may name.
func (a *Agents) types() []AgentType {
	out := slices.Clone(agentTypes)
	for _, t := range a.Types {
		if t.Name != "" && !slices.ContainsFunc(out, func(o AgentType) bool { return o.Name == t.Name }) {
			out = append(out, t)
		}
	}
	return slices.DeleteFunc(out, func(t AgentType) bool { return a.Overrides[t.Name] == "disabled" })
}

// define returns the tool for the kinds and models that there are (R12).
func (a *Agents) define(d Definition) Definition {
	var schema map[string]any
	if json.Unmarshal(d.Schema, &schema) != nil {
		return d
	}
	props, _ := schema["properties"].(map[string]any)
	var names []string
	var b strings.Builder
	b.WriteString(d.Description + "\n\nKinds of agents:")
	for _, t := range a.types() {
		names = append(names, t.Name)
		fmt.Fprintf(&b, "\n- %s: %s", clean(t.Name), cutMiddle(clean(t.Description), grepLine))
	}
	props["subagent_type"].(map[string]any)["enum"] = names
	if len(a.Models) > 0 {
		props["model"].(map[string]any)["enum"] = a.Models
	}
	if raw, err := json.Marshal(schema); err == nil {
		d.Schema, d.Description = raw, b.String()
	}
	return d
}

// taskInput is what a model gives to Task.
type taskInput struct {
	Description string `json:"description"`
	Prompt      string `json:"prompt"`
	Type        string `json:"subagent_type"`
	Model       string `json:"model"`
	Readonly    truth  `json:"readonly"`
	Resume      string `json:"resume"`
	Attachments list   `json:"attachments"`
	Background  truth  `json:"run_in_background"`
}

func (in *taskInput) check() error {
	switch {
	case strings.TrimSpace(in.Prompt) == "":
		return errors.New("prompt is required")
	case in.Type == "":
		return errors.New("subagent_type is required")
	}
	return nil
}

// fits checks the names in a call against what there is.
func (in *taskInput) fits(a *Agents) error {
	if a.Overrides[in.Type] == "disabled" {
		return fmt.Errorf("the user has switched agents of the type %q off: use another type, or do it yourself", clean(in.Type))
	}
	var names []string
	for _, t := range a.types() {
		names = append(names, t.Name)
	}
	if !slices.Contains(names, in.Type) {
		return fmt.Errorf("there is no subagent_type %q. The types are: %s", cutBefore(clean(in.Type), 100), strings.Join(names, ", "))
	}
	if in.Model != "" && len(a.Models) > 0 && !slices.Contains(a.Models, in.Model) {
		return fmt.Errorf("there is no model %q for subagents. The models are: %s", cutBefore(clean(in.Model), 100), strings.Join(a.Models, ", "))
	}
	return nil
}

// model returns which model a child gets (section 5.7): what the user has chosen for the type, else
// what the call says, else the parent's.
func (in *taskInput) model(env *Env) string {
	switch o := env.Agents.Overrides[in.Type]; o {
	case "":
		return first(in.Model, env.Model)
	case "inherit":
		return env.Model
	default:
		return o
	}
}

func taskCard(args json.RawMessage) *agentv1.ToolCall {
	var in taskInput
	peek(args, &in)
	return in.card(in.Model)
}

func (in *taskInput) mode() agentv1.TaskMode {
	if in.Readonly {
		return agentv1.TaskMode_TASK_MODE_PLAN
	}
	return agentv1.TaskMode_TASK_MODE_AGENT
}

func (in *taskInput) card(model string) *agentv1.ToolCall {
	args := &agentv1.TaskArgs{
		Description: clean(in.Description), Prompt: clean(in.Prompt), SubagentType: subagentType(clean(in.Type)),
		Attachments: cleanAll(in.Attachments), Mode: in.mode(),
	}
	if model != "" {
		args.Model = new(clean(model))
	}
	if in.Resume != "" {
		args.Resume = new(clean(in.Resume))
	}
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_TaskToolCall{TaskToolCall: &agentv1.TaskToolCall{Args: args}}}
}

func subagentType(name string) *agentv1.SubagentType {
	switch name {
	case "", "generalPurpose":
		return &agentv1.SubagentType{Type: &agentv1.SubagentType_Unspecified{Unspecified: &agentv1.SubagentTypeUnspecified{}}}
	case "explore":
		return &agentv1.SubagentType{Type: &agentv1.SubagentType_Explore{Explore: &agentv1.SubagentTypeExplore{}}}
	case "shell":
		return &agentv1.SubagentType{Type: &agentv1.SubagentType_Shell{Shell: &agentv1.SubagentTypeShell{}}}
	case "browser-use":
		return &agentv1.SubagentType{Type: &agentv1.SubagentType_BrowserUse{BrowserUse: &agentv1.SubagentTypeBrowserUse{}}}
	default:
		return &agentv1.SubagentType{Type: &agentv1.SubagentType_Custom{Custom: &agentv1.SubagentTypeCustom{Name: name}}}
	}
}

func beginTask(call Call, args json.RawMessage, env *Env) Machine {
	var in taskInput
	err := decode(args, &in)
	if err == nil {
		err = in.fits(&env.Agents)
	}
	if err != nil {
		return refuse(taskCard(args), "Task error: "+err.Error())
	}
	model := in.model(env)
	x := &exchange{tool: "Task", env: env, card: in.card(model)}
	request := in.request(call, model, env)
	x.begin = func() Step {
		return x.try(way{
			Request{Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_SubagentArgs{SubagentArgs: request}}, Unsafe: true},
			func(m *agentv1.ExecClientMessage) (Step, bool) {
				if r := m.GetSubagentResult(); r != nil {
					return tasked(x, bool(in.Background), r), true
				}
				return Step{}, false
			},
		})
	}
	return x
}

func (in *taskInput) request(call Call, model string, env *Env) *agentv1.SubagentArgs {
	a := &agentv1.SubagentArgs{
		ToolCallId: string(call.ID), SubagentType: in.Type, ModelId: model, Prompt: in.prompt(env),
		Readonly: bool(in.Readonly), Mode: in.mode(),
		Environment: agentv1.SubagentExecutionEnvironment_SUBAGENT_EXECUTION_ENVIRONMENT_LOCAL,
	}
	if in.Resume != "" {
		a.ResumeAgentId = new(in.Resume)
	}
	if in.Background {
		a.RunInBackground = new(true)
	}
	if env.Session != "" {
		a.ParentConversationId = new(env.Session)
	}
	return a
}

// prompt names the attachments in the prompt: the request has no field for them.
func (in *taskInput) prompt(env *Env) string {
	if len(in.Attachments) == 0 {
		return in.Prompt
	}
	rows := []string{in.Prompt, "", "Files for this task:"}
	for _, a := range in.Attachments {
		rows = append(rows, "- "+resolve(env.Root, a))
	}
	return strings.Join(rows, "\n")
}

func tasked(x *exchange, background bool, res *agentv1.SubagentResult) Step {
	ok := res.GetSuccess()
	if ok == nil {
		reason := first(clean(res.GetError().GetError()), "the client could not run the agent")
		card := FailedCard(x.card, reason)
		if id := res.GetError().GetAgentId(); id != "" {
			reason += ". Its id is " + clean(id)
			card.GetTaskToolCall().Args.AgentId = new(id)
		}
		return x.failCard(reason, card)
	}
	goesOn := ok.GetBackgroundReason() != agentv1.SubagentBackgroundReason_SUBAGENT_BACKGROUND_REASON_UNSPECIFIED ||
		background && ok.GetFinalMessage() == ""
	out := &agentv1.TaskSuccess{IsBackground: goesOn, BackgroundReason: ok.GetBackgroundReason(), TranscriptPath: ok.TranscriptPath}
	text := cutMiddle(clean(ok.GetFinalMessage()), taskText)
	if text != "" {
		out.ConversationSteps = []*agentv1.ConversationStep{{Message: &agentv1.ConversationStep_AssistantMessage{
			AssistantMessage: &agentv1.AssistantMessage{Text: clean(ok.GetFinalMessage())},
		}}}
	}
	switch {
	case goesOn:
		text = strings.TrimSpace("The agent works on in the background; you are told when it has finished. Do not wait for it in a loop.\n" + text)
	case text == "":
		text = "The agent has finished without a message."
	}
	if id := ok.GetAgentId(); id != "" {
		out.AgentId = new(id)
		text += "\n[Agent id, to resume it: " + clean(id) + "]"
	}
	x.card.GetTaskToolCall().Result = &agentv1.TaskResult{Result: &agentv1.TaskResult_Success{Success: out}}
	return x.done(Outcome{Text: text, Card: x.card})
}
