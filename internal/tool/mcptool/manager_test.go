package mcptool_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/mcptool"
)

func TestToolsOfAProgram(t *testing.T) {
	m := manager(t, server("files", "good"))
	if m.Running() != 0 {
		t.Error("a server was started before its first use")
	}
	echo := find(t, m, "mcp__files__echo").Spec()
	if echo.Description != "Does echo" || echo.Repeatable ||
		!strings.Contains(string(echo.Schema), `"properties":{"text":{"type":"string"}}`) || strings.Contains(string(echo.Schema), "$schema") {
		t.Errorf("%+v %s", echo, echo.Schema)
	}
	if res := run(t, find(t, m, "mcp__files__echo"), `{"text":"héllo"}`); res.IsError || res.Text != "said héllo" {
		t.Errorf("%+v", res)
	}
	if res := run(t, find(t, m, "mcp__files__fail"), `{"text":""}`); !res.IsError || res.Text != "it did not work" {
		t.Errorf("%+v", res)
	}
	for _, input := range []string{`[]`, `"x"`, `3`} {
		if res := run(t, find(t, m, "mcp__files__echo"), input); !res.IsError || !strings.Contains(res.Text, "JSON object") {
			t.Errorf("input %s: %+v", input, res)
		}
	}
	if res := run(t, find(t, m, "mcp__files__echo"), `null`); !res.IsError || !strings.Contains(res.Text, "text") {
		t.Errorf("the server's own check: %+v", res)
	}
}

func TestResultsAreDataWithinLimits(t *testing.T) {
	s := server("s", "good")
	s.MaxOutput = 4 << 10
	m := manager(t, s)
	res := run(t, find(t, m, "mcp__s__mixed"), `{"text":""}`)
	if !strings.HasPrefix(res.Text, "ab\uFFFDc\uFFFDd\n") {
		t.Errorf("text %q", res.Text)
	}
	for _, part := range []string{"[an image of an unknown kind was left out]", "[audio of 1 B, audio/wav, was left out]", "[resource file:///x: x]", "[file:///y]\ninside"} {
		if !strings.Contains(res.Text, part) {
			t.Errorf("%q is not in %q", part, res.Text)
		}
	}
	if len(res.Images) != 1 || res.Images[0].MIME != "image/png" || string(res.Details) != `{"structuredContent":{"n":1}}` {
		t.Errorf("%+v", res)
	}
	res = run(t, find(t, m, "mcp__s__huge"), `{"text":""}`)
	text, notice, _ := strings.Cut(res.Text, "\n\n[")
	if len(text) > 4<<10 || !strings.HasPrefix(notice, "Showing the first 4.0 KiB of 1.0 MiB. Full output: ") {
		t.Fatalf("%d bytes, notice %s", len(text), notice)
	}
	_, path, _ := strings.Cut(strings.TrimSuffix(notice, "]"), "Full output: ")
	info, err := os.Stat(path)
	if err != nil || info.Size() != 1_100_000 || info.Mode().Perm() != 0o600 {
		t.Errorf("file %v, %v", info, err)
	}
}

func TestProgramsGetNoKeys(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "hunter2")
	t.Setenv("LANG", "C.UTF-8")
	m := manager(t, server("s", "good", "OWN=1"))
	res := run(t, find(t, m, "mcp__s__env"), `{"text":""}`)
	if strings.Contains(res.Text, "hunter2") || !strings.Contains(res.Text, "OWN=1") || !strings.Contains(res.Text, "LANG=C.UTF-8") {
		t.Errorf("environment: %s", res.Text)
	}
	for line := range strings.Lines(res.Text) {
		name, _, _ := strings.Cut(line, "=")
		if !slices.Contains([]string{"PATH", "HOME", "LANG", "TMPDIR", "USER", "OWN", "ROOST_MCP_TEST_ROLE", "GOCOVERDIR"}, name) {
			t.Errorf("the program got %s", name)
		}
	}
}

func TestAllowListAndTrust(t *testing.T) {
	s := server("s", "good")
	s.Tools, s.TrustAnnotations = []string{"echo", "nothing"}, true
	m := manager(t, s)
	tools, problems := m.Tools(t.Context())
	var names []string
	for _, tl := range tools {
		names = append(names, tl.Spec().Name)
	}
	if !slices.Equal(names, []string{"mcp__s__echo", "mcp_list_resources", "mcp_read_resource"}) || !tools[0].Spec().Repeatable {
		t.Errorf("tools %v", names)
	}
	if len(problems) != 1 || problems[0].Server != "s" || !strings.Contains(problems[0].Err.Error(), `no tool "nothing"`) {
		t.Errorf("problems %v", problems)
	}
}

// Progress reaches the caller, the end of a call reaches the server.
func TestProgressAndCancel(t *testing.T) {
	m := manager(t, server("s", "good"))
	file := filepath.Join(t.TempDir(), "out")
	input, err := json.Marshal(map[string]string{"text": file})
	if err != nil {
		t.Fatal(err)
	}
	wait := find(t, m, "mcp__s__wait")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var shown tool.Progress
	within(t, 5*time.Second, func() {
		res := wait.Run(ctx, tool.Call{Input: input}, func(p tool.Progress) { shown = p; cancel() })
		if !res.IsError || !strings.Contains(res.Text, "context canceled") {
			t.Errorf("%+v", res)
		}
	})
	if shown != (tool.Progress{Text: "half way (3 of 10)", Replace: true}) {
		t.Errorf("progress %+v", shown)
	}
	deadline, stop := context.WithTimeout(t.Context(), 5*time.Second)
	defer stop()
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		if data, _ := os.ReadFile(file); string(data) == "cancelled" {
			tick.Stop()
			break
		}
		select {
		case <-tick.C:
		case <-deadline.Done():
			t.Fatal("the server was not told that the call was cancelled")
		}
	}
	if res := run(t, find(t, m, "mcp__s__echo"), `{"text":"x"}`); res.Text != "said x" {
		t.Errorf("after a cancelled call: %+v", res)
	}
}

func TestChangedTools(t *testing.T) {
	m := manager(t, server("s", "good"))
	grow := find(t, m, "mcp__s__grow")
	changed := m.Changed()
	if res := run(t, grow, `{"text":"more"}`); res.IsError {
		t.Fatalf("%+v", res)
	}
	select {
	case <-changed:
	case <-time.After(5 * time.Second):
		t.Fatal("no change was told")
	}
	if res := run(t, find(t, m, "mcp__s__more"), `{"text":""}`); res.Text != "I am more" {
		t.Errorf("%+v", res)
	}
}

// A server that dies is started again at its next use, at first at once, then later; its
// tools stay known.
func TestRestartAfterACrash(t *testing.T) {
	m := manager(t, server("s", "good"))
	die, echo := find(t, m, "mcp__s__die"), find(t, m, "mcp__s__echo")
	if res := run(t, die, `{"text":""}`); !res.IsError || !strings.Contains(res.Text, "exit status 3; it wrote: boom!") {
		t.Errorf("%+v", res)
	}
	if res := run(t, echo, `{"text":"again"}`); res.Text != "said again" {
		t.Errorf("after the first crash: %+v", res)
	}
	run(t, die, `{"text":""}`)
	res := run(t, echo, `{"text":"again"}`)
	if !res.IsError || !strings.Contains(res.Text, "it is tried again in") {
		t.Errorf("after the second crash: %+v", res)
	}
	tools, problems := m.Tools(t.Context())
	if len(tools) < 8 || len(problems) != 1 {
		t.Errorf("%d tools, problems %v", len(tools), problems)
	}
	if m.Running() != 0 {
		t.Errorf("%d programs run", m.Running())
	}
}

// 200 sessions use a server at once and one after the other: one program serves them all,
// and none is left.
func TestOneProgramForAllSessions(t *testing.T) {
	m := manager(t, server("a", "good"), server("b", "good"))
	var (
		mu   sync.Mutex
		pids = map[string]int{}
		wg   sync.WaitGroup
	)
	for i := range 200 {
		wg.Go(func() {
			name := "mcp__a__pid"
			if i%2 == 1 {
				name = "mcp__b__pid"
			}
			res := run(t, find(t, m, name), `{"text":""}`)
			mu.Lock()
			defer mu.Unlock()
			if pids[res.Text]++; res.IsError {
				t.Errorf("%+v", res)
			}
		})
	}
	wg.Wait()
	if len(pids) != 2 || m.Running() != 2 {
		t.Errorf("200 uses of 2 servers had the programs %v, %d run", pids, m.Running())
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if m.Running() != 0 {
		t.Errorf("%d programs are left", m.Running())
	}
}

func TestResources(t *testing.T) {
	m := manager(t, server("s", "good"), server("none", "plain"))
	list, read := find(t, m, "mcp_list_resources"), find(t, m, "mcp_read_resource")
	res := run(t, list, `{"server":"s"}`)
	if res.IsError || res.Text != "s: 1 resources\n  test://one  one  the first" {
		t.Errorf("%+v", res)
	}
	if res := run(t, list, `{}`); res.IsError || !strings.Contains(res.Text, "test://one") || !strings.Contains(res.Text, "none: ") {
		t.Errorf("all servers: %+v", res)
	}
	if res := run(t, read, `{"server":"s","uri":"test://one"}`); res.IsError || res.Text != "[test://one]\ncontent of one" {
		t.Errorf("%+v", res)
	}
	for _, input := range []string{`{"server":"s","uri":"test://two"}`, `{"server":"x","uri":"test://one"}`, `{"uri":"a"}`, `{"server":"s"}`, `[]`} {
		if res := run(t, read, input); !res.IsError {
			t.Errorf("%s: %+v", input, res)
		}
	}
}

func TestPrompts(t *testing.T) {
	m := manager(t, server("s", "good"))
	prompts, err := m.Prompts(t.Context(), "s")
	if err != nil || len(prompts) != 1 || prompts[0].Name != "greet" || !prompts[0].Arguments[0].Required {
		t.Errorf("%+v %v", prompts, err)
	}
	msgs, err := m.GetPrompt(t.Context(), "s", "greet", map[string]string{"who": "you"})
	if err != nil || len(msgs) != 1 || msgs[0].Role != "user" || msgs[0].Text != "Hello you" {
		t.Errorf("%+v %v", msgs, err)
	}
	if _, err := m.GetPrompt(t.Context(), "s", "other", nil); err == nil {
		t.Error("an unknown prompt was prepared")
	}
	if _, err := m.Prompts(t.Context(), "x"); err == nil {
		t.Error("an unknown server has prompts")
	}
}

// A server of the newest version of the protocol has no handshake.
func TestServerWithoutHandshake(t *testing.T) {
	m := manager(t, server("s", "modern"))
	if res := run(t, find(t, m, "mcp__s__go"), "{}"); res.IsError || res.Text != "done" {
		t.Errorf("%+v", res)
	}
	if m.Running() != 1 {
		t.Errorf("%d programs run", m.Running())
	}
}

func TestClosedManager(t *testing.T) {
	m := mcptool.New(mcptool.Options{Servers: []mcptool.Server{server("s", "call-hang")}})
	hang := find(t, m, "mcp__s__go")
	started := make(chan tool.Result)
	go func() { started <- hang.Run(context.Background(), tool.Call{}, nil) }()
	within(t, 3*time.Second, func() {
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if res := <-started; !res.IsError {
			t.Errorf("a call of a closed manager: %+v", res)
		}
	})
	if res := run(t, hang, "{}"); !res.IsError || !strings.Contains(res.Text, "closed") {
		t.Errorf("%+v", res)
	}
	if _, problems := m.Tools(t.Context()); len(problems) != 1 {
		t.Errorf("problems %v", problems)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
