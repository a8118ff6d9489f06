package cursortest

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// grep searches, or lists files if there is no pattern, which is how a server globs.
func grep(_ context.Context, e *Exec) error {
	args := e.Args.GetGrepArgs()
	result := new(agentv1.GrepResult)
	if s, err := e.Client.search(args); err != nil {
		result.Result = &agentv1.GrepResult_Error{Error: &agentv1.GrepError{Error: err.Error()}}
	} else {
		result.Result = &agentv1.GrepResult_Success{Success: s}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_GrepResult{GrepResult: result}})
	return nil
}

func (c *Client) search(args *agentv1.GrepArgs) (*agentv1.GrepSuccess, error) {
	expr, err := expression(args)
	if err != nil {
		return nil, err
	}
	root := c.path(args.GetPath())
	hits, err := searchFiles(root, args, expr)
	if err != nil {
		return nil, err
	}
	mode := args.GetOutputMode()
	orElse(&mode, "content")
	return &agentv1.GrepSuccess{
		Pattern: args.GetPattern(), Path: root, OutputMode: mode,
		WorkspaceResults: map[string]*agentv1.GrepUnionResult{root: union(mode, hits, args)},
	}, nil
}

func expression(args *agentv1.GrepArgs) (*regexp.Regexp, error) {
	flags := "m"
	if args.GetCaseInsensitive() {
		flags += "i"
	}
	if args.GetMultiline() {
		flags += "s"
	}
	return regexp.Compile("(?" + flags + ")" + args.GetPattern())
}

func searchFiles(root string, args *agentv1.GrepArgs, expr *regexp.Regexp) (hits []*agentv1.GrepFileMatch, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" {
				return filepath.SkipDir
			}
			return nil
		}
		name := "./" + filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(path, root), string(filepath.Separator)))
		if path == root { // a single file
			name = filepath.Base(path)
		}
		if args.GetGlob() != "" && !matches(args.GetGlob(), strings.TrimPrefix(name, "./")) ||
			args.GetType() != "" && filepath.Ext(path) != "."+args.GetType() {
			return nil
		}
		if args.GetPattern() == "" {
			hits = append(hits, &agentv1.GrepFileMatch{File: name})
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if found := lineMatches(string(data), args, expr); len(found) > 0 {
			hits = append(hits, &agentv1.GrepFileMatch{File: name, Matches: found})
		}
		return nil
	})
	return hits, err
}

// lineMatches are the lines with a match and those around them.
func lineMatches(text string, args *agentv1.GrepArgs, expr *regexp.Regexp) []*agentv1.GrepContentMatch {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	matched, shown := make([]bool, len(lines)), make([]bool, len(lines))
	before, after := max(args.GetContextBefore(), args.GetContext()), max(args.GetContextAfter(), args.GetContext())
	for _, at := range expr.FindAllStringIndex(text, -1) {
		first := strings.Count(text[:at[0]], "\n")
		last := first + strings.Count(strings.TrimSuffix(text[at[0]:at[1]], "\n"), "\n")
		for i := max(0, first-int(before)); i < min(len(lines), last+int(after)+1); i++ {
			shown[i] = true
			matched[i] = matched[i] || i >= first && i <= last
		}
	}
	var found []*agentv1.GrepContentMatch
	for i, line := range lines {
		if shown[i] {
			found = append(found, &agentv1.GrepContentMatch{LineNumber: int32(i + 1), Content: line, IsContextLine: !matched[i]})
		}
	}
	return found
}

func union(mode string, hits []*agentv1.GrepFileMatch, args *agentv1.GrepArgs) *agentv1.GrepUnionResult {
	total := len(hits)
	hits = hits[min(len(hits), int(max(0, args.GetOffset()))):]
	if limit := int(args.GetHeadLimit()); limit > 0 {
		hits = hits[:min(len(hits), limit)]
	}
	truncated := len(hits) < total
	switch mode {
	case "files_with_matches":
		out := &agentv1.GrepFilesResult{TotalFiles: int32(total), ClientTruncated: truncated}
		for _, hit := range hits {
			out.Files = append(out.Files, hit.GetFile())
		}
		return &agentv1.GrepUnionResult{Result: &agentv1.GrepUnionResult_Files{Files: out}}
	case "count":
		out := &agentv1.GrepCountResult{TotalFiles: int32(total), ClientTruncated: truncated}
		for _, hit := range hits {
			_, n := countLines(hit)
			out.TotalMatches += n
			out.Counts = append(out.Counts, &agentv1.GrepFileCount{File: hit.GetFile(), Count: n})
		}
		return &agentv1.GrepUnionResult{Result: &agentv1.GrepUnionResult_Count{Count: out}}
	default:
		out := &agentv1.GrepContentResult{Matches: hits, ClientTruncated: truncated}
		for _, hit := range hits {
			lines, n := countLines(hit)
			out.TotalLines += lines
			out.TotalMatchedLines += n
		}
		return &agentv1.GrepUnionResult{Result: &agentv1.GrepUnionResult_Content{Content: out}}
	}
}

func countLines(hit *agentv1.GrepFileMatch) (lines, matched int32) {
	for _, m := range hit.GetMatches() {
		lines++
		if !m.GetIsContextLine() {
			matched++
		}
	}
	return lines, matched
}

// matches tells whether a glob, as ripgrep reads it, fits a slash-separated relative path: one without
// a slash fits at any depth.
func matches(glob, path string) bool {
	if !strings.Contains(glob, "/") {
		glob = "**/" + glob
	}
	var expr strings.Builder
	expr.WriteString("^")
	glob = strings.TrimPrefix(glob, "/")
	for i := 0; i < len(glob); i++ {
		switch rest := glob[i:]; {
		case strings.HasPrefix(rest, "**/"):
			expr.WriteString("(?:.*/)?")
			i += 2
		case strings.HasPrefix(rest, "**"):
			expr.WriteString(".*")
			i++
		case rest[0] == '*':
			expr.WriteString("[^/]*")
		case rest[0] == '?':
			expr.WriteString("[^/]")
		case rest[0] == '{':
			expr.WriteString("(?:")
		case rest[0] == '}':
			expr.WriteString(")")
		case rest[0] == ',':
			expr.WriteString("|")
		default:
			expr.WriteString(regexp.QuoteMeta(rest[:1]))
		}
	}
	ok, err := regexp.MatchString(expr.String()+"$", path)
	return ok && err == nil
}
