package openaichat_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/provider/openaichat"
	"github.com/roost-dev/roost/internal/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// canned answers every request with the same event stream, without a network.
type canned struct{ body io.Reader }

func (c canned) RoundTrip(r *http.Request) (*http.Response, error) {
	_ = r.Body.Close()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(c.body), Request: r}, nil
}

// answer reads a stream through the whole dialect and writes its parts as one line. It fails
// the test when the stream breaks what provider.Model promises.
func answer(t *testing.T, body io.Reader) (line string, err error) {
	t.Helper()
	m := openaichat.New(openaichat.Options{Name: "acme", BaseURL: "http://acme/v1", HTTP: &http.Client{Transport: canned{body}}})
	req := &provider.Request{Model: session.ModelRef{Provider: "acme", ID: "m"}, Items: []session.Item{&session.User{Blocks: []session.Block{session.Text{Text: "q"}}}}}
	var out strings.Builder
	last, finished := provider.PartKind(255), false
	for p, e := range m.Stream(t.Context(), req) {
		if e != nil {
			if _, ok := errors.AsType[*provider.Error](e); !ok {
				t.Fatalf("%v is no provider error", e)
			}
			err = e
			break
		}
		if finished {
			t.Fatalf("a part after the end: %+v", p)
		}
		if !utf8.ValidString(p.Text) || p.Text == "" && (p.Kind == provider.TextDelta || p.Kind == provider.ReasoningDelta || p.Kind == provider.CallDelta) {
			t.Fatalf("text of %+v", p)
		}
		write(&out, p, last)
		last, finished = p.Kind, p.Kind == provider.Finish
	}
	if finished == (err != nil) {
		t.Fatalf("neither finished nor failed, or both: %q, %v", out.String(), err)
	}
	return out.String(), err
}

func write(out *strings.Builder, p provider.Part, last provider.PartKind) {
	switch p.Kind {
	case provider.TextDelta:
		if last != p.Kind {
			out.WriteString(" T:")
		}
		out.WriteString(p.Text)
	case provider.ReasoningDelta:
		if last != p.Kind {
			out.WriteString(" R:")
		}
		out.WriteString(p.Text)
	case provider.ReasoningEnd:
		fmt.Fprintf(out, " /R(%s)", p.Signature)
		if p.Redacted {
			out.WriteString("redacted")
		}
	case provider.CallStart:
		fmt.Fprintf(out, " call%d=%s", p.Key, p.Name)
	case provider.CallDelta:
		fmt.Fprintf(out, " %d<%s", p.Key, p.Text)
	case provider.CallEnd:
		fmt.Fprintf(out, " /%d", p.Key)
	case provider.UsageReport:
		u := p.Usage
		fmt.Fprintf(out, " usage=%d,%d,%d,%d,%d", u.Input, u.Output, u.CacheRead, u.CacheWrite, u.Reasoning)
	case provider.Finish:
		fmt.Fprintf(out, " stop=%d", p.Stop)
		if p.ResponseModel != "" {
			out.WriteString(" by=" + p.ResponseModel)
		}
	}
}

// TestKey: the key and the request arrive where the dialect wants them.
func TestKey(t *testing.T) {
	var got *http.Request
	transport := roundTrip(func(r *http.Request) (*http.Response, error) {
		got = r
		return nil, errors.New("offline")
	})
	m := openaichat.New(openaichat.Options{
		Name: "acme", BaseURL: "http://acme", Headers: map[string]string{"X-Title": "t"}, HTTP: &http.Client{Transport: transport},
		Key: func(context.Context) (string, error) { return "sk-key", nil },
	})
	req := &provider.Request{Items: []session.Item{&session.User{Blocks: []session.Block{session.Text{Text: "q"}}}}}
	for _, err := range m.Stream(t.Context(), req) {
		if err == nil || err.Error() != "acme: offline" {
			t.Errorf("got %v", err)
		}
	}
	if got.Header.Get("Authorization") != "Bearer sk-key" || got.Header.Get("X-Title") != "t" || got.URL.String() != "http://acme/v1/chat/completions" {
		t.Errorf("%s %v", got.URL, got.Header)
	}
	for _, err := range m.Stream(t.Context(), &provider.Request{}) {
		if f, ok := errors.AsType[*provider.Error](err); !ok || f.Fault != provider.FaultRequest {
			t.Errorf("a request without messages: %v", err)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// sse writes chunks as an event stream.
func sse(chunks ...string) string {
	return "data: " + strings.Join(chunks, "\n\ndata: ") + "\n\n"
}

// delta is a chunk with a delta.
func delta(d string) string { return `{"choices":[{"index":0,"delta":` + d + `}]}` }

func content(s string) string { return delta(fmt.Sprintf(`{"content":%q}`, s)) }

func call(fields string) string { return delta(`{"tool_calls":[{` + fields + `}]}`) }

const (
	done = `[DONE]`
	stop = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
)

func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		chunks []string
		want   string
	}{
		{"text", []string{content("Hel"), content("lo"), content("!"), stop, done}, " T:Hello! stop=1"},
		{"no DONE", []string{content("a"), stop}, " T:a stop=1"},
		{"only DONE", []string{content("a"), done}, " T:a stop=1"},
		{"blank and null reasons", []string{`{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}`, `{"choices":[{"delta":{"content":"b"},"finish_reason":null}]}`, stop}, " T:ab stop=1"},
		{"length", []string{content("a"), `{"choices":[{"delta":{},"finish_reason":"length"}]}`}, " T:a stop=2"},
		{"filter", []string{`{"choices":[{"delta":{},"finish_reason":"content_filter"}]}`}, " stop=4"},
		{"unknown reason", []string{content("a"), `{"choices":[{"delta":{},"finish_reason":"eos"}]}`}, " T:a stop=1"},
		{"refusal", []string{delta(`{"refusal":"no"}`), stop}, " T:no stop=1"},
		{"nulls and unknown fields", []string{`{"x":1,"choices":null}`, `{"choices":[{"delta":null}]}`, `{"choices":[{"delta":{"content":null,"tool_calls":null,"zz":[1]},"logprobs":{}}],"usage":null,"error":null}`, content("a"), stop}, " T:a stop=1"},
		{"fields of odd types", []string{`{"model":7,"choices":[{"index":0,"delta":{"content":"a","reasoning":{}}}],"usage":"?"}`, `{"choices":{}}`, `[]`, `7`, stop}, " T:a stop=1"},
		{"content in parts", []string{delta(`{"content":[{"type":"thinking","thinking":[]},{"type":"text","text":"a"}]}`), delta(`{"content":7}`), stop}, " T:a stop=1"},
		{"another choice", []string{`{"choices":[{"index":1,"delta":{"content":"no"}}]}`, content("a"), stop}, " T:a stop=1"},
		{"other model", []string{`{"model":"n","choices":[{"delta":{"content":"a"}}]}`, stop}, " T:a stop=1 by=n"},

		{"reasoning_content", []string{delta(`{"reasoning_content":"h"}`), delta(`{"reasoning_content":"m"}`), delta(`{"reasoning_content":"!"}`), content("a"), stop}, " R:hm! /R(reasoning_content) T:a stop=1"},
		{"reasoning", []string{delta(`{"reasoning":"hm"}`), content("a"), stop}, " R:hm /R(reasoning) T:a stop=1"},
		{"details", []string{
			delta(`{"reasoning":"h","reasoning_details":[{"type":"reasoning.text","text":"h","index":0,"format":"f"}]}`),
			delta(`{"reasoning":"m","reasoning_details":[{"type":"reasoning.text","text":"m","index":0}]}`),
			delta(`{"content":"","reasoning_details":[{"type":"reasoning.text","signature":"S","index":0}]}`), content("a"), stop,
		}, ` R:hm /R([{"type":"reasoning.text","text":"hm","signature":"S","format":"f","index":0}]) T:a stop=1`},
		{"details only", []string{delta(`{"reasoning_details":[{"type":"reasoning.summary","summary":"s"}]}`), stop}, ` R:s /R([{"type":"reasoning.summary","summary":"s"}]) stop=1`},
		{"encrypted details", []string{delta(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"E"}]}`), content("a"), stop}, ` /R([{"type":"reasoning.encrypted","data":"E"}])redacted T:a stop=1`},
		{"two blocks", []string{delta(`{"reasoning_content":"a"}`), content("b"), delta(`{"reasoning_content":"c"}`), stop}, " R:a /R(reasoning_content) T:b R:c /R(reasoning_content) stop=1"},

		{"tag", []string{content("<think>hm</think>\n\na"), content("b"), stop}, " R:hm /R(think) T:ab stop=1"},
		{"tag in pieces", []string{content("\n<"), content("thi"), content("nk>h"), content("m</"), content("think"), content(">"), content("\n"), content("\na"), stop}, " R:hm /R(think) T:a stop=1"},
		{"false end of a tag", []string{content("<think>a</b>"), content("<"), content("/think>c"), stop}, " R:a</b> /R(think) T:c stop=1"},
		{"tag is not closed", []string{content("<think>hm</th"), stop}, " R:hm</th /R(think) stop=1"},
		{"tag later in the text", []string{content("a <think>b</think>"), stop}, " T:a <think>b</think> stop=1"},
		{"almost a tag", []string{content(" <th"), content("is>"), stop}, " T: <this> stop=1"},
		{"half a tag at the end", []string{content("<thi"), stop}, " T:<thi stop=1"},
		{"too many blanks before a tag", []string{content(strings.Repeat(" ", 1100)), content("<think>"), stop}, " T:" + strings.Repeat(" ", 1100) + "<think> stop=1"},
		{"tag, then a call", []string{content("<think>hm"), call(`"index":0,"function":{"name":"ls","arguments":"{}"}`), stop}, " R:hm /R(think) call0=ls 0<{} /0 stop=3"},

		{"usage before the stop", []string{`{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}`, content("a"), stop, done}, " T:a usage=1,2,0,0,0 stop=1"},
		{"usage beside text", []string{`{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":1.0,"completion_tokens":2}}`, stop}, " T:a usage=1,2,0,0,0 stop=1"},
		{"usage in the choice", []string{content("a"), `{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":1,"completion_tokens":2}}]}`}, " T:a usage=1,2,0,0,0 stop=1"},
		{"usage twice", []string{content("a"), stop, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}`, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}`, done}, " T:a usage=9,2,0,0,0 stop=1"},
		{"zeros are no usage", []string{content("a"), stop, `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1}}`, `{"choices":[],"usage":{"prompt_tokens":0}}`, done}, " T:a usage=9,1,0,0,0 stop=1"},
		{"cache hits of deepseek", []string{content("a"), stop, `{"usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_cache_hit_tokens":4}}`, done}, " T:a usage=5,1,4,0,0 stop=1"},
		{"absurd usage", []string{content("a"), stop, `{"usage":{"prompt_tokens":-9,"completion_tokens":1e300}}`, done}, " T:a usage=0,1099511627776,0,0,0 stop=1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := answer(t, strings.NewReader(sse(tc.chunks...)))
			if err != nil || got != tc.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tc.want)
			}
		})
	}
}

func TestCalls(t *testing.T) {
	toolCalls := `{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}`
	length := `{"choices":[{"delta":{},"finish_reason":"length"}]}`
	for _, tc := range []struct {
		name   string
		chunks []string
		want   string
	}{
		{"pieces", []string{call(`"index":0,"id":"x","function":{"name":"ls","arguments":"{\"a\""}`), call(`"index":0,"function":{"arguments":":1}"}`), toolCalls}, ` call0=ls 0<{"a" 0<:1} /0 stop=3`},
		{"interleaved", []string{call(`"index":1,"id":"x","function":{"name":"a","arguments":"{"}`), call(`"index":0,"id":"y","function":{"name":"b","arguments":"{"}`), call(`"index":1,"function":{"arguments":"}"}`), call(`"index":0,"function":{"arguments":"}"}`), toolCalls}, ` call0=a 0<{ call1=b 1<{ 0<} 1<} /0 /1 stop=3`},
		{"no index, ids", []string{call(`"id":"x","function":{"name":"a","arguments":"{"}`), call(`"id":"y","function":{"name":"b","arguments":"{}"}`), call(`"id":"x","function":{"arguments":"}"}`), toolCalls}, ` call0=a 0<{ call1=b 1<{} 0<} /0 /1 stop=3`},
		{"no index, no id", []string{call(`"function":{"name":"a","arguments":"{"}`), call(`"function":{"arguments":"}"}`), call(`"function":{"name":"b","arguments":"{}"}`), toolCalls}, ` call0=a 0<{ 0<} call1=b 1<{} /0 /1 stop=3`},
		{"repeated id and name", []string{call(`"index":0,"id":"x","function":{"name":"a","arguments":"{"}`), call(`"index":0,"id":"x","function":{"name":"a","arguments":"}"}`), toolCalls}, ` call0=a 0<{ 0<} /0 stop=3`},
		{"always index 0", []string{call(`"index":0,"id":"x","function":{"name":"a","arguments":"{}"}`), call(`"index":0,"id":"y","function":{"name":"b","arguments":"{}"}`), toolCalls}, ` call0=a 0<{} call1=b 1<{} /0 /1 stop=3`},
		{"late name", []string{call(`"index":0,"id":"x","function":{"arguments":"{\"a\":"}`), call(`"index":0,"function":{"name":"ls","arguments":"1}"}`), toolCalls}, ` call0=ls 0<{"a":1} /0 stop=3`},
		{"no name at all", []string{call(`"index":0,"function":{"arguments":"{}"}`), toolCalls}, ` call0=unknown 0<{} /0 stop=3`},
		{"empty id", []string{call(`"index":0,"id":"","function":{"name":"a","arguments":"{"}`), call(`"index":0,"id":"","function":{"arguments":"}"}`), toolCalls}, ` call0=a 0<{ 0<} /0 stop=3`},
		{"null id and index", []string{call(`"index":null,"id":null,"function":{"name":"a","arguments":"{"}`), call(`"index":null,"id":null,"function":{"name":null,"arguments":"}"}`), toolCalls}, ` call0=a 0<{ 0<} /0 stop=3`},
		{"whole arguments again", []string{call(`"index":0,"id":"x","function":{"name":"a","arguments":"{\"a\":"}`), call(`"index":0,"function":{"arguments":"{}}"}`), call(`"index":0,"id":"x","function":{"name":"a","arguments":"{\"a\": {}}"}`), toolCalls}, ` call0=a 0<{"a": 0<{}} /0 stop=3`},
		{"nested objects are no repetition", []string{call(`"index":0,"function":{"name":"a","arguments":"{\"a\":"}`), call(`"index":0,"function":{"arguments":"{}"}`), call(`"index":0,"function":{"arguments":"}"}`), toolCalls}, ` call0=a 0<{"a": 0<{} 0<} /0 stop=3`},
		{"arguments are an object", []string{call(`"index":0,"function":{"name":"a","arguments":{"x":1}}`), toolCalls}, ` call0=a 0<{"x":1} /0 stop=3`},
		{"no arguments", []string{call(`"index":0,"function":{"name":"a"}`), stop}, ` call0=a 0<{} /0 stop=3`},
		{"malformed arguments", []string{call(`"index":0,"function":{"name":"a","arguments":"{\"x\":"}`), toolCalls}, ` call0=a 0<{"x": /0 stop=3`},
		{"half a call at the limit", []string{call(`"index":0,"function":{"name":"a","arguments":"{}"}`), call(`"index":1,"function":{"name":"b","arguments":"{\"x"}`), length}, ` call0=a 0<{} call1=b 1<{"x /0 stop=2`},
		{"nothing of a call at the limit", []string{call(`"index":0,"function":{"name":"a"}`), length}, ` call0=a stop=2`},
		{"tool_calls without calls", []string{content("a"), toolCalls}, ` T:a stop=1`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := answer(t, strings.NewReader(sse(tc.chunks...)))
			if err != nil || got != tc.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, tc.want)
			}
		})
	}
}

func TestFailures(t *testing.T) {
	for _, tc := range []struct {
		name   string
		stream string
		want   provider.Fault
	}{
		{"nothing", "", provider.FaultNetwork},
		{"no end", sse(content("a")), provider.FaultNetwork},
		{"DONE without an answer", sse(done), provider.FaultNetwork},
		{"malformed", sse(content("a"), `{"choices":[`), provider.FaultProtocol},
		{"an error", sse(content("a"), `{"error":{"message":"Overloaded","code":503}}`), provider.FaultOverload},
		{"an error as a text", sse(`{"error":"rate limit","choices":[]}`), provider.FaultOverload},
		{"an error in the choice", sse(`{"choices":[{"delta":{},"finish_reason":"error","error":{"code":429,"message":"x"}}]}`), provider.FaultRateLimit},
		{"an error without words", sse(`{"choices":[{"delta":{},"finish_reason":"error"}]}`), provider.FaultOverload},
		{"an error event", "event: error\ndata: {\"message\":\"prompt is too long\"}\n\n", provider.FaultContext},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := answer(t, strings.NewReader(tc.stream))
			f, ok := errors.AsType[*provider.Error](err)
			if !ok || f.Fault != tc.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

const toolsAnswer = ` R:Let me see /R(reasoning_content) T:I look né 🌍 around. call0=bash 0<{"command": call1=ls 1<{} 0<"ls"} /0 /1 usage=40,20,60,0,5 stop=3 by=m-2026`

func recorded(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile("testdata/tools.sse")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Wherever a recorded stream is cut, it fails or it is whole: never a silent success.
func TestCutAnywhere(t *testing.T) {
	stream := recorded(t)
	whole, err := answer(t, strings.NewReader(stream))
	if err != nil || whole != toolsAnswer {
		t.Fatalf("got  %s, %v\nwant %s", whole, err, toolsAnswer)
	}
	withoutUsage := strings.Replace(whole, " usage=40,20,60,0,5", "", 1)
	for n := range len(stream) {
		got, err := answer(t, io.MultiReader(strings.NewReader(stream[:n]), broken{}))
		if err == nil && got != whole && got != withoutUsage {
			t.Fatalf("cut at %d: %s", n, got)
		}
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	m := openaichat.New(openaichat.Options{Name: "acme", BaseURL: "http://127.0.0.1:1"})
	req := &provider.Request{Items: []session.Item{&session.User{Blocks: []session.Block{session.Text{Text: "q"}}}}}
	for _, err := range m.Stream(ctx, req) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

func FuzzOpenAIChat(f *testing.F) {
	f.Add([]byte(recorded(f)))
	f.Add([]byte(sse(content("<think>a</think>b"), content("c"), `{"choices":[{"delta":{"content":"\ud83d"},"finish_reason":"length"}]}`)))
	f.Add([]byte(sse(call(`"function":{"arguments":7}`), call(`"id":"a","index":1e99,"function":{"name":"x","arguments":"{}"}`), done)))
	f.Add([]byte(sse(delta(`{"reasoning_details":[{"type":"a","index":0},{"type":"a","index":0,"text":"b"}]}`), `{"error":[]}`)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		_, _ = answer(t, strings.NewReader(string(stream)))
	})
}

func BenchmarkStream(b *testing.B) {
	line := `{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"content":"token "},"finish_reason":null}]}`
	for name, gap := range map[string]string{"same": line, "changing": strings.Replace(line, "null}", `null,"obfuscation":"abc"}`, 1)} {
		stream := strings.Repeat(sse(line, gap), 500) + sse(stop, done)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			req := &provider.Request{Model: session.ModelRef{ID: "m"}, Items: []session.Item{&session.User{Blocks: []session.Block{session.Text{Text: "q"}}}}}
			for n := 0; n < b.N; n += 1000 {
				m := openaichat.New(openaichat.Options{BaseURL: "http://acme/v1", HTTP: &http.Client{Transport: canned{strings.NewReader(stream)}}})
				for _, err := range m.Stream(b.Context(), req) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
