// Package searchtool holds the tools that look through a tree: grep, for what is in files,
// and find, for their names. They need no other program.
//
//	walk, in the order of paths ─▶ find ────────────────────▶ result
//	                           └─▶ grep: 2 workers, in order ─▶ result
package searchtool

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/schema"
	"github.com/roost-dev/roost/internal/tool/searchtool/glob"
	"github.com/roost-dev/roost/internal/workspace"
)

//go:embed *.json
var schemas embed.FS

// New returns the tools grep and find.
func New() []tool.Tool {
	return []tool.Tool{define("grep", grepText, grep), define("find", findText, find)}
}

// searchTool is a tool whose work is a function of its checked input P.
type searchTool[P any] struct {
	spec   tool.Spec
	schema *schema.Schema
	work   func(ctx context.Context, root *workspace.Root, in P) (string, error)
}

func define[P any](name, text string, work func(context.Context, *workspace.Root, P) (string, error)) tool.Tool {
	raw, err := schemas.ReadFile(name + ".json")
	if err != nil {
		panic(err) // the file is part of the program
	}
	s := schema.MustParse(raw)
	return &searchTool[P]{
		spec:   tool.Spec{Name: name, Description: text, Schema: s.Raw(), Repeatable: true},
		schema: s,
		work:   work,
	}
}

func (t *searchTool[P]) Spec() tool.Spec { return t.spec }

func (t *searchTool[P]) Run(ctx context.Context, call tool.Call, _ func(tool.Progress)) tool.Result {
	var in P
	if err := t.schema.Decode(call.Input, &in); err != nil {
		return tool.Failure(fmt.Sprintf("%s: %v", t.spec.Name, err))
	}
	root, err := workspace.Open(call.Dir, call.Confined)
	if err != nil {
		return tool.Failure(tool.Clean(err.Error()))
	}
	text, err := t.work(ctx, root, in)
	err = errors.Join(err, root.Close())
	switch {
	case ctx.Err() != nil:
		return tool.Failure("Aborted: the search did not end.")
	case errors.Is(err, fs.ErrNotExist):
		return tool.Failure(tool.Cut(tool.Clean(err.Error()), tool.MaxNotice-100) + ". Use ls to see what there is.")
	case err != nil:
		return tool.Failure(tool.Cut(tool.Clean(err.Error()), tool.MaxNotice))
	}
	return tool.Result{Text: text}
}

// filter returns a function that tells whether a pattern matches a path, which is relative
// to where the search began. A pattern without a slash is one for the last element.
func filter(pattern string) (func(rel string) bool, error) {
	if pattern == "" {
		return func(string) bool { return true }, nil
	}
	pattern = strings.TrimPrefix(pattern, "./")
	whole := strings.Contains(pattern, "/")
	re, err := glob.Compile(strings.TrimPrefix(pattern, "/"))
	if err != nil {
		return nil, err
	}
	return func(rel string) bool { return re.MatchString(tail(rel, whole)) }, nil
}

func tail(rel string, whole bool) string {
	if whole {
		return rel
	}
	return rel[strings.LastIndexByte(rel, '/')+1:]
}

// maxProgram bounds the work that one character of a file can cost, because a match cannot
// be interrupted.
const maxProgram = 2000

// expression compiles the pattern of a grep. "^" and "$" are a line's ends.
func expression(in grepParams) (*regexp.Regexp, error) {
	pattern := in.Pattern
	if in.Literal {
		pattern = regexp.QuoteMeta(pattern)
	}
	flags := "(?m)"
	if in.IgnoreCase {
		flags = "(?mi)"
	}
	re, err := regexp.Compile(flags + pattern)
	if err != nil {
		return nil, fmt.Errorf("pattern: %w; it must be in RE2 syntax, which has no look-around (?=…) (?!…) (?<…) and no back-references \\1; with literal it is plain text", err)
	}
	if !in.Literal && programSize(re) > maxProgram {
		return nil, errors.New("pattern: it is too complex; make it shorter, or its repetitions {n,m} smaller")
	}
	return re, nil
}

// programSize returns the number of instructions of a compiled expression.
func programSize(re *regexp.Regexp) int {
	parsed, err := syntax.Parse(re.String(), syntax.Perl)
	if err != nil {
		return 0
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(prog.Inst)
}
