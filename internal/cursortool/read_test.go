package cursortool

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
)

const (
	readRequest   = `{"read_args":{"path":"/home/dev/project/a.txt","tool_call_id":"call1-0-0"}}`
	piReadRequest = `{"pi_read_args":{"path":"/home/dev/project/a.txt"}}`
	readAnswer    = `{"id":1,"read_result":{"success":{"path":"/home/dev/project/a.txt","content":"line1\nneedle here\nline3\n","total_lines":4,"file_size":"24"}}}`
	numberedLines = "1|line1\n2|needle here\n3|line3"
)

func TestRead(t *testing.T) {
	runScenarios(t, []scenario{
		{
			name: "sdk", tool: "Read", input: `{"path":"a.txt"}`,
			turns: []turn{{readRequest, readAnswer}},
			want:  outcome{numberedLines, false, `"result":{"success":{"content":"line1\nneedle here\nline3\n","file_size":24,"path":"/home/dev/project/a.txt","read_range":{"end_line":3,"start_line":1},"total_lines":4}}`},
		},
		{
			name: "oh-my-pi decorates", tool: "Read", input: `{"file_path":"/home/dev/project/a.txt"}`,
			turns: []turn{{readRequest, `{"read_result":{"success":{"content":"[a.txt#0927]\n1:line1\n2:needle here\n3:line3","total_lines":3,"file_size":"24"}},"exec_id":"exec-1"}`}},
			want:  outcome{"[a.txt#0927]\n1:line1\n2:needle here\n3:line3", false, `"read_tool_call"`},
		},
		{
			name: "a part, applied", tool: "Read", input: `{"path":"a.txt","offset":2,"limit":1}`,
			turns: []turn{{
				`{"read_args":{"path":"/home/dev/project/a.txt","tool_call_id":"call1-0-0","offset":2,"limit":1}}`,
				`{"read_result":{"success":{"content":"needle here\n","total_lines":4,"file_size":"24","range_applied":true}}}`,
			}},
			want: outcome{"2|needle here\n[Lines 2 to 2 of 4.]", false, `"args":{"limit":1,"offset":2,"path":"/home/dev/project/a.txt"}`},
		},
		{
			name: "a part, not applied", tool: "Read", input: `{"path":"a.txt","offset":"2","limit":1.0}`,
			turns: []turn{{"", readAnswer}},
			want:  outcome{"2|needle here\n[Lines 2 to 2 of 4.]", false, `"read_range":{"end_line":2,"start_line":2}`},
		},
		{
			name: "beyond the end", tool: "Read", input: `{"path":"a.txt","offset":10}`,
			turns: []turn{{"", readAnswer}},
			want:  outcome{"…has 4 lines, none from line 10", true, `"error_message"`},
		},
		{
			name: "truncated", tool: "Read", input: `{"path":"a.txt"}`,
			turns: []turn{{readRequest, `{"read_result":{"success":{"content":"a\nb\n","total_lines":900,"file_size":"9000","truncated":true}}}`}},
			want:  outcome{"1|a\n2|b\n[The file goes on. Read it from offset 3.]", false, `"exceeded_limit":true`},
		},
		{
			name: "empty", tool: "Read", input: `{"path":"a.txt"}`,
			turns: []turn{{readRequest, `{"read_result":{"success":{"path":"a.txt","content":"","total_lines":1}}}`}},
			want:  outcome{"(the file is empty)", false, `"is_empty":true`},
		},
		{
			name: "not found", tool: "Read", input: `{"path":"a.txt"}`,
			turns: []turn{{readRequest, `{"read_result":{"file_not_found":{"path":"a.txt"}}}`}},
			want:  outcome{"Read error: there is no file /home/dev/project/a.txt. Look for it with Glob or Ls.", true, `"error":{"error_message":"there is no file`},
		},
		{
			name: "rejected", tool: "Read", input: `{"path":"a.txt"}`,
			turns: []turn{{readRequest, `{"read_result":{"rejected":{"path":"a.txt","reason":"secret"}}}`}},
			want:  outcome{"…The user refused this Read: secret. Nothing was done. Do not call it again", true, `"error"`},
		},
		{
			name: "a result of another kind", tool: "Read", input: `{"path":"a.txt"}`,
			turns: []turn{{readRequest, `{"id":2,"mcp_result":{"error":{"error":"Tool result not provided"}},"exec_id":"exec-2"}`}},
			want:  outcome{"Read error: Tool result not provided.", true, `"error_message":"Tool result not provided"`},
		},
		{
			name: "closed without a result", tool: "Read", input: `{"path":"a.txt"}`,
			turns: []turn{{readRequest, closes}},
			want:  outcome{"…ended the request without a result", true, `"error"`},
		},
		{
			name: "falls back to pi's", tool: "Read", input: `{"path":"a.txt"}`,
			turns: []turn{{readRequest, unsupported}, {piReadRequest, `{"pi_read_result":{"success":{"output":"line1\nneedle here\nline3\n"}}}`}},
			want:  outcome{numberedLines, false, `"content":"line1`},
		},
		{
			name: "pi's first", tool: "Read", input: `{"path":"a.txt"}`, env: func(e *Env) { e.PiOnly = true },
			turns: []turn{{piReadRequest, unsupported}, {readRequest, readAnswer}},
			want:  outcome{numberedLines, false, `"content":"line1`},
		},
		{
			name: "no pi", tool: "Read", input: `{"path":"a.txt"}`, env: func(e *Env) { e.NoPi = true },
			turns: []turn{{readRequest, unsupported}},
			want:  outcome{"…No handler found", true, `"error"`},
		},
		{
			name: "hooks", tool: "Read", input: `{"path":"a.txt"}`,
			turns: []turn{{readRequest, `{"hook_additional_contexts":[{"hook_event_name":"post_tool_use","content":"mind the gap"}],"read_result":{"success":{"content":"x","total_lines":1,"file_size":"1"}}}`}},
			want:  outcome{"1|x\n\n[post_tool_use hook] mind the gap", false, `"hook_additional_contexts":[{"content":"mind the gap","hook_event_name":"post_tool_use"}]`},
		},
		{name: "no path", tool: "Read", input: `{}`, want: outcome{"Read error: path is required: give the file's path", true, `"error"`}},
		{name: "a path of another type", tool: "Read", input: `{"path":{}}`, want: outcome{"…path must not be a object", true, `"error"`}},
		{name: "half of the JSON", tool: "Read", input: `{"path":"a.tx`, want: outcome{"…not a complete JSON object", true, `"path":"a.tx"`}},
		{name: "no object", tool: "Read", input: `null`, want: outcome{"…must be a JSON object", true, `"error"`}},
	})
}

// A message without a result ends nothing (W29): the hooks in it are kept.
func TestNoticeOfHooks(t *testing.T) {
	m := begin(t, "Read", `{"path":"a.txt"}`, toolEnv())
	m.Start()
	st := m.Result(0, execMessage(t, `{"hook_additional_contexts":[{"hook_event_name":"h","content":"first"}]}`))
	if st.Done != nil || len(st.Requests) > 0 {
		t.Fatalf("a notice ended the call: %+v", st)
	}
	o := over(t, m.Result(0, execMessage(t, readAnswer)))
	if want := numberedLines + "\n\n[h hook] first"; o.Text != want {
		t.Errorf("text is %q, want %q", o.Text, want)
	}
}

// Messages for a request that is over are left aside (R51).
func TestStaleResult(t *testing.T) {
	m := begin(t, "Read", `{"path":"a.txt"}`, toolEnv())
	m.Start()
	if st := m.Thrown(0, "none", true); len(st.Requests) != 1 {
		t.Fatal("no second way")
	}
	if st := m.Closed(0); st.Done != nil {
		t.Fatal("the end of the first request ended the call")
	}
	if st := m.Result(0, execMessage(t, readAnswer)); st.Done != nil {
		t.Fatal("a late result of the first request ended the call")
	}
	over(t, m.Result(1, execMessage(t, `{"pi_read_result":{"success":{"output":"x"}}}`)))
}

func TestReadImages(t *testing.T) {
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 100)
	data := func(bytes string) string {
		return fmt.Sprintf(`{"read_result":{"success":{"data":%q,"file_size":"%d"}}}`, base64.StdEncoding.EncodeToString([]byte(bytes)), len(bytes))
	}
	t.Run("data", func(t *testing.T) {
		// The name lies; the bytes count (R25).
		o := play(t, begin(t, "Read", `{"path":"a.jpg"}`, toolEnv()), turn{"", data(png)})
		if len(o.Images) != 1 || o.Images[0].MIME != "image/png" || string(o.Images[0].Data) != png || o.IsError {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("a large one is left out of the card", func(t *testing.T) {
		o := play(t, begin(t, "Read", `{"path":"a.png"}`, toolEnv()), turn{"", data(png + strings.Repeat("y", 200_000))})
		if len(o.Images) != 1 || len(o.Images[0].Data) != 200_108 || o.Card.GetReadToolCall().GetResult().GetSuccess() == nil {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("too large", func(t *testing.T) {
		o := play(t, begin(t, "Read", `{"path":"a.png"}`, toolEnv()), turn{"", data(png + strings.Repeat("y", maxImage))})
		if len(o.Images) != 0 || !o.IsError {
			t.Errorf("outcome %q", o.Text)
		}
	})
	t.Run("other bytes", func(t *testing.T) {
		o := play(t, begin(t, "Read", `{"path":"a.bin"}`, toolEnv()), turn{"", data("\x00\x01")})
		if len(o.Images) != 0 || !o.IsError {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("blob", func(t *testing.T) {
		o := play(t, begin(t, "Read", `{"path":"a.webp"}`, toolEnv()), turn{"", `{"read_result":{"success":{"output_blob_id":"AAEC","file_size":"77"}}}`})
		if len(o.Images) != 1 || o.Images[0].MIME != "image/webp" || string(o.Images[0].Blob) != "\x00\x01\x02" {
			t.Errorf("outcome %+v", o)
		}
	})
	t.Run("blob of text", func(t *testing.T) {
		o := play(t, begin(t, "Read", `{"path":"a.txt"}`, toolEnv()), turn{"", `{"read_result":{"success":{"output_blob_id":"AAEC","file_size":"77"}}}`})
		if len(o.Images) != 0 || !o.IsError || !strings.Contains(o.Text, "offset and limit") {
			t.Errorf("outcome %+v", o)
		}
	})
}

func TestReadIsLimited(t *testing.T) {
	content := strings.Repeat(strings.Repeat("x", 99)+"\n", 3000)
	answer := fmt.Sprintf(`{"read_result":{"success":{"content":%q,"total_lines":3001,"file_size":"%d"}}}`, content, len(content))
	o := play(t, begin(t, "Read", `{"path":"a.txt"}`, toolEnv()), turn{"", answer})
	if len(o.Text) > readText+8000 || !strings.Contains(o.Text, "[The file goes on. Read it from offset ") {
		t.Errorf("%d bytes, the end is %q", len(o.Text), o.Text[len(o.Text)-100:])
	}
}
