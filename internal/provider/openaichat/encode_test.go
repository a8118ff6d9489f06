package openaichat

import (
	"encoding/json"
	"errors"
	"fmt"
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

func encoded(t *testing.T, req *provider.Request, q quirks) string {
	t.Helper()
	if req.Model.IsZero() {
		req.Model = ref
	}
	b, err := encode(req, q)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

// history returns the messages of a request without the brackets.
func wire(t *testing.T, req *provider.Request) string {
	t.Helper()
	_, messages, _ := strings.Cut(encoded(t, req, quirks{}), `"messages":[`)
	return strings.TrimSuffix(messages, "]}")
}

func TestMessages(t *testing.T) {
	pic := session.Image{MIME: "image/png", Blob: "p"}
	images := func(i session.Image) ([]byte, error) {
		if i.Blob != "p" {
			return nil, errors.New("gone")
		}
		return []byte("PNG"), nil
	}
	r := func(via, s string) session.Reasoning { return session.Reasoning{Text: s, Signature: via} }
	other := says(r(viaContent, "hm"), text("a"))
	other.Model.ID = "n"
	for _, tc := range []struct {
		name  string
		items []session.Item
		want  string
	}{
		{"text", []session.Item{user(text("q"), text("<b>")), says(text("a"), text("b"))}, `{"role":"user","content":"q\n<b>"},{"role":"assistant","content":"ab"}`},
		{"blank", []session.Item{user(text("q")), says(text(" "))}, `{"role":"user","content":"q"}`},
		{"blank before its rest", []session.Item{user(text("q")), says(text(" ")), says(text("A"))}, `{"role":"user","content":"q"},{"role":"assistant","content":"A"}`},
		{"blank within", []session.Item{user(text("q")), says(text("a")), says(text(" ")), says(text("b"))}, `{"role":"user","content":"q"},{"role":"assistant","content":"a b"}`},
		{"image", []session.Item{user(text("q"), pic, session.Image{})}, `{"role":"user","content":[{"type":"text","text":"q"},{"type":"image_url","image_url":{"url":"data:image/png;base64,UE5H"}},{"type":"text","text":"[an image that is no longer available]"}]}`},
		{"call", []session.Item{says(text("a"), called("c1", `{"x": 1}`)), result("c1", "")}, `{"role":"assistant","content":"a","tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"x\": 1}"}}]},{"role":"tool","content":"(no output)","tool_call_id":"c1"}`},
		{"malformed call without a result", []session.Item{says(called("c1", `{"x`))}, `{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{\"malformed_input\":\"{\\\"x\"}"}}]},{"role":"tool","content":"This call was interrupted and has no result. Whether it had any effect is unknown.","tool_call_id":"c1"}`},
		{
			"images of results come after all results",
			[]session.Item{says(called("c1", ""), called("c2", "")), result("c1", "1", pic), result("c2", "2"), user(text("q"))},
			`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}},{"id":"c2","type":"function","function":{"name":"bash","arguments":"{}"}}]},{"role":"tool","content":"1","tool_call_id":"c1"},{"role":"tool","content":"2","tool_call_id":"c2"},{"role":"user","content":[{"type":"text","text":"Images from the result of bash (c1):"},{"type":"image_url","image_url":{"url":"data:image/png;base64,UE5H"}}]},{"role":"user","content":"q"}`,
		},
		{"reasoning goes back as it came", []session.Item{user(text("q")), says(r(viaContent, "hm"), text("a"))}, `{"role":"user","content":"q"},{"role":"assistant","content":"a","reasoning_content":"hm"}`},
		{"in the other field", []session.Item{says(r(viaReasoning, "hm"), text("a"))}, `{"role":"assistant","content":"a","reasoning":"hm"}`},
		{"as details", []session.Item{says(r(`[{"x":1}]`, "hm"), r(`[{"y":2}]`, ""), text("a"))}, `{"role":"assistant","content":"a","reasoning_details":[{"x":1},{"y":2}]}`},
		{"tagged reasoning stays", []session.Item{says(r(viaTag, "hm"), text("a"))}, `{"role":"assistant","content":"a"}`},
		{"another dialect's reasoning stays", []session.Item{says(r("SIG==", "hm"), session.Reasoning{Signature: "X", Redacted: true}, text("a"))}, `{"role":"assistant","content":"a"}`},
		{"another model's reasoning stays", []session.Item{other}, `{"role":"assistant","content":"a"}`},
		{"only reasoning", []session.Item{user(text("q")), says(r(viaContent, "hm")), user(text("r"))}, `{"role":"user","content":"q"},{"role":"user","content":"r"}`},
		{"a cut answer and its rest are one", []session.Item{says(r(viaContent, "h"), text("a")), says(r(viaContent, "m"), text("b"), called("c1", "")), result("c1", "1")}, `{"role":"assistant","content":"ab","reasoning_content":"hm","tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}}]},{"role":"tool","content":"1","tool_call_id":"c1"}`},
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
	cut := says(text("Hel"))
	cut.Status = session.Failed
	got := wire(t, &provider.Request{Items: []session.Item{user(text("q")), cut}, Continue: true})
	want := fmt.Sprintf(`{"role":"user","content":"q"},{"role":"assistant","content":"Hel"},{"role":"user","content":%q}`, provider.ContinueNote)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRequest(t *testing.T) {
	full := &provider.Request{
		Model: session.ModelRef{ID: "gpt-5.2"}, System: "S", Items: []session.Item{user(text("q"))}, MaxOutput: 100, CacheKey: "k", Thinking: session.ThinkingHigh,
		Tools: []provider.Tool{{Name: "ls", Description: "lists", Schema: json.RawMessage(`{"properties":{}}`)}},
	}
	want := `{"model":"gpt-5.2","stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":100,"reasoning_effort":"high","prompt_cache_key":"k","tools":[{"type":"function","function":{"name":"ls","description":"lists","parameters":{"properties":{},"type":"object"}}}],"messages":[{"role":"system","content":"S"},{"role":"user","content":"q"}]}`
	if got := encoded(t, full, quirks{}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := encode(&provider.Request{System: "S"}, quirks{}); err == nil {
		t.Error("a request without a message")
	}
}

func TestQuirks(t *testing.T) {
	for _, tc := range []struct {
		model string
		level session.Thinking
		quirk quirks
		want  string
	}{
		{"llama", "", quirks{}, `"max_tokens":9`},
		{"llama", session.ThinkingOff, quirks{}, `"max_tokens":9`},
		{"llama", session.ThinkingLow, quirks{}, `"max_tokens":9,"reasoning_effort":"low"`},
		{"llama", "", quirks{maxTokens: "max_completion_tokens"}, `"max_completion_tokens":9`},
		{"gpt-5", "", quirks{maxTokens: "max_tokens"}, `"max_tokens":9`},
		{"gpt-4o", "", quirks{official: true}, `"max_completion_tokens":9`},
		{"gpt-4o", "", quirks{}, `"max_tokens":9`},
		{"o3-mini", session.ThinkingMinimal, quirks{}, `"max_completion_tokens":9,"reasoning_effort":"minimal"`},
		{"openai/o4-mini", "", quirks{}, `"max_completion_tokens":9`},
		{"gpt-5", session.ThinkingOff, quirks{}, `"max_completion_tokens":9`},
		{"gpt-5.1", session.ThinkingOff, quirks{}, `"max_completion_tokens":9,"reasoning_effort":"none"`},
		{"Qwen3-max", session.ThinkingOff, quirks{}, `"max_tokens":9,"enable_thinking":false`},
		{"deepseek-v4", session.ThinkingOff, quirks{}, `"max_tokens":9,"thinking":{"type":"disabled"}`},
		{"deepseek-v4", session.ThinkingMax, quirks{}, `"max_tokens":9,"reasoning_effort":"max"`},
	} {
		req := &provider.Request{Model: session.ModelRef{ID: tc.model}, Thinking: tc.level, MaxOutput: 9, Items: []session.Item{user(text("q"))}}
		_, got, _ := strings.Cut(encoded(t, req, tc.quirk), `"include_usage":true},`)
		got, _, _ = strings.Cut(got, `,"messages"`)
		if got != tc.want {
			t.Errorf("%s %s: %s, want %s", tc.model, tc.level, got, tc.want)
		}
	}
	if !isOpenAI("https://api.openai.com/v1") || isOpenAI("https://api.openai.com.evil.net") || isOpenAI("::") {
		t.Error("isOpenAI")
	}
}

// The same history gives the same bytes, and each request begins with the bytes of the one
// before, which is what prompt caches go by.
func TestPrefix(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		items := []session.Item{user(text("q"))}
		before := ""
		for pass := range rapid.IntRange(1, 6).Draw(rt, "passes") {
			req := &provider.Request{Model: ref, System: "S", Items: items}
			now := wire(t, req)
			if again := wire(t, req); again != now {
				rt.Fatalf("not deterministic: %s and %s", now, again)
			}
			if !strings.HasPrefix(now, before) {
				rt.Fatalf("the prefix is lost:\n%s\n%s", before, now)
			}
			before = now
			a := says(session.Reasoning{Text: "hm", Signature: viaContent}, text("a"))
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
