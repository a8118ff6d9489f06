package cursortool

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// editor carries out Write and PatchEdit (section 5.5) with requests that have no cards of their own:
//
//	read before ─▶ write ─▶ read after, when the client does not say what the file is now
//	     └──────▶ pi_edit, when the client does not show the file as it is
type editor struct {
	exchange
	call Call
	path string

	old  *string // what is replaced; nil for Write
	text string  // what is put in, or the whole content
	all  bool

	before  *string // nil when it is not known
	created bool
	content string // what is written
	count   int    // replacements
	hint    *string
	usual   bool // the client has the usual requests, whatever its harness says
	again   bool // it was written a second time, with other line ends

	parts parts // of the file, while it is read in ranges
}

func beginWrite(call Call, args json.RawMessage, env *Env) Machine {
	var in writeInput
	if err := decode(args, &in); err != nil {
		return refuse(writeCard(args), "Write error: "+err.Error())
	}
	e := newEditor("Write", call, in.path(), *in.contents(), env)
	e.content = e.text
	e.begin = e.readForWrite
	if env.PiOnly {
		e.begin = e.write
	}
	return e
}

func beginPatch(call Call, args json.RawMessage, env *Env) Machine {
	var in patchInput
	if err := decode(args, &in); err != nil {
		return refuse(patchCard(args), "PatchEdit error: "+err.Error())
	}
	e := newEditor("PatchEdit", call, in.path(), *in.after(), env)
	e.old, e.all = in.before(), bool(in.All || in.AllCamel)
	e.begin = e.readForPatch
	if env.PiOnly && !e.all && *e.old != "" {
		e.begin = func() Step { return e.try(e.piEdit(), readWay(e.readArgs(), e.patchFrom)) }
	}
	return e
}

func newEditor(tool string, call Call, path, text string, env *Env) *editor {
	path = resolve(env.Root, path)
	e := &editor{call: call, path: path, text: text}
	e.exchange = exchange{tool: tool, env: env, card: editCard(path, &text)}
	return e
}

func (e *editor) readArgs() *agentv1.ReadArgs {
	return &agentv1.ReadArgs{Path: e.path, ToolCallId: string(e.call.ID)}
}

// readForWrite reads the file only to show what changes: whatever comes of it, it is written, unless
// the user does not let the file be touched.
func (e *editor) readForWrite() Step {
	w := readWay(e.readArgs(), func(res *agentv1.ReadResult) Step {
		ok := res.GetSuccess()
		switch {
		case res.GetRejected() != nil:
			return e.refused(res.GetRejected().GetReason())
		case res.GetFileNotFound() != nil:
			e.created, e.before = true, new("")
		case ok != nil && !ok.GetTruncated() && textual(ok) && !decorated(ok.GetContent(), ok.GetFileSize()):
			e.before = new(ok.GetContent())
		}
		return e.write()
	})
	take := func(m *agentv1.ExecClientMessage) Step {
		if st, ok := w.take(m); ok {
			return st
		}
		return e.write()
	}
	return e.ask(w.request, take, func(string, bool) Step { return e.write() })
}

func textual(ok *agentv1.ReadSuccess) bool {
	return len(ok.GetData()) == 0 && (ok.GetContent() != "" || len(ok.GetOutputBlobId()) == 0)
}

func (e *editor) readForPatch() Step {
	usual := readWay(e.readArgs(), e.patchFrom)
	if e.env.NoPi || e.all || *e.old == "" {
		return e.try(usual)
	}
	return e.try(usual, e.piEdit())
}

// patchFrom takes the file as it is.
func (e *editor) patchFrom(res *agentv1.ReadResult) Step {
	e.usual = true
	ok := res.GetSuccess()
	switch {
	case ok == nil && res.GetRejected() != nil:
		return e.refused(res.GetRejected().GetReason())
	case ok == nil:
		return e.failRead(res)
	case !textual(ok):
		return e.elsewhere("the client does not send its text")
	case ok.GetTruncated():
		return e.readParts(ok)
	case decorated(ok.GetContent(), ok.GetFileSize()):
		return e.elsewhere("the client sends it with additions")
	}
	e.hint = encoding(ok.GetContent(), ok.GetFileSize())
	return e.patch(ok.GetContent())
}

func (e *editor) failRead(res *agentv1.ReadResult) Step {
	reason := readTrouble(e.path, res)
	if res.GetFileNotFound() != nil {
		return e.failResult(reason+", or make it with Write", &agentv1.EditResult{Result: &agentv1.EditResult_FileNotFound{
			FileNotFound: &agentv1.EditFileNotFound{Path: e.path},
		}})
	}
	if res.GetPermissionDenied() != nil {
		return e.failResult(reason, &agentv1.EditResult{Result: &agentv1.EditResult_ReadPermissionDenied{
			ReadPermissionDenied: &agentv1.EditReadPermissionDenied{Path: e.path},
		}})
	}
	return e.fail(reason)
}

func (e *editor) failResult(reason string, res *agentv1.EditResult) Step {
	e.card.GetEditToolCall().Result = res
	return e.failCard(reason, e.card)
}

// encoding returns what a write has to say of a file of which the client has shown the text only: a
// BOM that makes it longer than its text.
func encoding(content string, size int64) *string {
	if size == int64(len(content))+int64(len(bom)) && !strings.HasPrefix(content, bom) && content != "" {
		return new("utf8bom")
	}
	return nil
}

// elsewhere has the client make the replacement, since the file is not known here as it is.
func (e *editor) elsewhere(why string) Step {
	switch {
	case e.env.NoPi:
		return e.fail("the file cannot be edited: " + why + ". Replace all of it with Write, or use a command")
	case e.all || *e.old == "":
		return e.fail("this edit cannot be made: " + why + ". Give an old_string that is unique, without replace_all, or replace the file with Write")
	default:
		return e.try(e.piEdit())
	}
}

func (e *editor) piEdit() way {
	args := &agentv1.PiEditExecArgs{Path: e.path, Edits: []*agentv1.PiEditReplacement{{OldText: *e.old, NewText: e.text}}}
	return way{
		Request{Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_PiEditArgs{PiEditArgs: args}}, Unsafe: true},
		func(m *agentv1.ExecClientMessage) (Step, bool) {
			if r := m.GetPiEditResult(); r != nil {
				return e.piEdited(r), true
			}
			return Step{}, false
		},
	}
}

func (e *editor) piEdited(res *agentv1.PiEditExecResult) Step {
	switch r := res.GetResult().(type) {
	case *agentv1.PiEditExecResult_Success:
		text := first(r.Success.GetPatch(), r.Success.GetDiff())
		added, removed := countDiff(text)
		e.card.GetEditToolCall().Result = &agentv1.EditResult{Result: &agentv1.EditResult_Success{Success: &agentv1.EditSuccess{
			Path: e.path, DiffString: new(clean(text)), LinesAdded: new(added), LinesRemoved: new(removed), Message: new(clean(r.Success.GetOutput())),
		}}}
		return e.done(Outcome{Text: "Changed " + e.path + ". The client says:\n" + cutMiddle(clean(r.Success.GetOutput()), mcpText), Card: e.card})
	case *agentv1.PiEditExecResult_Rejected:
		return e.refused(r.Rejected.GetReason())
	case *agentv1.PiEditExecResult_Error:
		return e.fail(first(clean(r.Error.GetError()), "the client could not edit "+e.path))
	default:
		return e.fail("the client's answer does not say whether " + e.path + " was changed: read it")
	}
}

// countDiff counts the lines of a diff that were added and removed.
func countDiff(text string) (added, removed int32) {
	for row := range strings.SplitSeq(text, "\n") {
		switch {
		case strings.HasPrefix(row, "+++"), strings.HasPrefix(row, "---"):
		case strings.HasPrefix(row, "+"):
			added++
		case strings.HasPrefix(row, "-"):
			removed++
		}
	}
	return added, removed
}

// patch makes the replacement and writes what comes of it.
func (e *editor) patch(content string) Step {
	if !utf8.ValidString(content) {
		return e.fail("the file is not text in UTF-8")
	}
	out, n, err := patch(content, *e.old, e.text, e.all)
	if err != nil {
		return e.fail(fmt.Sprintf("%s: %v", e.path, err))
	}
	e.before, e.content, e.count = &content, out, n
	return e.write()
}
