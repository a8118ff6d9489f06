package cursortool

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

func jstr(t testing.TB, s string) string {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// readOf and writeOf are what an editor asks and how a client that keeps files as they are answers.
func readOf(t testing.TB, content string) turn {
	return turn{readRequest, fmt.Sprintf(`{"read_result":{"success":{"content":%s,"total_lines":%d,"file_size":"%d"}}}`, jstr(t, content), strings.Count(content, "\n")+1, len(content))}
}

func writeArgs(t testing.TB, content string) string {
	return fmt.Sprintf(`{"write_args":{"path":"/home/dev/project/a.txt","file_text":%s,"tool_call_id":"call1-0-0","return_file_content_after_write":true}}`, jstr(t, content))
}

func writeAnswer(t testing.TB, after string) string {
	return fmt.Sprintf(`{"write_result":{"success":{"path":"/home/dev/project/a.txt","lines_created":2,"file_content_after_write":%s}}}`, jstr(t, after))
}

func writeOf(t testing.TB, content string) turn {
	return turn{writeArgs(t, content), writeAnswer(t, content)}
}

func TestWrite(t *testing.T) {
	in := func(contents string) string { return `{"path":"a.txt","contents":` + jstr(t, contents) + `}` }
	notFound := turn{readRequest, `{"read_result":{"file_not_found":{"path":"a.txt"}}}`}
	runScenarios(t, []scenario{
		{
			name: "a new file, nothing trimmed (W23)", tool: "Write", input: in("  written by tool\n\n"),
			turns: []turn{notFound, writeOf(t, "  written by tool\n\n")},
			want:  outcome{"Made /home/dev/project/a.txt (+2 -0 lines).", false, `"lines_added":2,"lines_removed":0,"path":"/home/dev/project/a.txt"`},
		},
		{
			name: "replaced", tool: "Write", input: `{"file_path":"a.txt","content":"b\n"}`,
			turns: []turn{readOf(t, "a\n"), writeOf(t, "b\n")},
			want:  outcome{"Wrote /home/dev/project/a.txt (+1 -1 lines).", false, `"after_full_file_content":"b\n","before_full_file_content":"a\n","diff_string":"--- /home/dev/project/a.txt\n+++ /home/dev/project/a.txt\n@@ -1,1 +1,1 @@\n-a\n+b\n"`},
		},
		{
			name: "an empty file", tool: "Write", input: in(""),
			turns: []turn{notFound, writeOf(t, "")},
			want:  outcome{"Made /home/dev/project/a.txt (+0 -0 lines).", false, `"stream_content":""`},
		},
		{
			name: "the client does not say what the file is now", tool: "Write", input: in("x\n"),
			turns: []turn{notFound, {"", `{"write_result":{"success":{"path":"a.txt"}}}`}, readOf(t, "x\n")},
			want:  outcome{"Made /home/dev/project/a.txt (+1 -0 lines).", false, `"after_full_file_content":"x\n"`},
		},
		{
			name: "nor can it be read", tool: "Write", input: in("x\n"),
			turns: []turn{notFound, {"", `{"write_result":{"success":{"path":"a.txt"}}}`}, {readRequest, closes}},
			want:  outcome{"Made /home/dev/project/a.txt (+1 -0 lines).", false, `"after_full_file_content":"x\n"`},
		},
		{
			name: "formatted by the client", tool: "Write", input: in("x"),
			turns: []turn{notFound, {"", writeAnswer(t, "x;\n")}},
			want:  outcome{"…has changed it further. Read it before the next edit.", false, `"after_full_file_content":"x;\n"`},
		},
		{
			name: "rejected (R18)", tool: "Write", input: in("x"),
			turns: []turn{notFound, {"", `{"write_result":{"rejected":{"path":"a.txt","reason":"no!"}}}`}},
			want:  outcome{"…Do not call it again with the same arguments", true, `"rejected":{"path":"/home/dev/project/a.txt","reason":"no!"}`},
		},
		{
			name: "denied", tool: "Write", input: in("x"),
			turns: []turn{notFound, {"", `{"write_result":{"permission_denied":{"path":"a.txt","error":"EACCES","is_readonly":true}}}`}},
			want:  outcome{"…may not write /home/dev/project/a.txt: EACCES", true, `"write_permission_denied":{"error":"EACCES","is_readonly":true`},
		},
		{
			name: "no space", tool: "Write", input: in("x"),
			turns: []turn{notFound, {"", `{"write_result":{"no_space":{"path":"a.txt"}}}`}},
			want:  outcome{"…no space left", true, `"error":{"error":"there is no space left`},
		},
		{
			name: "closed while it is written (W25)", tool: "Write", input: in("x"),
			turns: []turn{notFound, {"", closes}},
			want:  outcome{"…It is not known whether anything was done", true, `"edit_tool_call"`},
		},
		{
			name: "the read is closed (W25)", tool: "Write", input: in("x"),
			turns: []turn{{readRequest, closes}, writeOf(t, "x")},
			want:  outcome{"Wrote /home/dev/project/a.txt.", false, `"after_full_file_content":"x"`},
		},
		{
			name: "pi's write", tool: "Write", input: in("x"),
			turns: []turn{{readRequest, unsupported}, {writeArgs(t, "x"), unsupported}, {`{"pi_write_args":{"path":"/home/dev/project/a.txt","content":"x"}}`, `{"pi_write_result":{"success":{"output":"[pw.txt#30EA]\nSuccessfully wrote 1 bytes to pw.txt"}}}`}},
			want:  outcome{"Wrote /home/dev/project/a.txt.", false, `"after_full_file_content":"x"`},
		},
		{
			name: "pi only", tool: "Write", input: in("x"), env: func(e *Env) { e.PiOnly = true },
			turns: []turn{{`{"pi_write_args":{"path":"/home/dev/project/a.txt","content":"x"}}`, `{"pi_write_result":{"rejected":{"reason":"no"}}}`}},
			want:  outcome{"…The user refused this Write: no.", true, `"rejected"`},
		},
		{name: "no contents", tool: "Write", input: `{"path":"a.txt"}`, want: outcome{"…contents is required", true, `"path":"a.txt"`}},
	})
}

func TestPatchEdit(t *testing.T) {
	in := func(old, text string) string {
		return `{"path":"a.txt","old_string":` + jstr(t, old) + `,"new_string":` + jstr(t, text) + `}`
	}
	const file = "line1\nneedle here\nline3\n"
	runScenarios(t, []scenario{
		{
			name: "sdk", tool: "PatchEdit", input: in("needle here", "changed"),
			turns: []turn{readOf(t, file), writeOf(t, "line1\nchanged\nline3\n")},
			want:  outcome{"Changed /home/dev/project/a.txt (+1 -1 lines).", false, `"diff_string":"--- /home/dev/project/a.txt\n+++ /home/dev/project/a.txt\n@@ -1,3 +1,3 @@\n line1\n-needle here\n+changed\n line3\n"`},
		},
		{
			name: "names in camel case, all of them", tool: "PatchEdit", input: `{"filePath":"a.txt","oldString":"line","newString":"row","replaceAll":"true"}`,
			turns: []turn{readOf(t, file), writeOf(t, "row1\nneedle here\nrow3\n")},
			want:  outcome{"Changed /home/dev/project/a.txt in 2 places (+2 -2 lines).", false, `"lines_added":2`},
		},
		{
			name: "an empty file (W24)", tool: "PatchEdit", input: in("", "x\n"),
			turns: []turn{readOf(t, ""), writeOf(t, "x\n")},
			want:  outcome{"Changed /home/dev/project/a.txt (+1 -0 lines).", false, `"after_full_file_content":"x\n"`},
		},
		{
			name: "CRLF", tool: "PatchEdit", input: in("line1\nneedle", "one\ntwo\nneedle"),
			turns: []turn{readOf(t, "line1\r\nneedle\r\n"), writeOf(t, "one\r\ntwo\r\nneedle\r\n")},
			want:  outcome{"Changed /home/dev/project/a.txt (+2 -1 lines).", false, `"lines_added":2`},
		},
		{
			name: "a BOM stays", tool: "PatchEdit", input: in("a", "b"),
			turns: []turn{readOf(t, "\ufeffa"), writeOf(t, "\ufeffb")},
			want:  outcome{"Changed /home/dev/project/a.txt (+1 -1 lines).", false, `"edit_tool_call"`},
		},
		{
			name: "a BOM that the client keeps to itself", tool: "PatchEdit", input: in("a", "b"),
			turns: []turn{
				{readRequest, `{"read_result":{"success":{"content":"a","total_lines":1,"file_size":"4"}}}`},
				{`{"write_args":{"path":"/home/dev/project/a.txt","file_text":"b","tool_call_id":"call1-0-0","return_file_content_after_write":true,"encoding_hint":"utf8bom"}}`, writeAnswer(t, "b")},
			},
			want: outcome{"Changed /home/dev/project/a.txt (+1 -1 lines).", false, `"edit_tool_call"`},
		},
		{
			name: "not found", tool: "PatchEdit", input: in("nowhere", "x"),
			turns: []turn{readOf(t, file)},
			want:  outcome{"…old_string is not in the file. Read the file again and copy the text exactly", true, `"error":{"error":"/home/dev/project/a.txt: old_string is not in the file`},
		},
		{
			name: "other white space", tool: "PatchEdit", input: in("  needle here", "x"),
			turns: []turn{readOf(t, file)},
			want:  outcome{"…From line 2 there is the same text with other white space", true, `"error"`},
		},
		{
			name: "not unique", tool: "PatchEdit", input: in("line", "x"),
			turns: []turn{readOf(t, file)},
			want:  outcome{"…not unique: it is in the file 2 times (lines 1, 3). Give more of the text", true, `"error"`},
		},
		{
			name: "empty, in a file that is not", tool: "PatchEdit", input: in("", "x"),
			turns: []turn{readOf(t, file)},
			want:  outcome{"…old_string is empty but the file is not", true, `"error"`},
		},
		{name: "equal", tool: "PatchEdit", input: in("x", "x"), want: outcome{"…are equal", true, `"stream_content":"x"`}},
		{name: "no new_string", tool: "PatchEdit", input: `{"path":"a","old_string":"x"}`, want: outcome{"…old_string and new_string are required", true, `"error"`}},
		{
			name: "no file", tool: "PatchEdit", input: in("a", "b"),
			turns: []turn{{readRequest, `{"read_result":{"file_not_found":{"path":"a.txt"}}}`}},
			want:  outcome{"…or make it with Write", true, `"file_not_found":{"path":"/home/dev/project/a.txt"}`},
		},
		{
			name: "not readable", tool: "PatchEdit", input: in("a", "b"),
			turns: []turn{{readRequest, `{"read_result":{"permission_denied":{"path":"a.txt"}}}`}},
			want:  outcome{"…may not read", true, `"read_permission_denied"`},
		},
		{
			name: "the read is closed (W25)", tool: "PatchEdit", input: in("a", "b"),
			turns: []turn{{readRequest, closes}},
			want:  outcome{"…without a result", true, `"error"`},
		},
		{
			name: "decorated by oh-my-pi", tool: "PatchEdit", input: in("needle here", "y"),
			turns: []turn{
				{readRequest, `{"read_result":{"success":{"content":"[a.txt#0927]\n1:line1\n2:needle here\n3:line3","total_lines":3,"file_size":"24"}}}`},
				{`{"pi_edit_args":{"path":"/home/dev/project/a.txt","edits":[{"old_text":"needle here","new_text":"y"}]}}`, `{"exec_id":"exec-7","pi_edit_result":{"success":{"output":"[/home/dev/project]\n1:y","diff":"-1|x\n+1|y","first_changed_line":1}}}`},
			},
			want: outcome{"Changed /home/dev/project/a.txt. The client says:\n[/home/dev/project]\n1:y", false, `"diff_string":"-1|x\n+1|y","lines_added":1,"lines_removed":1,"message":"[/home/dev/project]\n1:y"`},
		},
		{
			name: "decorated, and there is no pi", tool: "PatchEdit", input: in("needle here", "y"), env: func(e *Env) { e.NoPi = true },
			turns: []turn{{readRequest, `{"read_result":{"success":{"content":"[a.txt#0927]\n1:line1\n2:needle here","total_lines":2,"file_size":"24"}}}`}},
			want:  outcome{"…cannot be edited: the client sends it with additions", true, `"error"`},
		},
		{
			name: "a file that looks decorated", tool: "PatchEdit", input: in("1:x", "1:y"),
			turns: []turn{readOf(t, "[a.txt#0927]\n1:x\n"), writeOf(t, "[a.txt#0927]\n1:y\n")},
			want:  outcome{"Changed /home/dev/project/a.txt (+1 -1 lines).", false, `"edit_tool_call"`},
		},
		{
			name: "pi only", tool: "PatchEdit", input: in("x", "y"), env: func(e *Env) { e.PiOnly = true },
			turns: []turn{{"", `{"pi_edit_result":{"error":{"error":"not unique"}}}`}},
			want:  outcome{"PatchEdit error: not unique.", true, `"error":{"error":"not unique","path":"/home/dev/project/a.txt"}`},
		},
		{
			name: "pi only, which it has not", tool: "PatchEdit", input: in("needle here", "y"), env: func(e *Env) { e.PiOnly = true },
			turns: []turn{{"", unsupported}, readOf(t, file), writeOf(t, "line1\ny\nline3\n")},
			want:  outcome{"Changed /home/dev/project/a.txt (+1 -1 lines).", false, `"lines_added":1`},
		},
	})
}

// Windows clients may expand line ends when they write.
func TestPatchEditOnWindows(t *testing.T) {
	win := func(e *Env) { e.Root = `C:\work` }
	read := turn{`{"read_args":{"path":"C:\\work\\a.txt","tool_call_id":"call1-0-0"}}`, `{"read_result":{"success":{"content":"a\r\nb\r\n","total_lines":3,"file_size":"6"}}}`}
	write := func(text, after string) turn {
		return turn{
			fmt.Sprintf(`{"write_args":{"path":"C:\\work\\a.txt","file_text":%s,"tool_call_id":"call1-0-0","return_file_content_after_write":true}}`, jstr(t, text)),
			writeAnswer(t, after),
		}
	}
	input := `{"path":"a.txt","old_string":"a\nb","new_string":"x\ny"}`
	runScenarios(t, []scenario{
		{
			name: "as it is", tool: "PatchEdit", input: input, env: win,
			turns: []turn{read, write("x\r\ny\r\n", "x\r\ny\r\n")},
			want:  outcome{`Changed C:\work\a.txt (+2 -2 lines).`, false, `"lines_added":2`},
		},
		{
			name: "doubled line ends are put right", tool: "PatchEdit", input: input, env: win,
			turns: []turn{read, write("x\r\ny\r\n", "x\r\r\ny\r\r\n"), write("x\ny\n", "x\r\ny\r\n")},
			want:  outcome{`Changed C:\work\a.txt (+2 -2 lines).`, false, `"after_full_file_content":"x\r\ny\r\n"`},
		},
		{
			name: "LF comes back as CRLF", tool: "Write", input: `{"path":"a.txt","contents":"x\ny\n"}`, env: win,
			turns: []turn{read, write("x\ny\n", "x\r\ny\r\n")},
			want:  outcome{`Wrote C:\work\a.txt (+2 -2 lines).`, false, `"after_full_file_content":"x\r\ny\r\n"`},
		},
		{
			name: "doubled for good", tool: "Write", input: `{"path":"a.txt","contents":"x\ny\n"}`, env: win,
			turns: []turn{read, write("x\ny\n", "x\n\ny\n\n")},
			want:  outcome{`Wrote C:\work\a.txt (+4 -2 lines).`, false, `"edit_tool_call"`},
		},
	})
}

// A file beyond the client's limit is read in ranges (W24).
func TestPatchEditOfALargeFile(t *testing.T) {
	var b strings.Builder
	for i := range 2500 {
		fmt.Fprintf(&b, "line %d\r\n", i+1)
	}
	file := b.String()
	for _, last := range []string{"", "no end"} {
		for _, ends := range []bool{true, false} {
			t.Run(fmt.Sprintf("last=%q,ends=%v", last, ends), func(t *testing.T) {
				editRanges(t, file+last, ends)
			})
		}
	}
}

// editRanges edits a file of a client that sends at most 700 lines at once, with the last line end of
// a range or without.
func editRanges(t *testing.T, file string, ends bool) {
	t.Helper()
	rows := strings.SplitAfter(file, "\n")
	if rows[len(rows)-1] == "" {
		rows = rows[:len(rows)-1]
	}
	m := begin(t, "PatchEdit", `{"path":"a.txt","old_string":"line 2222\nline 2223","new_string":"x"}`, toolEnv())
	st, writes := m.Start(), 0
	for n := 0; st.Done == nil; n++ {
		if n > 50 || len(st.Requests) != 1 {
			t.Fatalf("request %d: %d requests", n, len(st.Requests))
		}
		if w := st.Requests[0].Message.GetWriteArgs(); w != nil {
			writes++
			if want := strings.Replace(file, "line 2222\r\nline 2223", "x", 1); w.GetFileText() != want {
				t.Fatalf("%d bytes were written, want %d", len(w.GetFileText()), len(want))
			}
			st = m.Result(n, execMessage(t, `{"write_result":{"success":{"path":"a.txt"}}}`))
			continue
		}
		args := st.Requests[0].Message.GetReadArgs()
		if args == nil {
			t.Fatalf("request %d is %v", n, st.Requests[0].Message)
		}
		st = m.Result(n, rangeOf(rows, file, args, ends))
	}
	if o := over(t, st); writes != 1 || o.IsError || !strings.Contains(o.Text, "(+1 -2 lines)") {
		t.Errorf("%d writes, %q", writes, o.Text)
	}
}

func rangeOf(rows []string, file string, args *agentv1.ReadArgs, ends bool) *agentv1.ExecClientMessage {
	from, most := 0, 700
	if args.Offset != nil {
		from = int(*args.Offset) - 1
	}
	to, truncated := len(rows), false
	if args.Limit != nil {
		to = min(to, from+int(*args.Limit))
	}
	if to-from > most {
		to, truncated = from+most, true
	}
	content := strings.Join(rows[from:to], "")
	if !ends && args.Offset != nil {
		content = strings.TrimSuffix(content, "\n")
	}
	return &agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_ReadResult{ReadResult: &agentv1.ReadResult{
		Result: &agentv1.ReadResult_Success{Success: &agentv1.ReadSuccess{
			Output:     &agentv1.ReadSuccess_Content{Content: content},
			TotalLines: int32(strings.Count(file, "\n") + 1), FileSize: int64(len(file)), Truncated: truncated, RangeApplied: args.Offset != nil,
		}},
	}}}
}

// A client whose parts do not make the whole is not trusted.
func TestPatchEditOfPartsThatDoNotFit(t *testing.T) {
	truncated := turn{readRequest, `{"read_result":{"success":{"content":"a\n","total_lines":3,"file_size":"7","truncated":true}}}`}
	runScenarios(t, []scenario{
		{
			name: "too short", tool: "PatchEdit", input: `{"path":"a.txt","old_string":"a","new_string":"b"}`, env: func(e *Env) { e.NoPi = true },
			turns: []turn{truncated, {"", `{"read_result":{"success":{"content":"a\n","total_lines":3,"file_size":"7","range_applied":true}}}`}},
			want:  outcome{"…are not the whole file", true, `"error"`},
		},
		{
			name: "pi edits instead", tool: "PatchEdit", input: `{"path":"a.txt","old_string":"a","new_string":"b"}`,
			turns: []turn{truncated, {"", `{"read_result":{"success":{"content":"a\n","total_lines":3,"file_size":"7","range_applied":true}}}`}, {"", `{"pi_edit_result":{"success":{"output":"ok"}}}`}},
			want:  outcome{"…The client says:\nok", false, `"success"`},
		},
		{
			name: "much too large", tool: "PatchEdit", input: `{"path":"a.txt","old_string":"a","new_string":"b"}`, env: func(e *Env) { e.NoPi = true },
			turns: []turn{{readRequest, `{"read_result":{"success":{"content":"a\n","total_lines":3,"file_size":"70000000","truncated":true}}}`}},
			want:  outcome{"…too large", true, `"error"`},
		},
	})
}

// A large file is edited, its card does without the contents.
func TestEditCardOfALargeFile(t *testing.T) {
	file := strings.Repeat("0123456789\n", 10_000)
	o := play(t, begin(t, "PatchEdit", `{"path":"a.txt","old_string":"","new_string":`+jstr(t, file)+`}`, toolEnv()), readOf(t, ""), writeOf(t, file))
	ok := o.Card.GetEditToolCall().GetResult().GetSuccess()
	if ok == nil || ok.GetAfterFullFileContent() != "" || ok.BeforeFullFileContent != nil || ok.GetLinesAdded() != 10_000 {
		t.Errorf("the result is %v", ok)
	}
}
