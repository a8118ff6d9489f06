package hook

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/session"
	"github.com/roost-dev/roost/internal/tool"
)

func sh(script string) []Hook {
	return []Hook{{Command: []string{"/bin/sh", "-c", script}, Timeout: 5 * time.Second}}
}

func state(t *testing.T) *session.State {
	t.Helper()
	return &session.State{Head: session.Head{ID: "s1", Cwd: t.TempDir(), Model: session.ModelRef{Provider: "p", ID: "m"}}}
}

func TestBeforePrompt(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		added  string
		err    string
	}{
		"says nothing":            {"cat > /dev/null", "", ""},
		"adds":                    {`echo '{"context":"be brief"}'`, "be brief", ""},
		"speaks to a person":      {"echo hello", "", ""},
		"blocks with a code":      {"echo not now >&2; exit 2", "", "a hook does not accept the prompt: not now"},
		"blocks without a reason": {"exit 2", "", "a hook does not accept the prompt: no reason given"},
		"blocks with an answer":   {`echo '{"block":"no"}'`, "", "a hook does not accept the prompt: no"},
		"fails":                   {"exit 1", "", "it failed"},
		"answers nonsense":        {"echo '{nonsense'", "", "not JSON"},
		"floods":                  {"head -c 3000000 /dev/zero | tr '\\0' x", "", ""},
		"reads the document":      {`grep -q '"event":"before_prompt","session":"s1"' && echo '{"context":"seen"}'`, "seen", ""},
		"keeps its streams open":  {"sleep 100 & exit 0", "", "it failed"},
		"does not read":           {"exec true", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			h := New(Options{Prompt: sh(c.script), Logger: slog.New(slog.DiscardHandler), Env: os.Environ()})
			added, err := h.BeforePrompt(t.Context(), state(t), "the prompt")
			if added != c.added || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("got %q, %v", added, err)
			}
			if err != nil && session.AsError(err).Kind != session.Forbidden {
				t.Errorf("kind %v", session.AsError(err).Kind)
			}
		})
	}
}

func TestDeadline(t *testing.T) {
	s := state(t)
	hooks := sh("sleep 100 & echo $! > pid; wait")
	hooks[0].Timeout = 300 * time.Millisecond
	h := New(Options{Before: hooks, Logger: slog.New(slog.DiscardHandler), Env: os.Environ()})
	began := time.Now()
	why := h.BeforeTool(t.Context(), s, "bash", tool.Call{ID: "c", Input: []byte(`{}`)})
	if !strings.Contains(why, "did not end within 300ms") || time.Since(began) > 5*time.Second {
		t.Errorf("after %v: %q", time.Since(began), why)
	}
	pid, err := os.ReadFile(filepath.Join(s.Cwd, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	// A process that was killed may take a moment to be gone.
	for limit := time.Now().Add(10 * time.Second); ; runtime.Gosched() {
		status, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/status")
		if err != nil || strings.Contains(string(status), "zombie") {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("what the hook started is still there:\n%s", status)
		}
	}
}

func TestMatch(t *testing.T) {
	s := state(t)
	for match, want := range map[string]bool{"": true, "bash": true, "mcp__*": false, "b*": true, "read": false} {
		hooks := sh("exit 2")
		hooks[0].Match = match
		h := New(Options{Before: hooks, Logger: slog.New(slog.DiscardHandler)})
		if why := h.BeforeTool(t.Context(), s, "bash", tool.Call{Input: []byte(`{}`)}); (why != "") != want {
			t.Errorf("match %q: %q", match, why)
		}
	}
}

func TestAfterToolAndRunEnd(t *testing.T) {
	s := state(t)
	s.LastOutcome = session.RunFailed
	h := New(Options{
		After:  append(sh(`grep -q '"output":"result","is_error":true' && echo '{"context":"look again"}'`), sh("echo bad >&2; exit 2")...),
		RunEnd: sh("cat > ended"), Logger: slog.New(slog.DiscardHandler), Env: os.Environ(),
	})
	added := h.AfterTool(t.Context(), s, "bash", tool.Call{Input: []byte(`{}`)}, tool.Result{Text: "result", IsError: true})
	if added != "look again\nA hook of the user objects: bad" {
		t.Errorf("added %q", added)
	}
	h.RunEnded(t.Context(), s)
	if text, err := os.ReadFile(filepath.Join(s.Cwd, "ended")); err != nil || !strings.Contains(string(text), `"outcome":"failed"`) {
		t.Errorf("%s %v", text, err)
	}
}
