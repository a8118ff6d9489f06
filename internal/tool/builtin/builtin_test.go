package builtin_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/builtin"
)

func TestAll(t *testing.T) {
	var names, repeatable []string
	for _, tl := range builtin.All() {
		s := tl.Spec()
		names = append(names, s.Name)
		if s.Repeatable {
			repeatable = append(repeatable, s.Name)
		}
		var schema struct{ Type string }
		if err := json.Unmarshal(s.Schema, &schema); err != nil || schema.Type != "object" {
			t.Errorf("%s: schema %s, %v", s.Name, s.Schema, err)
		}
	}
	slices.Sort(names)
	slices.Sort(repeatable)
	if got := strings.Join(names, " "); got != "bash edit find grep ls read write" {
		t.Errorf("tools: %s", got)
	}
	if got := strings.Join(repeatable, " "); got != "find grep ls read" {
		t.Errorf("repeatable: %s", got)
	}
}

// No input makes a tool panic or return something over the limits; it is an error result.
func TestHostileInput(t *testing.T) {
	dir := t.TempDir()
	for _, tl := range builtin.All() {
		for _, input := range []string{"", "null", "[]", "{", `"x"`, `{"path":{}}`, `{"command":1}`, strings.Repeat("[", 20_000)} {
			call := tool.Call{Input: json.RawMessage(input), Dir: dir + "/gone", OutputDir: dir, Confined: true}
			if res := tl.Run(t.Context(), call, func(tool.Progress) {}); !res.IsError || res.Text == "" || len(res.Text) > tool.MaxNotice {
				t.Errorf("%s %.20q: %+.200v", tl.Spec().Name, input, res)
			}
		}
	}
}

func TestBashHides(t *testing.T) {
	t.Setenv("ROOST_HIDDEN_IN_TEST", "secret")
	for _, tl := range builtin.All("ROOST_HIDDEN_IN_TEST") {
		if tl.Spec().Name != "bash" {
			continue
		}
		call := tool.Call{Input: json.RawMessage(`{"command":"echo got $ROOST_HIDDEN_IN_TEST"}`), Dir: t.TempDir(), OutputDir: t.TempDir()}
		if res := tl.Run(t.Context(), call, func(tool.Progress) {}); res.Text != "got" {
			t.Errorf("got %q", res.Text)
		}
	}
}
