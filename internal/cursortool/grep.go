package cursortool

import (
	"encoding/json"
	"errors"
	"slices"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const grepDescription = `Search the contents of the files of the user's workspace with a regular expression (ripgrep's syntax: escape braces that are meant as such). ` +
	`output_mode content shows the lines (default), files_with_matches the files, count how many there are in each.`

const grepSchema = `{
"type": "object",
"properties": {
	"pattern": {"type": "string", "minLength": 1, "description": "The regular expression"},
	"path": {"type": "string", "description": "File or directory to search, absolute or relative to the workspace; the workspace when left out"},
	"glob": {"type": "string", "description": "Search only files with such names, such as *.js or *.{ts,tsx}"},
	"output_mode": {"type": "string", "enum": ["content", "files_with_matches", "count"]},
	"-A": {"type": "integer", "minimum": 0, "description": "Lines to show after each match"},
	"-B": {"type": "integer", "minimum": 0, "description": "Lines to show before each match"},
	"-C": {"type": "integer", "minimum": 0, "description": "Lines to show before and after each match"},
	"-i": {"type": "boolean", "description": "Take upper and lower case as equal"},
	"type": {"type": "string", "description": "Search only files of a type, such as js, py, rust, go"},
	"head_limit": {"type": "integer", "minimum": 0, "description": "Show only so many lines or files"},
	"offset": {"type": "integer", "minimum": 0, "description": "Leave out so many lines or files first"},
	"multiline": {"type": "boolean", "description": "Let . match line ends and matches go over several lines"}
},
"required": ["pattern"]
}`

// grepInput is what a model gives to Grep.
type grepInput struct {
	Pattern   string  `json:"pattern"`
	Path      string  `json:"path"`
	Glob      string  `json:"glob"`
	Mode      string  `json:"output_mode"`
	After     *number `json:"-A"`
	Before    *number `json:"-B"`
	Context   *number `json:"-C"`
	NoCase    truth   `json:"-i"`
	Type      string  `json:"type"`
	HeadLimit *number `json:"head_limit"`
	Offset    *number `json:"offset"`
	Multiline truth   `json:"multiline"`
}

var grepModes = []string{"content", "files_with_matches", "count"}

func (in *grepInput) check() error {
	for _, n := range []*number{in.After, in.Before, in.Context, in.HeadLimit, in.Offset} {
		if n != nil && *n < 0 {
			return errors.New("-A, -B, -C, head_limit and offset must not be negative")
		}
	}
	switch {
	case in.Pattern == "":
		return errors.New("pattern is required; to find files by their names use Glob")
	case in.Mode != "" && !slices.Contains(grepModes, in.Mode):
		return errors.New("output_mode must be content, files_with_matches or count")
	}
	return nil
}

// args returns what the client is asked for, with path as it is.
func (in *grepInput) args(path string) *agentv1.GrepArgs {
	a := &agentv1.GrepArgs{
		Pattern: clean(in.Pattern), OutputMode: new(clean(first(in.Mode, grepModes[0]))),
		ContextBefore: in.Before.opt(), ContextAfter: in.After.opt(), Context: in.Context.opt(),
		HeadLimit: in.HeadLimit.opt(), Offset: in.Offset.opt(),
	}
	for to, text := range map[**string]string{&a.Path: path, &a.Glob: in.Glob, &a.Type: in.Type} {
		if text != "" {
			*to = new(clean(text))
		}
	}
	if in.NoCase {
		a.CaseInsensitive = new(true)
	}
	if in.Multiline {
		a.Multiline = new(true)
	}
	return a
}

// pi returns the same search for pi's grep, which knows less.
func (in *grepInput) pi(path string) *agentv1.PiGrepExecArgs {
	a := &agentv1.PiGrepExecArgs{Pattern: in.Pattern, IgnoreCase: new(bool(in.NoCase)), Limit: new(int32(grepMost))}
	if path != "" {
		a.Path = new(path)
	}
	if in.Glob != "" {
		a.Glob = new(in.Glob)
	}
	if in.HeadLimit != nil && *in.HeadLimit > 0 {
		a.Limit = in.HeadLimit.opt()
	}
	around := int32(0)
	for _, n := range []*number{in.After, in.Before, in.Context} {
		if n != nil {
			around = max(around, int32(*n))
		}
	}
	if around > 0 {
		a.Context = new(around)
	}
	return a
}

func grepCard(args json.RawMessage) *agentv1.ToolCall {
	var in grepInput
	peek(args, &in)
	return grepCall(in.args(in.Path))
}

func grepCall(args *agentv1.GrepArgs) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_GrepToolCall{GrepToolCall: &agentv1.GrepToolCall{Args: args}}}
}

func beginGrep(call Call, args json.RawMessage, env *Env) Machine {
	var in grepInput
	if err := decode(args, &in); err != nil {
		return refuse(grepCard(args), "Grep error: "+err.Error())
	}
	path := resolve(env.Root, in.Path)
	if path == "" {
		path = env.Root
	}
	request := in.args(path)
	request.ToolCallId = string(call.ID)
	x := &exchange{tool: "Grep", env: env, card: grepCall(request)}
	pi := piGrep(x, in.pi(path))
	alone := bool(in.Multiline) || in.Type != "" || in.Mode == "count" // pi's grep would find something else
	usual := grepWay(request, func(r *agentv1.GrepResult) Step {
		if foundNothing(r) && !alone && !env.NoPi && !env.PiOnly {
			return x.second(pi, func() Step { return grepped(x, r) })
		}
		return grepped(x, r)
	})
	ways := env.ways(usual, pi)
	if alone {
		ways = []way{usual}
	}
	x.begin = func() Step { return x.try(ways...) }
	return x
}

// foundNothing reports whether a search for lines has come back without any. There is a client
// (oh-my-pi 18.2.3) whose searches for lines always do; it is asked once more in pi's way.
func foundNothing(r *agentv1.GrepResult) bool {
	results := r.GetSuccess().GetWorkspaceResults()
	for _, found := range results {
		if found.GetContent() == nil || len(found.GetContent().GetMatches()) > 0 {
			return false
		}
	}
	return len(results) > 0
}

func grepWay(args *agentv1.GrepArgs, take func(*agentv1.GrepResult) Step) way {
	return way{
		Request{Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_GrepArgs{GrepArgs: args}}, Patience: patience},
		func(m *agentv1.ExecClientMessage) (Step, bool) {
			if r := m.GetGrepResult(); r != nil {
				return take(r), true
			}
			return Step{}, false
		},
	}
}

func piGrep(x *exchange, args *agentv1.PiGrepExecArgs) way {
	return way{
		Request{Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_PiGrepArgs{PiGrepArgs: args}}, Patience: patience},
		func(m *agentv1.ExecClientMessage) (Step, bool) {
			r := m.GetPiGrepResult()
			if r == nil {
				return Step{}, false
			}
			if r.GetSuccess() == nil {
				return x.fail(first(clean(r.GetError().GetError()), "the client could not search")), true
			}
			return piGrepped(x, args, clean(r.GetSuccess().GetOutput())), true
		},
	}
}
