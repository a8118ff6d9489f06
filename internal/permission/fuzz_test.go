package permission_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/permission"
)

// FuzzJudge: no command line makes Judge panic, lets a denied command through when it is put
// beside another, or shows a person something invisible.
func FuzzJudge(f *testing.F) {
	for _, group := range [][]string{benign, plain, risky} {
		for _, line := range group {
			f.Add(line)
		}
	}
	p := permission.Policy{Default: permission.Allow, Trusted: true, Rules: []permission.Rule{
		{Tool: "bash", Pattern: "rm *", Action: permission.Deny},
		{Tool: "bash", Path: "secrets/**", Action: permission.Deny},
	}}
	f.Fuzz(func(t *testing.T, line string) {
		d := judge(p, line)
		if len(d.Parts) == 0 || d.Action < permission.Allow || d.Action > permission.Deny {
			t.Fatalf("%+v", d)
		}
		for _, part := range d.Parts {
			if part.Action > d.Action {
				t.Fatalf("a part is %v in %+v", part.Action, d)
			}
			if strings.ContainsAny(part.Text, "\n\r\x1b\u202e") {
				t.Fatalf("a person cannot see what %q is", part.Text)
			}
		}
		around := []string{"rm x\n" + line, "{ rm x\n}; " + line, "rm x; " + line, "echo $(rm x); " + line}
		if !strings.ContainsAny(line, `\\<`) { // after those it may be text
			around = append(around, line+"\nrm x")
		}
		for _, with := range around {
			if d := judge(p, with); d.Action == permission.Allow {
				t.Fatalf("%q: %+v", with, d)
			}
		}
	})
}

// FuzzInput: no input of any tool makes Judge panic, or is allowed where a rule denies all.
func FuzzInput(f *testing.F) {
	for _, seed := range []string{`{"command":"ls"}`, `{"path":"x"}`, `{"a":[{"path":"/"}]}`, `{"path":"a","PATH":"b"}`, `[`, `{}`, `{"path":"\u0001\u0000"}`} {
		f.Add("bash", seed)
		f.Add("write", seed)
		f.Add("mcp__x__y", seed)
	}
	p := permission.Policy{Default: permission.Allow, Trusted: true, Rules: []permission.Rule{{Action: permission.Deny}}}
	f.Fuzz(func(t *testing.T, tool, input string) {
		c := permission.Call{Tool: tool, Input: json.RawMessage(input), Dir: dir}
		if d := p.Judge(c, nil); d.Action != permission.Deny {
			t.Fatalf("%+v", d)
		}
	})
}
