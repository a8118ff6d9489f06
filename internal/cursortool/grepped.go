package cursortool

import (
	"fmt"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// grepped ends a search with its result.
func grepped(x *exchange, res *agentv1.GrepResult) Step {
	ok := res.GetSuccess()
	if ok == nil {
		return x.fail(first(clean(res.GetError().GetError()), "the client could not search"))
	}
	x.card.GetGrepToolCall().Result = res
	r := grepReport{many: len(ok.GetWorkspaceResults()) > 1}
	for _, root := range roots(ok) {
		r.union(root, ok.GetWorkspaceResults()[root])
	}
	if active := ok.GetActiveEditorResult(); active != nil && len(ok.GetWorkspaceResults()) == 0 {
		r.union("", active)
	}
	text := r.b.String()
	if strings.TrimSpace(text) == "" {
		text = "No matches."
	}
	if r.left || r.b.Len() >= grepText {
		text += "\n[There is more. Use a narrower pattern or path, or head_limit and offset.]"
	}
	return x.done(Outcome{Text: text, Card: x.card})
}

// piGrepped ends a search that pi's grep made; its output is lines of text.
func piGrepped(x *exchange, args *agentv1.PiGrepExecArgs, output string) Step {
	output = strings.TrimRight(output, "\n")
	result := &agentv1.GrepContentResult{}
	for _, row := range lines(output) {
		result.Matches = append(result.Matches, &agentv1.GrepFileMatch{Matches: []*agentv1.GrepContentMatch{{Content: row}}})
	}
	x.card.GetGrepToolCall().Result = &agentv1.GrepResult{Result: &agentv1.GrepResult_Success{Success: &agentv1.GrepSuccess{
		Pattern: args.GetPattern(), Path: args.GetPath(), OutputMode: "content",
		WorkspaceResults: map[string]*agentv1.GrepUnionResult{args.GetPath(): {Result: &agentv1.GrepUnionResult_Content{Content: result}}},
	}}}
	return x.done(Outcome{Text: first(cutMiddle(output, grepText), "No matches."), Card: x.card})
}

// grepReport is what the model reads of a search.
type grepReport struct {
	b       strings.Builder
	many    bool // workspaces
	matches int
	left    bool // something was left out
}

func (r *grepReport) row(text string) {
	if r.b.Len()+len(text) > grepText {
		r.left = true
		return
	}
	if r.b.Len() > 0 {
		r.b.WriteByte('\n')
	}
	r.b.WriteString(text)
}

func (r *grepReport) union(root string, u *agentv1.GrepUnionResult) {
	if r.many {
		r.row("In " + clean(root) + ":")
	}
	switch u := u.GetResult().(type) {
	case *agentv1.GrepUnionResult_Count:
		for _, c := range u.Count.GetCounts() {
			r.row(fmt.Sprintf("%s: %d", name(c.GetFile()), c.GetCount()))
		}
		r.left = r.left || u.Count.GetClientTruncated() || u.Count.GetRipgrepTruncated()
	case *agentv1.GrepUnionResult_Files:
		for i, f := range u.Files.GetFiles() {
			if i == grepMost {
				r.left = true
				break
			}
			r.row(name(f))
		}
		r.left = r.left || u.Files.GetClientTruncated() || u.Files.GetRipgrepTruncated()
	case *agentv1.GrepUnionResult_Content:
		for _, f := range u.Content.GetMatches() {
			r.file(f)
		}
		r.left = r.left || u.Content.GetClientTruncated() || u.Content.GetRipgrepTruncated()
	}
}

// file writes the lines of one file: "name:number: text" for a match, with "-" for what is around.
func (r *grepReport) file(f *agentv1.GrepFileMatch) {
	inFile := 0
	for _, m := range f.GetMatches() {
		if !m.GetIsContextLine() {
			inFile, r.matches = inFile+1, r.matches+1
		}
		if inFile > grepFile || r.matches > grepMost {
			r.left = true
			return
		}
		mark := ":"
		if m.GetIsContextLine() {
			mark = "-"
		}
		text := strings.TrimRight(clean(m.GetContent()), "\r\n")
		r.row(fmt.Sprintf("%s%s%d%s %s", name(f.GetFile()), mark, m.GetLineNumber(), mark, cutMiddle(text, grepLine)))
	}
}

func name(file string) string { return strings.TrimPrefix(clean(file), "./") }
