package cursortool

import (
	"encoding/json"
	"fmt"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const modeDescription = `Propose to go on in another mode: "plan" to work out a plan with the user first when a task is large or can be understood in several ways, ` +
	`"ask" to answer questions without changing anything, "agent" to carry things out. The user may refuse; then go on in the mode you are in.`

const modeSchema = `{
"type": "object",
"properties": {
	"target_mode_id": {"type": "string", "enum": ["agent", "ask", "plan"]},
	"explanation": {"type": "string", "description": "Why, in a sentence, for the user"}
},
"required": ["target_mode_id"]
}`

// targetModes are the modes that a model may propose.
var targetModes = map[string]agentv1.AgentMode{
	"agent": agentv1.AgentMode_AGENT_MODE_AGENT,
	"ask":   agentv1.AgentMode_AGENT_MODE_ASK,
	"plan":  agentv1.AgentMode_AGENT_MODE_PLAN,
}

// modeInput is what a model gives to SwitchMode.
type modeInput struct {
	Target      string `json:"target_mode_id"`
	Explanation string `json:"explanation"`
}

func (in *modeInput) check() error {
	in.Target = strings.ToLower(strings.TrimSpace(in.Target))
	if _, ok := targetModes[in.Target]; !ok {
		return fmt.Errorf("target_mode_id is %.40q and must be agent, ask or plan", in.Target)
	}
	return nil
}

func (in *modeInput) args(id string) *agentv1.SwitchModeArgs {
	a := &agentv1.SwitchModeArgs{TargetModeId: in.Target, ToolCallId: id}
	if in.Explanation != "" {
		a.Explanation = new(in.Explanation)
	}
	return a
}

// mode proposes another mode, for as long as the user takes (section 5.11).
type mode struct {
	quiet
	call Call
	in   modeInput
}

func beginMode(call Call, args json.RawMessage, _ *Env) Machine {
	m := &mode{call: call}
	if err := decode(args, &m.in); err != nil {
		text := "SwitchMode error: " + err.Error()
		return settled{Outcome: Outcome{Text: text, IsError: true, Card: m.card(&agentv1.SwitchModeResult{
			Result: &agentv1.SwitchModeResult_Error{Error: &agentv1.SwitchModeError{Error: text}},
		})}}
	}
	return m
}

func modeCard(args json.RawMessage) *agentv1.ToolCall {
	m := &mode{}
	peek(args, &m.in)
	return m.card(nil)
}

func (m *mode) card(res *agentv1.SwitchModeResult) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_SwitchModeToolCall{
		SwitchModeToolCall: &agentv1.SwitchModeToolCall{Args: m.in.args(string(m.call.ID)), Result: res},
	}}
}

// Start asks for the user's consent.
func (m *mode) Start() Step {
	return Step{Query: &agentv1.InteractionQuery{Query: &agentv1.InteractionQuery_SwitchModeRequestQuery{
		SwitchModeRequestQuery: &agentv1.SwitchModeRequestQuery{Args: m.in.args(string(m.call.ID))},
	}}}
}

// Answered changes the mode, or not.
func (m *mode) Answered(r *agentv1.InteractionResponse) Step {
	res := r.GetSwitchModeRequestResponse()
	if res.GetApproved() == nil {
		reason := res.GetRejected().GetReason()
		return Step{Done: &Outcome{
			Text:    "The mode stays as it is: switching to " + m.in.Target + " was refused" + because(reason) + ". Go on in this mode, and do not propose it again.",
			IsError: true,
			Card: m.card(&agentv1.SwitchModeResult{
				Result: &agentv1.SwitchModeResult_Rejected{Rejected: &agentv1.SwitchModeRejected{Reason: brief(reason)}},
			}),
		}}
	}
	return Step{Done: &Outcome{
		Text: "Switched to " + m.in.Target + " mode.",
		Mode: targetModes[m.in.Target],
		Card: m.card(&agentv1.SwitchModeResult{
			Result: &agentv1.SwitchModeResult_Success{Success: &agentv1.SwitchModeSuccess{ToModeId: m.in.Target}},
		}),
	}}
}
