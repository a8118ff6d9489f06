package cursortool

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestForceBackgroundShell(t *testing.T) {
	begin := func() Machine {
		return beginForce(Call{ID: "c"}, json.RawMessage(`{"tool_call_id":"c0"}`), shellEnv())
	}
	if req := begin().Start().Requests[0]; req.Message.GetForceBackgroundShellArgs().GetToolCallId() != "c0" || req.Unsafe || req.Patience == 0 {
		t.Errorf("asked %+v", req)
	}
	for message, want := range map[string]string{
		`{"force_background_shell_result":{"status":"FORCE_BACKGROUND_SHELL_STATUS_ACCEPTED"}}`:  "The command goes to the background; its Shell call returns the shell_id.",
		`{"force_background_shell_result":{"status":"FORCE_BACKGROUND_SHELL_STATUS_NOT_FOUND"}}`: "No command of call c0 runs in the foreground",
		`{"force_background_shell_result":{}}`:                                                   "ForceBackgroundShell error: the client did not say",
		`{"shell_result":{"rejected":{"reason":"no"}}}`:                                          "ForceBackgroundShell error: the client did not say whether it did it. Its answer was: no",
	} {
		st, _ := feed(t, begin(), `{}`, message)
		o := over(t, st)
		if !strings.HasPrefix(o.Text, want) || o.IsError == strings.HasPrefix(want, "The command goes") {
			t.Errorf("%s: got %q, %v; want %q", message, o.Text, o.IsError, want)
		}
		if o.Card.GetShellToolCall().GetArgs().GetToolCallId() != "c0" {
			t.Errorf("the card says %v", o.Card)
		}
	}
	if o := over(t, begin().Closed(0)); !o.IsError {
		t.Errorf("closed: %q", o.Text)
	}
	if o := over(t, begin().Thrown(0, "boom", true)); !o.IsError || !strings.Contains(o.Text, "boom") {
		t.Errorf("thrown: %q", o.Text)
	}
	if st := beginForce(Call{}, json.RawMessage(`{}`), shellEnv()).Start(); len(st.Requests) != 0 || !over(t, st).IsError {
		t.Error("nothing is moved")
	}
}
