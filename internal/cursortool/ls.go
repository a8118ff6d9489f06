package cursortool

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const lsDescription = `List a directory of the user's workspace as a tree. To find files by name use Glob.`

const lsSchema = `{
"type": "object",
"properties": {
	"path": {"type": "string", "description": "The directory, absolute or relative to the workspace; the workspace when left out"},
	"ignore": {"type": "array", "items": {"type": "string"}, "description": "Patterns of what to leave out"}
}
}`

// lsTimeout is how long the client may take for a tree, in milliseconds; what it has by then counts.
const lsTimeout = 20_000

// lsInput is what a model gives to Ls.
type lsInput struct {
	Path   string `json:"path"`
	Target string `json:"target_directory"`
	Ignore list   `json:"ignore"`
}

func lsCard(args json.RawMessage) *agentv1.ToolCall {
	var in lsInput
	peek(args, &in)
	return lsCall(&agentv1.LsArgs{Path: clean(first(in.Path, in.Target)), Ignore: cleanAll(in.Ignore)})
}

func lsCall(args *agentv1.LsArgs) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_LsToolCall{LsToolCall: &agentv1.LsToolCall{Args: args}}}
}

func cleanAll(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = clean(t)
	}
	return out
}

// lister lists a directory.
type lister struct {
	exchange
	dir string
}

func beginLs(call Call, args json.RawMessage, env *Env) Machine {
	var in lsInput
	if err := decode(args, &in); err != nil {
		return refuse(lsCard(args), "Ls error: "+err.Error())
	}
	l := &lister{dir: first(resolve(env.Root, first(in.Path, in.Target)), env.Root, ".")}
	request := &agentv1.LsArgs{Path: l.dir, Ignore: cleanAll(in.Ignore), ToolCallId: string(call.ID), TimeoutMs: new(uint32(lsTimeout))}
	l.exchange = exchange{tool: "Ls", env: env, card: lsCall(request)}
	usual := way{
		Request{Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_LsArgs{LsArgs: request}}, Patience: patience},
		func(m *agentv1.ExecClientMessage) (Step, bool) {
			if r := m.GetLsResult(); r != nil {
				return l.result(r), true
			}
			return Step{}, false
		},
	}
	pi := way{
		Request{Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_PiLsArgs{
			PiLsArgs: &agentv1.PiLsExecArgs{Path: new(l.dir), Limit: new(int32(lsMost))},
		}}, Patience: patience},
		func(m *agentv1.ExecClientMessage) (Step, bool) {
			if r := m.GetPiLsResult(); r != nil {
				return l.piResult(r), true
			}
			return Step{}, false
		},
	}
	l.begin = func() Step { return l.try(env.ways(usual, pi)...) }
	return l
}

func (l *lister) result(res *agentv1.LsResult) Step {
	l.card.GetLsToolCall().Result = res
	switch r := res.GetResult().(type) {
	case *agentv1.LsResult_Success:
		return l.tree(r.Success.GetDirectoryTreeRoot(), "")
	case *agentv1.LsResult_Timeout:
		return l.tree(r.Timeout.GetDirectoryTreeRoot(), "\n[The directory is large: this is what there was after some time. List one below it.]")
	case *agentv1.LsResult_Rejected:
		return l.refused(r.Rejected.GetReason())
	default:
		return l.fail(first(clean(res.GetError().GetError()), "the client could not list "+l.dir))
	}
}

func (l *lister) tree(root *agentv1.LsDirectoryTreeNode, note string) Step {
	t := tree{}
	t.node(root, 0)
	text := first(clean(root.GetAbsPath()), l.dir) + "\n" + first(t.b.String(), "(empty)\n")
	if t.left {
		note += "\n[There is more. List a directory below.]"
	}
	return l.done(Outcome{Text: strings.TrimRight(text, "\n") + note, Card: l.card})
}

func (l *lister) piResult(res *agentv1.PiLsExecResult) Step {
	ok := res.GetSuccess()
	if ok == nil {
		return l.fail(first(clean(res.GetError().GetError()), "the client could not list "+l.dir))
	}
	text := clean(ok.GetOutput())
	node := &agentv1.LsDirectoryTreeNode{AbsPath: l.dir, ChildrenWereProcessed: true}
	for _, row := range lines(text) {
		node.ChildrenFiles = append(node.ChildrenFiles, &agentv1.LsDirectoryTreeNode_File{Name: row})
	}
	l.card.GetLsToolCall().Result = &agentv1.LsResult{Result: &agentv1.LsResult_Success{Success: &agentv1.LsSuccess{DirectoryTreeRoot: node}}}
	return l.done(Outcome{Text: first(cutMiddle(text, grepText), "(empty)"), Card: l.card})
}

// tree writes a directory as an indented list.
type tree struct {
	b       strings.Builder
	entries int
	left    bool // something was left out
}

func (t *tree) row(depth int, text string) {
	if t.entries++; t.entries > lsMost || t.b.Len() > grepText {
		t.left = true
		return
	}
	t.b.WriteString(strings.Repeat("  ", depth) + cutMiddle(text, grepLine) + "\n")
}

func (t *tree) node(n *agentv1.LsDirectoryTreeNode, depth int) {
	if depth == lsDepth {
		t.left = true
		return
	}
	for _, d := range n.GetChildrenDirs() {
		t.row(depth, base(d.GetAbsPath())+"/"+unlisted(d))
		t.node(d, depth+1)
	}
	for _, f := range n.GetChildrenFiles() {
		t.row(depth, clean(f.GetName()))
	}
}

// unlisted says what is in a directory that was not looked into, as far as the client knows.
func unlisted(d *agentv1.LsDirectoryTreeNode) string {
	if d.GetChildrenWereProcessed() || d.GetNumFiles() == 0 {
		return ""
	}
	var kinds []string
	for ext, n := range d.GetFullSubtreeExtensionCounts() {
		kinds = append(kinds, fmt.Sprintf("%d %s", n, clean(ext)))
	}
	slices.Sort(kinds)
	text := fmt.Sprintf(" [%d files", d.GetNumFiles())
	if len(kinds) > 0 {
		text += ": " + strings.Join(kinds[:min(len(kinds), 8)], ", ")
	}
	return text + "]"
}

func base(name string) string {
	return path.Base(strings.ReplaceAll(clean(name), `\`, "/"))
}
