package todotool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/todotool"
)

func run(previous, input string) tool.Result {
	return todotool.New().Run(context.Background(), tool.Call{Input: json.RawMessage(input), Previous: json.RawMessage(previous)}, nil)
}

func TestListGoesOn(t *testing.T) {
	first := run("", `{"todos":[{"id":"a","content":" look "},{"id":"b","content":"do\nit","status":"in_progress"}]}`)
	if first.IsError || string(first.Details) != `{"todos":[{"id":"a","content":"look","status":"pending"},{"id":"b","content":"do\nit","status":"in_progress"}]}` {
		t.Fatalf("got %+v, %s", first, first.Details)
	}
	second := run(string(first.Details), `{"merge":true,"todos":[{"id":"b","status":"completed"},{"id":"c","content":"say","status":"cancelled"},{"id":"a","content":"look well"}]}`)
	if want := "[ ] a: look well\n[x] b: do it\n[-] c: say\n\n1 of 3 tasks are open."; second.Text != want {
		t.Errorf("got %q, want %q", second.Text, want)
	}
	third := run(string(second.Details), `{"todos":[]}`)
	if third.Text != "The list is empty." || third.IsError {
		t.Errorf("got %+v", third)
	}
}

func TestRefusals(t *testing.T) {
	for _, in := range []string{
		`{}`, `{"todos":[{"content":"x"}]}`, `{"todos":[{"id":"a"}]}`, `{"todos":[{"id":"a","content":" "}]}`, `{"merge":true,"todos":[{"id":"new","status":"completed"}]}`,
		`{"todos":[{"id":"a","content":"x"},{"id":"a","content":"y"}]}`, `{"todos":[{"id":"a","content":"x","status":"done"}]}`, `{"todos":"x"}`, ``,
	} {
		if res := run("", in); !res.IsError || res.Details != nil || !strings.HasPrefix(res.Text, "todo: ") {
			t.Errorf("%s: got %+v", in, res)
		}
	}
}

func TestForeignDetails(t *testing.T) {
	for _, previous := range []string{`x`, `[]`, `{"todos":7}`, `{"todos":[{"id":"","content":"x","status":"pending"},{"id":"a","content":"x","status":"odd"}]}`} {
		if res := run(previous, `{"merge":true,"todos":[{"id":"n","content":"new"}]}`); res.Text != "[ ] n: new\n\n1 of 1 tasks are open." {
			t.Errorf("%s: got %+v", previous, res)
		}
	}
}

func TestApply(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) todotool.Todo {
		return todotool.Todo{
			ID: rapid.StringMatching(`[a-f]`).Draw(t, "id"), Content: rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "content"),
			Status: rapid.SampledFrom([]todotool.Status{"", todotool.Pending, todotool.Completed}).Draw(t, "status"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		var list []todotool.Todo
		for range rapid.IntRange(1, 5).Draw(t, "calls") {
			in := todotool.Input{Merge: rapid.Bool().Draw(t, "merge"), Todos: rapid.SliceOfN(draw, 0, 5).Draw(t, "todos")}
			before := slices.Clone(list)
			next, err := todotool.Apply(list, in)
			if !slices.Equal(list, before) {
				t.Fatal("the list before was changed")
			}
			if err != nil {
				if !errors.Is(err, todotool.ErrContent) && !errors.Is(err, todotool.ErrTwice) {
					t.Fatal(err)
				}
				continue
			}
			for _, n := range in.Todos {
				i := slices.IndexFunc(next, func(o todotool.Todo) bool { return o.ID == n.ID })
				if i < 0 || n.Content != "" && next[i].Content != n.Content || n.Status != "" && next[i].Status != n.Status || next[i].Status == "" || next[i].Content == "" {
					t.Fatalf("%+v made %+v", in, next)
				}
			}
			if in.Merge && len(next) < len(list) || !in.Merge && len(next) != len(in.Todos) {
				t.Fatalf("%d tasks and %+v made %d", len(list), in, len(next))
			}
			list = next
		}
	})
}

func TestTooMany(t *testing.T) {
	var list []todotool.Todo
	for i := range todotool.MaxTodos {
		list = append(list, todotool.Todo{ID: fmt.Sprint(i), Content: "x", Status: todotool.Pending})
	}
	if _, err := todotool.Apply(list, todotool.Input{Merge: true, Todos: []todotool.Todo{{ID: "more", Content: "x"}}}); !errors.Is(err, todotool.ErrTooMany) {
		t.Errorf("got %v", err)
	}
}
