package server

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/roost-dev/roost/client"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// thinker answers in two dialects: odd requests with thinking and a call of ls, even ones with
// thinking and a text. Everything it says names the request.
type thinker struct {
	mu     sync.Mutex
	bodies []string
}

// asked returns the requests so far.
func (m *thinker) asked() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.bodies)
}

func (m *thinker) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	m.bodies = append(m.bodies, string(body))
	n := len(m.bodies)
	m.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	if strings.HasSuffix(r.URL.Path, "/chat/completions") {
		_, _ = io.WriteString(w, chunk(fmt.Sprintf(`{"reasoning_content":"chat thought %d"}`, n), "null"))
		if n%2 == 1 {
			_, _ = io.WriteString(w, chunk(fmt.Sprintf(`{"tool_calls":[{"index":0,"id":"call-%d","function":{"name":"ls","arguments":"{}"}}]}`, n), "null")+chunk("{}", `"tool_calls"`))
		} else {
			_, _ = io.WriteString(w, chunk(fmt.Sprintf(`{"content":"answer %d"}`, n), "null")+chunk("{}", `"stop"`))
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
		return
	}
	block := func(index int, start, delta string) {
		_, _ = fmt.Fprintf(w, "data: {\"type\":\"content_block_start\",\"index\":%d,\"content_block\":%s}\n\n", index, start)
		_, _ = fmt.Fprintf(w, "data: {\"type\":\"content_block_delta\",\"index\":%d,\"delta\":%s}\n\n", index, delta)
		if strings.Contains(start, "thinking") {
			_, _ = fmt.Fprintf(w, "data: {\"type\":\"content_block_delta\",\"index\":%d,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"proof %d\"}}\n\n", index, n)
		}
		_, _ = fmt.Fprintf(w, "data: {\"type\":\"content_block_stop\",\"index\":%d}\n\n", index)
	}
	_, _ = io.WriteString(w, anthropicStart)
	block(0, `{"type":"thinking","thinking":"","signature":""}`, fmt.Sprintf(`{"type":"thinking_delta","thinking":"messages thought %d"}`, n))
	if n%2 == 1 {
		block(1, fmt.Sprintf(`{"type":"tool_use","id":"call-%d","name":"ls","input":{}}`, n), `{"type":"input_json_delta","partial_json":"{}"}`)
		_, _ = io.WriteString(w, anthropicEnd("tool_use"))
		return
	}
	block(1, `{"type":"text","text":""}`, fmt.Sprintf(`{"type":"text_delta","text":"answer %d"}`, n))
	_, _ = io.WriteString(w, anthropicEnd("end_turn"))
}

// A session goes from dialect to dialect. Each is shown its own thinking with its proof, never
// that of the other; both are shown every answer, every call and every result.
func TestModelSwitchBetweenDialects(t *testing.T) {
	model := &thinker{}
	srv := httptest.NewServer(model)
	defer srv.Close()
	h := newHome(t, "rules: []")
	h.write("roost.yaml", `
providers:
  chat: {api: openai-chat, base_url: "`+srv.URL+`/v1", api_key: none, models: [{id: m}]}
  messages: {api: anthropic, base_url: "`+srv.URL+`", api_key: none, models: [{id: m}]}
default_model: chat/m
`)
	h.start()
	c := h.api()
	id := h.newSession(c)
	dialects := []string{"chat", "messages", "chat", "messages", "messages"}
	for i, dialect := range dialects {
		if err := c.SetModel(h.context(), id, dialect+"/m"); err != nil {
			t.Fatal(err)
		}
		h.promptAs(c, id, "", fmt.Sprintf("go %d", i))
		v := h.follow(c, id, func(v *client.View) bool {
			return v.Session.Run == nil && strings.Contains(fmt.Sprint(v.Items), fmt.Sprintf("answer %d", 2*i+2))
		})
		if v.Session.LastRun.Outcome != roostv1.Outcome_OUTCOME_COMPLETED {
			t.Fatalf("run %d ended %v", i, v.Session.LastRun)
		}
	}
	bodies := model.asked()
	if len(bodies) != 2*len(dialects) {
		t.Fatalf("%d requests", len(bodies))
	}
	for i, body := range bodies {
		var r callRequest
		if err := json.Unmarshal([]byte(body), &r); err != nil {
			t.Fatal(err)
		}
		calls, results := r.calls()
		if len(calls) != (i+1)/2 || !cmp.Equal(calls, results) {
			t.Errorf("request %d has calls %q and results %q", i+1, calls, results)
		}
		own := dialects[i/2]
		for before := range i {
			if before%2 == 1 && !strings.Contains(body, fmt.Sprintf("answer %d", before+1)) {
				t.Errorf("request %d is without answer %d", i+1, before+1)
			}
			by := dialects[before/2]
			if by != own && strings.Contains(body, fmt.Sprintf("%s thought %d", by, before+1)) {
				t.Errorf("request %d, of %s, has a thought of %s", i+1, own, by)
			}
			if by != own && strings.Contains(body, fmt.Sprintf("proof %d", before+1)) {
				t.Errorf("request %d, of %s, has a proof of %s", i+1, own, by)
			}
		}
		if thought := fmt.Sprintf("%s thought %d", own, i); i%2 == 1 && !strings.Contains(body, thought) {
			t.Errorf("request %d is without its own %q", i+1, thought)
		}
		if proof := fmt.Sprintf("proof %d", i); i%2 == 1 && own == "messages" && !strings.Contains(body, proof) {
			t.Errorf("request %d is without its own %q", i+1, proof)
		}
	}
}
