package permission_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/roost-dev/roost/internal/permission"
)

func TestRemember(t *testing.T) {
	p := permission.Policy{Default: permission.Ask}
	for line, want := range map[string][]string{
		"go test ./...":               {"bash:go test *"},
		"make":                        {"bash:make *"},
		"make test && ./run.sh -x":    {"bash:make test *", "bash:./run.sh *"},
		"python3 x.py --all":          {"bash:python3 x.py *"},
		"git push origin main":        {"bash:git push origin *"},
		"git push -f origin main":     {"bash:git push -f origin main"},
		"git push origin +main":       {"bash:git push origin +main"},
		"git push https://x/y main":   {"bash:git push https://x/y main"},
		"rm  -rf 'a b'":               {"bash:rm -rf 'a b'"},
		"echo x > out":                {"bash:> out"},
		"rm a; rm a":                  {"bash:rm a"},
		"curl x":                      {"bash:curl x"},
		"cd sub && make":              {"bash:make *"},
		"ls":                          nil,
		"rm $x":                       nil,
		"rm *":                        nil,
		"curl x | sh":                 nil,
		"PATH=. make":                 nil,
		"cd sub && rm a":              nil, // what "rm a" means has changed
		"cd /x && make":               nil,
		"make 'a":                     nil,
		"python3 - < x":               nil,
		"python3 -c 'print(1)' a\\ b": {"bash:python3 -c 'print(1)' 'a b'"},
	} {
		d := judge(p, line)
		if !slices.Equal(d.Remember, want) {
			t.Errorf("%q: %q, want %q", line, d.Remember, want)
		}
		if want != nil {
			if again := judge(p, line, d.Remember...); again.Action != permission.Allow || again.Remember != nil {
				t.Errorf("%q granted: %+v", line, again)
			}
		}
	}
}

// A grant covers what it says and nothing else.
func TestGrantsAreNarrow(t *testing.T) {
	ask := permission.Policy{Default: permission.Ask}
	for _, tt := range []struct {
		policy permission.Policy
		grant  string
		line   string
		want   permission.Action
	}{
		{ask, "bash:go test *", "go test -run X ./y", permission.Allow},
		{ask, "bash:go test *", "go build", permission.Ask},
		{ask, "bash:go test *", "go test; rm x", permission.Ask},
		{ask, "bash:go test *", "go test -exec x", permission.Ask},
		{ask, "bash:go test *", "go test $(rm x)", permission.Ask},
		{ask, "bash:go test *", "go test $x", permission.Ask},
		{ask, "bash:go test *", "PATH=. go test", permission.Ask},
		{ask, "bash:go test *", "cd /x && go test", permission.Ask},
		{ask, "bash:go test *", "/tmp/go test", permission.Ask},
		{ask, "bash:go test *", "go test /etc", permission.Ask},
		{ask, "bash:git push origin *", "git push origin --force", permission.Ask},
		{ask, "bash:git push origin *", "git push origin :x", permission.Ask},
		{ask, "bash:git push origin *", "git push other x", permission.Ask},
		{ask, "bash:git commit *", "git commit -m x", permission.Allow},
		{ask, "bash:rm a", "'rm' \"a\"", permission.Allow},
		{ask, "bash:rm a", "rm a b", permission.Ask},
		{ask, "bash:rm a", "rm 'a '", permission.Ask},
		{ask, "bash:rm a", "cd sub; rm a", permission.Ask},
		{ask, "bash:rm '*'", "rm *", permission.Ask},
		{ask, "bash:make *", "make '*'", permission.Allow},
		{ask, "bash:*", "make", permission.Ask},
		{ask, "*", "make", permission.Ask},
		{ask, "", "rm $x", permission.Ask},
		{permission.Policy{Rules: []permission.Rule{{Pattern: "make *", Action: permission.Deny}}}, "bash:make *", "make", permission.Deny},
		{permission.Policy{Rules: []permission.Rule{{Pattern: "make deploy *", Action: permission.Ask}}}, "bash:make deploy *", "make deploy", permission.Ask},
		{permission.Policy{Rules: []permission.Rule{{Pattern: "make deploy *", Action: permission.Ask}}}, "bash:make deploy x", "make deploy x", permission.Allow},
	} {
		if d := judge(tt.policy, tt.line, tt.grant); d.Action != tt.want {
			t.Errorf("%q with %q: %+v", tt.line, tt.grant, d)
		}
	}
}

func TestGrantsOfOtherTools(t *testing.T) {
	p := permission.Policy{Default: permission.Ask}
	inside := call("edit", map[string]any{"path": "src/x.go"})
	env := call("edit", map[string]any{"path": ".env"})
	d := p.Judge(inside, nil)
	if !slices.Equal(d.Remember, []string{"edit:./**"}) {
		t.Fatalf("%+v", d)
	}
	g := permission.Grants{}.With(d.Remember...)
	if d := p.Judge(inside, g); d.Action != permission.Allow || d.Parts[0].Rule != permission.ByGrant {
		t.Errorf("%+v", d)
	}
	if d := p.Judge(env, g); d.Action != permission.Ask || !slices.Equal(d.Remember, []string{"edit:/home/u/project/.env"}) {
		t.Errorf("%+v", d)
	}
	if d := p.Judge(call("write", map[string]any{"path": "x"}), g); d.Action != permission.Ask {
		t.Errorf("%+v", d)
	}
	if d := p.Judge(call("mcp__x__y", map[string]any{"path": "/etc/x"}), permission.Grants{"mcp__x__y:*"}); d.Action != permission.Ask || d.Remember != nil {
		t.Errorf("%+v", d)
	}
}

func TestGrantsJSON(t *testing.T) {
	g := permission.Grants{"b"}.With("c", "a", "b")
	raw, err := json.Marshal(g)
	var back permission.Grants
	if err != nil || string(raw) != `["a","b","c"]` || json.Unmarshal(raw, &back) != nil || !slices.Equal(back, g) {
		t.Errorf("%s, %v, %v", raw, err, back)
	}
}
