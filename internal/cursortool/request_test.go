package cursortool

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// What may not be sent twice, and what a client may be silent about, is said of every request.
func TestRequests(t *testing.T) {
	const patient = 60 * time.Second
	inputs := `{"path":"a","contents":"x","old_string":"","new_string":"y","glob_pattern":"*","pattern":"x","paths":["a"],` +
		`"prompt":"p","subagent_type":"shell","server":"s","uri":"u"}`
	for tool, want := range map[string]struct {
		arms   string // of the requests, until the client has no other way
		unsafe string // the arms of those that are
	}{
		"Read":               {"read_args pi_read_args", ""},
		"Write":              {"read_args write_args pi_write_args", "write_args pi_write_args"},
		"Delete":             {"delete_args", "delete_args"},
		"Glob":               {"grep_args pi_find_args", ""},
		"Grep":               {"grep_args pi_grep_args", ""},
		"Ls":                 {"ls_args pi_ls_args", ""},
		"ReadLints":          {"diagnostics_args", ""},
		"Task":               {"subagent_args", "subagent_args"},
		"FetchMcpResource":   {"read_mcp_resource_exec_args", ""},
		"mcp_opencode_myadd": {"mcp_args", "mcp_args"},
	} {
		m := begin(t, tool, inputs, toolEnv())
		var arms, unsafe []string
		st := m.Start()
		for n := 0; st.Done == nil; n++ {
			r := st.Requests[0]
			msg := r.Message.ProtoReflect()
			arm := string(msg.WhichOneof(msg.Descriptor().Oneofs().ByName("message")).Name())
			arms = append(arms, arm)
			if r.Unsafe {
				unsafe = append(unsafe, arm)
			}
			if r.Unsafe != (r.Patience == 0) || r.Patience != 0 && r.Patience != patient {
				t.Errorf("%s: %s has a patience of %v", tool, arm, r.Patience)
			}
			st = m.Thrown(n, "no handler", true)
		}
		if got := strings.Join(arms, " "); got != want.arms {
			t.Errorf("%s asks %s, want %s", tool, got, want.arms)
		}
		if got := strings.Join(unsafe, " "); got != want.unsafe {
			t.Errorf("%s: unsafe are %q, want %q", tool, got, want.unsafe)
		}
	}
}

// The results of pi's requests have other numbers than the requests (section 3.3).
func TestNumbersOfPi(t *testing.T) {
	server, client := (&agentv1.ExecServerMessage{}).ProtoReflect().Descriptor(), (&agentv1.ExecClientMessage{}).ProtoReflect().Descriptor()
	for i, tool := range []string{"read", "bash", "edit", "write", "grep", "find", "ls"} {
		args := server.Fields().ByName(protoreflect.Name("pi_" + tool + "_args")).Number()
		result := client.Fields().ByName(protoreflect.Name("pi_" + tool + "_result")).Number()
		if want := protoreflect.FieldNumber(45 + i); args != want || result != want+1 {
			t.Errorf("%s: %d and %d", tool, args, result)
		}
	}
}
