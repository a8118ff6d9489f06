package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/roost-dev/roost/client"
	"github.com/roost-dev/roost/client/pi"
	"github.com/roost-dev/roost/internal/eventlog"
	"github.com/roost-dev/roost/internal/eventlog/sqlitelog"
	"github.com/roost-dev/roost/internal/piwire"
	"github.com/roost-dev/roost/internal/session"
	roostv1 "github.com/roost-dev/roost/proto/roost/v1"
)

// recovery is how long a server may take from its start until every session goes on. A
// machine that is busy with something else is given more than one chance.
const (
	recovery = time.Second
	chances  = 3
)

// Within a second after a kill every run goes on or has ended, as both protocols show.
func TestEveryRunGoesOnWithinASecond(t *testing.T) {
	h := newHome(t, words)
	h.start()
	c := h.api()
	seen := make(map[string]*client.View)
	for range 20 {
		id := h.newSession(c)
		h.promptAs(c, id, "", "words 3000")
		seen[id] = h.follow(c, id, func(v *client.View) bool { return answerOf(v) != "" })
	}
	took := time.Duration(0)
	for range chances {
		h.stop(syscall.SIGKILL)
		began := time.Now()
		h.start()
		c, p := h.api(), h.dial()
		ctx := h.context()
		var all sync.WaitGroup
		for id, v := range seen {
			said := len(answerOf(v))
			all.Go(func() {
				if _, err := follow(ctx, c, id, v, func(v *client.View) bool { return len(answerOf(v)) > said || over(v) }); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() {
				_, err := p.Do(ctx, &piwire.Attach{SessionID: id})
				if err == nil {
					err = p.Until(ctx, id, func(v *pi.View) bool { return len(assistantText(v)) > said || idle(v) })
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took = time.Since(began); took <= recovery {
			t.Logf("20 sessions went on %v after the start of the process", took)
			return
		}
	}
	t.Errorf("it took %v until every session went on", took)
}

// A prompt that is sent again with its id is the same run: at once, after the run, and after
// a kill.
func TestRepeatedPromptAfterAKill(t *testing.T) {
	h := newHome(t, "rules: [{default: true, passes: [[{tool: {name: bash, input: {command: 'echo x >> ran'}}}], [{text: 'said', every: 300ms}]]}]")
	h.start()
	c := h.api()
	id := h.newSession(c)
	first := h.promptAs(c, id, "the-id", "go")
	h.follow(c, id, func(v *client.View) bool { return toolOf(v).GetStatus() == roostv1.Status_STATUS_COMPLETE })
	check := func(when string) {
		t.Helper()
		again := h.promptAs(c, id, "the-id", "go")
		if again.Run != first.Run || again.ItemId != first.ItemId {
			t.Errorf("%s: the same id gave %v, want %v", when, again, first)
		}
	}
	check("during the run")
	h.restart()
	c = h.api()
	check("after a kill")
	h.follow(c, id, over)
	check("after the run")
	h.restart()
	c = h.api()
	check("after a kill after the run")
	v := h.follow(c, id, over)
	if v.Session.LastRun.Id != first.Run || strings.Count(fmt.Sprint(v.Items), "prompt_id") != 1 {
		t.Errorf("run %v, items %v", v.Session.LastRun, v.Items)
	}
	if ran := h.read("ran"); ran != "x\n" {
		t.Errorf("the command ran %q", ran)
	}
}

// The connection of a client breaks again and again while a tool runs. It gets every line,
// and the tool does not notice.
func TestConnectionLostDuringATool(t *testing.T) {
	const command = "for i in 1 2 3 4 5 6 7 8 9 10; do echo line $i; sleep 0.1; done"
	h := newHome(t, "rules: [{default: true, passes: [[{tool: {name: bash, input: {command: '"+command+"'}}}], [{text: well}]]}]")
	h.start()
	id := h.newSession(h.api())
	var conns sync.Map
	c, err := client.New(client.Options{Address: "http://localhost", Dial: func(ctx context.Context) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", filepath.Join(h.dir, "s.http"))
		if err == nil {
			conns.Store(conn, true)
		}
		return conn, err
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h.promptAs(c, id, "", "go")
	var v client.View
	lost, lines := 0, 0
	for frame, err := range c.Watch(h.context(), id, client.WatchOptions{Lost: func(error, time.Duration) { lost++ }}) {
		if err != nil {
			t.Fatal(err)
		}
		if v.Apply(frame); over(&v) {
			break
		}
		if strings.Count(toolOf(&v).GetOutput(), "line") > lines {
			lines++
			conns.Range(func(conn, _ any) bool {
				_ = conn.(net.Conn).Close()
				conns.Delete(conn)
				return true
			})
		}
	}
	var want strings.Builder
	for i := range 10 {
		fmt.Fprintf(&want, "line %d\n", i+1)
	}
	if got := strings.TrimSpace(toolOf(&v).GetOutput()); got != strings.TrimSpace(want.String()) || lost < 3 {
		t.Errorf("lost the connection %d times; the output is %q", lost, got)
	}
}

// What a run has used is in the event log, and the same for every client: one that watched,
// one that came late, one that resumed, one of the other protocol, and after a restart.
func TestUsageIsTheSameEverywhere(t *testing.T) {
	h := newHome(t, "rules: [{default: true, passes: [[{text: 'one two', every: 50ms}, {usage: {input: 1234, output: 56, cache_read: 7, cache_write: 8, reasoning: 9}}]]}]")
	h.start()
	c := h.api()
	id := h.newSession(c)
	h.promptAs(c, id, "", "go")
	early := h.follow(c, id, func(v *client.View) bool { return v.Session.Run != nil })
	watched := h.follow(c, id, over)
	resumed, err := follow(h.context(), c, id, early, over) // its connection was gone at the end
	if err != nil {
		t.Fatal(err)
	}
	asked, err := c.Session(h.context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := h.dial()
	h.attach(p, id)
	p.With(id, func(v *pi.View) {
		for _, i := range v.Transcript() {
			if a, ok := i.(*piwire.AssistantItem); ok && (a.Usage == nil || a.Usage.Input != 1234 || a.Usage.Output != 56) {
				t.Errorf("pi shows %+v", a.Usage)
			}
		}
	})
	h.restart()
	later := h.follow(h.api(), id, over)
	want := &roostv1.Usage{Input: 1234, Output: 56, CacheRead: 7, CacheWrite: 8, Reasoning: 9}
	for who, s := range map[string]*roostv1.Session{
		"who watched": watched.Session, "who resumed": resumed.Session, "who asked": asked.Session, "who came after a restart": later.Session,
	} {
		if diff := cmp.Diff(want, s.Usage, protocmp.Transform()); diff != "" {
			t.Errorf("%s:\n%s", who, diff)
		}
	}
	h.stop(syscall.SIGTERM)
	log, err := sqlitelog.Open(filepath.Join(h.dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	state, err := eventlog.Restore(t.Context(), log, session.ID(id))
	if err != nil || state.Usage.Input != 1234 || state.Usage.Output != 56 {
		t.Errorf("the event log has %+v, %v", state.Usage, err)
	}
}

// callRequest is what there is of calls and results in a request of either dialect.
type callRequest struct {
	Messages []struct {
		ToolCalls  []struct{ ID string } `json:"tool_calls"`
		ToolCallID string                `json:"tool_call_id"`
		Content    json.RawMessage       `json:"content"`
	} `json:"messages"`
}

// calls returns the ids of calls and of results.
func (r callRequest) calls() (calls, results []string) {
	for _, m := range r.Messages {
		for _, c := range m.ToolCalls {
			calls = append(calls, c.ID)
		}
		if m.ToolCallID != "" {
			results = append(results, m.ToolCallID)
		}
		var blocks []struct {
			Type, ID  string
			ToolUseID string `json:"tool_use_id"`
		}
		if json.Unmarshal(m.Content, &blocks) != nil {
			continue // a string
		}
		for _, b := range blocks {
			switch b.Type {
			case "tool_use":
				calls = append(calls, b.ID)
			case "tool_result":
				results = append(results, b.ToolUseID)
			}
		}
	}
	return calls, results
}

// After a kill during a tool the next request has a result for every call, in the words of
// every provider.
func TestKilledCallIsAnsweredInEveryDialect(t *testing.T) {
	const arguments = `{\"command\":\"echo began; sleep 100\"}`
	for dialect, answer := range map[string][2]string{
		"openai-chat": {
			chunk(`{"tool_calls":[{"index":0,"id":"c1","function":{"name":"bash","arguments":"`+arguments+`"}},{"index":1,"id":"c2","function":{"name":"bash","arguments":"`+arguments+`"}}]}`, "null") +
				chunk("{}", `"tool_calls"`) + "data: [DONE]\n\n",
			chunk(`{"content":"well"}`, "null") + chunk("{}", `"stop"`) + "data: [DONE]\n\n",
		},
		"anthropic": {
			anthropicStart + anthropicCall(0, "c1", arguments) + anthropicCall(1, "c2", arguments) + anthropicEnd("tool_use"),
			anthropicStart + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n" +
				`data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"well"}}` + "\n\n" +
				`data: {"type":"content_block_stop","index":0}` + "\n\n" + anthropicEnd("end_turn"),
		},
	} {
		t.Run(dialect, func(t *testing.T) {
			var asked atomic.Int32
			bodies := make(chan []byte, 10)
			model := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				bodies <- body
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, answer[min(asked.Add(1), 2)-1])
			}))
			defer model.Close()
			h := newHome(t, "rules: []")
			base := model.URL
			if dialect == "openai-chat" {
				base += "/v1"
			}
			h.write("roost.yaml", `
providers:
  fake: {api: `+dialect+`, base_url: "`+base+`", api_key: none, models: [{id: m}]}
default_model: fake/m
`)
			h.start()
			c := h.api()
			id := h.newSession(c)
			h.promptAs(c, id, "", "go")
			h.follow(c, id, func(v *client.View) bool { return strings.Count(fmt.Sprint(v.Items), `output:"began`) == 2 })
			h.restart()
			v := h.follow(h.api(), id, over)
			if v.Session.LastRun.Outcome != roostv1.Outcome_OUTCOME_COMPLETED {
				t.Errorf("the run ended %v", v.Session.LastRun)
			}
			<-bodies
			var r callRequest
			if err := json.Unmarshal(<-bodies, &r); err != nil {
				t.Fatal(err)
			}
			calls, results := r.calls()
			if len(calls) != 2 || !cmp.Equal(calls, results) {
				t.Errorf("the request has calls %q and results %q", calls, results)
			}
		})
	}
}

const anthropicStart = `data: {"type":"message_start","message":{"id":"m","role":"assistant","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}` + "\n\n"

func anthropicCall(index int, id, input string) string {
	return fmt.Sprintf(`data: {"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"%s","name":"bash","input":{}}}`+"\n\n"+
		`data: {"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":"%s"}}`+"\n\n"+
		`data: {"type":"content_block_stop","index":%d}`+"\n\n", index, id, index, input, index)
}

func anthropicEnd(reason string) string {
	return `data: {"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{"output_tokens":2}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n"
}
