package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/session"
)

func noEnv(string) string { return "" }

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func mustParse(t *testing.T, text string, pairs ...string) *Config {
	t.Helper()
	c, err := Parse("/etc/roost/config.yaml", []byte(text), env(pairs...))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParseFull(t *testing.T) {
	c := mustParse(t, `
providers:
  fake:
    api: openai-chat
    base_url: http://127.0.0.1:18080/v1/
    api_key: ${FAKE_KEY}
    headers: {X-Name: "a ${TEAM}"}
    idle_timeout: 5s
    models:
      - {id: org/test-model, name: Test, context_window: 128_000, max_output_tokens: 8192, reasoning: false, input: [text, image], thinking_levels: [off, low], cost: {input: 1, output: 2, cache_read: 0.1}}
      - {id: other}
default_model: fake/org/test-model
default_thinking: high
workspace: {confine: false, default_dir: work}
pi: {prompt_response: accepted}
limits: {body_bytes: 128KiB, idle_unload: 1h30m}
http:
  origins: [HTTPS://Example.com:443, "http://localhost:3000"]
  hosts: ["Roost.example:8443", "[::1]"]
  insecure_bind: true
log: {level: debug, format: json}
`, "FAKE_KEY", "sk-1", "TEAM", "b")
	p := c.Providers[0]
	key, err := p.Key.Value(t.Context())
	if err != nil || key.Reveal() != "sk-1" {
		t.Errorf("key: %v", err)
	}
	if p.BaseURL != "http://127.0.0.1:18080/v1" || p.IdleTimeout != 5*time.Second || p.Headers[0].Value.Reveal() != "a b" {
		t.Errorf("provider %+v", p)
	}
	m := p.Models[0]
	if m.ContextWindow != 128_000 || m.Reasoning == nil || *m.Reasoning || *m.Cost != (session.Cost{Input: 1, Output: 2, CacheRead: 0.1}) ||
		!slices.Equal(m.Input, []Input{InputText, InputImage}) || !slices.Equal(m.ThinkingLevels, []session.Thinking{"off", "low"}) {
		t.Errorf("model %+v", m)
	}
	if p.Models[1].Reasoning != nil || p.Models[1].Cost != nil {
		t.Error("what is not given must stay unknown")
	}
	if c.DefaultModel != (session.ModelRef{Provider: "fake", ID: "org/test-model"}) || c.DefaultThinking != session.ThinkingHigh {
		t.Errorf("defaults %v %v", c.DefaultModel, c.DefaultThinking)
	}
	if c.Workspace != (Workspace{DefaultDir: "/etc/roost/work"}) || c.Pi.PromptResponse != PromptAccepted {
		t.Errorf("%+v %+v", c.Workspace, c.Pi)
	}
	if c.Limits.BodyBytes != 128<<10 || c.Limits.IdleUnload != 90*time.Minute || c.Limits.Sessions != 10_000 {
		t.Errorf("limits %+v", c.Limits)
	}
	if !slices.Equal(c.HTTP.Origins, []string{"https://example.com", "http://localhost:3000"}) ||
		!slices.Equal(c.HTTP.Hosts, []string{"roost.example:8443", "[::1]"}) || !c.HTTP.InsecureBind {
		t.Errorf("http %+v", c.HTTP)
	}
	if c.Log != (Log{slog.LevelDebug, LogJSON}) {
		t.Errorf("log %+v", c.Log)
	}
	if !slices.Equal(c.KeyEnv, []string{"FAKE_KEY", "TEAM"}) {
		t.Errorf("key variables %v", c.KeyEnv)
	}
}

// Each case is a wrong file and what its error must say, place included.
func TestParseErrors(t *testing.T) {
	p := func(body string) string { return "providers:\n  n:\n    api: openai-chat\n    " + body }
	for _, tc := range []struct{ text, want string }{
		{"provider: {}", `c.yaml:1:1: unknown key "provider"; did you mean "providers"?`},
		{p("bas-url: x"), `c.yaml:4:5: providers.n: unknown key "bas-url"; did you mean "base_url"?`},
		{"zzz: 1", `known: aliases, compaction, cursor, default_model, default_thinking`},
		{"providers: {n: {}}", "needs api"},
		{"providers: {n: {api: gemini}}", "gemini is not supported by this version"},
		{"providers: {n: {api: openai-responses}}", "openai-responses is not supported by this version"},
		{"providers: {n: {api: antropic}}", `did you mean "anthropic"?`},
		{"providers: {N/x: {api: scripted}}", "provider name"},
		{"providers: {n: {api: scripted, base_url: 'http://x'}}", "base_url has no meaning for api: scripted"},
		{p("script: x"), "script has a meaning for api: scripted only"},
		{p("base_url: ftp://x"), "must be a URL"},
		{p("base_url: http://"), "must be a URL"},
		{p("base_url: 'http://a:99999/'"), "must be a URL"},
		{p("base_url: http://u:hunter2@x/"), "must not hold a user or password"},
		{p("base_url: http://x/?key=hunter2"), "must not have a query"},
		{p("api_key: 12"), "must be text; put it in quotes"},
		{p("api_key: ''"), "is empty"},
		{p("api_key: ${NOPE}"), "c.yaml:4:14: providers.n.api_key: environment variable NOPE is not set"},
		{p("api_key: ${NO PE}"), "is not the name of an environment variable"},
		{p("api_key: ${NOPE"), `"${" without "}"`},
		{p(`api_key: "hunter2\r\nX: y"`), "characters that cannot be in a header"},
		{p("{api_key: hunter2, api_key_file: x}"), "not valid YAML"},
		{p("api_key: hunter2\n    api_key_file: x"), "more than one of api_key"},
		{p("api_key_command: pass show"), "must be a list"},
		{p("api_key_command: []"), "a program and its arguments"},
		{p("headers: {Host: hunter2}"), "header Host is set by roost"},
		{p("headers: {X-A: hunter2, x-a: hunter2}"), "header x-a is given twice"},
		{p("headers: {'X A': hunter2}"), "is not the name of a header"},
		{p("idle_timeout: 180"), "has no unit; write 180s"},
		{p("idle_timeout: soon"), "is not a duration"},
		{p("idle_timeout: -1s"), "must be from 1s to 1h0m0s"},
		{p("models: {}"), "must be a list"},
		{p("models: [{name: x}]"), "needs an id"},
		{p("models: [{id: x}, {id: x}]"), "a second model with the same id"},
		{p("models: [{id: x, context_window: 1.5}]"), "must be a whole number"},
		{p("models: [{id: x, context_window: -1}]"), "from 1 to"},
		{p("models: [{id: x, context_window: 99999999999999999999}]"), "must be a whole number"},
		{p("models: [{id: x, context_window: 5, max_output_tokens: 6}]"), "larger than context_window"},
		{p("models: [{id: x, input: [text, text]}]"), "given twice"},
		{p("models: [{id: x, input: []}]"), "is empty"},
		{p("models: [{id: x, thinking_levels: [hihg]}]"), `did you mean "high"?`},
		{p("models: [{id: x, cost: {input: -1}}]"), "from 0 to"},
		{p("models: [{id: x, cost: {input: .nan}}]"), "must be a number"},
		{p("models: [{id: x, reasoning: yes}]"), "must be true or false"},
		{p("models: [{id: alpha}]\ndefault_model: n/alpa"), `c.yaml:5:16: default_model: provider n: unknown model "alpa"; did you mean "alpha"?`},
		{p("models: []\ndefault_model: m/x"), `unknown provider "m"`},
		{"default_model: x", "must be provider/model"},
		{"default_thinking: some", "unknown value"},
		{"workspace: [1]", "must be a mapping"},
		{"workspace: {default_dir: ''}", "is empty"},
		{"workspace: {confine: }", "has no value"},
		{"limits: {body_bytes: 5}", "has no unit; write 5B"},
		{"limits: {body_bytes: 5 parsecs}", "is not a size"},
		{"limits: {body_bytes: 1B}", "from 64KiB to 256MiB"},
		{"limits: {body_bytes: 99999999999GiB}", "is not a size"},
		{"http: {origins: ['*']}", "must be an origin"},
		{"http: {origins: ['null']}", "must be an origin"},
		{"http: {origins: ['https://*.example.com']}", "must be an origin"},
		{"http: {origins: ['https://example.com/path']}", "must be an origin"},
		{"http: {origins: ['https://u@example.com']}", "must be an origin"},
		{"http: {hosts: ['http://example.com']}", "must be a host name"},
		{"http: {hosts: ['*']}", "must be a host name"},
		{"http: {hosts: ['a:0']}", "must be a host name"},
		{"http: {hosts: ['::1']}", "must be a host name"},
		{"http: {tokens: [{name: a}]}", "needs name and sha256"},
		{"http: {tokens: [{name: a, sha256: abcd}]}", "64 hexadecimal digits"},
		{"http: {tokens: [{name: token, sha256: " + strings.Repeat("ab", 32) + "}]}", "the server's own"},
		{"http: {tokens: [{name: a, sha256: " + strings.Repeat("ab", 32) + "}, {name: a, sha256: " + strings.Repeat("ab", 32) + "}]}", "a second token"},
		{"a: 1\na: 2", "not valid YAML: mapping key"},
		{"providers: [", "not valid YAML"},
		{"api_key: \"hunter2", "not valid YAML"},
		{"log: &a {level: info}", "anchors, aliases and tags are not supported"},
		{"log: !!map {level: info}", "anchors, aliases and tags are not supported"},
		{"<<: {log: {}}", "a key must be plain text"},
		{"1: 2", "a key must be plain text"},
		{"--- {}\n--- {}", "a second document"},
		{"just text", "must be a mapping"},
		{strings.Repeat("[", MaxFile), "c.yaml:1:33: not valid YAML: nested too deeply"},
		{strings.Repeat("{a: ", 1000), "nested too deeply"},
		{strings.Repeat("- ", MaxFile/2), "c.yaml:1:201: not valid YAML: nested too deeply"},
	} {
		_, err := Parse("c.yaml", []byte(tc.text), noEnv)
		if _, ok := errors.AsType[*Error](err); !ok {
			t.Errorf("%.80q: error %v", tc.text, err)
			continue
		}
		if !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.80q:\n got %v\nwant %s", tc.text, err, tc.want)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%.80q: the error shows a secret: %v", tc.text, err)
		}
	}
}

func TestAllProblemsAtOnceInOrder(t *testing.T) {
	_, err := Parse("c.yaml", []byte("log: {level: loud}\nworkspce: {}\nlimits:\n  sessions: 0\nproviders: {a: {api: scripted, x: 1}}\n"), noEnv)
	e, ok := errors.AsType[*Error](err)
	if !ok || len(e.Problems) != 4 {
		t.Fatalf("%v", err)
	}
	for i, line := range []int{1, 2, 4, 5} {
		if e.Problems[i].Line != line {
			t.Errorf("problem %d is at line %d: %v", i, e.Problems[i].Line, e.Problems[i].Text)
		}
	}
	many := strings.Repeat("- {}\n", 500)
	_, err = Parse("c.yaml", []byte("providers:\n  a:\n    models:\n"+strings.ReplaceAll(many, "- ", "    - ")), noEnv)
	if e, ok := errors.AsType[*Error](err); !ok || len(e.Problems) != maxProblems {
		t.Error("the number of problems must be bounded")
	}
}

func TestValuesAfterExpansionAreNotShown(t *testing.T) {
	for _, text := range []string{
		"default_model: ${S}", "default_model: ${S}/x", "default_thinking: ${S}", "limits: {idle_unload: '${S}'}",
		"limits: {body_bytes: '${S}'}", "http: {origins: ['${S}']}", "http: {hosts: ['${S}/']}", "log: {level: '${S}'}",
		"providers: {n: {api: openai-chat, base_url: '${S}'}}", "providers: {n: {api: '${S}'}}",
		"providers: {n: {api: scripted, models: [{id: a}]}}\ndefault_model: n/${S}", "http: {tokens: [{name: a, sha256: '${S}'}]}",
	} {
		_, err := Parse("c.yaml", []byte(text), env("S", "hunter2"))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestExpansionCannotInject(t *testing.T) {
	c := mustParse(t, "providers: {n: {api: scripted, models: [{id: '${ID}'}]}}", "ID", `x"}]}, log: {level: ${Z}`)
	if got := c.Providers[0].Models[0].ID; got != `x"}]}, log: {level: ${Z}` {
		t.Errorf("id %q", got)
	}
}

func TestFromEnv(t *testing.T) {
	for _, tc := range []struct {
		name  string
		pairs []string
		want  string
		keys  []string
	}{
		{"demo", nil, "[demo: scripted  no key] demo/demo", nil},
		{"openai", []string{"OPENAI_API_KEY", "k"}, "[openai: openai-chat https://api.openai.com/v1 key in the configuration] /", []string{"OPENAI_API_KEY"}},
		{"both", []string{"OPENAI_API_KEY", "k", "ANTHROPIC_API_KEY", "k", "ANTHROPIC_BASE_URL", "http://localhost:1/"}, "[openai: openai-chat https://api.openai.com/v1 key in the configuration anthropic: anthropic http://localhost:1/v1 key in the configuration] /", []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}},
		{"url without key", []string{"OPENAI_BASE_URL", "http://x"}, "[demo: scripted  no key] demo/demo", nil},
	} {
		c, err := FromEnv(env(tc.pairs...))
		if err != nil {
			t.Errorf("%s: %v", tc.name, err)
			continue
		}
		var list []string
		for _, p := range c.Providers {
			list = append(list, fmt.Sprintf("%s: %s %s %s", p.Name, p.API, p.BaseURL, p.Key))
		}
		if got := fmt.Sprint(list, " ", c.DefaultModel); got != tc.want {
			t.Errorf("%s:\n got %s\nwant %s", tc.name, got, tc.want)
		}
		if !slices.Equal(c.KeyEnv, tc.keys) {
			t.Errorf("%s: key variables %v", tc.name, c.KeyEnv)
		}
	}
	_, err := FromEnv(env("OPENAI_API_KEY", "hunter2\n", "OPENAI_BASE_URL", "hunter2"))
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "OPENAI_BASE_URL: must be a URL") {
		t.Errorf("bad variables: %v", err)
	}
}

func TestEmptyFileGivesTheEnvironmentsProviders(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "---\n", "providers:\nlimits:\n", "log: {level: warn}"} {
		c := mustParse(t, text, "ANTHROPIC_API_KEY", "k")
		if len(c.Providers) != 1 || c.Providers[0].Name != "anthropic" || !c.Workspace.Confine {
			t.Errorf("%q: %+v", text, c)
		}
	}
}

func TestCleartextKeyWarns(t *testing.T) {
	for url, want := range map[string]int{"http://example.com": 1, "https://example.com": 0, "http://127.0.0.1:1": 0, "http://[::1]:1": 0, "http://localhost": 0} {
		c := mustParse(t, "providers: {n: {api: openai-chat, api_key: k, base_url: '"+url+"'}}")
		if len(c.Warnings) != want {
			t.Errorf("%s: %v", url, c.Warnings)
		}
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "config.yaml")
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Load(dir); !errors.Is(err, errNotRegular) {
		t.Errorf("directory: %v", err)
	}
	write := func(text string, mode fs.FileMode) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
	}
	write("providers: {n: {api: scripted, script: s.yaml}}", 0o600)
	c, err := Load(path)
	if err != nil || len(c.Warnings) != 0 || c.Path != path || c.Providers[0].Script != filepath.Join(dir, "s.yaml") {
		t.Errorf("%+v %v", c, err)
	}
	write("{}", 0o622)
	if c, err = Load(path); err != nil || len(c.Warnings) != 1 || !strings.Contains(c.Warnings[0], "chmod go-w") {
		t.Errorf("writable by others: %+v %v", c, err)
	}
	write(strings.Repeat("#", MaxFile+1), 0o600)
	if _, err := Load(path); !errors.Is(err, errTooLarge) {
		t.Errorf("large file: %v", err)
	}
}

func TestConfigNeverPrintsSecrets(t *testing.T) {
	c := mustParse(t, `
providers:
  a: {api: openai-chat, api_key: hunter2, headers: {X-Key: hunter2}}
  b: {api: openai-chat, api_key_command: [prog, hunter2]}
web: {search: {provider: brave, api_key: hunter2}}
`)
	if _, err := c.Providers[0].Key.Value(t.Context()); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		l := slog.New(h)
		l.Info("config", slog.Any("config", c), slog.Any("key", c.Providers[1].Key), slog.Any("secret", c.Providers[0].Headers[0].Value))
	}
	js, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	out := log.String() + string(js)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		for _, v := range []any{c, *c, c.Providers, c.Web, c.Providers[0].Key, c.Providers[0].Headers[0].Value, struct{ s Secret }{NewSecret("hunter2")}} {
			out += fmt.Sprintf(verb, v)
		}
	}
	for _, leak := range []string{"hunter2", fmt.Sprintf("%x", "hunter2")} {
		if strings.Contains(out, leak) {
			t.Errorf("printed: %s", out)
		}
	}
	if !strings.Contains(out, redacted) {
		t.Error("nothing was redacted")
	}
}

func TestDefaultPaths(t *testing.T) {
	t.Setenv("HOME", "/home/u")
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("XDG_DATA_HOME", "relative")
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/1")
	for got, want := range map[string]string{
		DefaultPath():                   "/home/u/.config/roost/config.yaml",
		DefaultDataDir():                "/home/u/.local/share/roost",
		DefaultSocket(DefaultDataDir()): "/run/user/1/roost/roost.sock",
		DefaultSocket("/srv/roost"):     "/srv/roost/run/roost.sock",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	t.Setenv("XDG_CONFIG_HOME", "/c")
	t.Setenv("XDG_RUNTIME_DIR", "")
	if got := DefaultPath() + " " + DefaultSocket(DefaultDataDir()); got != "/c/roost/config.yaml /home/u/.local/share/roost/run/roost.sock" {
		t.Error(got)
	}
}

func FuzzLoad(f *testing.F) {
	for _, s := range []string{
		"", "providers: {a: {api: scripted}}", "default_model: demo/demo", "a: &x [*x]", "? {a: b}\n: c", "[[[[", "- - - -",
		"providers:\n  a:\n    api: openai-chat\n    api_key: ${A:-$$}\n    models: [{id: x, cost: {input: 1e3}}]\n",
		"log: {level: |\n info}", "%YAML 1.2\n---\n{}", "limits: {body_bytes: 1MiB, idle_unload: 1h}", "http: {hosts: ['[::1]:80']}", "\x00: \xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("c.yaml", data, noEnv)
		if _, ok := errors.AsType[*Error](err); err != nil && !ok {
			t.Fatalf("error of type %T", err)
		}
		if err == nil && len(c.Providers) == 0 {
			t.Fatal("no providers")
		}
	})
}
