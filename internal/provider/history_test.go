package provider_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

func user(text string) *session.User {
	return &session.User{Blocks: []session.Block{session.Text{Text: text}}}
}

// says is an assistant item: a text, and calls whose id is their name. "x!" is incomplete.
func says(text string, calls ...string) *session.Assistant {
	a := &session.Assistant{Status: session.Complete}
	if text != "" {
		a.Blocks = append(a.Blocks, session.Text{Text: text})
	}
	for _, c := range calls {
		id, cut := strings.CutSuffix(c, "!")
		a.Blocks = append(a.Blocks, session.ToolCall{Call: session.CallID(id), Name: "bash", Input: "{}", Complete: !cut})
	}
	return a
}

func result(call, output string) *session.Tool {
	return &session.Tool{Call: session.CallID(call), Output: output, Status: session.Complete}
}

// show writes items as one line.
func show(items []session.Item) string {
	var out []string
	for _, it := range items {
		switch it := it.(type) {
		case *session.User:
			out = append(out, "u:"+it.Blocks[0].(session.Text).Text)
		case *session.Assistant:
			var s strings.Builder
			s.WriteString("a")
			for _, b := range it.Blocks {
				switch b := b.(type) {
				case session.Text:
					s.WriteString(":" + b.Text)
				case session.ToolCall:
					s.WriteString("+" + string(b.Call))
				}
			}
			out = append(out, s.String())
		case *session.Tool:
			switch {
			case it.Status == session.Complete:
				out = append(out, fmt.Sprintf("%s=%s", it.Call, it.Output))
			case strings.Contains(it.Output, "nothing was run"):
				out = append(out, fmt.Sprintf("%s=NOTRUN", it.Call))
			default:
				out = append(out, fmt.Sprintf("%s=UNKNOWN", it.Call))
			}
		}
	}
	return strings.Join(out, " ")
}

func TestPair(t *testing.T) {
	running := result("c1", "half")
	running.Status = session.Streaming
	for _, tc := range []struct {
		name  string
		items []session.Item
		want  string
	}{
		{"empty", nil, ""},
		{"paired", []session.Item{user("q"), says("x", "c1", "c2"), result("c1", "1"), result("c2", "2"), says("y")}, "u:q a:x+c1+c2 c1=1 c2=2 a:y"},
		{"results in another order", []session.Item{says("", "c1", "c2"), result("c2", "2"), result("c1", "1")}, "a+c1+c2 c1=1 c2=2"},
		{"missing result", []session.Item{says("", "c1", "c2"), result("c2", "2"), user("q")}, "a+c1+c2 c1=UNKNOWN c2=2 u:q"},
		{"incomplete call", []session.Item{says("", "c1!"), user("q")}, "a+c1 c1=NOTRUN u:q"},
		{"running tool", []session.Item{says("", "c1"), running}, "a+c1 c1=UNKNOWN"},
		{"orphan result", []session.Item{user("q"), result("c9", "9"), says("x")}, "u:q a:x"},
		{"second result", []session.Item{says("", "c1"), result("c1", "1"), result("c1", "one")}, "a+c1 c1=1"},
		{"steer before the result", []session.Item{says("", "c1"), user("steer"), result("c1", "1")}, "a+c1 c1=1 u:steer"},
		{"late result", []session.Item{says("", "c1"), says("y"), result("c1", "1")}, "a+c1 c1=1 a:y"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := show(tc.items)
			if got := show(provider.Pair(tc.items)); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
			if show(tc.items) != before {
				t.Error("the items were changed")
			}
		})
	}
}

// Whatever the items, each call has exactly one result, at once and in order; pairing twice
// changes nothing; and a longer history begins with the pairs of a shorter, paired one.
func TestPairProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var items []session.Item
		n := rapid.IntRange(0, 12).Draw(t, "items")
		for i := range n {
			switch rapid.IntRange(0, 2).Draw(t, "kind") {
			case 0:
				items = append(items, user(fmt.Sprint(i)))
			case 1:
				a := says("x")
				for c := range rapid.IntRange(0, 3).Draw(t, "calls") {
					a.Blocks = append(a.Blocks, session.ToolCall{Call: session.CallID(fmt.Sprintf("c%d-%d", i, c)), Complete: true})
				}
				items = append(items, a)
			case 2:
				id := fmt.Sprintf("c%d-%d", rapid.IntRange(0, 12).Draw(t, "of"), rapid.IntRange(0, 3).Draw(t, "n"))
				items = append(items, result(id, id))
			}
		}
		paired := provider.Pair(items)
		for i := 0; i < len(paired); {
			a, ok := paired[i].(*session.Assistant)
			if !ok {
				if _, orphan := paired[i].(*session.Tool); orphan {
					t.Fatalf("orphan at %d: %s", i, show(paired))
				}
				i++
				continue
			}
			i++
			for _, c := range a.Calls() {
				r, ok := paired[i].(*session.Tool)
				if !ok || r.Call != c.Call {
					t.Fatalf("no result of %s: %s", c.Call, show(paired))
				}
				i++
			}
		}
		if again := show(provider.Pair(paired)); again != show(paired) {
			t.Fatalf("not stable: %s then %s", show(paired), again)
		}
		longer := provider.Pair(append(slices.Clip(paired), user("more"), says("z", "new"), result("new", "n")))
		if !strings.HasPrefix(show(longer), show(paired)) {
			t.Fatalf("prefix lost: %s then %s", show(paired), show(longer))
		}
	})
}

func TestHistoryContinue(t *testing.T) {
	reasoned := &session.Assistant{Blocks: []session.Block{session.Reasoning{Text: "hm"}}}
	mixed := &session.Assistant{Blocks: []session.Block{session.Reasoning{Text: "hm"}, session.Text{Text: "Hel"}, session.ToolCall{Call: "c1"}}}
	for _, tc := range []struct {
		name  string
		cont  bool
		items []session.Item
		want  string
	}{
		{"not asked", false, []session.Item{user("q"), says("Hel")}, "u:q a:Hel"},
		{"text", true, []session.Item{user("q"), mixed}, "u:q a:Hel u:" + provider.ContinueNote},
		{"reasoning only", true, []session.Item{user("q"), reasoned}, "u:q"},
		{"cut again before its first word", true, []session.Item{user("q"), says("Hel"), reasoned}, "u:q a:Hel u:" + provider.ContinueNote},
		{"no answer at the end", true, []session.Item{user("q")}, "u:q"},
		{"nothing", true, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := provider.History(&provider.Request{Items: tc.items, Continue: tc.cont})
			if show(got) != tc.want {
				t.Errorf("got  %s\nwant %s", show(got), tc.want)
			}
		})
	}
	if len(mixed.Blocks) != 3 {
		t.Error("the item was changed")
	}
}

func TestInput(t *testing.T) {
	for in, want := range map[string]string{
		"":              `{}`,
		" \n":           `{}`,
		`{"a": 1}`:      `{"a": 1}`,
		` {"a":1} `:     `{"a":1}`,
		`{"a":`:         `{"malformed_input":"{\"a\":"}`,
		`[1]`:           `{"malformed_input":"[1]"}`,
		`{} {}`:         `{"malformed_input":"{} {}"}`,
		"\"\xff<\"":     `{"malformed_input":"\"` + "\uFFFD" + `\u003c\""}`,
		`"just a text"`: `{"malformed_input":"\"just a text\""}`,
	} {
		if got := string(provider.Input(in)); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
	if got := provider.Input("{" + strings.Repeat("é", 1<<20)); len(got) > 8<<10 || !json.Valid(got) {
		t.Errorf("a long input gives %d bytes", len(got))
	}
}

func TestToolName(t *testing.T) {
	for in, want := range map[string]string{"bash": "bash", "": "unknown", "a b/ü": "a_b__", strings.Repeat("x", 99): strings.Repeat("x", 64)} {
		if got := provider.ToolName(in); got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

func TestSchema(t *testing.T) {
	empty := `{"type":"object","properties":{}}`
	for in, want := range map[string]string{
		"":                    empty,
		"null":                empty,
		"[]":                  empty,
		`{"type":"object"}`:   `{"type":"object"}`,
		`{"properties":{}}`:   `{"properties":{},"type":"object"}`,
		`{"b":1,"type":null}`: `{"b":1,"type":"object"}`,
	} {
		if got := string(provider.Schema(json.RawMessage(in))); got != want {
			t.Errorf("%s: %s", in, got)
		}
	}
}

func TestImageBytes(t *testing.T) {
	if _, err := (&provider.Request{}).ImageBytes(session.Image{}); err == nil {
		t.Error("no error without a source of images")
	}
	gone := errors.New("gone")
	r := provider.Request{Image: func(session.Image) ([]byte, error) { return nil, gone }}
	if _, err := r.ImageBytes(session.Image{}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}
