package cursortool

import (
	"encoding/json"
	"errors"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const forceDescription = `Move a Shell call that still waits for its command to the background, so that the call returns with a shell_id.`

const forceSchema = `{
"type": "object",
"properties": {
	"tool_call_id": {"type": "string", "minLength": 1, "description": "The id of the Shell call"}
},
"required": ["tool_call_id"]
}`

// forceInput is what a model gives to ForceBackgroundShell.
type forceInput struct {
	Call string `json:"tool_call_id"`
}

func (in *forceInput) check() error {
	if strings.TrimSpace(in.Call) == "" {
		return errors.New("tool_call_id is required")
	}
	return nil
}

// force moves a running command to the background. The protocol has no card for it, so it is shown
// as the shell call that it is about.
type force struct {
	quiet
	in forceInput
}

func beginForce(_ Call, args json.RawMessage, _ *Env) Machine {
	f := &force{}
	if err := decode(args, &f.in); err != nil {
		return settled{Outcome: *f.fail("ForceBackgroundShell error: " + err.Error()).Done}
	}
	return f
}

func forceCard(args json.RawMessage) *agentv1.ToolCall {
	var in forceInput
	peek(args, &in)
	return in.card(nil)
}

func (in *forceInput) card(res *agentv1.ShellResult) *agentv1.ToolCall {
	return shellToolCall(&agentv1.ShellArgs{ToolCallId: in.Call, Description: new("Move to the background")}, res)
}

// Start asks the client. Doing it twice does no harm.
func (f *force) Start() Step {
	return Step{Requests: []Request{{
		Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_ForceBackgroundShellArgs{
			ForceBackgroundShellArgs: &agentv1.ForceBackgroundShellArgs{ToolCallId: f.in.Call},
		}},
		Patience: patience,
	}}}
}

// Result takes the client's status.
func (f *force) Result(_ int, m *agentv1.ExecClientMessage) Step {
	if m.GetMessage() == nil {
		return Step{}
	}
	r := m.GetForceBackgroundShellResult()
	switch r.GetStatus() {
	case agentv1.ForceBackgroundShellStatus_FORCE_BACKGROUND_SHELL_STATUS_ACCEPTED:
		return Step{Done: &Outcome{
			Text: "The command goes to the background; its Shell call returns the shell_id.",
			Card: f.in.card(&agentv1.ShellResult{Result: &agentv1.ShellResult_Success{Success: &agentv1.ShellSuccess{}}, IsBackground: new(true)}),
		}}
	case agentv1.ForceBackgroundShellStatus_FORCE_BACKGROUND_SHELL_STATUS_NOT_FOUND:
		return f.fail("No command of call " + f.in.Call + " runs in the foreground: it may have ended, or be in the background.")
	case agentv1.ForceBackgroundShellStatus_FORCE_BACKGROUND_SHELL_STATUS_UNSPECIFIED:
	}
	return f.fail("ForceBackgroundShell error: the client did not say whether it did it. Its answer was: " + brief(foreign(m)))
}

// Closed ends the call.
func (f *force) Closed(int) Step {
	return f.fail("ForceBackgroundShell error: the client gave no result.")
}

// Thrown ends the call.
func (f *force) Thrown(_ int, reason string, _ bool) Step {
	return f.fail("ForceBackgroundShell error: the client could not do it" + because(reason) + ".")
}

func (f *force) fail(text string) Step {
	return Step{Done: &Outcome{Text: text, IsError: true, Card: f.in.card(&agentv1.ShellResult{
		Result: &agentv1.ShellResult_SpawnError{SpawnError: &agentv1.ShellSpawnError{Error: text}},
	})}}
}
