package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/roost-dev/roost/internal/cursor/cursortest"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// What the official SDK has sent as run_request, recorded from it, is answered by a whole turn: new
// ones, later turns of a conversation that this server has never seen, and resumes.
func TestCursorTraces(t *testing.T) {
	h := newHome(t, "rules: [{default: true, passes: [[{text: fine}]]}]")
	h.start()
	traces, err := filepath.Glob("../cursor/testdata/traces/sdk32h1-*.jsonl")
	if err != nil || len(traces) < 30 {
		t.Fatalf("%d traces, %v", len(traces), err)
	}
	for _, path := range traces {
		name := strings.TrimSuffix(filepath.Base(path), ".jsonl")
		t.Run(name, func(t *testing.T) {
			for i, m := range cursortest.Replay(t, path) {
				recorded := m.Message.GetRunRequest()
				if recorded == nil {
					continue
				}
				c := h.editor(cursortest.Options{ConversationID: recorded.GetConversationId() + fmt.Sprint("-", i)})
				r, err := c.Run(h.context(), cursortest.Prompt{Edit: func(run *agentv1.AgentRunRequest) {
					mine := proto.CloneOf(run)
					proto.Reset(run)
					proto.Merge(run, recorded)
					run.RequestedModel, run.ConversationId, run.RunId = mine.RequestedModel, mine.ConversationId, mine.RunId
				}})
				if err != nil {
					t.Fatalf("%v; %s", err, explain(r))
				}
				for _, v := range r.Violations { // the recorded state refers to blobs that only the recorded client had
					if !strings.Contains(v, "refers to the prompt message") {
						t.Errorf("%s; %s", v, explain(r))
					}
				}
				resumed := recorded.GetAction().GetResumeAction() != nil
				if r.Text != "fine" && !resumed {
					t.Error(explain(r))
				}
			}
		})
	}
}

// Whatever becomes of appends on their way, the same conversation comes of them (section 2.2): 16 in
// flight, delayed at random so that they overtake each other, and sent twice.
func TestCursorAppendsInAnyOrder(t *testing.T) {
	seeds := 1000
	if raceDetector {
		seeds = 150
	}
	h := newHome(t, `
rules:
  - default: true
    passes:
      - - tool: {name: Read, input: {path: a}}
        - tool: {name: Shell, input: {command: "echo 1; echo 2; echo 3"}}
        - tool: {name: Ls, input: {path: .}}
        - tool: {name: Grep, input: {pattern: x}}
        - tool: {name: mcp_custom-user-tools_add, input: {}}
      - - text: "${tool1} ${tool2} ${tool5}"
`)
	h.start()
	if err := os.WriteFile(filepath.Join(h.workspace(), "a"), []byte("content x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	api, sum := h.dialAPI(), func(context.Context, map[string]any) (string, error) { return "sum", nil }
	tell := func(seed int) string {
		c := h.editor(cursortest.Options{
			Faults: cursortest.Faults{Seed: uint64(seed), Reorder: cursortest.Jitter(8 * time.Millisecond), Duplicate: cursortest.Chance(.3)},
			Tools:  []cursortest.Tool{{Name: "add", Call: sum}},
		})
		r, err := c.Run(h.context(), cursortest.Prompt{Text: "go"})
		if err != nil || len(r.Violations) > 0 || len(r.Attempts) != 1 {
			return fmt.Sprintf("seed %d: %v %q %s", seed, err, r.Violations, explain(r))
		}
		_, items, err := api.Transcript(h.context(), c.ConversationID())
		if err != nil {
			return err.Error()
		}
		var b strings.Builder
		fmt.Fprintf(&b, "%s\n%d turns\n", r.Text, len(r.Checkpoint.GetTurns()))
		for _, i := range items {
			if tool := i.GetTool(); tool != nil {
				fmt.Fprintf(&b, "%s %s %v: %s\n", i.Id, tool.Name, tool.Status, tool.Output)
			} else {
				fmt.Fprintf(&b, "%s %v %v\n", i.Id, i.GetUser().GetBlocks(), i.GetAssistant().GetBlocks())
			}
		}
		return b.String()
	}
	want := tell(0)
	if !strings.Contains(want, "sum") {
		t.Fatal(want)
	}
	work := make(chan int)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for seed := range work {
				if got := tell(seed); got != want {
					t.Errorf("seed %d:\n%s\nwant:\n%s", seed, got, want)
				}
			}
		})
	}
	for seed := 1; seed < seeds && !t.Failed(); seed++ {
		work <- seed
	}
	close(work)
	group.Wait()
}

// BenchmarkCursorThousandRuns holds 1,000 runs open at a time, whose model says nothing for a while,
// and reports by how much heartbeats were late at worst.
func BenchmarkCursorThousandRuns(b *testing.B) {
	const runs = 1000
	h := newHome(b, "rules: [{default: true, passes: [[{text: a}, {delay: 12s}, {text: b}]]}]")
	h.start()
	for b.Loop() {
		var (
			group sync.WaitGroup
			mu    sync.Mutex
			worst time.Duration
		)
		for range runs {
			last := time.Now()
			c := h.editor(cursortest.Options{MaxGap: time.Minute, Watch: func(string, *agentv1.AgentServerMessage) {
				now := time.Now()
				mu.Lock()
				worst = max(worst, now.Sub(last))
				mu.Unlock()
				last = now
			}})
			group.Go(func() {
				if r, err := c.Run(h.context(), cursortest.Prompt{Text: "go"}); err != nil || r.Text != "ab" {
					b.Errorf("%v %s", err, explain(r))
				}
			})
		}
		group.Wait()
		b.ReportMetric(float64((worst - 5*time.Second).Milliseconds()), "ms-late")
	}
}

// BenchmarkCursorTokens reports by how much tokens that a model says every 10 ms are late at the client,
// counted from the first one.
func BenchmarkCursorTokens(b *testing.B) {
	const words, pace = 300, 10 * time.Millisecond
	h := newHome(b, fmt.Sprintf("rules: [{default: true, passes: [[{text: 'word ', every: %s, repeat: %d}]]}]", pace, words))
	h.start()
	var late []time.Duration
	for b.Loop() {
		var first time.Time
		said := 0
		c := h.editor(cursortest.Options{Watch: func(_ string, m *agentv1.AgentServerMessage) {
			text := m.GetInteractionUpdate().GetTextDelta().GetText()
			if text == "" {
				return
			}
			now := time.Now()
			if first.IsZero() {
				first = now
			}
			late = append(late, now.Sub(first)-time.Duration(said)*pace)
			said += strings.Count(text, "word")
		}})
		if _, err := c.Run(h.context(), cursortest.Prompt{Text: "go"}); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(late)
	b.ReportMetric(float64(late[len(late)/2].Microseconds())/1000, "ms-p50")
	b.ReportMetric(float64(late[len(late)*99/100].Microseconds())/1000, "ms-p99")
}
