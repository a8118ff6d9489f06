package scripted_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/roost-dev/roost/internal/provider"
	"github.com/roost-dev/roost/internal/provider/scripted"
	"github.com/roost-dev/roost/internal/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t *testing.T, script string) *scripted.Model {
	t.Helper()
	m, err := scripted.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// always is a script with one pass for every prompt.
func always(steps string) string { return "rules: [{default: true, passes: [[" + steps + "]]}]" }

func user(text string) *session.User {
	return &session.User{ID: "u1", Blocks: []session.Block{session.Text{Text: text}}}
}

func says(status session.Status, text string) *session.Assistant {
	return &session.Assistant{Status: status, Blocks: []session.Block{session.Text{Text: text}}}
}

func ask(items ...session.Item) *provider.Request {
	return &provider.Request{Items: items, CacheKey: "s"}
}

func rest(items ...session.Item) *provider.Request {
	r := ask(items...)
	r.Continue = true
	return r
}

// run writes an answer as one line: "|" begins a delta.
func run(ctx context.Context, m *scripted.Model, req *provider.Request) (line string, err error) {
	var out strings.Builder
	for p, err := range m.Stream(ctx, req) {
		if err != nil {
			return out.String(), err
		}
		switch p.Kind {
		case provider.TextDelta:
			out.WriteString("|" + p.Text)
		case provider.ReasoningDelta:
			out.WriteString("(" + p.Text)
		case provider.ReasoningEnd:
			out.WriteString(")")
		case provider.CallStart:
			fmt.Fprintf(&out, " %d=%s", p.Key, p.Name)
		case provider.CallDelta:
			out.WriteString("<" + p.Text)
		case provider.CallEnd:
			fmt.Fprintf(&out, "/%d", p.Key)
		case provider.UsageReport:
			fmt.Fprintf(&out, " u%d,%d", p.Usage.Input, p.Usage.Output)
		case provider.Finish:
			fmt.Fprintf(&out, " stop=%d", p.Stop)
		}
	}
	return out.String(), nil
}

func TestSteps(t *testing.T) {
	for _, tc := range []struct{ name, steps, want string }{
		{"words", `{text: "a bc  d\ne"}`, "|a |bc  |d\n|e u1,4 stop=1"},
		{"characters", `{text: "añ🌍b", chunk: 2}`, "|añ|🌍b u1,2 stop=1"},
		{"repeat", `{text: "x ", repeat: "3"}`, "|x |x |x  u1,3 stop=1"},
		{"nothing", ``, " u1,0 stop=1"},
		{"empty text", `{text: ""}`, " u1,0 stop=1"},
		{"think", `{think: "h m"}, {text: a}`, "(h (m)|a u1,3 stop=1"},
		{"tools", `{tool: {name: a, input: {z: 1, b: [x, null, 2.5]}}}, {tool: {name: b}}`, ` 0=a<{"b":["x",null,2.5],"z":1}/0 1=b<{}/1 u1,8 stop=3`},
		{"raw input", `{tool: {name: a, raw: '{"x'}}`, ` 0=a<{"x/0 u1,1 stop=3`},
		{"usage and stop", `{usage: {input: 7, output: 9}}, {text: a}, {stop: length}`, "|a u7,9 stop=2"},
		{"placeholders", `{text: "<${prompt}> ${9} ${x} ${tool1}", chunk: 99}`, "|<q>  ${x}  u1,1 stop=1"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := run(t.Context(), parse(t, always(tc.steps)), ask(user("q")))
			if err != nil || got != tc.want {
				t.Errorf("got  %q, %v\nwant %q", got, err, tc.want)
			}
		})
	}
}

func TestRulesAndPasses(t *testing.T) {
	m := parse(t, `
rules:
  - contains: Tool
    passes:
      - [{tool: {name: bash, input: {command: "${prompt}", list: ["${prompt}"]}}}, {usage: {}}]
      - [{text: "${tool1:2}-${tool2}", chunk: 99}, {usage: {}}]
  - regex: '^go (\w+) (\w+)$'
    passes: [[{text: "${2} ${1}", chunk: 99}, {usage: {}}]]
`)
	tool := func(out string) *session.Tool { return &session.Tool{Output: out, Status: session.Complete} }
	done := says(session.Complete, "")
	for _, tc := range []struct {
		name  string
		items []session.Item
		want  string
	}{
		{"contains", []session.Item{user("use a TOOL")}, ` 0=bash<{"command":"use a TOOL","list":["use a TOOL"]}/0 u0,0 stop=3`},
		{"second pass", []session.Item{user("tool"), done, tool("1\n2\n3\n"), tool("b")}, "|1\n2-b u0,0 stop=1"},
		{"the last pass serves all", []session.Item{user("tool"), done, tool("1"), done, tool("2"), done, done}, "|1-2 u0,0 stop=1"},
		{"a steer begins again", []session.Item{user("tool"), done, tool("1"), user("go a b")}, "|b a u0,0 stop=1"},
		{"a failed pass does not count", []session.Item{user("tool"), says(session.Failed, "")}, ` 0=bash<{"command":"tool","list":["tool"]}/0 u0,0 stop=3`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := run(t.Context(), m, ask(tc.items...))
			if err != nil || got != tc.want {
				t.Errorf("got  %q, %v\nwant %q", got, err, tc.want)
			}
		})
	}
	_, err := run(t.Context(), m, ask(user(strings.Repeat("else", 99))))
	if f, ok := errors.AsType[*provider.Error](err); !ok || f.Fault != provider.FaultRequest || len(f.Message) > 200 {
		t.Errorf("no rule: %v", err)
	}
}

func TestErrors(t *testing.T) {
	m := parse(t, always(`{text: "a b"}, {error: {fault: overload, message: "no ${prompt}", retry_after: 3s}, times: 2}, {text: c}`))
	for n := range 3 {
		got, err := run(t.Context(), m, ask(user("q")))
		if n == 2 {
			if err != nil || got != "|a |b|c u1,3 stop=1" {
				t.Errorf("attempt 3: %q, %v", got, err)
			}
			continue
		}
		f, ok := errors.AsType[*provider.Error](err)
		if !ok || f.Fault != provider.FaultOverload || f.Message != "no q" || f.RetryAfter != 3*time.Second || got != "|a |b" {
			t.Errorf("attempt %d: %q, %v", n+1, got, err)
		}
	}
	other := ask(user("q"))
	other.CacheKey = "another session"
	if _, err := run(t.Context(), m, other); err == nil {
		t.Error("the attempts of one session count for another")
	}
}

func TestCut(t *testing.T) {
	for _, tc := range []struct{ steps, want string }{
		{`{text: "añ🌍bc", cut: 3}`, "|añ🌍"},
		{`{text: "abc", cut: 0}`, ""},
		{`{text: "abc", cut: 999999999}`, "|abc"},
		{`{think: "abc", cut: 2}`, "(ab"},
		{`{tool: {name: x, input: {a: 1}}, cut: 4}`, ` 0=x<{"a"`},
	} {
		got, err := run(t.Context(), parse(t, always(tc.steps)), ask(user("q")))
		if f, ok := errors.AsType[*provider.Error](err); !ok || f.Fault != provider.FaultNetwork || got != tc.want {
			t.Errorf("%s: %q, %v", tc.steps, got, err)
		}
	}
	m := parse(t, always(`{text: "abc", cut: 1, times: 1}`))
	_, first := run(t.Context(), m, ask(user("q")))
	got, second := run(t.Context(), m, ask(user("q")))
	if first == nil || second != nil || got != "|abc u1,1 stop=1" {
		t.Errorf("cut once: %v, then %q, %v", first, got, second)
	}
}

// Wherever an answer is cut, its continuation says exactly the rest, and the steps before
// are not repeated.
func TestContinueAnywhere(t *testing.T) {
	const script = `{think: hm}, {delay: 1h}, {text: "One ñ🌍 two ", repeat: "2", chunk: 3}, {error: {fault: network}, times: 1}, {text: "three four", cut: 5}, {tool: {name: ls}}`
	const full = "One ñ🌍 two One ñ🌍 two three four"
	for n := 1; n <= len(full); n++ {
		if n < len(full) && !utf8.RuneStart(full[n]) {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			m := parse(t, always(script))
			said := full[:n]
			partial := says(session.Failed, said)
			begun := time.Now()
			for range 4 {
				var got strings.Builder
				calls := 0
				var failed error
				for p, err := range m.Stream(t.Context(), rest(user("q"), partial)) {
					if failed = err; err != nil {
						break
					}
					switch p.Kind {
					case provider.TextDelta:
						got.WriteString(p.Text)
					case provider.ReasoningDelta:
						t.Fatal("it thinks again")
					case provider.CallStart:
						calls++
					case provider.ReasoningEnd, provider.CallDelta, provider.CallEnd, provider.UsageReport, provider.Finish:
					}
				}
				said += got.String()
				partial = says(session.Failed, said)
				if failed == nil {
					if said != full || calls != 1 {
						t.Errorf("cut at %d: %q, %d calls", n, said, calls)
					}
					if time.Since(begun) != 0 {
						t.Errorf("it waited %v again", time.Since(begun))
					}
					return
				}
			}
			t.Errorf("cut at %d: it never ends", n)
		})
	}
}

// Two cut pieces in a row are continued behind the second.
func TestContinueTwice(t *testing.T) {
	m := parse(t, always(`{text: "abcdef", chunk: 9}`))
	got, err := run(t.Context(), m, rest(user("q"), says(session.Failed, "ab"), says(session.Aborted, "cd")))
	if err != nil || !strings.HasPrefix(got, "|ef ") {
		t.Errorf("got %q, %v", got, err)
	}
	got, _ = run(t.Context(), m, rest(user("q"), says(session.Complete, "an earlier pass"), says(session.Failed, "abcdefghi")))
	if !strings.HasPrefix(got, " u") {
		t.Errorf("a text that is longer than the script's: %q", got)
	}
}

func TestTime(t *testing.T) {
	for _, tc := range []struct {
		steps string
		want  time.Duration
	}{
		{`{delay: 90s}`, 90 * time.Second},
		{`{text: "a b c", every: "2 * 200ms"}`, 1200 * time.Millisecond},
		{`{think: "a b", every: 1s}`, 2 * time.Second},
		{`{text: "x", repeat: "500", rate: "100"}`, 5 * time.Second},
		{`{text: "a b c"}`, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			if _, err := run(t.Context(), parse(t, always(tc.steps)), ask(user("q"))); err != nil || time.Since(begun) != tc.want {
				t.Errorf("%s: %v, %v", tc.steps, time.Since(begun), err)
			}
		})
	}
}

func TestCanceled(t *testing.T) {
	for _, steps := range []string{`{hang: true}`, `{delay: 1h}`, `{text: "a b", every: 1h}`} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			begun := time.Now()
			_, err := run(ctx, parse(t, always(steps)), ask(user("q")))
			if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
				t.Errorf("%s: %v after %v", steps, err, time.Since(begun))
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	for range parse(t, always(`{text: a}`)).Stream(ctx, ask(user("q"))) {
		n++ // leaving and canceling at any part must not panic or go on
		break
	}
	if n != 1 {
		t.Errorf("%d parts after the break", n)
	}
	n = 0
	for _, err := range parse(t, always(`{text: "x ", repeat: "10000000"}`)).Stream(ctx, ask(user("q"))) {
		if n++; err != nil {
			break
		}
		cancel()
	}
	if n != 2 {
		t.Errorf("%d parts after the end of the context", n)
	}
	if got, err := run(ctx, parse(t, always(``)), ask(user("q"))); !errors.Is(err, context.Canceled) {
		t.Errorf("an empty pass after the end of the context: %q, %v", got, err)
	}
}

func TestBadScripts(t *testing.T) {
	for _, bad := range []string{
		``, `[]`, `rules: []`, `rules: {`, `x: 1`, always(`{text: a}`) + "\nmore: 1",
		`rules: [{passes: [[{text: a}]]}]`,
		`rules: [{default: true}]`,
		`rules: [{default: true, contains: a, passes: [[{text: a}]]}]`,
		`rules: [{regex: "(", passes: [[{text: a}]]}]`,
		always(`{}`), always(`{text: a, think: b}`), always(`{txt: a}`), always(`{text: a, chunk: -1}`),
		always(`{delay: soon}`), always(`{delay: -1s}`), always(`{delay: 25h}`), always(`{delay: "x * 1s"}`), always(`{delay: 1s, chunk: 3}`),
		always(`{text: a, every: 1s, rate: "3"}`), always(`{text: a, rate: "0"}`), always(`{text: a, repeat: many}`), always(`{text: a, times: 1}`),
		always(`{error: {fault: boom}}`), always(`{error: {fault: network, retry_after: x}}`), always(`{stop: now}`), always(`{stop: end, cut: 1}`),
		always(`{tool: {input: {}}}`), always(`{tool: {name: a, input: {}, raw: x}}`), always(`{tool: {name: a, args: {}}}`),
		strings.Repeat("#", 2<<20),
	} {
		if _, err := scripted.Parse([]byte(bad)); err == nil {
			t.Errorf("accepted: %.80s", bad)
		}
	}
}

func TestValuesThatOnlyThePromptMakesWrong(t *testing.T) {
	for _, steps := range []string{`{delay: "${prompt}"}`, `{text: a, every: "${prompt}"}`, `{text: a, rate: "${prompt}"}`, `{text: a, repeat: "${prompt}"}`, `{error: {fault: network, retry_after: "${prompt}"}}`} {
		_, err := run(t.Context(), parse(t, always(steps)), ask(user("q")))
		if f, ok := errors.AsType[*provider.Error](err); !ok || f.Fault != provider.FaultRequest {
			t.Errorf("%s: %v", steps, err)
		}
	}
}

// The demo looks around with three tools and quotes what they said.
func TestDemo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := scripted.Demo()
		items := []session.Item{user("What is in this project, and where do I begin?")}
		for pass, name := range []string{"ls", "find", "bash"} {
			got, err := run(t.Context(), m, ask(items...))
			_, call, _ := strings.Cut(got, " 0="+name+"<")
			input, _, ok := strings.Cut(call, "/0")
			if err != nil || !ok || !json.Valid([]byte(input)) {
				t.Fatalf("pass %d: %q, %v", pass+1, got, err)
			}
			items = append(items, says(session.Complete, "x"), &session.Tool{Output: "RESULT" + name, Status: session.Complete})
		}
		got, err := run(t.Context(), m, ask(items...))
		if err != nil || !strings.HasSuffix(got, "stop=1") {
			t.Fatalf("%q, %v", got, err)
		}
		for _, want := range []string{"RESULTls", "RESULTfind", "RESULTbash", "project,"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %q in %q", want, got)
			}
		}
	})
}

func TestDemoRules(t *testing.T) {
	for _, tc := range []struct {
		prompt, want string
		least, most  time.Duration
	}{
		{"please use a tool", " 0=bash<", 0, time.Second},
		{"slow 2 one two three four five six", "|one |two |three |four |five |six ", 2 * time.Second, 5 * time.Second},
		{"after detach", "after |detach", 0, time.Second},
		{"steer text", "steer |text", 0, time.Second},
		{"flood 1000", "|token |token ", 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			got, err := run(t.Context(), scripted.Demo(), ask(user(tc.prompt)))
			took := time.Since(begun)
			if err != nil || !strings.Contains(got, tc.want) || took < tc.least || took > tc.most {
				t.Errorf("%s: %.200q, %v after %v", tc.prompt, got, err, took)
			}
		})
	}
	got, err := run(t.Context(), scripted.Demo(), ask(user("please use a tool"), says(session.Complete, "x"), &session.Tool{Output: "hello\n/dir\n"}))
	if err != nil || !strings.Contains(got, "hello\n|/dir") {
		t.Errorf("after the tool: %q, %v", got, err)
	}
}

// Any script is refused or plays to a Finish or an error.
func FuzzScript(f *testing.F) {
	f.Add([]byte(always(`{text: "a ${1} ${tool1:2}", repeat: "${1}", cut: 3}, {tool: {name: x, input: {a: [1, {b: "${prompt}"}]}}}`)), "q")
	f.Add([]byte(`rules: [{regex: '(a)(b)?', passes: [[{think: "${2}"}], [{hang: true}]]}]`), "ab")
	f.Add([]byte(always(`{usage: {input: -1}}, {stop: refusal}, {error: {fault: auth}, times: 1}, {delay: "${prompt}"}`)), "1h")
	f.Fuzz(func(t *testing.T, script []byte, prompt string) {
		m, err := scripted.Parse(script)
		if err != nil {
			return
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		cancelled := time.AfterFunc(20*time.Millisecond, cancel) // for those that wait
		defer cancelled.Stop()
		finished, n := false, 0
		for p, err := range m.Stream(ctx, ask(user(prompt))) {
			if finished || !utf8.ValidString(p.Text) {
				t.Fatalf("part %+v", p)
			}
			finished = err != nil || p.Kind == provider.Finish
			if n++; n > 1000 {
				return
			}
		}
		if !finished {
			t.Fatal("it neither finished nor failed")
		}
	})
}

func BenchmarkFlood(b *testing.B) {
	m := scripted.Demo()
	b.ReportAllocs()
	for n := 0; n < b.N; n += 100000 {
		for _, err := range m.Stream(b.Context(), ask(user("flood 100000"))) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
