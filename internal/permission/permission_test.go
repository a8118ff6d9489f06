package permission_test

import (
	"encoding/json"
	"testing"

	"github.com/roost-dev/roost/internal/permission"
)

const dir = "/home/u/project"

func bash(line string) permission.Call { return call("bash", map[string]any{"command": line}) }

func call(tool string, input map[string]any) permission.Call {
	raw, err := json.Marshal(input)
	if err != nil {
		panic(err) // a test's own input
	}
	return permission.Call{Tool: tool, Input: raw, Dir: dir}
}

func judge(p permission.Policy, line string, granted ...string) permission.Decision {
	return p.Judge(bash(line), permission.Grants{}.With(granted...))
}

func TestActionText(t *testing.T) {
	for _, a := range []permission.Action{permission.Allow, permission.Ask, permission.Deny} {
		raw, err := json.Marshal(a)
		var back permission.Action
		if err != nil || json.Unmarshal(raw, &back) != nil || back != a {
			t.Errorf("%v: %s, %v, %v", a, raw, err, back)
		}
	}
	var a permission.Action
	if err := a.UnmarshalText([]byte("yes")); err == nil {
		t.Error("an unknown action was read")
	}
	if got := permission.Action(0).String() + permission.Action(9).String(); got != "askdeny" {
		t.Errorf("zero and unknown actions are %s", got)
	}
}

// What is left out of a policy makes it no weaker.
func TestZeroPolicyAsks(t *testing.T) {
	for _, line := range []string{"make", "rm x", "curl x"} {
		if d := judge(permission.Policy{}, line); d.Action != permission.Ask {
			t.Errorf("%s: %+v", line, d)
		}
	}
	rules := []permission.Rule{{Tool: "bash"}}
	if d := judge(permission.Policy{Default: permission.Allow, Rules: rules}, "ls"); d.Action != permission.Ask || d.Parts[0].Rule != 0 {
		t.Errorf("a rule without an action: %+v", d)
	}
}

func TestRules(t *testing.T) {
	rules := func(list ...permission.Rule) permission.Policy {
		return permission.Policy{Default: permission.Ask, Rules: list}
	}
	allow := func(pattern string) permission.Rule {
		return permission.Rule{Tool: "bash", Pattern: pattern, Action: permission.Allow}
	}
	ask := func(pattern string) permission.Rule {
		return permission.Rule{Tool: "bash", Pattern: pattern, Action: permission.Ask}
	}
	deny := func(pattern string) permission.Rule {
		return permission.Rule{Tool: "bash", Pattern: pattern, Action: permission.Deny}
	}
	denyPath := permission.Rule{Path: "secrets/**", Action: permission.Deny}
	for name, tt := range map[string]struct {
		policy permission.Policy
		line   string
		want   permission.Action
	}{
		"allowed by pattern":             {rules(allow("go test *")), "go test ./... -run X", permission.Allow},
		"a final star is optional":       {rules(allow("go test *")), "go test", permission.Allow},
		"but a word is a word":           {rules(allow("go test *")), "go testx", permission.Ask},
		"a space in a word is none":      {rules(allow("rm x *")), "rm 'x y'", permission.Ask},
		"one part is not enough":         {rules(allow("go test *")), "go test && make", permission.Ask},
		"the last wins":                  {rules(ask("*"), allow("make *")), "make x", permission.Allow},
		"the last wins, turned around":   {rules(allow("make *"), ask("*")), "make x", permission.Ask},
		"deny wins wherever it is":       {rules(deny("rm *"), allow("*")), "rm x", permission.Deny},
		"deny through a directory":       {rules(deny("rm *"), allow("*")), "/bin/rm x", permission.Deny},
		"deny through a pipe":            {rules(deny("rm *")), "ls | xargs rm", permission.Deny},
		"deny in a substitution":         {rules(deny("rm *")), `echo "$(rm x)"`, permission.Deny},
		"deny behind options of git":     {rules(deny("git push *"), allow("git *")), "git -C sub push", permission.Deny},
		"deny behind a setting of git":   {rules(deny("git push *"), allow("git *")), "git -c a.b=c push", permission.Deny},
		"denied behind a name unknown":   {permission.Policy{Default: permission.Allow, Trusted: true, Rules: []permission.Rule{deny("rm *")}}, "wrap -x rm a", permission.Ask},
		"denied as a script on the PATH": {permission.Policy{Default: permission.Allow, Trusted: true, Rules: []permission.Rule{deny("rm *")}}, "bash rm a", permission.Ask},
		"maybe denied":                   {rules(deny("git push *"), allow("git *")), "git $x", permission.Ask},
		"maybe denied, by a name":        {rules(deny("rm *"), allow("*")), "$x -rf y", permission.Ask},
		"not denied":                     {rules(deny("git push *"), allow("git *")), "git frob $x", permission.Allow},
		"what runs anything":             {rules(deny("rm *"), allow("*")), "echo rm x | sh", permission.Ask},
		"what runs anything, by name":    {rules(deny("rm *"), allow("python *"), allow("echo *")), "python -c 'import os'", permission.Allow},
		"what runs anything, by default": {permission.Policy{Default: permission.Allow, Trusted: true, Rules: []permission.Rule{deny("rm *")}}, "echo rm x | sh", permission.Ask},
		"a star within a word":           {rules(allow("rm build/*")), "rm build/x", permission.Allow},
		"stays in its word":              {rules(allow("rm build/*")), "rm build/x /etc", permission.Ask},
		"and does not climb":             {rules(allow("rm build/*")), "rm build/../x", permission.Ask},
		"nor spans an expansion":         {rules(allow("rm build/*")), "rm build/$x", permission.Ask},
		"not a program of that name":     {rules(allow("git *")), "./git frob", permission.Ask},
		"a denied path":                  {rules(denyPath, allow("*")), "cat secrets/key", permission.Deny},
		"a denied path after cd":         {rules(denyPath, allow("*")), "cd secrets && cat key", permission.Deny},
		"a denied path in an option":     {rules(denyPath, allow("*")), "tool --in=secrets/key", permission.Deny},
		"a denied path, absolute":        {rules(denyPath, allow("*")), "cat /home/u/project/x/../secrets/key", permission.Deny},
		"a denied path, redirected":      {rules(denyPath, allow("*")), "cat < secrets/key", permission.Deny},
		"a denied path, perhaps":         {rules(denyPath, allow("*")), `cat "$f"`, permission.Ask},
		"a denied path, by a glob":       {rules(denyPath, allow("*")), "cat s*/key", permission.Ask},
		"not by another glob":            {rules(denyPath, allow("*")), "cat x*/key", permission.Allow},
		"allowed paths, all of them":     {rules(permission.Rule{Pattern: "rm *", Path: "build/**", Action: permission.Allow}), "rm -r build/a build/b", permission.Allow},
		"allowed paths, not all":         {rules(permission.Rule{Pattern: "rm *", Path: "build/**", Action: permission.Allow}), "rm -r build/a src", permission.Ask},
		"a redirection is a part":        {rules(allow("make *")), "make > /etc/x", permission.Ask},
		"all tools":                      {rules(permission.Rule{Action: permission.Deny}), "x=1", permission.Deny},
		"a bad path denies":              {rules(permission.Rule{Path: "[", Action: permission.Deny}), "cat x", permission.Deny},
		"a default that denies":          {permission.Policy{Default: permission.Deny}, "ls && make", permission.Deny},
	} {
		if d := tt.policy.Judge(bash(tt.line), nil); d.Action != tt.want {
			t.Errorf("%s: %q: %+v", name, tt.line, d)
		}
	}
}

func TestOtherTools(t *testing.T) {
	p := permission.Policy{Default: permission.Allow, Home: "/home/u", Rules: []permission.Rule{
		{Tool: "mcp__github__*", Action: permission.Ask},
		{Tool: "fetch", Pattern: "https://example.com/*", Action: permission.Deny},
		{Tool: "write", Path: "**/*.lock", Action: permission.Deny},
		{Path: "~/notes/**", Action: permission.Deny},
	}}
	for _, tt := range []struct {
		tool  string
		input map[string]any
		want  permission.Action
	}{
		{"read", map[string]any{"path": "src/x.go"}, permission.Allow},
		{"read", map[string]any{"path": "/home/u/project/src/../x"}, permission.Allow},
		{"read", map[string]any{"path": "../x"}, permission.Ask},
		{"read", map[string]any{"path": "/etc/passwd"}, permission.Ask},
		{"read", map[string]any{"path": "~/x"}, permission.Ask},
		{"read", map[string]any{"path": "~/notes/x"}, permission.Deny},
		{"read", map[string]any{"path": "../../u/notes/x"}, permission.Deny},
		{"read", map[string]any{"path": ".env"}, permission.Ask},
		{"read", map[string]any{"path": ".env.example"}, permission.Allow},
		{"read", map[string]any{"path": "deploy/TLS.PEM"}, permission.Ask},
		{"read", map[string]any{"path": ".git/config"}, permission.Allow},
		{"ls", map[string]any{}, permission.Allow},
		{"grep", map[string]any{"pattern": "/etc/x"}, permission.Allow},
		{"write", map[string]any{"path": "src/x.go", "content": "x"}, permission.Allow},
		{"write", map[string]any{"path": "go.lock"}, permission.Deny},
		{"write", map[string]any{"path": ".git/hooks/pre-commit"}, permission.Ask},
		{"write", map[string]any{"path": ".GitHub/workflows/x.yml"}, permission.Ask},
		{"edit", map[string]any{"path": "AGENTS.md"}, permission.Ask},
		{"edit", map[string]any{"path": ".mcp.json"}, permission.Ask},
		{"edit", map[string]any{"path": ".roost/config.yaml"}, permission.Ask},
		{"mcp__github__create", map[string]any{"title": "x"}, permission.Ask},
		{"mcp__other__create", map[string]any{"title": "x"}, permission.Allow},
		{"mcp__other__save", map[string]any{"to": map[string]any{"file_path": "/etc/x"}}, permission.Ask},
		{"fetch", map[string]any{"url": "https://example.com/x"}, permission.Deny},
		{"fetch", map[string]any{"url": "https://example.org/x"}, permission.Allow},
	} {
		if d := p.Judge(call(tt.tool, tt.input), nil); d.Action != tt.want {
			t.Errorf("%s %v: %+v", tt.tool, tt.input, d)
		}
	}
}

// Input that two decoders may read differently is never allowed.
func TestAmbiguousInput(t *testing.T) {
	p := permission.Policy{Default: permission.Allow, Rules: []permission.Rule{{Tool: "bash", Pattern: "rm *", Action: permission.Deny}}}
	for _, input := range []string{
		`{"command":"ls","command":"rm x"}`, `{"command":"ls","COMMAND":"rm x"}`, `{"command":"ls"`, `[]`, `"ls"`, `null`, ``,
		`{"command":1}`, `{}`, `{"x":{"command":"ls"}}`, `{"command":"ls"} {"command":"rm x"}`,
	} {
		d := p.Judge(permission.Call{Tool: "bash", Input: json.RawMessage(input), Dir: dir}, nil)
		if d.Action == permission.Allow || d.Reason == "" || d.Remember != nil {
			t.Errorf("%s: %+v", input, d)
		}
	}
}
