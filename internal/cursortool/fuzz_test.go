package cursortool

import (
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

func fuzzNames() []string {
	names := []string{callMCP, "mcp_opencode_myadd", "read", "bash", "edit", "write", "grep", "find", "ls", "other"}
	for _, k := range registry() {
		names = append(names, k.name)
	}
	return names
}

// FuzzCard reads arguments that may end anywhere.
func FuzzCard(f *testing.F) {
	for _, in := range []string{
		``, `{`, `{"path":"a","contents":"x\n\ud83d`, `{"todos":[{"id":1,"content":"x"`, `{"-A":1e9,"-i":"true"`, "{\"path\":\"\xff",
		`{"a":{"b":[1,2,{"c":"d`, `{"questions":[{"id":"q","options":[{"id":"a"`, `{"n":1e999}`, `[[[[`, `{"path":null}`,
	} {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in string) {
		if got := partial(in); !json.Valid(got) || got[0] != '{' {
			t.Fatalf("%q is read as %q", in, got)
		}
		for _, name := range fuzzNames() {
			card := Card(name, in)
			if card.GetTool() == nil {
				t.Fatalf("%s: no card", name)
			}
			if _, err := protojson.Marshal(FailedCard(card, in)); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	})
}

// FuzzCall begins calls with arbitrary arguments, and gives their machines an arbitrary answer.
func FuzzCall(f *testing.F) {
	for _, seed := range []struct{ input, answer string }{
		{`{"path":"a","contents":"x"}`, `{"write_result":{"success":{"file_content_after_write":"y"}}}`},
		{`{"path":"a","old_string":"x","new_string":"y"}`, `{"read_result":{"success":{"content":"x","truncated":true,"total_lines":-3}}}`},
		{`{"pattern":"x","glob_pattern":"*"}`, `{"grep_result":{"success":{"workspace_results":{"/":{"files":{"files":["a"]}}}}}}`},
		{`{"paths":["a"]}`, `{"diagnostics_result":{"success":{"diagnostics":[{}]}}}`},
		{`{"server":"opencode","toolName":"myadd","uri":"x"}`, `{"mcp_result":{"success":{"content":[{}]}}}`},
		{`{"prompt":"p","subagent_type":"explore"}`, `{"subagent_result":{"success":{}}}`},
		{`{"todos":[{"id":1,"content":"x"}],"merge":true}`, `{}`},
		{`{"path":"a","offset":2147483647,"limit":1}`, `{"read_result":{"success":{"content":"x\n","total_lines":1}}}`},
		{`{"path":"a"}`, `{"ls_result":{"success":{"directory_tree_root":{"children_dirs":[{}]}}}}`},
	} {
		m := execMessage(f, seed.answer)
		raw, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(seed.input, raw)
	}
	o := everything(agentv1.AgentMode_AGENT_MODE_AGENT)
	set := NewSet(append(Offer(o), manyTools(someMCP())))
	f.Fuzz(func(t *testing.T, input string, answer []byte) {
		m := &agentv1.ExecClientMessage{}
		if proto.Unmarshal(answer, m) != nil {
			m = &agentv1.ExecClientMessage{}
		}
		for _, name := range fuzzNames() {
			env := toolEnv()
			Path(Call{Name: name, Input: input}, env)
			machine := set.Begin(Call{ID: "call1-0-0", Name: name, Input: input}, env)
			st := machine.Start()
			for n := 0; st.Done == nil && len(st.Requests) > 0 && n < 20; n++ {
				if _, err := proto.Marshal(st.Requests[0].Message); err != nil {
					t.Fatalf("%s: the request cannot be sent: %v", name, err)
				}
				st = machine.Result(n, proto.CloneOf(m))
			}
			if st.Done != nil {
				over(t, st)
			}
		}
	})
}
