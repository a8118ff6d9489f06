// Package todotool holds the tool todo, the list of tasks that a model keeps for itself and
// the user watches. The tool has no memory: each result carries the whole list as Details,
// the next call gets it as Previous, and so the list belongs to the transcript. It survives
// restarts with it, and a fork or a rewind has the list of its own past.
//
// Of several calls in one pass each begins from the list before the pass, and the last one
// of the transcript counts.
package todotool

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/schema"
)

//go:embed todo.json
var todoSchema []byte

const todoText = "Keep a list of the tasks of a longer piece of work, which the user sees. Use it when there are three steps or more. Have one task in progress at a time, and mark a task as completed as soon as it is done."

// MaxTodos is the most tasks of a list.
const MaxTodos = 100

// Status is how far a task has come.
type Status string

// The statuses.
const (
	Pending    Status = "pending"
	InProgress Status = "in_progress"
	Completed  Status = "completed"
	Cancelled  Status = "cancelled"
)

// Todo is a task. ID is unique in its list, and Content is never empty.
type Todo struct {
	ID      string `json:"id"`
	Content string `json:"content"`
	Status  Status `json:"status"`
}

// Details is what a result carries for people and programs, and the next call goes on from.
type Details struct {
	Todos []Todo `json:"todos"`
}

// Input is what a model asks for. With Merge the list before is changed: a task with a known
// id takes over what is not empty, one with a new id is added at the end. Otherwise Todos is
// the new list.
type Input struct {
	Merge bool   `json:"merge"`
	Todos []Todo `json:"todos"`
}

// Errors of [Apply], in words for the model.
var (
	ErrContent = errors.New("a new task needs content")
	ErrTwice   = errors.New("an id may stand for one task only")
	ErrTooMany = fmt.Errorf("a list has at most %d tasks; start a new one without merge", MaxTodos)
)

// Apply returns the list after in. before is not changed. Errors are ErrContent, ErrTwice
// and ErrTooMany.
func Apply(before []Todo, in Input) ([]Todo, error) {
	var list []Todo
	if in.Merge {
		list = slices.Clone(before)
	}
	for i, t := range in.Todos {
		if slices.ContainsFunc(in.Todos[:i], func(o Todo) bool { return o.ID == t.ID }) {
			return nil, fmt.Errorf("%w: %q comes twice", ErrTwice, t.ID)
		}
		at := slices.IndexFunc(list, func(o Todo) bool { return o.ID == t.ID })
		t.Content = tool.Clean(strings.TrimSpace(t.Content))
		switch {
		case at < 0 && t.Content == "":
			return nil, fmt.Errorf("%w: %q has none", ErrContent, t.ID)
		case at < 0 && len(list) == MaxTodos:
			return nil, ErrTooMany
		case at < 0:
			if t.Status == "" {
				t.Status = Pending
			}
			list = append(list, t)
			continue
		}
		if t.Content != "" {
			list[at].Content = t.Content
		}
		if t.Status != "" {
			list[at].Status = t.Status
		}
	}
	return list, nil
}

// New returns the tool todo.
func New() tool.Tool {
	s := schema.MustParse(todoSchema)
	return &todo{schema: s, spec: tool.Spec{Name: "todo", Description: todoText, Schema: s.Raw(), Repeatable: true}}
}

type todo struct {
	spec   tool.Spec
	schema *schema.Schema
}

// Spec implements [tool.Tool].
func (t *todo) Spec() tool.Spec { return t.spec }

// Run implements [tool.Tool].
func (t *todo) Run(_ context.Context, call tool.Call, _ func(tool.Progress)) tool.Result {
	var in Input
	if err := t.schema.Decode(call.Input, &in); err != nil {
		return tool.Failure(fmt.Sprintf("todo: %v", err))
	}
	list, err := Apply(previous(call.Previous), in)
	if err != nil {
		return tool.Failure(tool.Cut(tool.Clean("todo: "+err.Error()), tool.MaxNotice))
	}
	details, err := json.Marshal(Details{Todos: list})
	if err != nil {
		return tool.Failure("todo: " + err.Error())
	}
	if len(details) > tool.MaxDetails {
		return tool.Failure("todo: the list is too long; use shorter contents, or start a new list without merge")
	}
	return tool.Result{Text: Text(list), Details: details}
}

// previous reads the list of an earlier result. One that cannot be read, or that another
// program made up, counts as far as it is a list.
func previous(details json.RawMessage) []Todo {
	var d Details
	if json.Unmarshal(details, &d) != nil {
		return nil
	}
	var list []Todo
	for _, t := range d.Todos {
		known := slices.ContainsFunc(list, func(o Todo) bool { return o.ID == t.ID })
		if t.ID == "" || t.Content == "" || known || mark(t.Status) == "" || len(list) == MaxTodos {
			continue
		}
		list = append(list, t)
	}
	return list
}

// Text returns a list as a model reads it, one task a line.
func Text(list []Todo) string {
	if len(list) == 0 {
		return "The list is empty."
	}
	var b strings.Builder
	open := 0
	for _, t := range list {
		fmt.Fprintf(&b, "%s %s: %s\n", mark(t.Status), tool.CleanName(t.ID), strings.Join(strings.Fields(t.Content), " "))
		if t.Status == Pending || t.Status == InProgress {
			open++
		}
	}
	return fmt.Sprintf("%s\n%d of %d tasks are open.", b.String(), open, len(list))
}

// mark is the sign of a status, "" for an unknown one.
func mark(s Status) string {
	switch s {
	case Pending:
		return "[ ]"
	case InProgress:
		return "[>]"
	case Completed:
		return "[x]"
	case Cancelled:
		return "[-]"
	}
	return ""
}
