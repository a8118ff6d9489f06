package anthropic_test

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
	"github.com/roost-dev/roost/internal/provider/anthropic"
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
	m := anthropic.New(anthropic.Options{Name: "acme", BaseURL: "http://acme/v1", HTTP: &http.Client{Transport: canned{body}}})
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
	m := anthropic.New(anthropic.Options{
		Name: "acme", BaseURL: "http://acme", Headers: map[string]string{"X-Title": "t"}, HTTP: &http.Client{Transport: transport},
		Key: func(context.Context) (string, error) { return "sk-key", nil },
	})
	req := &provider.Request{Items: []session.Item{&session.User{Blocks: []session.Block{session.Text{Text: "q"}}}}}
	for _, err := range m.Stream(t.Context(), req) {
		if err == nil || err.Error() != "acme: offline" {
			t.Errorf("got %v", err)
		}
	}
	if got.Header.Get("X-Api-Key") != "sk-key" || got.Header.Get("X-Title") != "t" || got.URL.String() != "http://acme/v1/messages" {
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

// sse writes events as an event stream.
func sse(events ...string) string {
	return "data: " + strings.Join(events, "\n\ndata: ") + "\n\n"
}

func start(index int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)
}

func delta(index int, kind, field, value string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%q}}`, index, kind, field, value)
}

func text(index int, s string) string { return delta(index, "text_delta", "text", s) }

func input(index int, s string) string { return delta(index, "input_json_delta", "partial_json", s) }

func end(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index) }

func reason(s string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q}}`, s)
}

const (
	textBlock = `{"type":"text","text":""}`
	callBlock = `{"type":"tool_use","id":"t","name":"ls","input":{}}`
	stop      = `{"type":"message_stop"}`
)

func TestAnswers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events []string
		want   string
	}{
		{"text", []string{start(0, textBlock), text(0, "Hel"), text(0, "lo"), text(0, "!"), end(0), reason("end_turn"), stop}, " T:Hello! stop=1"},
		{"no message_stop", []string{start(0, textBlock), text(0, "a"), end(0), reason("end_turn")}, " T:a stop=1"},
		{"text at the start", []string{start(0, `{"type":"text","text":"a"}`), text(0, "b"), reason("end_turn"), stop}, " T:ab stop=1"},
		{"no start", []string{text(0, "a"), reason("end_turn"), stop}, " T:a stop=1"},
		{"two blocks with one index", []string{start(0, textBlock), text(0, "a"), text(0, "b"), end(0), start(0, textBlock), text(0, "c"), end(0), reason("end_turn"), stop}, " T:abc stop=1"},
		{"limit", []string{start(0, textBlock), text(0, "a"), end(0), reason("max_tokens"), stop}, " T:a stop=2"},
		{"window", []string{text(0, "a"), reason("model_context_window_exceeded"), stop}, " T:a stop=2"},
		{"refusal", []string{reason("refusal"), stop}, " stop=4"},
		{"pause", []string{text(0, "a"), reason("pause_turn"), stop}, " T:a stop=1"},
		{"thinking that is left out", []string{start(0, `{"type":"thinking","thinking":""}`), delta(0, "signature_delta", "signature", "S"), end(0), text(1, "a"), reason("end_turn"), stop}, " /R(S) T:a stop=1"},
		{"redacted", []string{start(0, `{"type":"redacted_thinking","data":"ENC"}`), end(0), text(1, "a"), reason("end_turn"), stop}, " /R(ENC)redacted T:a stop=1"},
		{"two thinking blocks", []string{start(0, `{"type":"thinking"}`), delta(0, "thinking_delta", "thinking", "a"), delta(0, "signature_delta", "signature", "S"), end(0), start(1, `{"type":"thinking"}`), delta(1, "thinking_delta", "thinking", "b"), delta(1, "signature_delta", "signature", "T"), end(1), reason("end_turn"), stop}, " R:a /R(S) R:b /R(T) stop=1"},
		{"input at the start", []string{start(0, `{"type":"tool_use","name":"ls","input":{"path":"."}}`), end(0), reason("tool_use"), stop}, ` call0=ls 0<{"path":"."} /0 stop=3`},
		{"no input", []string{start(0, callBlock), end(0), reason("tool_use"), stop}, ` call0=ls 0<{} /0 stop=3`},
		{"malformed input", []string{start(0, callBlock), input(0, "{\"a"), end(0), reason("tool_use"), stop}, ` call0=ls 0<{"a /0 stop=3`},
		{"half an input at the limit", []string{start(0, callBlock), input(0, "{\"a"), end(0), reason("max_tokens"), stop}, ` call0=ls 0<{"a stop=2`},
		{"no input at the limit", []string{start(0, callBlock), end(0), reason("max_tokens"), stop}, ` call0=ls stop=2`},
		{"interleaved calls", []string{start(0, callBlock), start(1, callBlock), input(0, "{"), input(1, "{"), input(0, "}"), input(1, "}"), end(0), end(1), reason("tool_use"), stop}, ` call0=ls call1=ls 0<{ 1<{ 0<} 1<} /0 /1 stop=3`},
		{"unknown blocks, deltas, events", []string{`{"type":"new"}`, start(0, `{"type":"server_tool_use"}`), input(0, "{}"), end(0), start(1, textBlock), delta(1, "citations_delta", "citation", "x"), text(1, "a"), end(1), end(9), reason("end_turn"), stop}, " T:a stop=1"},
		{"fields of odd types", []string{`{"type":"message_start","message":{"model":7,"usage":[]}}`, start(0, textBlock), `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a","signature":{}}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":"?"}}`, stop}, " T:a stop=1"},
		{"usage at the end only", []string{text(0, "a"), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":5,"output_tokens":7.0,"cache_read_input_tokens":null}}`, stop}, " T:a usage=5,7,0,0,0 stop=1"},
		{"zeros do not undo", []string{`{"type":"message_start","message":{"usage":{"input_tokens":5,"output_tokens":1}}}`, text(0, "a"), `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":0,"output_tokens":9}}`, stop}, " usage=5,1,0,0,0 T:a usage=5,9,0,0,0 stop=1"},
		{"another model", []string{`{"type":"message_start","message":{"model":"n"}}`, text(0, "a"), reason("end_turn"), stop}, " T:a stop=1 by=n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := answer(t, strings.NewReader(sse(tc.events...)))
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
		{"no end", sse(start(0, textBlock), text(0, "a"), end(0)), provider.FaultNetwork},
		{"an end without a reason", sse(text(0, "a"), stop), provider.FaultProtocol},
		{"malformed", sse(text(0, "a"), `{"type":`), provider.FaultProtocol},
		{"overloaded", sse(text(0, "a"), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), provider.FaultOverload},
		{"rate limit", sse(`{"type":"error","error":{"type":"rate_limit_error","message":"slow"}}`), provider.FaultRateLimit},
		{"bad request", sse(`{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}`), provider.FaultRequest},
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

const toolsAnswer = ` usage=10,1,30,20,0 R:Let me see /R(SIG==) T:I look né 🌍 around. call0=bash 0<{"command": 0< "ls"} /0 call1=ls usage=10,55,30,20,0 1<{} /1 stop=3 by=claude-x-1`

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
	for n := range len(stream) {
		got, err := answer(t, io.MultiReader(strings.NewReader(stream[:n]), broken{}))
		if err == nil && got != whole {
			t.Fatalf("cut at %d: %s", n, got)
		}
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func FuzzAnthropic(f *testing.F) {
	f.Add([]byte(recorded(f)))
	f.Add([]byte(sse(start(0, callBlock), input(0, "{"), end(0), reason("max_tokens"), stop)))
	f.Add([]byte(sse(text(0, "a"), text(0, "b"), end(0), text(0, "c"), start(1e9, callBlock), reason("x"), stop)))
	f.Add([]byte(sse(start(0, `{"type":"tool_use","name":"\ud83d","input":"x"}`), end(0), reason("tool_use"), stop)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		_, _ = answer(t, strings.NewReader(string(stream)))
	})
}

func BenchmarkStream(b *testing.B) {
	stream := sse(start(0, textBlock)) + strings.Repeat(sse(text(0, "token ")), 1000) + sse(reason("end_turn"), stop)
	b.ReportAllocs()
	req := &provider.Request{Model: session.ModelRef{ID: "m"}, Items: []session.Item{&session.User{Blocks: []session.Block{session.Text{Text: "q"}}}}}
	for n := 0; n < b.N; n += 1000 {
		m := anthropic.New(anthropic.Options{BaseURL: "http://acme", HTTP: &http.Client{Transport: canned{strings.NewReader(stream)}}})
		for _, err := range m.Stream(b.Context(), req) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
