package cursortest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// defaultHandlers work on the client's directory. Paths outside of it are served, as the SDK does.
var defaultHandlers map[string]Handler

func init() { // handlers reach the table themselves, through a child's client
	defaultHandlers = map[string]Handler{
		"read_args":                   read,
		"write_args":                  write,
		"delete_args":                 remove,
		"ls_args":                     list,
		"grep_args":                   grep,
		"diagnostics_args":            diagnose,
		"mcp_args":                    callTool,
		"request_context_args":        describe,
		"fetch_args":                  fetch,
		"subagent_args":               subagent,
		"shell_args":                  shell,
		"shell_stream_args":           streamShell,
		"background_shell_spawn_args": spawnShell,
		"pi_read_args":                piRead,
		"pi_bash_args":                piBash,
		"pi_edit_args":                piEdit,
		"pi_write_args":               piWrite,
		"pi_grep_args":                piGrep,
		"pi_find_args":                piFind,
		"pi_ls_args":                  piList,
	}
}

// path is where a tool's path points to.
func (c *Client) path(p string) string {
	if p == "" {
		p = "."
	}
	if !filepath.IsAbs(p) {
		p = filepath.Join(c.o.Dir, p)
	}
	if abs, err := filepath.Abs(p); err == nil {
		return abs
	}
	return p
}

func read(_ context.Context, e *Exec) error {
	args := e.Args.GetReadArgs()
	result := new(agentv1.ReadResult)
	data, err := os.ReadFile(e.Client.path(args.GetPath()))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		result.Result = &agentv1.ReadResult_FileNotFound{FileNotFound: &agentv1.ReadFileNotFound{Path: args.GetPath()}}
	case errors.Is(err, fs.ErrPermission):
		result.Result = &agentv1.ReadResult_PermissionDenied{PermissionDenied: &agentv1.ReadPermissionDenied{Path: args.GetPath()}}
	case err != nil:
		result.Result = &agentv1.ReadResult_Error{Error: &agentv1.ReadError{Path: args.GetPath(), Error: err.Error()}}
	default:
		result.Result = &agentv1.ReadResult_Success{Success: readSuccess(args, data)}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_ReadResult{ReadResult: result}})
	return nil
}

func readSuccess(args *agentv1.ReadArgs, data []byte) *agentv1.ReadSuccess {
	s := &agentv1.ReadSuccess{
		Path: args.GetPath(), FileSize: int64(len(data)), TotalLines: int32(strings.Count(string(data), "\n") + 1),
	}
	if !utf8.Valid(data) {
		s.Output = &agentv1.ReadSuccess_Data{Data: data}
		return s
	}
	text := string(data)
	if args.Offset != nil || args.Limit != nil {
		text = linesOf(text, int(args.GetOffset()), int(args.GetLimit()))
		s.RangeApplied = true
	}
	s.Output = &agentv1.ReadSuccess_Content{Content: text}
	return s
}

// linesOf is limit lines from line offset, counted from 1; 0 is no bound.
func linesOf(text string, offset, limit int) string {
	lines := strings.SplitAfter(text, "\n")
	lines = lines[min(len(lines), max(0, offset-1)):]
	if limit > 0 {
		lines = lines[:min(len(lines), limit)]
	}
	return strings.Join(lines, "")
}

func write(_ context.Context, e *Exec) error {
	args := e.Args.GetWriteArgs()
	data := []byte(args.GetFileText())
	if len(args.GetFileBytes()) > 0 {
		data = args.GetFileBytes()
	}
	result := new(agentv1.WriteResult)
	if err := writeFile(e.Client.path(args.GetPath()), data); err != nil {
		result.Result = &agentv1.WriteResult_Error{Error: &agentv1.WriteError{Path: args.GetPath(), Error: err.Error()}}
	} else {
		s := &agentv1.WriteSuccess{
			Path: args.GetPath(), FileSize: int32(len(data)), LinesCreated: int32(strings.Count(string(data), "\n") + 1),
		}
		if args.GetReturnFileContentAfterWrite() {
			s.FileContentAfterWrite = new(string(data))
		}
		result.Result = &agentv1.WriteResult_Success{Success: s}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_WriteResult{WriteResult: result}})
	return nil
}

func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o644)
}

func remove(_ context.Context, e *Exec) error {
	args := e.Args.GetDeleteArgs()
	path := e.Client.path(args.GetPath())
	result := new(agentv1.DeleteResult)
	before, err := os.ReadFile(path)
	if err == nil {
		err = os.Remove(path)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		result.Result = &agentv1.DeleteResult_FileNotFound{FileNotFound: &agentv1.DeleteFileNotFound{Path: args.GetPath()}}
	case err != nil:
		result.Result = &agentv1.DeleteResult_Error{Error: &agentv1.DeleteError{Path: args.GetPath(), Error: err.Error()}}
	default:
		result.Result = &agentv1.DeleteResult_Success{Success: &agentv1.DeleteSuccess{
			Path: args.GetPath(), DeletedFile: path, FileSize: int64(len(before)), PrevContent: string(before),
		}}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_DeleteResult{DeleteResult: result}})
	return nil
}

func list(_ context.Context, e *Exec) error {
	args := e.Args.GetLsArgs()
	result := new(agentv1.LsResult)
	if root, err := tree(e.Client.path(args.GetPath()), args.GetIgnore()); err != nil {
		result.Result = &agentv1.LsResult_Error{Error: &agentv1.LsError{Path: args.GetPath(), Error: err.Error()}}
	} else {
		result.Result = &agentv1.LsResult_Success{Success: &agentv1.LsSuccess{DirectoryTreeRoot: root}}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_LsResult{LsResult: result}})
	return nil
}

func tree(dir string, ignore []string) (*agentv1.LsDirectoryTreeNode, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	node := &agentv1.LsDirectoryTreeNode{AbsPath: dir, ChildrenWereProcessed: true}
	for _, entry := range entries {
		if slices.ContainsFunc(ignore, func(glob string) bool { return matches(glob, entry.Name()) }) {
			continue
		}
		if !entry.IsDir() {
			node.ChildrenFiles = append(node.ChildrenFiles, &agentv1.LsDirectoryTreeNode_File{Name: entry.Name()})
			continue
		}
		child, err := tree(filepath.Join(dir, entry.Name()), ignore)
		if err != nil {
			return nil, err
		}
		node.ChildrenDirs = append(node.ChildrenDirs, child)
	}
	return node, nil
}
