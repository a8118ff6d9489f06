package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMCPServers(t *testing.T) {
	c := mustParse(t, `
mcp_servers:
  files: {command: prog, args: [a, "", "${DIR}"], env: {K: "${TOKEN}", EMPTY: ""}}
  web:
    url: https://example.com/mcp?team=a
    headers: {Authorization: "Bearer ${TOKEN}"}
    disabled: true
    timeout: 2m
    start_timeout: 500ms
    max_output: 4KiB
    tools: [one, two]
    trust_annotations: true
`, "DIR", "/d", "TOKEN", "hunter2")
	files, web := c.MCPServers[0], c.MCPServers[1]
	if files.Name != "files" || files.Command != "prog" || !slices.Equal(files.Args, []string{"a", "", "/d"}) ||
		files.Env[0].Value.Reveal() != "hunter2" || files.Env[1].Value.Reveal() != "" || files.Tools != nil ||
		files.Timeout != DefaultMCPTimeout || files.StartTimeout != DefaultMCPStartTimeout || files.MaxOutput != DefaultMCPMaxOutput {
		t.Errorf("%+v", files)
	}
	if web.URL != "https://example.com/mcp?team=a" || web.Headers[0].Value.Reveal() != "Bearer hunter2" || !web.Disabled ||
		web.Timeout != 2*time.Minute || web.StartTimeout != 500*time.Millisecond || web.MaxOutput != 4<<10 ||
		!slices.Equal(web.Tools, []string{"one", "two"}) || !web.TrustAnnotations {
		t.Errorf("%+v", web)
	}
	if !slices.Equal(c.KeyEnv, []string{"TOKEN"}) {
		t.Errorf("key variables %v", c.KeyEnv)
	}
	js, err := json.Marshal(c)
	if out := fmt.Sprintf("%+v %#v %s", c.MCPServers, c.MCPServers, js); err != nil || strings.Contains(out, "hunter2") {
		t.Errorf("printed: %s, %v", out, err)
	}
}

func TestMCPServerCleartextWarns(t *testing.T) {
	for address, want := range map[string]int{"http://example.com/": 1, "https://example.com/": 0, "http://localhost:1/": 0, "http://127.0.0.1:1/": 0} {
		c := mustParse(t, "mcp_servers: {n: {url: '"+address+"', headers: {X-K: v}}}")
		if len(c.Warnings) != want {
			t.Errorf("%s: %v", address, c.Warnings)
		}
	}
}

func TestLaterSections(t *testing.T) {
	c := mustParse(t, `
permissions:
  default: ask
  rules:
    - {tool: bash, pattern: "git *", action: allow}
    - {tool: "*", path: "src/**", action: deny}
  without_client: allow
  sandbox: on
hooks:
  before_tool: [{match: bash, command: [prog, ""], timeout: 250ms}, {command: [p]}]
  run_end: [{command: [p]}]
compaction: {auto: false, reserve: 5000, keep: 0}
subagents: {depth: 0, parallel: 1}
web: {fetch: false, allow_private: true}
prompt: {user_rules: rules.md}
`)
	rules := []PermissionRule{{"bash", "git *", "", ActionAllow}, {"*", "", "src/**", ActionDeny}}
	if p := c.Permissions; p.Default != ActionAsk || p.WithoutClient != ActionAllow || p.Sandbox != SandboxOn || !slices.Equal(p.Rules, rules) {
		t.Errorf("%+v", p)
	}
	if h := c.Hooks.BeforeTool; len(h) != 2 || h[0].Match != "bash" || !slices.Equal(h[0].Command, []string{"prog", ""}) ||
		h[0].Timeout != 250*time.Millisecond || h[1].Timeout != DefaultHookTimeout || len(c.Hooks.RunEnd) != 1 || c.Hooks.AfterTool != nil {
		t.Errorf("%+v", c.Hooks)
	}
	if c.Compaction != (Compaction{Reserve: 5000}) || c.Subagents != (Subagents{0, 1}) || c.Web != (Web{AllowPrivate: true}) || c.Prompt.UserRules != "/etc/roost/rules.md" {
		t.Errorf("%+v %+v %+v %+v", c.Compaction, c.Subagents, c.Web, c.Prompt)
	}
	d := mustParse(t, "permissions:\nhooks:\ncompaction:\n")
	if d.Permissions.Default != ActionAllow || d.Permissions.WithoutClient != ActionDeny || d.Permissions.Sandbox != SandboxOff || !d.Compaction.Auto {
		t.Errorf("defaults %+v %+v", d.Permissions, d.Compaction)
	}
}

func TestLaterSectionsErrors(t *testing.T) {
	s := func(body string) string { return "mcp_servers: {n: {" + body + "}}" }
	for _, tc := range []struct{ text, want string }{
		{"mcp_servers: {'a b': {command: x}}", "server name"},
		{s(""), "needs either command"},
		{s("command: x, url: 'http://h/'"), "needs either command"},
		{s("command: x, headers: {A: b}"), "headers have a meaning for a url only"},
		{s("url: 'http://h/', args: [a]"), "args and env have a meaning for a command only"},
		{s("url: 'ftp://h/'"), "must be a URL"},
		{s("url: 'http://u:hunter2@h/'"), "must not hold a user or password"},
		{s("url: 'http://h/#hunter2'"), "must be a URL"},
		{s("url: 'http://h/', headers: {Host: hunter2}"), "set by roost"},
		{s("comand: x"), `did you mean "command"?`},
		{s("command: x, env: {'A B': hunter2}"), "is not the name of an environment variable"},
		{s(`command: x, env: {A: "hunter2\0"}`), "NUL"},
		{s(`command: x, args: ["hunter2\0"]`), "NUL"},
		{s("command: x, env: {A: 1}"), "must be text"},
		{s("command: x, tools: []"), "is empty"},
		{s("command: x, tools: [a, a]"), "given twice"},
		{s("command: x, timeout: 1ms"), "must be from 1s to 24h0m0s"},
		{s("command: x, max_output: 1MiB"), "must be from 1KiB to 48KiB"},
		{"permissions: {without_client: ask}", "unknown value"},
		{"permissions: {rules: [{tool: bash}]}", "needs tool"},
		{"permissions: {rules: [{action: deny}]}", "needs tool"},
		{"permissions: {rules: [{tool: " + strings.Repeat("a", 2000) + ", action: deny}]}", "longer than 1024"},
		{"permissions: {rules: [" + strings.Repeat("{tool: a, action: deny},", 1001) + "]}", "more than 1000 rules"},
		{"permissions: {sandbox: true}", "must be text"},
		{"hooks: {run_end: [{match: a, command: [b]}]}", `unknown key "match"`},
		{"hooks: {before_tool: [{match: a}]}", "needs command"},
		{"hooks: {before_tool: [{command: [a], timeout: 1h}]}", "must be from 100ms to 10m0s"},
		{"hooks: {before_tool: [" + strings.Repeat("{command: [a]},", 101) + "]}", "more than 100 hooks"},
		{"compaction: {keep: -1}", "from 0 to"},
		{"subagents: {depth: 9}", "from 0 to 8"},
	} {
		_, err := Parse("c.yaml", []byte(tc.text), noEnv)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.80q:\n got %v\nwant %s", tc.text, err, tc.want)
		}
	}
}

func TestParseMCP(t *testing.T) {
	servers, err := ParseMCP(".mcp.json", []byte("\xef\xbb\xbf"+`{"other": 1, "mcpServers": {
		"web": {"type": "http", "url": "https://example.com/mcp", "headers": {"X-B": "2", "X-A": "1"}},
		"files": {"command": "prog", "args": ["a"], "env": {"K": "v"}, "disabled": true, "alwaysAllow": ["x"]}}}`), nil)
	if err != nil || len(servers) != 2 {
		t.Fatalf("%+v %v", servers, err)
	}
	files, web := servers[0], servers[1]
	if files.Name != "files" || files.Command != "prog" || files.Env[0].Value.Reveal() != "v" || !files.Disabled || files.Timeout != DefaultMCPTimeout || files.TrustAnnotations {
		t.Errorf("%+v", files)
	}
	if web.URL != "https://example.com/mcp" || web.Headers[0].Name != "X-A" || web.MaxOutput != DefaultMCPMaxOutput {
		t.Errorf("%+v", web)
	}
	for _, empty := range []string{"{}", `{"mcpServers": {}}`, `{"mcpServers": null}`, "null"} {
		if servers, err := ParseMCP(".mcp.json", []byte(empty), nil); err != nil || len(servers) != 0 {
			t.Errorf("%s: %v %v", empty, servers, err)
		}
	}
}

// A project must not be able to name variables of the user; a caller may allow them.
func TestParseMCPVariables(t *testing.T) {
	text := []byte(`{"mcpServers": {"bad": {"command": "prog", "env": {"K": "${OPENAI_API_KEY}"}}, "good": {"command": "$HOME/x"}}}`)
	servers, err := ParseMCP("p/.mcp.json", text, nil)
	if len(servers) != 1 || servers[0].Command != "$HOME/x" || !strings.Contains(fmt.Sprint(err), `p/.mcp.json: mcpServers."bad": env: ${NAME} is not replaced`) {
		t.Errorf("%+v %v", servers, err)
	}
	servers, err = ParseMCP("p/.mcp.json", text, env("OPENAI_API_KEY", "k"))
	if err != nil || servers[0].Env[0].Value.Reveal() != "k" {
		t.Errorf("%+v %v", servers, err)
	}
}

func TestParseMCPErrors(t *testing.T) {
	s := func(body string) string { return `{"mcpServers": {"n": {` + body + `}}}` }
	for _, tc := range []struct{ text, want string }{
		{"", "not valid JSON"},
		{"{\n  \"mcpServers\": }", ".mcp.json:2:17: not valid JSON"},
		{"[]", "must be {"},
		{`{"mcpServers": [1]}`, "must be {"},
		{`{"mcpServers": {"a/b": {"command": "x"}}}`, "the name must be"},
		{`{"mcpServers": {"n": 1}}`, "must be an object"},
		{s(``), "needs either command"},
		{s(`"command": ["x"]`), "command has the wrong type: array"},
		{s(`"command": "x", "args": "hunter2"`), "args has the wrong type: string"},
		{s(`"type": "sse", "url": "http://h/"`), `type "sse" is not supported`},
		{s(`"url": "file:///hunter2"`), "url must be a URL"},
		{s(`"command": "x", "args": ["\u0000"]`), "NUL"},
		{s(`"command": "x", "env": {"A=B": "hunter2"}`), "not the name of an environment variable"},
		{s(`"url": "http://h/", "headers": {"A B": "hunter2"}`), "not the name of a header"},
		{s(`"url": "http://h/", "headers": {"host": "hunter2"}`), "set by roost"},
		{s(`"url": "http://h/", "headers": {"A": "hunter2\n"}`), "cannot be in a header"},
		{s(`"url": "http://h/", "headers": {"A": "1", "a": "2"}`), "given twice"},
		{strings.Repeat(" ", MaxFile+1), "larger than"},
		{strings.Repeat(`{"mcpServers":`, 15000), "not valid JSON"},
	} {
		servers, err := ParseMCP(".mcp.json", []byte(tc.text), nil)
		if _, ok := errors.AsType[*Error](err); !ok || len(servers) != 0 || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.60q:\n got %v, %v\nwant %s", tc.text, servers, err, tc.want)
		}
	}
	var many []string
	for i := range maxMCPServers + 3 {
		many = append(many, fmt.Sprintf(`"s%d": {"command": "x"}`, i))
	}
	servers, err := ParseMCP(".mcp.json", []byte(`{"mcpServers": {`+strings.Join(many, ",")+`}}`), nil)
	if e, ok := errors.AsType[*Error](err); !ok || len(servers) != maxMCPServers || len(e.Problems) != 3 {
		t.Errorf("%d servers, %v", len(servers), err)
	}
}

func TestTrustHashChangesWithEveryByte(t *testing.T) {
	a, b := TrustHash([]byte(`{"mcpServers": {}}`)), TrustHash([]byte(`{"mcpServers": {} }`))
	if a == b || len(a) != 64 {
		t.Errorf("%s %s", a, b)
	}
}

func FuzzParseMCP(f *testing.F) {
	f.Add([]byte(`{"mcpServers": {"a": {"command": "x", "args": ["${A:-b}"], "env": {"K": "$$"}}}}`))
	f.Add([]byte(`{"mcpServers": {"a": {"url": "https://[::1]:8/x?y", "headers": {"A": "b"}}}}`))
	f.Add([]byte(`{"mcpservers": {"": null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, getenv := range []func(string) string{nil, noEnv} {
			servers, err := ParseMCP("f", data, getenv)
			if _, ok := errors.AsType[*Error](err); err != nil && !ok {
				t.Fatalf("error of type %T", err)
			}
			for _, s := range servers {
				if (s.Command == "") == (s.URL == "") || !mcpName.MatchString(s.Name) {
					t.Fatalf("%+v", s)
				}
				if getenv == nil && strings.Contains(s.Command+s.URL, "${") {
					t.Fatal("a variable was let through")
				}
			}
		}
	})
}
