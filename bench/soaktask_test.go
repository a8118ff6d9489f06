package main

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	userOf = `{"role":"user","content":"%s"}`
	called = `{"role":"assistant","content":"x","tool_calls":[{}]},{"role":"tool","content":"file"}`
)

func TestFindTask(t *testing.T) {
	a, b := task{seed: 1, tokens: 5, rate: 9, tools: 2}, task{seed: 2, tokens: 6}
	for name, c := range map[string]struct {
		messages []string
		want     asked
	}{
		"first pass":      {[]string{`{"role":"system","content":"soak"}`, fmt.Sprintf(userOf, a)}, asked{task: a, tool: "read"}},
		"later":           {[]string{fmt.Sprintf(userOf, b), `{"role":"assistant","content":"old"}`, fmt.Sprintf(userOf, a), called}, asked{task: a, passes: 1, tool: "read"}},
		"to be continued": {[]string{fmt.Sprintf(userOf, a), called, called, `{"role":"assistant","content":"one river"}`, `{"role":"user","content":"Go on."}`}, asked{task: a, passes: 2, said: "one river", tool: "read"}},
		"in parts":        {[]string{`{"role":"user","content":[{"type":"text","text":"<q>` + b.String() + `</q>"}]}`}, asked{task: b, tool: "read"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := findTask([]byte(`{"messages":[` + strings.Join(c.messages, ",") + `]}`))
			if err != nil || got != c.want {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
	got, err := findTask([]byte(`{"messages":[` + fmt.Sprintf(userOf, a) + `],"tools":[{"function":{"name":"Read"}}]}`))
	if err != nil || got.tool != "Read" {
		t.Errorf("a Cursor client's tool is %q, %v", got.tool, err)
	}
	for _, bad := range []string{"", "{}", `{"messages":[{"role":"user","content":"hello"}]}`, `{"messages":[{"role":"user","content":"soak: seed=x"}]}`} {
		if _, err := findTask([]byte(bad)); err == nil {
			t.Errorf("%q has a task", bad)
		}
	}
}

// However often an answer is cut, what is said in all is the text of the task.
func TestRestIsTheRest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := asked{task: task{seed: rapid.Uint64().Draw(t, "seed"), tokens: rapid.IntRange(0, 50).Draw(t, "tokens"), tools: rapid.IntRange(0, 2).Draw(t, "tools")}}
		var all strings.Builder
		for ; a.passes <= a.tools; a.passes++ {
			a.said = ""
			for {
				rest, err := a.rest()
				if err != nil {
					t.Fatal(err)
				}
				if len(rest) == 0 {
					break
				}
				a.said += strings.Join(rest[:rapid.IntRange(1, len(rest)).Draw(t, "cut")], "")
			}
			all.WriteString(a.said)
		}
		if all.String() != a.text() {
			t.Fatalf("said %q, want %q", all.String(), a.text())
		}
	})
}

func TestRestNoticesDamage(t *testing.T) {
	a := asked{task: task{seed: 1, tokens: 5}}
	whole := a.text()
	for _, said := range []string{"nonsense", whole + " more", whole[1:]} {
		a.said = said
		if rest, err := a.rest(); err == nil {
			t.Errorf("after %q comes %q", said, rest)
		}
	}
}
