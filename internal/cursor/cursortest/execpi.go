package cursortest

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// The pi tools answer with text for a model (section 5.13).

func piRead(_ context.Context, e *Exec) error {
	args := e.Args.GetPiReadArgs()
	result := new(agentv1.PiReadExecResult)
	if data, err := os.ReadFile(e.Client.path(args.GetPath())); err != nil {
		result.Result = &agentv1.PiReadExecResult_Error{Error: &agentv1.PiReadExecError{Error: err.Error()}}
	} else {
		result.Result = &agentv1.PiReadExecResult_Success{Success: &agentv1.PiReadExecSuccess{
			Output: linesOf(string(data), int(args.GetOffset()), int(args.GetLimit())),
		}}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_PiReadResult{PiReadResult: result}})
	return nil
}

func piBash(ctx context.Context, e *Exec) error {
	args := e.Args.GetPiBashArgs()
	limit := time.Duration(args.GetTimeout() * float64(time.Second))
	out, p, how, err := e.Client.collect(ctx, args.GetCommand(), "", limit)
	if err != nil {
		return err
	}
	result := new(agentv1.PiBashExecResult)
	switch {
	case how != finished:
		result.Result = &agentv1.PiBashExecResult_Error{Error: &agentv1.PiBashExecError{Error: out.all.String() + "\n\nCommand aborted"}}
	case p.code() != 0:
		result.Result = &agentv1.PiBashExecResult_Error{Error: &agentv1.PiBashExecError{
			Error: fmt.Sprintf("%s\n\nCommand exited with code %d", out.all.String(), p.code()),
		}}
	default:
		result.Result = &agentv1.PiBashExecResult_Success{Success: &agentv1.PiBashExecSuccess{Output: out.all.String()}}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_PiBashResult{PiBashResult: result}})
	return nil
}

func piWrite(_ context.Context, e *Exec) error {
	args := e.Args.GetPiWriteArgs()
	result := new(agentv1.PiWriteExecResult)
	if err := writeFile(e.Client.path(args.GetPath()), []byte(args.GetContent())); err != nil {
		result.Result = &agentv1.PiWriteExecResult_Error{Error: &agentv1.PiWriteExecError{Error: err.Error()}}
	} else {
		result.Result = &agentv1.PiWriteExecResult_Success{Success: &agentv1.PiWriteExecSuccess{
			Output: fmt.Sprintf("Successfully wrote %d bytes to %s", len(args.GetContent()), args.GetPath()),
		}}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_PiWriteResult{PiWriteResult: result}})
	return nil
}

func piEdit(_ context.Context, e *Exec) error {
	args := e.Args.GetPiEditArgs()
	result := new(agentv1.PiEditExecResult)
	if err := e.Client.replace(args); err != nil {
		result.Result = &agentv1.PiEditExecResult_Error{Error: &agentv1.PiEditExecError{Error: err.Error()}}
	} else {
		result.Result = &agentv1.PiEditExecResult_Success{Success: &agentv1.PiEditExecSuccess{
			Output: fmt.Sprintf("Successfully replaced %d block(s) in %s", len(args.GetEdits()), args.GetPath()),
		}}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_PiEditResult{PiEditResult: result}})
	return nil
}

func (c *Client) replace(args *agentv1.PiEditExecArgs) error {
	path := c.path(args.GetPath())
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text := string(data)
	for _, edit := range args.GetEdits() {
		if n := strings.Count(text, edit.GetOldText()); n != 1 {
			return fmt.Errorf("old_text is in the file %d times; it has to be there once", n)
		}
		text = strings.Replace(text, edit.GetOldText(), edit.GetNewText(), 1)
	}
	return writeFile(path, []byte(text))
}

func piList(_ context.Context, e *Exec) error {
	result := new(agentv1.PiLsExecResult)
	if entries, err := os.ReadDir(e.Client.path(e.Args.GetPiLsArgs().GetPath())); err != nil {
		result.Result = &agentv1.PiLsExecResult_Error{Error: &agentv1.PiLsExecError{Error: err.Error()}}
	} else {
		names := make([]string, 0, len(entries))
		for _, entry := range entries {
			name := entry.Name()
			if entry.IsDir() {
				name += "/"
			}
			names = append(names, name)
		}
		result.Result = &agentv1.PiLsExecResult_Success{Success: &agentv1.PiLsExecSuccess{Output: strings.Join(names, "\n")}}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_PiLsResult{PiLsResult: result}})
	return nil
}

func piGrep(_ context.Context, e *Exec) error {
	args := e.Args.GetPiGrepArgs()
	result := new(agentv1.PiGrepExecResult)
	if lines, err := e.Client.piSearch(args); err != nil {
		result.Result = &agentv1.PiGrepExecResult_Error{Error: &agentv1.PiGrepExecError{Error: err.Error()}}
	} else {
		result.Result = &agentv1.PiGrepExecResult_Success{Success: &agentv1.PiGrepExecSuccess{Output: firstLines(lines, args.GetLimit())}}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_PiGrepResult{PiGrepResult: result}})
	return nil
}

// piSearch returns lines like "a.txt:2: text".
func (c *Client) piSearch(args *agentv1.PiGrepExecArgs) (lines []string, err error) {
	pattern := args.GetPattern()
	if args.GetLiteral() {
		pattern = regexp.QuoteMeta(pattern)
	}
	found, err := c.search(&agentv1.GrepArgs{
		Pattern: pattern, Path: args.Path, Glob: args.Glob, Context: args.Context, CaseInsensitive: args.IgnoreCase,
	})
	if err != nil {
		return nil, err
	}
	for _, file := range found.GetWorkspaceResults()[found.GetPath()].GetContent().GetMatches() {
		for _, m := range file.GetMatches() {
			lines = append(lines, fmt.Sprintf("%s:%d: %s", strings.TrimPrefix(file.GetFile(), "./"), m.GetLineNumber(), m.GetContent()))
		}
	}
	return lines, nil
}

func piFind(_ context.Context, e *Exec) error {
	args := e.Args.GetPiFindArgs()
	result := new(agentv1.PiFindExecResult)
	found, err := e.Client.search(&agentv1.GrepArgs{Path: args.Path, Glob: new(args.GetPattern()), OutputMode: new("files_with_matches")})
	if err != nil {
		result.Result = &agentv1.PiFindExecResult_Error{Error: &agentv1.PiFindExecError{Error: err.Error()}}
	} else {
		var names []string
		for _, name := range found.GetWorkspaceResults()[found.GetPath()].GetFiles().GetFiles() {
			names = append(names, strings.TrimPrefix(name, "./"))
		}
		result.Result = &agentv1.PiFindExecResult_Success{Success: &agentv1.PiFindExecSuccess{Output: firstLines(names, args.GetLimit())}}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_PiFindResult{PiFindResult: result}})
	return nil
}

// firstLines joins at most limit lines; 0 is no limit.
func firstLines(lines []string, limit int32) string {
	if limit > 0 {
		lines = lines[:min(len(lines), int(limit))]
	}
	return strings.Join(lines, "\n")
}
