package server

import (
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/roost-dev/roost/client/pi"
)

// chunk is one server-sent event of a streamed chat completion.
func chunk(delta, finish string) string {
	return fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":%s,\"finish_reason\":%s}]}\n\n", delta, finish)
}

// Keys are planted, everything that could leak them is provoked, and then everything that
// was written, sent or logged is searched for them.
func TestSecretsAppearNowhere(t *testing.T) {
	const key, header = "sk-planted-key-1234567890", "planted-header-0987654321"
	var asked atomic.Int32
	model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+key || r.Header.Get("X-Secret") != header {
			t.Errorf("the provider got Authorization %q and X-Secret %q", r.Header.Get("Authorization"), r.Header.Get("X-Secret"))
		}
		switch asked.Add(1) {
		case 1: // an error that repeats what it was sent
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s (%s)"}}`, key, r.Header.Get("Authorization"))
		case 2: // a tool that looks for keys
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, chunk(`{"tool_calls":[{"index":0,"id":"x","function":{"name":"bash","arguments":"{\"command\":\"env; cat roost.yaml\"}"}}]}`, "null"), chunk("{}", `"tool_calls"`), "data: [DONE]\n\n")
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, chunk(`{"content":"done"}`, "null"), chunk("{}", `"stop"`), "data: [DONE]\n\n")
		}
	}))
	defer model.Close()
	t.Setenv("PLANTED_KEY", key)
	t.Setenv("PLANTED_HEADER", header)

	h := newHome(t, "rules: []")
	h.write("roost.yaml", `
providers:
  fake:
    api: openai-chat
    base_url: `+model.URL+`/v1
    api_key: ${PLANTED_KEY}
    headers: {X-Secret: "${PLANTED_HEADER}"}
    models: [{id: m}]
default_model: fake/m
pi: {prompt_response: accepted}
log: {level: debug}
`)
	h.start()
	c := h.dial()
	views := ""
	for range 2 {
		id := h.create(c, "go")
		h.until(c, id, "the end of the run", idle)
		c.With(id, func(v *pi.View) { views += tell(v) })
	}
	if !strings.Contains(views, "assistant error") || !strings.Contains(views, "ROOST_SESSION_ID") {
		t.Fatalf("the leaks were not provoked:\n%s", views)
	}
	token, err := os.ReadFile(filepath.Join(h.dir, "data", "token"))
	if err != nil {
		t.Fatal(err)
	}
	h.stop(syscall.SIGTERM)

	secrets := []string{key, header, strings.TrimSpace(string(token))}
	for _, s := range secrets {
		if strings.Contains(views, s) {
			t.Errorf("a client was shown %s", s)
		}
	}
	err = filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || d.Name() == "token" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, s := range secrets {
			if strings.Contains(string(text), s) {
				t.Errorf("%s holds %s", path, s)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
