package cursortool

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWriteShellStdin(t *testing.T) {
	begin := func() Machine {
		return beginStdin(Call{}, json.RawMessage(`{"shell_id":"7","chars":"y\n"}`), shellEnv())
	}
	req := begin().Start().Requests[0]
	if a := req.Message.GetWriteShellStdinArgs(); a.GetShellId() != 7 || a.GetChars() != "y\n" || !req.Unsafe || req.Patience != 0 {
		t.Errorf("asked %+v", req)
	}
	cases := map[string]string{
		`{"write_shell_stdin_result":{"success":{"shell_id":7,"terminal_file_length_before_input_written":120}}}`: "Typed 2 bytes into shell 7. Its terminal file was 120 bytes long before.",
		`{"write_shell_stdin_result":{"error":{"error":"no such shell"}}}`:                                        "WriteShellStdin error: no such shell.",
		`{"write_shell_stdin_result":{}}`:            "WriteShellStdin error: the client did not type. Its answer was: the client answered with something else (write_shell_stdin_result)",
		`{"read_result":{"error":{"error":"what"}}}`: "WriteShellStdin error: the client did not type. Its answer was: what",
	}
	for message, want := range cases {
		st, _ := feed(t, begin(), `{"hook_additional_contexts":[{"hook_event_name":"pre","content":"mind"}]}`, message)
		o := over(t, st)
		if o.Text != want+"\n\n[pre hook] mind" || o.IsError != strings.HasPrefix(want, "WriteShellStdin error") {
			t.Errorf("%s: got %q, %v; want %q", message, o.Text, o.IsError, want)
		}
		if o.Card.GetWriteShellStdinToolCall().GetArgs().GetShellId() != 7 {
			t.Errorf("the card says %v", o.Card)
		}
	}
	if o := over(t, begin().Closed(0)); !o.IsError || !strings.Contains(o.Text, "may have typed or not") {
		t.Errorf("closed: %q", o.Text)
	}
	if o := over(t, begin().Thrown(0, "boom", false)); !o.IsError || !strings.Contains(o.Text, "boom") {
		t.Errorf("thrown: %q", o.Text)
	}
	for _, input := range []string{`{}`, `{"shell_id":7}`, `{"chars":"x"}`, `{"shell_id":7,"chars":""}`, `{"shell_id":"a","chars":"x"}`} {
		if st := beginStdin(Call{}, json.RawMessage(input), shellEnv()).Start(); len(st.Requests) != 0 || !over(t, st).IsError {
			t.Errorf("%s is asked for", input)
		}
	}
}
