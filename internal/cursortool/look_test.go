package cursortool

import (
	"fmt"
	"strings"
	"testing"
)

func TestDelete(t *testing.T) {
	const request = `{"delete_args":{"path":"/home/dev/project/del.txt","tool_call_id":"call1-0-0"}}`
	const input = `{"path":"del.txt"}`
	runScenarios(t, []scenario{
		{
			name: "sdk", tool: "Delete", input: input,
			turns: []turn{{request, `{"id":1,"delete_result":{"success":{"path":"/home/dev/project/del.txt","deleted_file":"/home/dev/project/del.txt","file_size":"1","prev_content":"x"}},"local_execution_time_ms":28}`}},
			want:  outcome{"Deleted /home/dev/project/del.txt.", false, `"prev_content":"x"`},
		},
		{
			name: "oh-my-pi", tool: "Delete", input: input,
			turns: []turn{{request, `{"id":1,"delete_result":{"success":{"path":"/home/dev/project","deleted_file":"/home/dev/project"}},"exec_id":"exec-1"}`}},
			want:  outcome{"Deleted /home/dev/project/del.txt.", false, `"deleted_file"`},
		},
		{
			name: "no file", tool: "Delete", input: input,
			turns: []turn{{request, `{"delete_result":{"file_not_found":{"path":"x"}}}`}},
			want:  outcome{"Delete error: there is no file /home/dev/project/del.txt.", true, `"file_not_found"`},
		},
		{
			name: "a directory", tool: "Delete", input: input,
			turns: []turn{{request, `{"delete_result":{"not_file":{"path":"x","actual_type":"directory"}}}`}},
			want:  outcome{"…is not a file but a directory", true, `"not_file"`},
		},
		{
			name: "rejected", tool: "Delete", input: input,
			turns: []turn{{request, `{"delete_result":{"rejected":{"path":"x","reason":"delete is not supported"}}}`}},
			want:  outcome{"…refused this Delete: delete is not supported.", true, `"rejected":{"path":"/home/dev/project/del.txt"`},
		},
		{
			name: "denied", tool: "Delete", input: input,
			turns: []turn{{request, `{"delete_result":{"permission_denied":{"path":"x","client_visible_error":"EACCES"}}}`}},
			want:  outcome{"…may not delete /home/dev/project/del.txt: EACCES", true, `"permission_denied"`},
		},
		{name: "busy", tool: "Delete", input: input, turns: []turn{{request, `{"delete_result":{"file_busy":{"path":"x"}}}`}}, want: outcome{"…is in use", true, `"file_busy"`}},
		{name: "an error", tool: "Delete", input: input, turns: []turn{{request, `{"delete_result":{"error":{"path":"x","error":"EIO"}}}`}}, want: outcome{"Delete error: EIO.", true, `"error":"EIO"`}},
		{name: "nothing", tool: "Delete", input: input, turns: []turn{{request, `{"delete_result":{}}`}}, want: outcome{"…does not say whether", true, `"error"`}},
	})
}

func TestGlob(t *testing.T) {
	request := func(glob string) string {
		return fmt.Sprintf(`{"grep_args":{"pattern":"","path":"/home/dev/project","glob":%q,"output_mode":"files_with_matches","tool_call_id":"call1-0-0"}}`, glob)
	}
	const answer = `{"id":1,"grep_result":{"success":{"path":"/home/dev/project","output_mode":"files_with_matches","workspace_results":{"/home/dev/project":{"files":{"files":["./del.txt","./a.txt","./sub/b.txt"],"total_files":3}}}}},"local_execution_time_ms":558}`
	runScenarios(t, []scenario{
		{
			name: "sdk", tool: "Glob", input: `{"glob_pattern":"**/*.txt"}`,
			turns: []turn{{request("**/*.txt"), answer}},
			want:  outcome{"del.txt\na.txt\nsub/b.txt", false, `"result":{"success":{"files":["del.txt","a.txt","sub/b.txt"],"path":"/home/dev/project","pattern":"**/*.txt","total_files":3}}`},
		},
		{name: "a slash before it", tool: "Glob", input: `{"glob_pattern":"/src/*.go","target_directory":"/home/dev/project"}`, turns: []turn{{request("src/*.go"), answer}}, want: outcome{"…a.txt", false, `"glob_pattern":"/src/*.go"`}},
		{
			name: "oh-my-pi does not take an empty pattern", tool: "Glob", input: `{"pattern":"*.txt"}`,
			turns: []turn{
				{request("*.txt"), `{"grep_result":{"error":{"error":"grep pattern is required (received an empty pattern). To list files matching, use another tool"}},"exec_id":"exec-1"}`},
				{`{"pi_find_args":{"pattern":"*.txt","path":"/home/dev/project","limit":200}}`, `{"pi_find_result":{"success":{"output":"del.txt\na.txt"}}}`},
			},
			want: outcome{"del.txt\na.txt", false, `"files":["del.txt","a.txt"]`},
		},
		{
			name: "none", tool: "Glob", input: `{"glob_pattern":"*.rs"}`,
			turns: []turn{{request("*.rs"), `{"grep_result":{"success":{"workspace_results":{"/home/dev/project":{"files":{}}}}}}`}},
			want:  outcome{"No file matches *.rs.", false, `"success"`},
		},
		{
			name: "cut by the client", tool: "Glob", input: `{"glob_pattern":"*"}`,
			turns: []turn{{request("*"), `{"grep_result":{"success":{"workspace_results":{"/r":{"files":{"files":["a"],"total_files":9,"ripgrep_truncated":true}}}}}}`}},
			want:  outcome{"a\n[1 of 9 files or more. Use a narrower pattern or directory.]", false, `"ripgrep_truncated":true`},
		},
		{name: "an error", tool: "Glob", input: `{"glob_pattern":"*"}`, turns: []turn{{request("*"), `{"grep_result":{"error":{"error":"EIO"}}}`}}, want: outcome{"Glob error: EIO.", true, `"error":{"error":"EIO"}`}},
		{name: "no pattern", tool: "Glob", input: `{}`, want: outcome{"…glob_pattern is required", true, `"error"`}},
	})
}

func TestGrep(t *testing.T) {
	const request = `{"grep_args":{"pattern":"needle","path":"/home/dev/project","output_mode":"content","tool_call_id":"call1-0-0"}}`
	runScenarios(t, []scenario{
		{
			name: "lines", tool: "Grep", input: `{"pattern":"needle"}`,
			turns: []turn{{request, `{"grep_result":{"success":{"pattern":"needle","workspace_results":{"/home/dev/project":{"content":{"matches":[{"file":"./a.txt","matches":[{"line_number":1,"content":"line1\n","is_context_line":true},{"line_number":2,"content":"needle here\r\n"}]}],"total_lines":2,"total_matched_lines":1}}}}}}`}},
			want:  outcome{"a.txt-1- line1\na.txt:2: needle here", false, `"total_matched_lines":1`},
		},
		{
			name: "the SDK without ripgrep", tool: "Grep", input: `{"pattern":"needle"}`,
			turns: []turn{
				{request, `{"grep_result":{"error":{"error":"Ripgrep path not configured. Call configureRipgrepPath() at startup."}}}`},
				{`{"pi_grep_args":{"pattern":"needle","path":"/home/dev/project","ignore_case":false,"limit":300}}`, `{"pi_grep_result":{"success":{"output":"a.txt:2: needle here\nsub/b.txt:1: needle2"}}}`},
			},
			want: outcome{"a.txt:2: needle here\nsub/b.txt:1: needle2", false, `"content":"a.txt:2: needle here"`},
		},
		{
			name: "oh-my-pi finds nothing", tool: "Grep", input: `{"pattern":"needle","output_mode":"content"}`,
			turns: []turn{{request, `{"grep_result":{"success":{"pattern":"needle","path":"/home/dev/project","output_mode":"content","workspace_results":{"/home/dev/project":{"content":{}}}}},"exec_id":"exec-1"}`}, {
				`{"pi_grep_args":{"pattern":"needle","path":"/home/dev/project","ignore_case":false,"limit":300}}`, `{"pi_grep_result":{"error":{"error":"no"}}}`,
			}},
			want: outcome{"No matches.", false, `"workspace_results"`},
		},
		{
			name: "what oh-my-pi finds the other way", tool: "Grep", input: `{"pattern":"needle","output_mode":"content"}`,
			turns: []turn{{request, `{"grep_result":{"success":{"workspace_results":{"/home/dev/project":{"content":{}}}}}}`}, {
				`{"pi_grep_args":{"pattern":"needle","path":"/home/dev/project","ignore_case":false,"limit":300}}`, `{"pi_grep_result":{"success":{"output":"a.txt:2: needle"}}}`,
			}},
			want: outcome{"a.txt:2: needle", false, `"needle"`},
		},
		{
			name: "all arguments", tool: "Grep", input: `{"pattern":"n","path":"src","glob":"*.go","output_mode":"count","-A":1,"-B":"2","-C":3,"-i":true,"type":"go","head_limit":4,"offset":5,"multiline":true}`,
			turns: []turn{{
				`{"grep_args":{"pattern":"n","path":"/home/dev/project/src","glob":"*.go","output_mode":"count","context_before":2,"context_after":1,"context":3,"case_insensitive":true,"type":"go","head_limit":4,"multiline":true,"offset":5,"tool_call_id":"call1-0-0"}}`,
				`{"grep_result":{"success":{"workspace_results":{"/r":{"count":{"counts":[{"file":"a.go","count":3}],"client_truncated":true}}}}}}`,
			}},
			want: outcome{"a.go: 3\n[There is more. Use a narrower pattern or path, or head_limit and offset.]", false, `"args":{"case_insensitive":true`},
		},
		{
			name: "files of two workspaces", tool: "Grep", input: `{"pattern":"needle","output_mode":"files_with_matches"}`,
			turns: []turn{{"", `{"grep_result":{"success":{"workspace_results":{"/b":{"files":{"files":["x"]}},"/a":{"files":{"files":["./y"]}}}}}}`}},
			want:  outcome{"In /a:\ny\nIn /b:\nx", false, `"workspace_results"`},
		},
		{name: "closed (R15)", tool: "Grep", input: `{"pattern":"needle"}`, turns: []turn{{request, closes}}, want: outcome{"…without a result", true, `"error"`}},
		{name: "thrown", tool: "Grep", input: `{"pattern":"needle"}`, turns: []turn{{request, throws}}, want: outcome{"Grep error: ENOENT in the handler.", true, `"error"`}},
		{
			name: "pi cannot count", tool: "Grep", input: `{"pattern":"needle","output_mode":"count"}`,
			turns: []turn{{"", unsupported}},
			want:  outcome{"…No handler found", true, `"error"`},
		},
		{name: "a negative number", tool: "Grep", input: `{"pattern":"x","head_limit":-1}`, want: outcome{"…must not be negative", true, `"error"`}},
		{name: "a mode that is none", tool: "Grep", input: `{"pattern":"x","output_mode":"list"}`, want: outcome{"…must be content, files_with_matches or count", true, `"error"`}},
		{name: "no pattern", tool: "Grep", input: `{}`, want: outcome{"…use Glob", true, `"error"`}},
	})
}

func TestGrepIsLimited(t *testing.T) {
	var files []string
	for f := range 10 {
		var rows []string
		for i := range 150 {
			rows = append(rows, fmt.Sprintf(`{"line_number":%d,"content":"%s"}`, i+1, strings.Repeat("x", 3000*(f%2))))
		}
		files = append(files, fmt.Sprintf(`{"file":"f%d","matches":[%s]}`, f, strings.Join(rows, ",")))
	}
	o := play(t, begin(t, "Grep", `{"pattern":"x"}`, toolEnv()), turn{"", `{"grep_result":{"success":{"workspace_results":{"/r":{"content":{"matches":[` + strings.Join(files, ",") + `]}}}}}}`})
	if n := strings.Count(o.Text, "f0:"); n != grepFile {
		t.Errorf("%d matches of one file", n)
	}
	if len(o.Text) > grepText+200 || !strings.Contains(o.Text, "[There is more.") {
		t.Errorf("%d bytes", len(o.Text))
	}
}

func TestLs(t *testing.T) {
	const request = `{"ls_args":{"path":"/home/dev/project","tool_call_id":"call1-0-0","timeout_ms":20000}}`
	runScenarios(t, []scenario{
		{
			name: "sdk", tool: "Ls", input: `{"path":"."}`,
			turns: []turn{{request, `{"ls_result":{"success":{"directory_tree_root":{"abs_path":"/home/dev/project","children_dirs":[{"abs_path":"/home/dev/project/sub","children_files":[{"name":"b.txt"}],"children_were_processed":true},{"abs_path":"/home/dev/project/big","num_files":7,"full_subtree_extension_counts":{".go":5,".md":2}}],"children_files":[{"name":"a.txt"}],"children_were_processed":true}}}}`}},
			want:  outcome{"/home/dev/project\nsub/\n  b.txt\nbig/ [7 files: 2 .md, 5 .go]\na.txt", false, `"directory_tree_root"`},
		},
		{
			name: "oh-my-pi", tool: "Ls", input: `{}`,
			turns: []turn{{request, `{"ls_result":{"success":{"directory_tree_root":{"abs_path":"/home/dev/project","children_files":[{"name":"."},{"name":"- a.txt    24B       just now"}],"children_were_processed":true,"num_files":5}}},"exec_id":"exec-1"}`}},
			want:  outcome{"/home/dev/project\n.\n- a.txt    24B       just now", false, `"directory_tree_root"`},
		},
		{
			name: "pi's", tool: "Ls", input: `{}`,
			turns: []turn{{request, unsupported}, {`{"pi_ls_args":{"path":"/home/dev/project","limit":1000}}`, `{"pi_ls_result":{"success":{"output":"a.txt\ndel.txt\nsub/"}}}`}},
			want:  outcome{"a.txt\ndel.txt\nsub/", false, `{"name":"sub/"}`},
		},
		{
			name: "late", tool: "Ls", input: `{"ignore":["*.o"]}`,
			turns: []turn{{`{"ls_args":{"path":"/home/dev/project","ignore":["*.o"],"tool_call_id":"call1-0-0","timeout_ms":20000}}`, `{"ls_result":{"timeout":{"directory_tree_root":{"abs_path":"/x","children_files":[{"name":"a"}]}}}}`}},
			want:  outcome{"…a\n[The directory is large", false, `"timeout"`},
		},
		{name: "empty", tool: "Ls", input: `{}`, turns: []turn{{request, `{"ls_result":{"success":{}}}`}}, want: outcome{"/home/dev/project\n(empty)", false, `"success"`}},
		{name: "rejected", tool: "Ls", input: `{}`, turns: []turn{{request, `{"ls_result":{"rejected":{"reason":"no"}}}`}}, want: outcome{"…refused this Ls: no.", true, `"rejected"`}},
		{name: "an error", tool: "Ls", input: `{}`, turns: []turn{{request, `{"ls_result":{"error":{"error":"ENOENT"}}}`}}, want: outcome{"Ls error: ENOENT.", true, `"error":"ENOENT"`}},
		{name: "only the first of three", tool: "Ls", input: `{}`, turns: []turn{{request, `{"id":3,"mcp_result":{"error":{"error":"Tool result not provided"}},"exec_id":"exec-3"}`}}, want: outcome{"Ls error: Tool result not provided.", true, `"error"`}},
	})
}

func TestReadLints(t *testing.T) {
	request := func(name string) string {
		return fmt.Sprintf(`{"diagnostics_args":{"path":"/home/dev/project/%s","tool_call_id":"call1-0-0"}}`, name)
	}
	runScenarios(t, []scenario{
		{
			name: "sdk", tool: "ReadLints", input: `{"paths":["a.go"]}`,
			turns: []turn{{request("a.go"), `{"diagnostics_result":{"success":{"path":"/home/dev/project/a.go"}}}`}},
			want:  outcome{"No errors or warnings.", false, `"total_files":1`},
		},
		{
			name: "all paths (W31)", tool: "ReadLints", input: `{"paths":["a.go","b.go","c.go"]}`,
			turns: []turn{
				{request("a.go"), `{"diagnostics_result":{"success":{"diagnostics":[{"severity":"DIAGNOSTIC_SEVERITY_ERROR","range":{"start":{"line":3,"column":4}},"message":"undefined: x","source":"compiler","code":"E1"}],"total_diagnostics":1}}}`},
				{request("b.go"), `{"diagnostics_result":{"file_not_found":{"path":"b.go"}}}`},
				{request("c.go"), `{"diagnostics_result":{"success":{"diagnostics":[{"severity":"DIAGNOSTIC_SEVERITY_HINT","message":"h","is_stale":true}]}}}`},
			},
			want: outcome{"/home/dev/project/a.go:4:5: error: undefined: x (compiler E1)\n/home/dev/project/b.go: there is no such file.\n/home/dev/project/c.go:1:1: hint: h [may be out of date]", true, `"total_diagnostics":2,"total_files":2`},
		},
		{name: "none at all", tool: "ReadLints", input: `{"paths":"a.go"}`, turns: []turn{{request("a.go"), `{"diagnostics_result":{"error":{"error":"no server"}}}`}}, want: outcome{"ReadLints error: /home/dev/project/a.go: no server.", true, `"error_message"`}},
		{name: "the client has none", tool: "ReadLints", input: `{"paths":"[\"a.go\"]"}`, turns: []turn{{request("a.go"), unsupported}}, want: outcome{"…this client has no diagnostics", true, `"error_message"`}},
		{name: "no paths", tool: "ReadLints", input: `{"paths":[]}`, want: outcome{"…paths is required", true, `"error_message"`}},
		{name: "too many", tool: "ReadLints", input: `{"paths":["` + strings.Repeat(`a","`, 60) + `b"]}`, want: outcome{"…more than the 50", true, `"paths":["a"`}},
	})
}
