package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// Of so many requests the soak's provider refuses one, and breaks the answer of another off.
const (
	refuseEach = 60
	breakEach  = 70
)

// soak answers a request for a task.
func (p *provider) soak(w http.ResponseWriter, r *http.Request, body []byte) {
	a, err := findTask(body)
	var tokens []string
	if err == nil {
		tokens, err = a.rest()
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	n := p.soaked.Add(1)
	if n%refuseEach == 0 {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	broken := n%breakEach == 0
	if broken {
		tokens = tokens[:len(tokens)/2]
	}
	if say(r.Context(), w, tokens, a.rate) != nil {
		return
	}
	if broken {
		panic(http.ErrAbortHandler)
	}
	finish(w, a)
}

// say streams tokens.
func say(ctx context.Context, w http.ResponseWriter, tokens []string, rate int) error {
	flush := http.NewResponseController(w).Flush
	var tick <-chan time.Time
	if rate > 0 {
		ticker := time.NewTicker(time.Second / time.Duration(rate))
		defer ticker.Stop()
		tick = ticker.C
	}
	for _, token := range tokens {
		if tick != nil {
			select {
			case <-tick:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		text, err := json.Marshal(token)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s{\"content\":%s}%s", chunkTop, text, chunkEnd); err != nil {
			return err
		}
		if err := flush(); err != nil {
			return err
		}
	}
	return nil
}

// finish ends a pass: with a call while the task wants tools.
func finish(w io.Writer, a asked) {
	if a.passes == a.tools {
		end(w, order{tokens: a.tokens})
		return
	}
	arguments, _ := json.Marshal(fmt.Sprintf(`{"path":%q}`, soakFile)) // a string is always possible
	fmt.Fprintf(w, `%s{"tool_calls":[{"index":0,"id":"call_%d_%d","type":"function","function":{"name":%q,"arguments":%s}}]}%s`,
		chunkTop, a.seed, a.passes, a.tool, arguments, chunkEnd)
	fmt.Fprint(w, `data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","model":"`+modelID+`","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`+"\n\n")
	fmt.Fprint(w, "data: [DONE]\n\n")
}
