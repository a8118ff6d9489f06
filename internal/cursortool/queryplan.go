package cursortool

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const planDescription = `Give the user the plan for what they asked, to read and to accept. Call it once you know enough, instead of writing the plan as an answer; the turn ends with it. ` +
	`Calling it again with the same name replaces that plan.`

const planSchema = `{
"type": "object",
"properties": {
	"name": {"type": "string", "minLength": 1, "description": "A short name; the same as before to change a plan"},
	"overview": {"type": "string", "description": "One or two sentences about what will be done"},
	"plan": {"type": "string", "minLength": 1, "description": "The plan in Markdown: concrete, with the files concerned, as short as the task allows"},
	"todos": {
		"type": "array", "maxItems": 100,
		"items": {
			"type": "object",
			"properties": {
				"id": {"type": "string"},
				"content": {"type": "string", "description": "One step"}
			},
			"required": ["id", "content"]
		}
	}
},
"required": ["name", "plan"]
}`

const maxPlanTodos = 100

// planInput is what a model gives to CreatePlan.
type planInput struct {
	Name     string `json:"name"`
	Overview string `json:"overview"`
	Plan     string `json:"plan"`
	Todos    []struct {
		ID      string `json:"id"`
		Content string `json:"content"`
	} `json:"todos"`
}

func (in *planInput) check() error {
	if strings.TrimSpace(in.Name) == "" || strings.TrimSpace(in.Plan) == "" {
		return errors.New("name and plan are required and must not be blank")
	}
	if len(in.Todos) > maxPlanTodos {
		return errors.New("give at most 100 todos")
	}
	return nil
}

// planID is the same for the same name, so that a plan can be replaced (R39).
func (in *planInput) planID() string {
	sum := sha256.Sum256([]byte(strings.ToLower(strings.Join(strings.Fields(in.Name), " "))))
	return "plan_" + hex.EncodeToString(sum[:8])
}

func (in *planInput) args() *agentv1.CreatePlanArgs {
	a := &agentv1.CreatePlanArgs{Plan: in.Plan, Overview: in.Overview, Name: in.Name}
	for _, t := range in.Todos {
		a.Todos = append(a.Todos, &agentv1.TodoItem{Id: t.ID, Content: t.Content, Status: agentv1.TodoStatus_TODO_STATUS_PENDING})
	}
	return a
}

// plan proposes a plan, for as long as the user takes to look at it (section 5.10).
type plan struct {
	quiet
	call Call
	in   planInput
}

func beginPlan(call Call, args json.RawMessage, _ *Env) Machine {
	p := &plan{call: call}
	if err := decode(args, &p.in); err != nil {
		return settled{Outcome: *p.refused("CreatePlan error: "+err.Error(), "").Done}
	}
	return p
}

func planCard(args json.RawMessage) *agentv1.ToolCall {
	var in planInput
	peek(args, &in)
	return in.card(nil)
}

func (in *planInput) card(res *agentv1.CreatePlanResult) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_CreatePlanToolCall{
		CreatePlanToolCall: &agentv1.CreatePlanToolCall{Args: in.args(), Result: res},
	}}
}

// Start shows the plan.
func (p *plan) Start() Step {
	return Step{Query: &agentv1.InteractionQuery{Query: &agentv1.InteractionQuery_CreatePlanRequestQuery{
		CreatePlanRequestQuery: &agentv1.CreatePlanRequestQuery{Args: p.in.args(), ToolCallId: string(p.call.ID)},
	}}}
}

// Answered ends the turn when the plan was taken; what becomes of it is up to the user.
func (p *plan) Answered(r *agentv1.InteractionResponse) Step {
	res := r.GetCreatePlanRequestResponse().GetResult()
	uri := clean(res.GetPlanUri())
	switch v := res.GetResult().(type) {
	case *agentv1.CreatePlanResult_Success:
		return Step{Done: &Outcome{
			Text: "The user has the plan \"" + p.in.Name + "\" before them. Nothing is carried out until they say so.",
			Card: p.in.card(&agentv1.CreatePlanResult{
				Result: &agentv1.CreatePlanResult_Success{Success: &agentv1.CreatePlanSuccess{}}, PlanUri: uri,
			}),
			EndsTurn: true,
			Plan:     &Plan{ID: p.in.planID(), Name: p.in.Name, Text: p.in.Plan, URI: uri},
		}}
	case *agentv1.CreatePlanResult_Error:
		return p.refused("The plan was not taken"+because(v.Error.GetError())+". Change it accordingly, or go on without.", uri)
	default:
		return p.refused("The plan was not taken. Ask the user what to change, or go on without.", uri)
	}
}

func (p *plan) refused(text, uri string) Step {
	return Step{Done: &Outcome{Text: text, IsError: true, Card: p.in.card(&agentv1.CreatePlanResult{
		Result: &agentv1.CreatePlanResult_Error{Error: &agentv1.CreatePlanError{Error: text}}, PlanUri: uri,
	})}}
}
