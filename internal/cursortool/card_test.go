package cursortool

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

func TestPartial(t *testing.T) {
	for in, want := range map[string]string{
		``:                          `{}`,
		`x`:                         `{}`,
		`[1]`:                       `{}`,
		`"a`:                        `{}`,
		`{`:                         `{}`,
		`{"pa`:                      `{}`,
		`{"path"`:                   `{}`,
		`{"path":`:                  `{}`,
		`{"path": "`:                `{"path": ""}`,
		`{"path":"a`:                `{"path":"a"}`,
		`{"path":"a\`:               `{"path":"a"}`,
		`{"path":"a\u00`:            `{"path":"a"}`,
		`{"path":"a\ud83d`:          `{"path":"a"}`,
		`{"path":"a\ud83d\ude`:      `{"path":"a"}`,
		`{"path":"a\ud83d\ude00`:    `{"path":"a\ud83d\ude00"}`,
		`{"path":"a\ud83d!`:         `{"path":"a\ud83d!"}`,
		"{\"path\":\"a\xe2\x82":     `{"path":"a"}`,
		`{"path":"a","x`:            `{"path":"a"}`,
		`{"path":"a","n":12`:        `{"path":"a"}`,
		`{"path":"a","n":12,`:       `{"path":"a","n":12}`,
		`{"b":tru`:                  `{}`,
		`{"b":true,"c":[1,2`:        `{"b":true,"c":[1]}`,
		`{"b":true,"c":[{"d":"e`:    `{"b":true,"c":[{"d":"e"}]}`,
		`{"b":{"c":1}`:              `{"b":{"c":1}}`,
		`{"a":1}{"b":2}`:            `{"a":1}`,
		`{"a":1]`:                   `{"a":1}`,
		` {"a" : "x" , "b" : "y"} `: `{"a" : "x" , "b" : "y"}`,
	} {
		got := string(partial(in))
		if got != want {
			t.Errorf("%q is read as %s, want %s", in, got, want)
		}
	}
}

// However far the model has come, what it has written of a text is its beginning.
func TestPartialIsABeginning(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path, text := rapid.String().Draw(t, "path"), rapid.String().Draw(t, "text")
		raw, err := json.Marshal(map[string]any{"contents": text, "path": path, "n": []any{1, map[string]any{"x": text}}})
		if err != nil {
			t.Fatal(err)
		}
		cut := rapid.IntRange(0, len(raw)).Draw(t, "cut")
		edit := Card("Write", string(raw[:cut])).GetEditToolCall().GetArgs()
		if !strings.HasPrefix(clean(text), edit.GetStreamContent()) || !strings.HasPrefix(clean(path), edit.GetPath()) {
			t.Fatalf("after %s the card is %v", raw[:cut], edit)
		}
		if cut == len(raw) && (edit.GetStreamContent() != clean(text) || edit.GetPath() != clean(path)) {
			t.Fatalf("of the whole the card is %v", edit)
		}
	})
}

func TestCards(t *testing.T) {
	set := NewSet(Offer(Offering{Mode: agentv1.AgentMode_AGENT_MODE_AGENT, MCP: someMCP()}))
	for _, c := range []struct{ name, input, want string }{
		{"Write", `{"path":"a.txt","contents":"x\ny`, `{"edit_tool_call":{"args":{"path":"a.txt","stream_content":"x\ny"}}}`},
		{"PatchEdit", `{"path":"a.txt","old_string":"x","new_string":"y`, `{"edit_tool_call":{"args":{"path":"a.txt","stream_content":"y"}}}`},
		{"Read", `{"path":3,"offset":"4"}`, `{"read_tool_call":{"args":{"offset":4}}}`},
		{"Grep", `{"pattern":"a.*","-i":tr`, `{"grep_tool_call":{"args":{"output_mode":"content","pattern":"a.*"}}}`},
		{"mcp_opencode_myadd", `{"a":2,"b`, `{"mcp_tool_call":{"args":{"args":{"a":2},"name":"opencode-myadd","provider_identifier":"opencode","server_identifier":"opencode","tool_name":"myadd"},"description":"myadd of the MCP server opencode"}}`},
		{"read", `{"path":"a","limit":3}`, `{"pi_read_tool_call":{"args":{"limit":3,"path":"a"}}}`},
		{"bash", `{"command":"ls","timeout":1.5}`, `{"pi_bash_tool_call":{"args":{"command":"ls","timeout":1.5}}}`},
		{"edit", `{"path":"a","edits":[{"oldText":"x","newText":"y`, `{"pi_edit_tool_call":{"args":{"edits":[{"new_text":"y","old_text":"x"}],"path":"a"}}}`},
		{"write", `{"path":"a","content":"x"}`, `{"pi_write_tool_call":{"args":{"content":"x","path":"a"}}}`},
		{"grep", `{"pattern":"x","ignoreCase":true,"context":2}`, `{"pi_grep_tool_call":{"args":{"context":2,"ignore_case":true,"pattern":"x"}}}`},
		{"find", `{"pattern":"x"}`, `{"pi_find_tool_call":{"args":{"pattern":"x"}}}`},
		{"ls", ``, `{"pi_ls_tool_call":{"args":{}}}`},
		{"other", `{"a":"b"}`, `{"truncated_tool_call":{}}`},
	} {
		if got := cardJSON(t, set.Card(c.name, c.input)); got != c.want {
			t.Errorf("%s %s: the card is\n%s\nwant\n%s", c.name, c.input, got, c.want)
		}
	}
}

// Every kind of card can say that the call failed (W34), and the card that it was made from stays.
func TestFailedCard(t *testing.T) {
	arms := (&agentv1.ToolCall{}).ProtoReflect().Descriptor().Oneofs().ByName("tool").Fields()
	for i := range arms.Len() {
		arm := arms.Get(i)
		card := &agentv1.ToolCall{}
		card.ProtoReflect().Mutable(arm)
		failed := FailedCard(card, "interrupted")
		if arm.Message().Fields().ByName("result") == nil {
			t.Logf("%s has no result", arm.Name())
			continue
		}
		if !strings.Contains(cardJSON(t, failed), `"interrupted"`) {
			t.Errorf("%s: %s", arm.Name(), cardJSON(t, failed))
		}
		if strings.Contains(cardJSON(t, card), "interrupted") {
			t.Errorf("%s was changed in place", arm.Name())
		}
	}
	if got := cardJSON(t, FailedCard(nil, "x")); !strings.Contains(got, `"error":"x"`) {
		t.Errorf("of nothing: %s", got)
	}
	if got := cardJSON(t, FailedCard(Card("Delete", `{"path":"p"}`), "x")); got != `{"delete_tool_call":{"args":{"path":"p"},"result":{"error":{"error":"x","path":"p"}}}}` {
		t.Errorf("the path is not repeated: %s", got)
	}
}

func TestResultCard(t *testing.T) {
	for _, name := range []string{"read", "bash", "edit", "write", "grep", "find", "ls", "other"} {
		good, bad := cardJSON(t, ResultCard(Card(name, "{}"), "done", false)), cardJSON(t, ResultCard(Card(name, "{}"), "done", true))
		if !strings.Contains(good, `"success":`) || !strings.Contains(good, `"done"`) || !strings.Contains(bad, `"error":{"error":"done"}`) {
			t.Errorf("%s: %s and %s", name, good, bad)
		}
	}
	if n := proto.Size(ResultCard(Card("bash", "{}"), strings.Repeat("x", 200_000), false)); n > MaxCard {
		t.Errorf("a card of %d bytes", n)
	}
}

func TestFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long := strings.Repeat("ä", rapid.IntRange(0, 50_000).Draw(t, "n"))
		limit := rapid.IntRange(1<<10, 64<<10).Draw(t, "limit")
		many := make([]string, rapid.IntRange(0, 5000).Draw(t, "many"))
		for i := range many {
			many[i] = "some/path/of/a/file"
		}
		for _, card := range []*agentv1.ToolCall{
			ResultCard(Card("bash", `{"command":"ls"}`), "", false), Card("Write", `{"path":"a","contents":"`+long+`"}`),
			{Tool: &agentv1.ToolCall_GlobToolCall{GlobToolCall: &agentv1.GlobToolCall{Result: &agentv1.GlobToolResult{
				Result: &agentv1.GlobToolResult_Success{Success: &agentv1.GlobToolSuccess{Files: many}},
			}}}},
			{Tool: &agentv1.ToolCall_EditToolCall{EditToolCall: &agentv1.EditToolCall{Result: &agentv1.EditResult{
				Result: &agentv1.EditResult_Success{Success: &agentv1.EditSuccess{Path: "p", AfterFullFileContent: long, DiffString: new(long)}},
			}}}},
			mcpCard(Route{Tool: "t"}, "", json.RawMessage(`{"x":"`+long+`","y":[["`+long+`"]]}`)),
		} {
			before := proto.Clone(card)
			Fit(card, limit)
			if n := proto.Size(card); n > limit {
				t.Fatalf("%d bytes of at most %d", n, limit)
			}
			if card.GetTool() == nil {
				t.Fatal("nothing is left")
			}
			if proto.Size(before) <= limit && !proto.Equal(before, card) {
				t.Fatal("a card that fits was changed")
			}
			if ok := card.GetEditToolCall().GetResult().GetSuccess(); ok != nil && ok.GetAfterFullFileContent() != "" && ok.GetAfterFullFileContent() != long {
				t.Fatal("a part of a file is shown as the file")
			}
		}
	})
}

func TestResolve(t *testing.T) {
	for _, c := range []struct{ root, name, want string }{
		{"/home/u", "a.txt", "/home/u/a.txt"},
		{"/home/u", "./a/../b", "/home/u/b"},
		{"/home/u", "/x/../y", "/x/../y"},
		{"/home/u", "../x", "/home/x"},
		{"", "a.txt", "a.txt"},
		{"/home/u", "", ""},
		{`C:\w`, `a\b.txt`, `C:\w\a\b.txt`},
		{`C:\w`, `a/b.txt`, `C:\w\a\b.txt`},
		{`c:/w`, `a`, `c:\w\a`},
		{`C:\w`, `D:\x`, `D:\x`},
		{`C:\w`, `D:/x`, `D:/x`},
		{`C:\w`, `\\srv\share\x`, `\\srv\share\x`},
		{`C:\w`, `\\?\C:\x`, `\\?\C:\x`},
		{`C:\w`, `C:foo`, `C:foo`},
		{`C:\w`, `C:`, `C:`},
		{`C:\w`, `\x`, `C:\x`},
		{`C:\w`, `..\..\x`, `C:\x`},
		{`\\srv\share\w`, `a`, `\\srv\share\w\a`},
		{`\\srv\share`, `..\a`, `\\srv\share\a`},
	} {
		if got := resolve(c.root, c.name); got != c.want {
			t.Errorf("%q in %q is %q, want %q", c.name, c.root, got, c.want)
		}
	}
	for name, want := range map[string]bool{`C:\x`: true, `C:/x`: true, `\\a\b`: true, `//a/b`: true, `/x`: true, `C:foo`: false, `C:`: false, `x`: false, ``: false, `1:\x`: false} {
		if absolute(name) != want {
			t.Errorf("absolute(%q) is %v", name, !want)
		}
	}
}

func TestSpelled(t *testing.T) {
	for in, want := range map[string]string{`/a/./b/../c`: `/a/c`, `C:/Work/./A.txt`: `c:\work\a.txt`, `c:\work\A.TXT`: `c:\work\a.txt`, `\\Srv\s\..\x`: `\\srv\s\x`, `x`: `x`} {
		if got := spelled(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}

func TestPath(t *testing.T) {
	for _, c := range []struct{ name, input, want string }{
		{"Write", `{"path":"a.txt","contents":"x"}`, "/home/dev/project/a.txt"},
		{"PatchEdit", `{"filePath":"./a.txt"}`, "/home/dev/project/a.txt"},
		{"Read", `{"path":"a.txt"}`, ""},
		{"Write", `{`, ""},
		{"Write", `{"path":7}`, ""},
	} {
		if got := Path(Call{Name: c.name, Input: c.input}, toolEnv()); got != c.want {
			t.Errorf("%s %s edits %q, want %q", c.name, c.input, got, c.want)
		}
	}
}
