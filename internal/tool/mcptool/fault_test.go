package mcptool_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/mcptool"
)

// Whatever a server does wrong, whenever, ends within its deadline in a problem or an error
// result that says what happened, and leaves no process.
func TestFaults(t *testing.T) {
	const timeout = 1500 * time.Millisecond
	for _, c := range []struct {
		role string
		want string // of the problem, or with the phase call of the result; empty when all is well
	}{
		{"start-hang", "it was not ready within 1.5s"},
		{"start-die", "the program has ended: exit status 3; it wrote: boom!"},
		{"start-close", "start: "},
		{"start-garbage", "what it sends is not the protocol"},
		{"start-somegarbage", ""},
		{"start-line", "too large"},
		{"start-deep", "too large"},
		{"start-notices", "it was not ready within 1.5s"},
		{"start-pings", "it asks too many questions"},
		{"start-stderr", ""},
		{"start-trap", ""},
		{"start-huge", ""},
		{"initialize-hang", "it was not ready within 1.5s"},
		{"initialize-die", "exit status 3"},
		{"initialize-close", "start: "},
		{"initialize-garbage", "not the protocol"},
		{"initialize-somegarbage", ""},
		{"initialize-notices", "it was not ready within 1.5s"},
		{"list-hang", "it was not ready within 1.5s"},
		{"list-die", "exit status 3"},
		{"list-close", "list its tools: "},
		{"list-garbage", "not the protocol"},
		{"list-line", "too large"},
		{"list-somegarbage", ""},
		{"list-trap", ""},
		{"list-somenotices", ""},
		{"call-hang", "it did not answer within 1.5s"},
		{"call-die", "exit status 3; it wrote: boom!"},
		{"call-close", "the connection ended"},
		{"call-garbage", "not the protocol"},
		{"call-somegarbage", ""},
		{"call-line", "too large"},
		{"call-notices", "it did not answer within 1.5s"},
		{"call-somenotices", ""},
		{"call-pings", ""}, // answered one by one, for the server reads nothing: see below
		{"call-trap", ""},
		{"call-huge", ""},
		{"call-stderr", ""},
	} {
		t.Run(c.role, func(t *testing.T) {
			t.Parallel()
			s := server("s", c.role)
			if strings.Contains(c.want, timeout.String()) {
				if strings.HasPrefix(c.role, "call-") {
					s.Timeout = timeout
				} else {
					s.StartTimeout = timeout
				}
			}
			m := manager(t, s)
			within(t, s.StartTimeout+s.Timeout+3*time.Second, func() { checkFault(t, m, c.role, c.want) })
		})
	}
}

func checkFault(t *testing.T, m *mcptool.Manager, role, want string) {
	t.Helper()
	tools, problems := m.Tools(t.Context())
	if want != "" && !strings.HasPrefix(role, "call-") {
		if len(problems) != 1 || !strings.Contains(problems[0].Err.Error(), want) {
			t.Errorf("problems %v, want %q", problems, want)
		}
		if len(tools) != 0 {
			t.Errorf("tools of a server that did not start: %v", tools)
		}
		return
	}
	if len(problems) != 0 {
		t.Fatalf("problems %v", problems)
	}
	res := run(t, find(t, m, "mcp__s__go"), "{}")
	if role == "call-pings" {
		want = "it asks too many questions"
	}
	if want == "" && (res.IsError || res.Text != "done") || want != "" && (!res.IsError || !strings.Contains(res.Text, want)) {
		t.Errorf("result %+v, want %q", res, want)
	}
	if strings.ContainsAny(res.Text, "\x1b\x00") {
		t.Errorf("control characters in %q", res.Text)
	}
}

// Answers of the wrong shape are errors at worst.
func TestStrangeAnswers(t *testing.T) {
	for _, c := range []struct{ list, call string }{
		{`null`, ``},
		{`[]`, ``},
		{`{}`, ``},
		{`{"tools":null}`, ``},
		{`{"tools":[null]}`, ``},
		{`{"tools":{}}`, ``},
		{`{"tools":[{"name":"","inputSchema":{"type":"object"}}]}`, ``},
		{`{"tools":[{"name":"x"}]}`, ``},
		{`{"tools":[{"name":"x","inputSchema":null}]}`, ``},
		{`{"tools":[{"name":"x","inputSchema":{"type":"string"}}]}`, ``},
		{`{"tools":[{"name":"go","inputSchema":{"type":"object"},"annotations":5}]}`, ``},
		{`{"tools":[],"nextCursor":"again"}`, ``},
		{`{"tools":[{"name":"` + strings.Repeat("x", 2000) + `","inputSchema":{"type":"object"}}]}`, ``},
		{``, `null`},
		{``, `[]`},
		{``, `{}`},
		{``, `{"content":null}`},
		{``, `{"content":[null]}`},
		{``, `{"content":[{}]}`},
		{``, `{"content":[{"type":"text"}]}`},
		{``, `{"content":[{"type":"image","data":"!"}]}`},
		{``, `{"content":[{"type":"new kind"}]}`},
		{``, `{"content":[{"type":"resource"}]}`},
		{``, `{"content":[{"type":"resource","resource":null}]}`},
		{``, `{"content":"text"}`},
		{``, `{"content":[],"structuredContent":[1,{"a":null}]}`},
		{``, `{"inputRequests":{"a":{"method":"elicitation/create"}},"resultType":"input_required"}`},
		{``, `{"inputRequests":{},"resultType":"input_required"}`},
	} {
		t.Run(tool.Cut(c.list+c.call, 80), func(t *testing.T) {
			t.Parallel()
			s := server("s", "plain", "LIST="+c.list, "CALL="+c.call)
			s.Timeout = 2 * time.Second
			m := manager(t, s)
			within(t, 10*time.Second, func() {
				tools, problems := m.Tools(t.Context())
				if c.list != "" && len(tools) > 3 {
					t.Errorf("tools %v, problems %v", tools, problems)
				}
				if c.call != "" {
					if res := run(t, find(t, m, "mcp__s__go"), "{}"); res.Text == "" {
						t.Errorf("an empty result: %+v", res)
					}
				}
			})
		})
	}
}

func TestServersThatCannotBe(t *testing.T) {
	m := manager(t,
		mcptool.Server{Name: "neither"},
		mcptool.Server{Name: "both", Command: "x", URL: "http://h/"},
		mcptool.Server{Name: "missing", Command: "/does/not/exist"},
		mcptool.Server{Name: "address", URL: "ftp://h/"},
	)
	_, problems := m.Tools(t.Context())
	for i, want := range []string{"either a command or a url", "either a command or a url", "no such file", "not an http address"} {
		if i >= len(problems) || !strings.Contains(problems[i].Err.Error(), want) {
			t.Errorf("problems %v, want %q", problems, want)
		}
	}
	if _, err := m.Resources(t.Context(), "other"); !errors.Is(err, mcptool.ErrUnknown) {
		t.Errorf("unknown server: %v", err)
	}
}

// A program that ignores the end of its input and SIGTERM is killed with its children.
func TestStubbornProgramsAreKilled(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	m := manager(t, server("s", "stubborn", "PIDS="+pids))
	find(t, m, "mcp__s__go")
	within(t, 2500*time.Millisecond, func() {
		if err := m.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	data, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	var leader, child int
	if _, err := fmt.Sscan(string(data), &leader, &child); err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{leader, child} {
		if running(pid) {
			t.Errorf("process %d is left", pid)
			if p, err := os.FindProcess(pid); err == nil {
				_ = p.Kill()
			}
		}
	}
}

// running tells whether a process runs; one that has ended and was not collected does not.
func running(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}
