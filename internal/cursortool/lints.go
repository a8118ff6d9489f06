package cursortool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const lintsDescription = `Read what the user's editor says of files: errors and warnings of compilers and linters. ` +
	`Use it on files that you have changed. What was there before you need not be your task.`

const lintsSchema = `{
"type": "object",
"properties": {
	"paths": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "maxItems": 50, "description": "The files, absolute or relative to the workspace"}
},
"required": ["paths"]
}`

// lintsInput is what a model gives to ReadLints.
type lintsInput struct {
	Paths list `json:"paths"`
	Path  list `json:"path"`
}

func (in *lintsInput) paths() []string {
	var out []string
	for _, p := range append(append(list{}, in.Paths...), in.Path...) {
		if p != "" {
			out = append(out, p)
		}
	}
	return out
}

func (in *lintsInput) check() error {
	switch n := len(in.paths()); {
	case n == 0:
		return errors.New("paths is required: name at least one file")
	case n > lintPaths:
		return fmt.Errorf("%d paths are more than the %d that one call can have", n, lintPaths)
	}
	return nil
}

func lintsCard(args json.RawMessage) *agentv1.ToolCall {
	var in lintsInput
	peek(args, &in)
	return lintsCall(in.paths())
}

func lintsCall(paths []string) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_ReadLintsToolCall{ReadLintsToolCall: &agentv1.ReadLintsToolCall{
		Args: &agentv1.ReadLintsToolArgs{Paths: cleanAll(paths)},
	}}}
}

// linter asks for the diagnostics of one file after the other (W31): a request can name one only.
type linter struct {
	exchange
	call  Call
	paths []string // still to ask for
	found agentv1.ReadLintsToolSuccess
	lines []string // for the model
	wrong int      // files that could not be asked for
}

func beginLints(call Call, args json.RawMessage, env *Env) Machine {
	var in lintsInput
	if err := decode(args, &in); err != nil {
		return refuse(lintsCard(args), "ReadLints error: "+err.Error())
	}
	l := &linter{call: call}
	for _, p := range in.paths() {
		l.paths = append(l.paths, resolve(env.Root, p))
	}
	l.exchange = exchange{tool: "ReadLints", env: env, card: lintsCall(l.paths)}
	l.begin = l.next
	return l
}

func (l *linter) next() Step {
	if len(l.paths) == 0 {
		return l.end()
	}
	path := l.paths[0]
	l.paths = l.paths[1:]
	request := Request{Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_DiagnosticsArgs{
		DiagnosticsArgs: &agentv1.DiagnosticsArgs{Path: path, ToolCallId: string(l.call.ID)},
	}}, Patience: patience}
	take := func(m *agentv1.ExecClientMessage) Step {
		if r := m.GetDiagnosticsResult(); r != nil {
			return l.result(path, r)
		}
		return l.trouble(path, foreign(m))
	}
	lost := func(reason string, unsupported bool) Step {
		if unsupported {
			return l.fail("this client has no diagnostics. Run the project's linter or compiler instead")
		}
		return l.trouble(path, reason)
	}
	return l.ask(request, take, lost)
}

func (l *linter) trouble(path, reason string) Step {
	l.wrong++
	l.lines = append(l.lines, path+": "+sentence(reason))
	return l.next()
}

func (l *linter) result(path string, res *agentv1.DiagnosticsResult) Step {
	switch r := res.GetResult().(type) {
	case *agentv1.DiagnosticsResult_Success:
		l.add(path, r.Success)
		return l.next()
	case *agentv1.DiagnosticsResult_FileNotFound:
		return l.trouble(path, "there is no such file")
	case *agentv1.DiagnosticsResult_PermissionDenied:
		return l.trouble(path, "the client may not read it")
	case *agentv1.DiagnosticsResult_Rejected:
		return l.trouble(path, "the user refused"+because(r.Rejected.GetReason()))
	default:
		return l.trouble(path, first(clean(res.GetError().GetError()), "the client could not say"))
	}
}

func (l *linter) add(path string, ok *agentv1.DiagnosticsSuccess) {
	file := &agentv1.FileDiagnostics{Path: path}
	for _, d := range ok.GetDiagnostics() {
		start, end := d.GetRange().GetStart(), d.GetRange().GetEnd()
		file.Diagnostics = append(file.Diagnostics, &agentv1.DiagnosticItem{
			Severity: d.GetSeverity(), Message: clean(d.GetMessage()), Source: clean(d.GetSource()), Code: clean(d.GetCode()), IsStale: d.GetIsStale(),
			Range: &agentv1.DiagnosticRange{
				Start: &agentv1.Position{Line: start.GetLine(), Column: start.GetColumn()},
				End:   &agentv1.Position{Line: end.GetLine(), Column: end.GetColumn()},
			},
		})
		l.lines = append(l.lines, path+lintText(d))
	}
	file.DiagnosticsCount = int32(len(file.Diagnostics))
	l.found.FileDiagnostics = append(l.found.FileDiagnostics, file)
	l.found.TotalFiles++
	l.found.TotalDiagnostics += max(file.DiagnosticsCount, ok.GetTotalDiagnostics())
}

// lintText is one diagnostic as a compiler would print it; the protocol counts lines from 0.
func lintText(d *agentv1.Diagnostic) string {
	start := d.GetRange().GetStart()
	text := fmt.Sprintf(":%d:%d: %s: %s", uint64(start.GetLine())+1, uint64(start.GetColumn())+1, severity(d.GetSeverity()), cutMiddle(clean(d.GetMessage()), grepLine))
	if by := strings.TrimSpace(clean(d.GetSource()) + " " + clean(d.GetCode())); by != "" {
		text += " (" + by + ")"
	}
	if d.GetIsStale() {
		text += " [may be out of date]"
	}
	return text
}

func severity(s agentv1.DiagnosticSeverity) string {
	switch s {
	case agentv1.DiagnosticSeverity_DIAGNOSTIC_SEVERITY_ERROR:
		return "error"
	case agentv1.DiagnosticSeverity_DIAGNOSTIC_SEVERITY_WARNING:
		return "warning"
	case agentv1.DiagnosticSeverity_DIAGNOSTIC_SEVERITY_INFORMATION:
		return "information"
	case agentv1.DiagnosticSeverity_DIAGNOSTIC_SEVERITY_HINT:
		return "hint"
	case agentv1.DiagnosticSeverity_DIAGNOSTIC_SEVERITY_UNSPECIFIED:
	}
	return "note"
}

func (l *linter) end() Step {
	text := strings.Join(l.lines[:min(len(l.lines), lintsMost)], "\n")
	switch {
	case l.found.TotalFiles == 0:
		return l.failCard(text, FailedCard(l.card, text))
	case text == "":
		text = "No errors or warnings."
	case len(l.lines) > lintsMost:
		text += fmt.Sprintf("\n[%d more.]", len(l.lines)-lintsMost)
	}
	l.card.GetReadLintsToolCall().Result = &agentv1.ReadLintsToolResult{Result: &agentv1.ReadLintsToolResult_Success{Success: &l.found}}
	return l.done(Outcome{Text: text, IsError: l.wrong > 0, Card: l.card})
}
