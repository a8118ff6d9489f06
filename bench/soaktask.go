package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
)

// task is what a prompt of the soak orders: a number of passes that call a tool, and one that
// answers. The answer follows from the task, so that everyone can tell whether it is whole.
type task struct {
	seed   uint64
	tokens int
	rate   int // tokens per second; 0 for as fast as they are taken
	tools  int
}

const (
	taskMark   = "soak: "
	taskFormat = taskMark + "seed=%d tokens=%d rate=%d tools=%d."
)

func (t task) String() string { return fmt.Sprintf(taskFormat, t.seed, t.tokens, t.rate, t.tools) }

// words are the tokens. Each begins with its space, so that a text that is cut between two of
// them ends in none, which servers may take away.
var words = strings.Split("one| river| naïve| 東京| stone| →| light| über| paper| forest| 🚲| quiet| window| garden| Straße| seven", "|")

// pass returns the tokens that the model says in a pass, from 0.
func (t task) pass(n int) []string {
	count := t.tokens
	if n < t.tools {
		count = 8
	}
	chance := rand.New(rand.NewPCG(t.seed, uint64(n))) //nolint:gosec // no secret
	tokens := make([]string, count)
	for i := range tokens {
		tokens[i] = words[chance.IntN(len(words))]
	}
	return tokens
}

// text is what the model says in all passes.
func (t task) text() string {
	var all strings.Builder
	for n := range t.tools + 1 {
		for _, token := range t.pass(n) {
			all.WriteString(token)
		}
	}
	return all.String()
}

// asked is what a request to the provider is about.
type asked struct {
	task
	passes int    // that the model has had answered
	said   string // of the pass that is to be continued
	tool   string // the name of the tool that reads a file
}

// request is the part of a Chat Completions request that the soak's model looks at.
type request struct {
	Messages []struct {
		Role      string            `json:"role"`
		Content   json.RawMessage   `json:"content"`
		ToolCalls []json.RawMessage `json:"tool_calls"`
	} `json:"messages"`
	Tools []struct {
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	} `json:"tools"`
}

// findTask reads a request: its newest task, and how far that has come.
func findTask(body []byte) (asked, error) {
	var r request
	if err := json.Unmarshal(body, &r); err != nil {
		return asked{}, err
	}
	a := asked{tool: "read"}
	for _, t := range r.Tools {
		if t.Function.Name == "Read" { // those of Cursor clients
			a.tool = t.Function.Name
		}
	}
	from := -1
	for i, m := range r.Messages {
		if m.Role == "user" && bytes.Contains(m.Content, []byte(taskMark)) {
			from = i
		}
	}
	if from < 0 {
		return asked{}, fmt.Errorf("the request has no task such as %q", task{tokens: 10})
	}
	content := r.Messages[from].Content
	mark := content[bytes.LastIndex(content, []byte(taskMark)):]
	if _, err := fmt.Sscanf(string(mark), taskFormat, &a.seed, &a.tokens, &a.rate, &a.tools); err != nil {
		return asked{}, fmt.Errorf("task: %w", err)
	}
	for _, m := range r.Messages[from+1:] {
		switch {
		case m.Role == "tool":
			a.passes, a.said = a.passes+1, ""
		case m.Role == "assistant" && len(m.ToolCalls) == 0:
			if err := json.Unmarshal(m.Content, &a.said); err != nil {
				return asked{}, fmt.Errorf("the answer so far: %w", err)
			}
		}
	}
	return a, nil
}

// rest returns the tokens that are still to be said in this pass.
func (a asked) rest() ([]string, error) {
	said := a.said
	tokens := a.pass(a.passes)
	for i, token := range tokens {
		if said == "" {
			return tokens[i:], nil
		}
		after, ok := strings.CutPrefix(said, token)
		if !ok {
			return nil, fmt.Errorf("the answer so far is not what was said: %q after %d tokens", said, i)
		}
		said = after
	}
	if said != "" {
		return nil, fmt.Errorf("the answer so far has more than was said: %q", said)
	}
	return nil, nil
}
