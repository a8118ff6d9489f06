package cursortool

import (
	"fmt"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// write writes the content. The client may ask its user first.
func (e *editor) write() Step {
	args := &agentv1.WriteArgs{
		Path: e.path, FileText: e.content, ToolCallId: string(e.call.ID), ReturnFileContentAfterWrite: true, EncodingHint: e.hint,
	}
	usual := way{
		Request{Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_WriteArgs{WriteArgs: args}}, Unsafe: true},
		func(m *agentv1.ExecClientMessage) (Step, bool) {
			if r := m.GetWriteResult(); r != nil {
				return e.written(r), true
			}
			return Step{}, false
		},
	}
	pi := way{
		Request{Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_PiWriteArgs{
			PiWriteArgs: &agentv1.PiWriteExecArgs{Path: e.path, Content: e.content},
		}}, Unsafe: true},
		func(m *agentv1.ExecClientMessage) (Step, bool) {
			if r := m.GetPiWriteResult(); r != nil {
				return e.piWritten(r), true
			}
			return Step{}, false
		},
	}
	if e.usual && !e.env.NoPi {
		return e.try(usual, pi)
	}
	return e.try(e.env.ways(usual, pi)...)
}

func (e *editor) written(res *agentv1.WriteResult) Step {
	if e.again && res.GetSuccess() == nil {
		return e.succeed(e.content, "Its line ends may be doubled: the client did not let them be put right.")
	}
	switch r := res.GetResult().(type) {
	case *agentv1.WriteResult_Success:
		if r.Success.FileContentAfterWrite != nil {
			return e.after(*r.Success.FileContentAfterWrite)
		}
		return e.readAfter()
	case *agentv1.WriteResult_Rejected:
		return e.refused(r.Rejected.GetReason())
	case *agentv1.WriteResult_PermissionDenied:
		reason := "the client may not write " + e.path + because(r.PermissionDenied.GetError())
		return e.failResult(reason, &agentv1.EditResult{Result: &agentv1.EditResult_WritePermissionDenied{
			WritePermissionDenied: &agentv1.EditWritePermissionDenied{
				Path: e.path, Error: clean(r.PermissionDenied.GetError()), IsReadonly: r.PermissionDenied.GetIsReadonly(),
			},
		}})
	case *agentv1.WriteResult_NoSpace:
		return e.fail("there is no space left to write " + e.path)
	case *agentv1.WriteResult_Error:
		return e.fail(first(clean(r.Error.GetError()), "the client could not write "+e.path))
	default:
		return e.fail("the client's answer does not say whether " + e.path + " was written: read it")
	}
}

func (e *editor) piWritten(res *agentv1.PiWriteExecResult) Step {
	switch r := res.GetResult().(type) {
	case *agentv1.PiWriteExecResult_Success:
		return e.succeed(e.content, "")
	case *agentv1.PiWriteExecResult_Rejected:
		return e.refused(r.Rejected.GetReason())
	case *agentv1.PiWriteExecResult_Error:
		return e.fail(first(clean(r.Error.GetError()), "the client could not write "+e.path))
	default:
		return e.fail("the client's answer does not say whether " + e.path + " was written: read it")
	}
}

// readAfter asks what the file is now. It is written in any case.
func (e *editor) readAfter() Step {
	expected := func(string, bool) Step { return e.succeed(e.content, "") }
	w := readWay(e.readArgs(), func(res *agentv1.ReadResult) Step {
		ok := res.GetSuccess()
		if ok == nil || ok.GetTruncated() || !textual(ok) || decorated(ok.GetContent(), ok.GetFileSize()) {
			return e.succeed(e.content, "")
		}
		return e.after(ok.GetContent())
	})
	take := func(m *agentv1.ExecClientMessage) Step {
		if st, ok := w.take(m); ok {
			return st
		}
		return expected("", false)
	}
	return e.ask(w.request, take, expected)
}

// after compares the file with what was written. Clients on Windows may change LF to CRLF when they
// write, also where it was CRLF already: then it is written again with LF.
func (e *editor) after(content string) Step {
	win := windows(e.env.Root) || windows(e.path)
	switch {
	case content == e.content, strings.TrimPrefix(content, bom) == strings.TrimPrefix(e.content, bom):
		return e.succeed(content, "")
	case win && !e.again && strings.Contains(e.content, "\r\n") && content == strings.ReplaceAll(e.content, "\n", "\r\n"):
		e.again, e.content = true, lf(e.content)
		return e.write()
	case win && sameLines(content, e.content):
		return e.succeed(content, "")
	default:
		return e.succeed(content, "It is not as it was written now: the client, or somebody else, has changed it further. Read it before the next edit.")
	}
}

// sameLines reports whether two texts differ in their line ends only, doubled ones included.
func sameLines(a, b string) bool {
	flat := func(s string) string { return strings.ReplaceAll(strings.ReplaceAll(s, "\r", ""), "\n\n", "\n") }
	return flat(a) == flat(b)
}

// succeed ends the call; note is for the model.
func (e *editor) succeed(after, note string) Step {
	ok := &agentv1.EditSuccess{Path: e.path}
	shown := len(after) <= editShown
	if shown {
		ok.AfterFullFileContent = clean(after)
	}
	change := ""
	if e.before != nil {
		d := newDiff(clean(*e.before), clean(after))
		added, removed := d.counts()
		ok.LinesAdded, ok.LinesRemoved, ok.DiffString = new(added), new(removed), new(d.unified(e.path))
		if shown && len(*e.before) <= editShown {
			ok.BeforeFullFileContent = new(clean(*e.before))
		}
		change = fmt.Sprintf(" (+%d -%d lines)", added, removed)
	}
	text := "Wrote " + e.path
	switch {
	case e.old != nil && e.count != 1:
		text = fmt.Sprintf("Changed %s in %d places", e.path, e.count)
	case e.old != nil:
		text = "Changed " + e.path
	case e.created:
		text = "Made " + e.path
	}
	text += change + "."
	if note != "" {
		text += " " + note
		ok.Message = new(note)
	}
	e.card.GetEditToolCall().Result = &agentv1.EditResult{Result: &agentv1.EditResult_Success{Success: ok}}
	return e.done(Outcome{Text: text, Card: e.card})
}
