package cursortool

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const globDescription = `Find files of the user's workspace by their names. A bare name such as *.go is found at any depth, ` +
	`src/**/*.ts below src. Files that Git ignores are left out.`

const globSchema = `{
"type": "object",
"properties": {
	"glob_pattern": {"type": "string", "minLength": 1, "description": "The pattern: *, ?, ** and {a,b} work"},
	"target_directory": {"type": "string", "description": "The directory to look in, absolute or relative to the workspace; the workspace when left out"}
},
"required": ["glob_pattern"]
}`

// globInput is what a model gives to Glob.
type globInput struct {
	Glob    string `json:"glob_pattern"`
	Pattern string `json:"pattern"`
	Target  string `json:"target_directory"`
	Path    string `json:"path"`
}

func (in *globInput) check() error {
	if in.pattern() == "" {
		return errors.New("glob_pattern is required")
	}
	return nil
}

// pattern returns the pattern without a slash before it, with which nothing would be found.
func (in *globInput) pattern() string {
	p := strings.TrimPrefix(first(in.Glob, in.Pattern), "./")
	return strings.TrimLeft(p, "/")
}

func globCard(args json.RawMessage) *agentv1.ToolCall {
	var in globInput
	peek(args, &in)
	return globCall(&in, first(in.Target, in.Path))
}

func globCall(in *globInput, dir string) *agentv1.ToolCall {
	args := &agentv1.GlobToolArgs{GlobPattern: clean(first(in.Glob, in.Pattern))}
	if dir != "" {
		args.TargetDirectory = new(clean(dir))
	}
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_GlobToolCall{GlobToolCall: &agentv1.GlobToolCall{Args: args}}}
}

// globber finds files. There is no request of its own for that: it is a search for nothing in the
// files with such names (section 5.2).
type globber struct {
	exchange
	pattern, dir string
}

func beginGlob(call Call, args json.RawMessage, env *Env) Machine {
	var in globInput
	if err := decode(args, &in); err != nil {
		return refuse(globCard(args), "Glob error: "+err.Error())
	}
	dir := resolve(env.Root, first(in.Target, in.Path))
	if dir == "" {
		dir = env.Root
	}
	g := &globber{pattern: in.pattern(), dir: dir}
	g.exchange = exchange{tool: "Glob", env: env, card: globCall(&in, dir)}
	usual := &agentv1.GrepArgs{Glob: new(g.pattern), OutputMode: new("files_with_matches"), ToolCallId: string(call.ID)}
	pi := &agentv1.PiFindExecArgs{Pattern: g.pattern, Limit: new(int32(globMost))}
	if dir != "" {
		usual.Path, pi.Path = new(dir), new(dir)
	}
	g.begin = func() Step { return g.try(env.ways(grepWay(usual, g.result), g.find(pi))...) }
	return g
}

func (g *globber) find(args *agentv1.PiFindExecArgs) way {
	return way{
		Request{Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_PiFindArgs{PiFindArgs: args}}, Patience: patience},
		func(m *agentv1.ExecClientMessage) (Step, bool) {
			r := m.GetPiFindResult()
			if r == nil {
				return Step{}, false
			}
			if r.GetSuccess() == nil {
				return g.fail(first(clean(r.GetError().GetError()), "the client could not look for files")), true
			}
			ok := &agentv1.GlobToolSuccess{
				Files:           lines(strings.TrimSpace(clean(r.GetSuccess().GetOutput()))),
				ClientTruncated: r.GetSuccess().GetTruncation().GetTruncated() || r.GetSuccess().ResultLimitReached != nil,
			}
			return g.end(ok), true
		},
	}
}

func (g *globber) result(res *agentv1.GrepResult) Step {
	ok := res.GetSuccess()
	if ok == nil {
		return g.fail(first(clean(res.GetError().GetError()), "the client could not look for files"))
	}
	out := &agentv1.GlobToolSuccess{}
	for _, root := range roots(ok) {
		r := ok.GetWorkspaceResults()[root].GetFiles()
		for _, f := range r.GetFiles() {
			out.Files = append(out.Files, strings.TrimPrefix(clean(f), "./"))
		}
		out.TotalFiles += r.GetTotalFiles()
		out.ClientTruncated = out.ClientTruncated || r.GetClientTruncated()
		out.RipgrepTruncated = out.RipgrepTruncated || r.GetRipgrepTruncated()
	}
	return g.end(out)
}

func (g *globber) end(ok *agentv1.GlobToolSuccess) Step {
	ok.Pattern, ok.Path = g.pattern, g.dir
	ok.TotalFiles = max(ok.TotalFiles, int32(len(ok.Files)))
	text := "No file matches " + g.pattern + "."
	if shown := ok.Files[:min(len(ok.Files), globMost)]; len(shown) > 0 {
		text = cutBefore(strings.Join(shown, "\n"), grepText)
		if int(ok.TotalFiles) > len(shown) || ok.ClientTruncated || ok.RipgrepTruncated || len(text) == grepText {
			text += fmt.Sprintf("\n[%d of %d files or more. Use a narrower pattern or directory.]", len(shown), ok.TotalFiles)
		}
	}
	g.card.GetGlobToolCall().Result = &agentv1.GlobToolResult{Result: &agentv1.GlobToolResult_Success{Success: ok}}
	return g.done(Outcome{Text: text, Card: g.card})
}

// roots returns the workspaces of a result in a stable order.
func roots(ok *agentv1.GrepSuccess) []string {
	var out []string
	for root := range ok.GetWorkspaceResults() {
		out = append(out, root)
	}
	slices.Sort(out)
	return out
}
