package cursortool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const todoDescription = `Keep the list of what is to be done in this conversation, which the user sees. ` +
	`Use it for work of several steps: one item in_progress at a time, completed as soon as it is. ` +
	`With merge the items given are changed or added by their ids, without it the list is replaced.`

const todoSchema = `{
"type": "object",
"properties": {
	"merge": {"type": "boolean", "description": "Change the list rather than replace it"},
	"todos": {
		"type": "array",
		"items": {
			"type": "object",
			"properties": {
				"id": {"type": "string", "minLength": 1},
				"content": {"type": "string", "description": "What is to be done"},
				"status": {"type": "string", "enum": ["pending", "in_progress", "completed", "cancelled"]}
			},
			"required": ["id", "content", "status"]
		}
	}
},
"required": ["merge", "todos"]
}`

// maxTodos is how long a list may be.
const maxTodos = 200

// todoInput is what a model gives to TodoWrite.
type todoInput struct {
	Merge truth      `json:"merge"`
	Todos []todoItem `json:"todos"`
}

type todoItem struct {
	ID      textOrNumber `json:"id"`
	Content *string      `json:"content"`
	Status  string       `json:"status"`
}

// textOrNumber is a string that models also write as a number.
type textOrNumber string

// UnmarshalJSON accepts strings and numbers.
func (t *textOrNumber) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) != nil {
		var n json.Number
		if err := json.Unmarshal(b, &n); err != nil {
			return fmt.Errorf("%.40s is not an id", b)
		}
		s = n.String()
	}
	*t = textOrNumber(s)
	return nil
}

var todoStatus = map[string]agentv1.TodoStatus{
	"pending":     agentv1.TodoStatus_TODO_STATUS_PENDING,
	"in_progress": agentv1.TodoStatus_TODO_STATUS_IN_PROGRESS,
	"completed":   agentv1.TodoStatus_TODO_STATUS_COMPLETED,
	"cancelled":   agentv1.TodoStatus_TODO_STATUS_CANCELLED,
	"canceled":    agentv1.TodoStatus_TODO_STATUS_CANCELLED,
}

func (in *todoInput) check() error {
	if in.Todos == nil {
		return errors.New("todos is required")
	}
	for i, t := range in.Todos {
		if t.ID == "" {
			return fmt.Errorf("todos[%d].id is required", i)
		}
		if _, ok := todoStatus[t.Status]; !ok && t.Status != "" {
			return fmt.Errorf("todos[%d].status must be pending, in_progress, completed or cancelled", i)
		}
	}
	return nil
}

// item returns t as a change of old, which is nil for a new one. Times are left out: nothing here
// knows them, and the client does not need them.
func (t *todoItem) item(old *agentv1.TodoItem) *agentv1.TodoItem {
	item := &agentv1.TodoItem{Id: clean(string(t.ID)), Status: agentv1.TodoStatus_TODO_STATUS_PENDING}
	if old != nil {
		item = proto.CloneOf(old)
	}
	if t.Content != nil {
		item.Content = clean(*t.Content)
	}
	if s, ok := todoStatus[t.Status]; ok {
		item.Status = s
	}
	return item
}

func todoCard(args json.RawMessage) *agentv1.ToolCall {
	var in todoInput
	peek(args, &in)
	return in.card()
}

func (in *todoInput) card() *agentv1.ToolCall {
	args := &agentv1.UpdateTodosArgs{Merge: bool(in.Merge)}
	for _, t := range in.Todos {
		args.Todos = append(args.Todos, t.item(nil))
	}
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_UpdateTodosToolCall{UpdateTodosToolCall: &agentv1.UpdateTodosToolCall{Args: args}}}
}

// beginTodo changes the list; the client is not asked.
func beginTodo(_ Call, args json.RawMessage, env *Env) Machine {
	var in todoInput
	err := decode(args, &in)
	var todos []*agentv1.TodoItem
	if err == nil {
		todos, err = in.apply(env.Todos)
	}
	if err != nil {
		return refuse(todoCard(args), "TodoWrite error: "+err.Error())
	}
	card := in.card()
	card.GetUpdateTodosToolCall().Result = &agentv1.UpdateTodosResult{Result: &agentv1.UpdateTodosResult_Success{
		Success: &agentv1.UpdateTodosSuccess{Todos: todos, TotalCount: int32(len(todos)), WasMerge: bool(in.Merge)},
	}}
	Fit(card, MaxCard)
	return settled{Outcome{Text: todoText(todos), Card: card, Todos: cloneTodos(todos), HasTodos: true}}
}

func cloneTodos(todos []*agentv1.TodoItem) []*agentv1.TodoItem {
	out := make([]*agentv1.TodoItem, len(todos))
	for i, t := range todos {
		out[i] = proto.CloneOf(t)
	}
	return out
}

// apply returns the list after the call.
func (in *todoInput) apply(old []*agentv1.TodoItem) ([]*agentv1.TodoItem, error) {
	var todos []*agentv1.TodoItem
	at := map[string]int{}
	if in.Merge {
		for _, t := range old {
			at[t.GetId()] = len(todos)
			todos = append(todos, proto.CloneOf(t))
		}
	}
	for _, t := range in.Todos {
		if i, ok := at[clean(string(t.ID))]; ok {
			todos[i] = t.item(todos[i])
			continue
		}
		if t.Content == nil || strings.TrimSpace(*t.Content) == "" {
			return nil, fmt.Errorf("there is no item with the id %q, and a new one needs its content", string(t.ID))
		}
		at[clean(string(t.ID))] = len(todos)
		todos = append(todos, t.item(nil))
	}
	if len(todos) > maxTodos {
		return nil, fmt.Errorf("the list would have %d items, more than the %d that are possible", len(todos), maxTodos)
	}
	return todos, nil
}

func todoText(todos []*agentv1.TodoItem) string {
	if len(todos) == 0 {
		return "The list is empty now."
	}
	rows := []string{"The list now:"}
	for _, t := range todos {
		status := "pending"
		switch t.GetStatus() {
		case agentv1.TodoStatus_TODO_STATUS_IN_PROGRESS:
			status = "in_progress"
		case agentv1.TodoStatus_TODO_STATUS_COMPLETED:
			status = "completed"
		case agentv1.TodoStatus_TODO_STATUS_CANCELLED:
			status = "cancelled"
		case agentv1.TodoStatus_TODO_STATUS_UNSPECIFIED, agentv1.TodoStatus_TODO_STATUS_PENDING:
		}
		rows = append(rows, fmt.Sprintf("- [%s] %s: %s", status, t.GetId(), cutMiddle(t.GetContent(), grepLine)))
	}
	return strings.Join(rows, "\n")
}
