package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"sync"
	"testing"
	"time"
)

// stormModel is a provider in the outside world, which no kill touches. It never says a word twice, so
// that a repeated or lost one is seen, and counts how often it is asked about each message.
type stormModel struct {
	url string

	mu    sync.Mutex
	rng   *rand.Rand
	words map[string]int // said about a message
	asked map[string]int // requests about a message
	calls int
}

// messageText is how the storm's clients begin their messages.
var messageText = regexp.MustCompile(`\bm\d+\.`)

// deployTool finds the tool of a Cursor client among those on offer.
var deployTool = regexp.MustCompile(`"name":"([^"]*deploy)"`)

func newStormModel(t *testing.T, seed uint64) *stormModel {
	m := &stormModel{rng: rand.New(rand.NewPCG(seed, 1)), words: make(map[string]int), asked: make(map[string]int)}
	server := httptest.NewServer(m)
	t.Cleanup(server.Close)
	m.url = server.URL
	return m
}

// plan is what the model does in one request.
type plan struct {
	about string // the message
	words []string
	pause time.Duration // before each
	tool  string        // that it calls; empty for none
	calls []string      // their arguments
}

// ServeHTTP implements http.Handler: Chat Completions, streaming.
func (m *stormModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	p := m.plan(body)
	w.Header().Set("Content-Type", "text/event-stream")
	if err := p.tell(r.Context(), w); err != nil {
		return // roost is gone
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func (m *stormModel) plan(body []byte) plan {
	var req struct {
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	_ = json.Unmarshal(body, &req) // a request that makes no sense is about no message
	p := plan{}
	fresh := false
	for i, msg := range req.Messages {
		if found := messageText.FindAll(msg.Content, -1); msg.Role == "user" && len(found) > 0 {
			p.about, fresh = string(found[len(found)-1]), i == len(req.Messages)-1
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.asked[p.about]++
	p.pause = time.Duration(m.rng.IntN(12)) * time.Millisecond
	for range 5 + m.rng.IntN(30) {
		m.words[p.about]++
		p.words = append(p.words, fmt.Sprintf("%s%d ", p.about[:max(0, len(p.about)-1)]+"w", m.words[p.about]))
	}
	if !fresh || m.asked[p.about] > 1 || m.rng.IntN(2) == 0 {
		return p
	}
	deploy := deployTool.FindSubmatch(body)
	for range 1 + m.rng.IntN(3) {
		m.calls++
		if deploy != nil {
			p.tool = string(deploy[1])
			p.calls = append(p.calls, fmt.Sprintf(`{"id":"c%d"}`, m.calls))
		} else {
			p.tool = "bash"
			p.calls = append(p.calls, fmt.Sprintf(`{"command":"echo c%d >> effects; sleep 0.0%d"}`, m.calls, m.rng.IntN(10)))
		}
	}
	return p
}

func (p plan) tell(ctx context.Context, w http.ResponseWriter) error {
	send := func(delta map[string]any, finish any) error {
		data, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil {
			return err
		}
		return http.NewResponseController(w).Flush()
	}
	for _, word := range p.words {
		select {
		case <-time.After(p.pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := send(map[string]any{"content": word}, nil); err != nil {
			return err
		}
	}
	for i, arguments := range p.calls {
		call := map[string]any{"index": i, "id": fmt.Sprintf("call%d", i), "type": "function", "function": map[string]any{"name": p.tool, "arguments": arguments}}
		if err := send(map[string]any{"tool_calls": []any{call}}, nil); err != nil {
			return err
		}
	}
	if len(p.calls) > 0 {
		return send(map[string]any{}, "tool_calls")
	}
	return send(map[string]any{}, "stop")
}

// requests is how often the model was asked about a message.
func (m *stormModel) requests(about string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.asked[about]
}
