package cursorwire

import (
	"net/http"
	"reflect"
	"testing"
	"time"
)

func TestReadHeaders(t *testing.T) {
	h := http.Header{}
	for name, value := range map[string]string{
		"authorization": "Bearer secret", "x-request-id": "r", "x-original-request-id": "o",
		"x-parent-request-id": "p", "x-root-parent-request-id": "root", "x-parent-agent-tool-call-id": "call",
		"x-cursor-client-type": "sdk", "x-cursor-client-version": "sdk-1.0.32", "user-agent": "connect-es/1.6.1",
		"x-cursor-streaming": "true", "x-ghost-mode": "true", "connect-timeout-ms": "60005",
		"x-cursor-agent-allowed-tools": "read_tool_call, mcp_tool_call,,", "x-cursor-agent-exclude-tools": "mcp_tool_call",
	} {
		h.Set(name, value)
	}
	h.Add("x-cursor-agent-exclude-tools", " task_tool_call ")
	want := Headers{
		Token: "secret", RequestID: "r", OriginalRequestID: "o", ParentRequestID: "p", RootRequestID: "root",
		ParentToolCallID: "call", ClientType: "sdk", ClientVersion: "sdk-1.0.32", UserAgent: "connect-es/1.6.1",
		Streaming: true, Private: true, Timeout: 60005 * time.Millisecond,
		AllowedTools: []string{"read_tool_call", "mcp_tool_call"}, ExcludedTools: []string{"mcp_tool_call", "task_tool_call"},
	}
	got := ReadHeaders(h)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	for arm, offered := range map[string]bool{"read_tool_call": true, "mcp_tool_call": false, "task_tool_call": false, "shell_tool_call": false} {
		if got.Offers(arm) != offered {
			t.Errorf("%s: %v", arm, !offered)
		}
	}
}

func TestReadHeadersOfNothing(t *testing.T) {
	h := ReadHeaders(nil)
	if !reflect.DeepEqual(h, Headers{}) || !h.Offers("shell_tool_call") {
		t.Errorf("%+v", h)
	}
	for value, want := range map[string]time.Duration{"": 0, "x": 0, "-5": 0, "1": time.Millisecond, "9223372036854775807": 0, "99999999999999999999": 0} {
		if got := ReadHeaders(http.Header{"Connect-Timeout-Ms": {value}}).Timeout; got != want {
			t.Errorf("%q: %v", value, got)
		}
	}
	for value, want := range map[string]string{"bearer  x ": "x", "Basic x": "", "x": "", "Bearer": "", "Bearer ": ""} {
		if got := ReadHeaders(http.Header{"Authorization": {value}}).Token; got != want {
			t.Errorf("%q: %q", value, got)
		}
	}
}
