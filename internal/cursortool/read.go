package cursortool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const readDescription = `Read a file of the user's workspace. Lines come as NUMBER|TEXT; the number and the bar are not part of the file. ` +
	`Long files come in part: go on with offset. Pictures (PNG, JPEG, GIF, WebP) are shown to you. ` +
	`Read a file before you change it.`

const readSchema = `{
"type": "object",
"properties": {
	"path": {"type": "string", "minLength": 1, "description": "The file, absolute or relative to the workspace"},
	"offset": {"type": "integer", "minimum": 1, "description": "First line to read, counted from 1"},
	"limit": {"type": "integer", "minimum": 1, "description": "How many lines to read"}
},
"required": ["path"]
}`

// readInput is what a model gives to Read.
type readInput struct {
	pathInput
	Offset *number `json:"offset"`
	Limit  *number `json:"limit"`
}

// pathInput is a path under the names that models use for it.
type pathInput struct {
	Path       string `json:"path"`
	FilePath   string `json:"file_path"`
	FileCamel  string `json:"filePath"`
	TargetFile string `json:"target_file"`
}

func (in *pathInput) path() string {
	return first(in.Path, in.FilePath, in.FileCamel, in.TargetFile)
}

func (in *pathInput) check() error {
	if in.path() == "" {
		return errors.New("path is required: give the file's path")
	}
	return nil
}

func readCard(args json.RawMessage) *agentv1.ToolCall {
	var in readInput
	peek(args, &in)
	return in.card(in.path())
}

func (in *readInput) card(path string) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_ReadToolCall{ReadToolCall: &agentv1.ReadToolCall{
		Args: &agentv1.ReadToolArgs{Path: clean(path), Offset: in.Offset.opt(), Limit: in.Limit.opt()},
	}}}
}

// reader reads a file.
type reader struct {
	exchange
	path         string
	offset       int // the first line asked for, from 1
	limit        int // 0 for all
	offset32     *int32
	limitRequest *int32
}

func beginRead(call Call, args json.RawMessage, env *Env) Machine {
	var in readInput
	if err := decode(args, &in); err != nil {
		return refuse(readCard(args), "Read error: "+err.Error())
	}
	r := &reader{path: resolve(env.Root, in.path()), offset: 1}
	if in.Offset != nil && *in.Offset > 1 {
		r.offset, r.offset32 = int(*in.Offset), in.Offset.opt()
	}
	if in.Limit != nil && *in.Limit > 0 {
		r.limit, r.limitRequest = int(*in.Limit), in.Limit.opt()
	}
	r.exchange = exchange{tool: "Read", env: env, card: in.card(r.path)}
	usual := &agentv1.ReadArgs{Path: r.path, ToolCallId: string(call.ID), Offset: r.offset32}
	if r.limitRequest != nil {
		usual.Limit = new(uint32(*r.limitRequest))
	}
	pi := &agentv1.PiReadExecArgs{Path: r.path, Offset: r.offset32, Limit: r.limitRequest}
	r.begin = func() Step { return r.try(env.ways(readWay(usual, r.result), piReadWay(pi, r.piResult))...) }
	return r
}

func readWay(args *agentv1.ReadArgs, take func(*agentv1.ReadResult) Step) way {
	return way{
		Request{Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_ReadArgs{ReadArgs: args}}, Patience: patience},
		func(m *agentv1.ExecClientMessage) (Step, bool) {
			switch r := m.GetMessage().(type) {
			case *agentv1.ExecClientMessage_ReadResult:
				return take(r.ReadResult), true
			case *agentv1.ExecClientMessage_RedactedReadResult:
				return take(r.RedactedReadResult), true
			default:
				return Step{}, false
			}
		},
	}
}

func piReadWay(args *agentv1.PiReadExecArgs, take func(*agentv1.PiReadExecResult) Step) way {
	return way{
		Request{Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_PiReadArgs{PiReadArgs: args}}, Patience: patience},
		func(m *agentv1.ExecClientMessage) (Step, bool) {
			if r := m.GetPiReadResult(); r != nil {
				return take(r), true
			}
			return Step{}, false
		},
	}
}

func (r *reader) result(res *agentv1.ReadResult) Step {
	ok := res.GetSuccess()
	switch {
	case ok == nil && res.GetRejected() != nil:
		return r.refused(res.GetRejected().GetReason())
	case ok == nil:
		return r.fail(readTrouble(r.path, res))
	case len(ok.GetData()) > 0:
		return r.data(ok)
	case ok.GetContent() == "" && len(ok.GetOutputBlobId()) > 0:
		return r.blob(ok)
	default:
		return r.content(ok)
	}
}

// readTrouble says why a file could not be read, for the model.
func readTrouble(path string, res *agentv1.ReadResult) string {
	switch t := res.GetResult().(type) {
	case *agentv1.ReadResult_FileNotFound:
		return "there is no file " + path + ". Look for it with Glob or Ls"
	case *agentv1.ReadResult_PermissionDenied:
		return "the client may not read " + path
	case *agentv1.ReadResult_InvalidFile:
		return path + " cannot be read as a file" + because(t.InvalidFile.GetReason())
	case *agentv1.ReadResult_Rejected:
		return "the user refused that " + path + " is read" + because(t.Rejected.GetReason())
	case *agentv1.ReadResult_Error:
		return first(clean(t.Error.GetError()), "the client could not read "+path)
	default:
		return "the client's answer has no content of " + path
	}
}

func (r *reader) content(ok *agentv1.ReadSuccess) Step {
	text := clean(ok.GetContent())
	if text == "" {
		return r.end("(the file is empty)", &agentv1.ReadToolSuccess{IsEmpty: true, Output: &agentv1.ReadToolSuccess_Content{}}, ok)
	}
	success := &agentv1.ReadToolSuccess{Output: &agentv1.ReadToolSuccess_Content{Content: text}}
	if decorated(text, ok.GetFileSize()) { // it has the numbers already
		shown := cutBefore(text, readText)
		success.ExceededLimit = len(shown) < len(text)
		return r.end(shown, success, ok)
	}
	rows, from := r.rows(text, ok)
	if len(rows) == 0 {
		return r.fail(fmt.Sprintf("%s has %d lines, none from line %d", r.path, max(int(ok.GetTotalLines()), 1), r.offset))
	}
	shown, n := numbered(rows, from)
	last := from + n - 1
	success.ReadRange = &agentv1.ReadRange{StartLine: uint32(from), EndLine: uint32(last)}
	total := int(ok.GetTotalLines())
	switch {
	case n < len(rows) || ok.GetTruncated():
		success.ExceededLimit = true
		shown += fmt.Sprintf("\n[The file goes on. Read it from offset %d.]", last+1)
	case total > last && (total > last+1 || !strings.HasSuffix(text, "\n")): // what follows the last line end counts as a line
		shown += fmt.Sprintf("\n[Lines %d to %d of %d.]", from, last, total)
	}
	return r.end(shown, success, ok)
}

// rows returns the lines asked for and the number of the first one. Some clients take no notice of
// the range and send the whole file.
func (r *reader) rows(text string, ok *agentv1.ReadSuccess) (rows []string, from int) {
	rows = lines(text)
	whole := !ok.GetRangeApplied() && !ok.GetTruncated() && len(rows) >= int(ok.GetTotalLines())-1
	if whole || r.offset == 1 {
		rows = rows[min(r.offset-1, len(rows)):]
	}
	if r.limit > 0 {
		rows = rows[:min(r.limit, len(rows))]
	}
	return rows, r.offset
}

// lines splits a text at its line ends; one at the very end begins no line.
func lines(text string) []string {
	rows := strings.Split(text, "\n")
	if n := len(rows) - 1; rows[n] == "" {
		rows = rows[:n]
	}
	return rows
}

// numbered returns rows with their numbers, as many as the model may get, at least one.
func numbered(rows []string, from int) (text string, n int) {
	var b strings.Builder
	for i, row := range rows {
		row = strings.TrimSuffix(row, "\r")
		if i > 0 && b.Len()+len(row) > readText {
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(strconv.Itoa(from + i))
		b.WriteByte('|')
		b.WriteString(cutMiddle(row, readText))
		n++
	}
	return b.String(), n
}

func (r *reader) end(text string, success *agentv1.ReadToolSuccess, ok *agentv1.ReadSuccess) Step {
	return r.image(text, success, ok, nil)
}

func (r *reader) image(text string, success *agentv1.ReadToolSuccess, ok *agentv1.ReadSuccess, images []Image) Step {
	success.Path = r.path
	success.TotalLines = uint32(max(ok.GetTotalLines(), 0))
	success.FileSize = uint32(min(max(ok.GetFileSize(), 0), 1<<32-1))
	r.card.GetReadToolCall().Result = &agentv1.ReadToolResult{Result: &agentv1.ReadToolResult_Success{Success: success}}
	return r.done(Outcome{Text: text, Card: r.card, Images: images})
}

// piResult takes what pi's read printed, numbers or none.
func (r *reader) piResult(res *agentv1.PiReadExecResult) Step {
	ok := res.GetSuccess()
	if ok == nil {
		return r.fail(first(clean(res.GetError().GetError()), "the client could not read "+r.path))
	}
	total := int32(min(ok.GetTruncation().GetTotalLines(), 1<<30))
	return r.content(&agentv1.ReadSuccess{
		Output:     &agentv1.ReadSuccess_Content{Content: ok.GetOutput()},
		TotalLines: total, RangeApplied: true, Truncated: ok.GetTruncation().GetTruncated(),
	})
}
