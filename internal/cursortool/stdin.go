package cursortool

import (
	"encoding/json"
	"errors"
	"fmt"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const stdinDescription = `Type into a command that runs in the background, as its user would at the terminal. ` +
	`Add a line end (\n) to submit a line; control characters work too (\u0003 interrupts). ` +
	`Wait with AwaitShell to see what it answers.`

const stdinSchema = `{
"type": "object",
"properties": {
	"shell_id": {"type": "number", "description": "The shell_id that Shell returned"},
	"chars": {"type": "string", "minLength": 1, "description": "What to type, exactly"}
},
"required": ["shell_id", "chars"]
}`

// stdinInput is what a model gives to WriteShellStdin.
type stdinInput struct {
	Shell *shellID `json:"shell_id"`
	Chars string   `json:"chars"`
}

func (in *stdinInput) check() error {
	if in.Shell == nil || in.Chars == "" {
		return errors.New("shell_id and chars are required")
	}
	return nil
}

func (in *stdinInput) args() *agentv1.WriteShellStdinArgs {
	a := &agentv1.WriteShellStdinArgs{Chars: in.Chars}
	if in.Shell != nil {
		a.ShellId = uint32(*in.Shell)
	}
	return a
}

// stdin types into a background shell.
type stdin struct {
	quiet
	in    stdinInput
	hooks []*agentv1.HookAdditionalContext
}

func beginStdin(_ Call, args json.RawMessage, _ *Env) Machine {
	s := &stdin{}
	if err := decode(args, &s.in); err != nil {
		return settled{Outcome: *s.fail("WriteShellStdin error: " + err.Error()).Done}
	}
	return s
}

func stdinCard(args json.RawMessage) *agentv1.ToolCall {
	var in stdinInput
	peek(args, &in)
	return in.card(nil)
}

func (in *stdinInput) card(res *agentv1.WriteShellStdinResult) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_WriteShellStdinToolCall{
		WriteShellStdinToolCall: &agentv1.WriteShellStdinToolCall{Args: in.args(), Result: res},
	}}
}

// Start asks the client to type.
func (s *stdin) Start() Step {
	return Step{Requests: []Request{{
		Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_WriteShellStdinArgs{WriteShellStdinArgs: s.in.args()}},
		Unsafe:  true, // typing twice is not typing once; and the user may be asked
	}}}
}

// Result takes the client's word that it has typed.
func (s *stdin) Result(_ int, m *agentv1.ExecClientMessage) Step {
	s.hooks = append(s.hooks, m.GetHookAdditionalContexts()...)
	if m.GetMessage() == nil {
		return Step{}
	}
	switch r := m.GetWriteShellStdinResult().GetResult().(type) {
	case *agentv1.WriteShellStdinResult_Success:
		return s.done(Outcome{
			Text: fmt.Sprintf("Typed %d bytes into shell %d. Its terminal file was %d bytes long before.",
				len(s.in.Chars), *s.in.Shell, r.Success.GetTerminalFileLengthBeforeInputWritten()),
			Card: s.in.card(&agentv1.WriteShellStdinResult{Result: &agentv1.WriteShellStdinResult_Success{
				Success: &agentv1.WriteShellStdinSuccess{
					ShellId:                              r.Success.GetShellId(),
					TerminalFileLengthBeforeInputWritten: r.Success.GetTerminalFileLengthBeforeInputWritten(),
				},
			}}),
		})
	case *agentv1.WriteShellStdinResult_Error:
		return s.fail("WriteShellStdin error" + because(r.Error.GetError()) + ".")
	default:
		return s.fail("WriteShellStdin error: the client did not type. Its answer was: " + brief(foreign(m)))
	}
}

// Closed ends the call: whether the client has typed is not known.
func (s *stdin) Closed(int) Step {
	return s.fail("WriteShellStdin error: the client gave no result, so it may have typed or not: look with AwaitShell.")
}

// Thrown ends the call.
func (s *stdin) Thrown(_ int, reason string, _ bool) Step {
	return s.fail("WriteShellStdin error: the client could not type" + because(reason) + ".")
}

func (s *stdin) fail(text string) Step {
	return s.done(Outcome{Text: text, IsError: true, Card: s.in.card(&agentv1.WriteShellStdinResult{
		Result: &agentv1.WriteShellStdinResult_Error{Error: &agentv1.WriteShellStdinError{Error: text}},
	})})
}

func (s *stdin) done(o Outcome) Step {
	o.addHooks(s.hooks)
	return Step{Done: &o}
}
