package cursortool

import (
	"encoding/json"
	"testing"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// FuzzClientAnswers gives the machines whatever a client may send: nothing panics, and what ends a
// call can be kept.
func FuzzClientAnswers(f *testing.F) {
	seed := func(m proto.Message) {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, text := range []string{
		`{"shell_stream":{"stdout":{"data":"x"}}}`, `{"shell_stream":{"exit":{"code":3,"cwd":"/x","aborted":true}}}`,
		`{"shell_stream":{"backgrounded":{"shell_id":1}}}`, `{"shell_result":{"success":{"shell_id":1},"is_background":true}}`,
		`{"shell_stream":{"rejected":{"reason":"no"}}}`, `{"pi_bash_result":{"error":{"error":"Command exited with code 3"}}}`,
		`{"read_result":{"success":{"content":"a\n---\nexit_code: 0\n---","truncated":true,"total_lines":-5}}}`,
		`{"fetch_result":{"success":{"content":"x","status_code":500}}}`, `{"write_shell_stdin_result":{"error":{"error":"x"}}}`,
		`{"shell_result":{"failure":{"stdout":"x","signal":"KILL"}}}`,
	} {
		seed(execMessage(f, text))
	}
	for _, text := range []string{
		`{"ask_question_interaction_response":{"result":{"success":{"answers":[{"question_id":"q1","selected_option_ids":["a"]}]}}}}`,
		`{"create_plan_request_response":{"result":{"error":{"error":"x"},"plan_uri":"u"}}}`, fetchYes,
		`{"switch_mode_request_response":{"rejected":{"reason":"x"}}}`,
	} {
		seed(answerMessage(f, text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		exec, answer := &agentv1.ExecClientMessage{}, &agentv1.InteractionResponse{}
		if proto.Unmarshal(data, exec) == nil {
			exec.HookAdditionalContexts = nil // checked by those who add them
			for _, m := range answered(t) {
				check(t, m.Result(0, exec))
			}
			env := awaitEnv()
			env.Shells.Result(3, exec)
			check(t, beginAwait(Call{}, json.RawMessage(`{"shell_id":7,"block_until_ms":0}`), env).Start())
		}
		if proto.Unmarshal(data, answer) == nil {
			for _, m := range asking() {
				m.Start()
				check(t, m.Answered(answer))
			}
		}
	})
}

// answered are machines that wait for a message.
func answered(t *testing.T) []Machine {
	t.Helper()
	fetch := beginFetch(Call{}, json.RawMessage(`{"url":"http://a"}`), &Env{Shells: NewShells()})
	ms := []Machine{
		beginShell(Call{}, json.RawMessage(sleeper), shellEnv()),
		beginAwait(Call{}, json.RawMessage(`{"shell_id":8,"pattern":"x"}`), shellEnv()),
		beginStdin(Call{}, json.RawMessage(`{"shell_id":8,"chars":"x"}`), shellEnv()),
		beginForce(Call{}, json.RawMessage(`{"tool_call_id":"x"}`), shellEnv()), fetch,
	}
	for _, m := range ms {
		m.Start()
	}
	fetch.Answered(answerMessage(t, fetchYes))
	return ms
}

func asking() []Machine {
	return []Machine{
		beginAsk(Call{}, json.RawMessage(twoQuestions), shellEnv()),
		beginPlan(Call{}, json.RawMessage(`{"name":"n","plan":"p"}`), shellEnv()),
		beginMode(Call{}, json.RawMessage(`{"target_mode_id":"plan"}`), shellEnv()),
		beginSearch(Call{}, json.RawMessage(`{"search_term":"x"}`), webEnv("", false, new(string))),
		beginFetch(Call{}, json.RawMessage(`{"url":"http://a"}`), webEnv("", false, new(string))),
	}
}

// check checks a step that may have ended the call.
func check(t *testing.T, st Step) {
	t.Helper()
	if st.Wake < 0 || st.Wake > 24*time.Hour {
		t.Fatalf("wake in %v", st.Wake)
	}
	if st.Done == nil {
		return
	}
	o := over(t, st)
	if !utf8.ValidString(o.Text) || len(o.Text) > 2*fetchText {
		t.Fatalf("%d bytes for the model: %.200q", len(o.Text), o.Text)
	}
}
