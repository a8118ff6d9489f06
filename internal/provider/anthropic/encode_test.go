package anthropic

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/session"
)

var ref = session.ModelRef{Provider: "acme", ID: "m"}

func user(blocks ...session.Block) *session.User { return &session.User{Blocks: blocks} }

func says(blocks ...session.Block) *session.Assistant {
	return &session.Assistant{Model: ref, Status: session.Complete, Blocks: blocks}
}

func text(s string) session.Text { return session.Text{Text: s} }

func called(id, input string) session.ToolCall {
	return session.ToolCall{Call: session.CallID(id), Name: "bash", Input: input, Complete: true}
}

func result(id, output string, images ...session.Image) *session.Tool {
	return &session.Tool{Call: session.CallID(id), Name: "bash", Output: output, Images: images, Status: session.Complete}
}

const mark = `,"cache_control":{"type":"ephemeral"}`

// wire returns a request's messages without the brackets and the cache marks.
func wire(t *testing.T, req *provider.Request) string {
	t.Helper()
	if req.Model.IsZero() {
		req.Model = ref
	}
	b, err := encode(req)
	if err != nil {
		t.Fatal(err)
	}
	_, messages, _ := strings.Cut(strings.TrimSpace(string(b)), `"messages":[`)
	return strings.ReplaceAll(strings.TrimSuffix(messages, "]}"), mark, "")
}

func TestMessages(t *testing.T) {
	pic := session.Image{MIME: "image/png", Blob: "p"}
	images := func(i session.Image) ([]byte, error) {
		if i.Blob != "p" {
			return nil, errors.New("gone")
		}
		return []byte("PNG"), nil
	}
	thought := session.Reasoning{Text: " hm\n", Signature: "S"}
	other := says(thought, text("a"))
	other.Model.ID = "n"
	failed := result("c1", "no")
	failed.Status = session.Failed
	for _, tc := range []struct {
		name  string
		items []session.Item
		want  string
	}{
		{"text", []session.Item{user(text("q"), text(" ")), says(text("a"), text("\n"))}, `{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"text","text":"a"}]}`},
		{"images", []session.Item{user(pic, session.Image{})}, `{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"UE5H"}},{"type":"text","text":"[an image that is no longer available]"}]}`},
		{"thinking goes back as it is", []session.Item{user(text("q")), says(thought, session.Reasoning{Signature: "T"}, session.Reasoning{Signature: "ENC", Redacted: true}, text("a"))}, `{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"thinking","thinking":" hm\n","signature":"S"},{"type":"thinking","thinking":"","signature":"T"},{"type":"redacted_thinking","data":"ENC"},{"type":"text","text":"a"}]}`},
		{"another model's thinking stays", []session.Item{user(text("q")), other}, `{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"text","text":"a"}]}`},
		{"cut thinking stays", []session.Item{user(text("q")), says(session.Reasoning{Text: "hm"}, text("a"), thought)}, `{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"text","text":"a"}]}`},
		{"only thinking", []session.Item{user(text("q")), says(thought), user(text("r"))}, `{"role":"user","content":[{"type":"text","text":"q"},{"type":"text","text":"r"}]}`},
		{
			"results first, then the steer",
			[]session.Item{user(text("q")), says(called("c1", ""), called("c2", `{"a":"<"}`)), user(text("steer")), failed, result("c2", "", pic)},
			`{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"bash","input":{}},{"type":"tool_use","id":"c2","name":"bash","input":{"a":"<"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"no"}],"is_error":true},{"type":"tool_result","tool_use_id":"c2","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"UE5H"}}]},{"type":"text","text":"steer"}]}`,
		},
		{"malformed input, empty result", []session.Item{user(text("q")), says(called("c1", `{"x`)), result("c1", "")}, `{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"bash","input":{"malformed_input":"{\"x"}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"(no output)"}]}]}`},
		{"a history that begins with the model", []session.Item{says(text("a")), user(text("q"))}, `{"role":"user","content":[{"type":"text","text":"(The beginning of the conversation is not shown.)"}]},{"role":"assistant","content":[{"type":"text","text":"a"}]},{"role":"user","content":[{"type":"text","text":"q"}]}`},
		{"a cut answer and its rest", []session.Item{user(text("q")), says(text("a")), says(text("b"))}, `{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := wire(t, &provider.Request{Items: tc.items, Image: images})
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestContinue(t *testing.T) {
	cut := says(session.Reasoning{Text: "hm"}, text("Hel"))
	got := wire(t, &provider.Request{Items: []session.Item{user(text("q")), cut}, Continue: true})
	want := fmt.Sprintf(`{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"text","text":"Hel"}]},{"role":"user","content":[{"type":"text","text":%q}]}`, provider.ContinueNote)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRequest(t *testing.T) {
	req := &provider.Request{
		Model: ref, System: "S", Items: []session.Item{user(text("q")), says(text("a")), user(text("r")), says(text("b")), user(text("s"))},
		Tools: []provider.Tool{{Name: "a"}, {Name: "b", Description: "d", Schema: json.RawMessage(`{"type":"object"}`)}},
	}
	b, err := encode(req)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"model":"m","max_tokens":8192,"stream":true,"tools":[{"name":"a","input_schema":{"type":"object","properties":{}}},{"name":"b","description":"d","input_schema":{"type":"object"}` + mark + `}],"system":[{"type":"text","text":"S"` + mark + `}],"messages":[{"role":"user","content":[{"type":"text","text":"q"}]},{"role":"assistant","content":[{"type":"text","text":"a"}]},{"role":"user","content":[{"type":"text","text":"r"` + mark + `}]},{"role":"assistant","content":[{"type":"text","text":"b"}]},{"role":"user","content":[{"type":"text","text":"s"` + mark + `}]}]}`
	if got := strings.TrimSpace(string(b)); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := encode(&provider.Request{System: "S"}); err == nil {
		t.Error("a request without a message")
	}
}

func TestThinking(t *testing.T) {
	tools := []session.Item{user(text("q")), says(called("c1", "")), result("c1", "1")}
	thoughtful := []session.Item{user(text("q")), says(session.Reasoning{Text: "hm", Signature: "S"}, called("c1", "")), result("c1", "1"), user(text("steer"))}
	for _, tc := range []struct {
		model string
		level session.Thinking
		max   int
		items []session.Item
		want  string
	}{
		{"claude-opus-4-6", session.ThinkingHigh, 0, nil, `"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"},`},
		{"claude-sonnet-5", session.ThinkingMinimal, 0, tools, `"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"},`},
		{"anthropic/claude-opus-4.7", session.ThinkingMax, 0, nil, `"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"max"},`},
		{"claude-opus-4-6", session.ThinkingOff, 0, nil, ``},
		{"claude-opus-4-6", "", 0, nil, ``},
		{"claude-opus-4-5-20251101", session.ThinkingLow, 64000, nil, `"thinking":{"type":"enabled","budget_tokens":4096},`},
		{"claude-opus-4-20250514", session.ThinkingMax, 32000, nil, `"thinking":{"type":"enabled","budget_tokens":30976},`},
		{"claude-3-7-sonnet-20250219", session.ThinkingMedium, 64000, nil, `"thinking":{"type":"enabled","budget_tokens":10240},`},
		{"kimi-k3", session.ThinkingMinimal, 0, nil, `"thinking":{"type":"enabled","budget_tokens":1024},`},
		{"kimi-k3", session.ThinkingHigh, 2000, nil, ``},
		{"m", session.ThinkingLow, 64000, tools, ``},
		{"m", session.ThinkingLow, 64000, thoughtful, `"thinking":{"type":"enabled","budget_tokens":4096},`},
	} {
		items := tc.items
		if items == nil {
			items = []session.Item{user(text("q"))}
		}
		b, err := encode(&provider.Request{Model: session.ModelRef{Provider: "acme", ID: tc.model}, Thinking: tc.level, MaxOutput: tc.max, Items: items})
		if err != nil {
			t.Fatal(err)
		}
		_, got, _ := strings.Cut(string(b), `"stream":true,`)
		got, _, _ = strings.Cut(got, `"messages"`)
		if got != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.model, tc.level, got, tc.want)
		}
	}
}

func TestHeader(t *testing.T) {
	for _, tc := range []struct {
		bearer bool
		key    string
		want   http.Header
	}{
		{false, "k", http.Header{"X-Api-Key": {"k"}, "Anthropic-Version": {apiVersion}}},
		{true, "k", http.Header{"Authorization": {"Bearer k"}, "Anthropic-Version": {apiVersion}}},
		{false, "", http.Header{"Anthropic-Version": {apiVersion}}},
	} {
		if got := New(Options{Bearer: tc.bearer}).header(tc.key); fmt.Sprint(got) != fmt.Sprint(tc.want) {
			t.Errorf("got %v, want %v", got, tc.want)
		}
	}
}

// The same history gives the same bytes, and but for the cache marks each request begins
// with the bytes of the one before. There are never more than four marks.
func TestPrefix(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		items := []session.Item{user(text("q"))}
		before := ""
		for pass := range rapid.IntRange(1, 6).Draw(rt, "passes") {
			req := &provider.Request{Model: ref, System: "S", Items: items, Tools: []provider.Tool{{Name: "ls"}}}
			b, err := encode(req)
			if err != nil {
				rt.Fatal(err)
			}
			again, _ := encode(req)
			if string(again) != string(b) {
				rt.Fatalf("not deterministic: %s and %s", b, again)
			}
			if n := strings.Count(string(b), mark); n > 4 {
				rt.Fatalf("%d marks", n)
			}
			now := wire(t, req)
			if !strings.HasPrefix(now, before) {
				rt.Fatalf("the prefix is lost:\n%s\n%s", before, now)
			}
			before = now
			a := says(session.Reasoning{Text: "hm", Signature: "S"}, text("a"))
			items = append(slices.Clip(items), a)
			for n := range rapid.IntRange(0, 3).Draw(rt, "calls") {
				id := fmt.Sprintf("call%d-%d", pass, n)
				a.Blocks = append(a.Blocks, called(id, rapid.SampledFrom([]string{"", "{}", `{"x`}).Draw(rt, "input")))
				items = append(items, result(id, "out", make([]session.Image, rapid.IntRange(0, 1).Draw(rt, "images"))...))
			}
			if rapid.Bool().Draw(rt, "user") || len(a.Calls()) == 0 {
				items = append(items, user(text("more")))
			}
		}
	})
}
