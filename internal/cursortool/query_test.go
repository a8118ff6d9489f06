package cursortool

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

func answerMessage(t rapid.TB, text string) *agentv1.InteractionResponse {
	t.Helper()
	r := &agentv1.InteractionResponse{}
	if err := protojson.Unmarshal([]byte(text), r); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return r
}

// asked starts a machine and compares its query with what a trace has.
func asked(t *testing.T, m Machine, want string) {
	t.Helper()
	q := &agentv1.InteractionQuery{}
	if err := protojson.Unmarshal([]byte(want), q); err != nil {
		t.Fatal(err)
	}
	st := m.Start()
	if !proto.Equal(st.Query, q) || len(st.Requests) != 0 || st.Done != nil {
		t.Fatalf("asked %v, want %v", st.Query, q)
	}
}

// Whoever can be asked for long is asked without a limit.
func waitsForEver(t *testing.T, m Machine) {
	t.Helper()
	for range 3 {
		if st := m.Tick(time.Unix(1e9, 0).Add(1000 * time.Hour)); st.Done != nil || st.Wake != 0 {
			t.Fatalf("time ends the question: %+v", st)
		}
	}
}

const twoQuestions = `{"title":"T","questions":[
	{"id":"q1","prompt":"Pick","options":[{"id":"a","label":"A side"},{"id":"b","label":"B side"}]},
	{"id":"q2","prompt":"Which?","allow_multiple":true,"options":[{"id":"x","label":"X"},{"id":"y","label":"Y"},{"id":"z","label":"Z"}]}]}`

func TestAskQuestion(t *testing.T) {
	cases := map[string]struct {
		answer, text string
		isError      bool
	}{
		"answered": {
			`{"success":{"answers":[{"question_id":"q2","selected_option_ids":["z","x"],"freeform_text":" soon "},{"question_id":"q1","selected_option_ids":["a"]}]}}`,
			"The user has answered.\n\n1. Pick\nChosen: A side\n\n2. Which?\nChosen: Z; X\nWritten: soon", false,
		},
		"in part": {
			`{"success":{"answers":[{"question_id":"q1","freeform_text":"neither"},{"question_id":"q9","selected_option_ids":["a"]}]}}`,
			"The user has answered.\n\n1. Pick\nWritten: neither\n\n2. Which?\n(no answer)", false,
		},
		"with an option of their own": {
			`{"success":{"answers":[{"question_id":"q1","selected_option_ids":["other"]}]}}`,
			"The user has answered.\n\n1. Pick\nChosen: other\n\n2. Which?\n(no answer)", false,
		},
		"rejected, as the SDK does": {
			`{"rejected":{"reason":"Interactive questions are not supported in local SDK runs"}}`,
			"The questions were not answered: Interactive questions are not supported in local SDK runs. Do not ask them again: go on with what seems best, and say what you assumed.", true,
		},
		"error":   {`{"error":{"error_message":"no window"}}`, "The questions could not be asked: no window. Go on without: say what you assume.", true},
		"later":   {`{"async":{}}`, "The user will answer later. Go on with what does not depend on the answers; do not ask again.", false},
		"nothing": {`{}`, "The questions were not answered. Do not ask them again: go on with what seems best, and say what you assumed.", true},
	}
	for name, c := range cases {
		m := beginAsk(Call{ID: "call_q"}, json.RawMessage(twoQuestions), shellEnv())
		asked(t, m, `{"ask_question_interaction_query":{"tool_call_id":"call_q","args":`+twoQuestions+`}}`)
		waitsForEver(t, m)
		o := over(t, m.Answered(answerMessage(t, `{"id":7,"ask_question_interaction_response":{"result":`+c.answer+`}}`)))
		if o.Text != c.text || o.IsError != c.isError || o.EndsTurn {
			t.Errorf("%s: got %q, %v; want %q", name, o.Text, o.IsError, c.text)
		}
		if got := o.Card.GetAskQuestionToolCall(); len(got.GetArgs().GetQuestions()) != 2 || got.GetResult().GetResult() == nil {
			t.Errorf("%s: the card says %v", name, got)
		}
	}
}

// What users write is bounded as well, and need not be text.
func TestLongAnswers(t *testing.T) {
	m := beginAsk(Call{}, json.RawMessage(twoQuestions), shellEnv())
	m.Start()
	ok := &agentv1.AskQuestionSuccess{}
	for range 1000 {
		ok.Answers = append(ok.Answers, &agentv1.AskQuestionSuccess_Answer{
			QuestionId: "q1", FreeformText: "\xff" + strings.Repeat("x", 100_000), SelectedOptionIds: make([]string, 1000),
		})
	}
	o := over(t, m.Answered(&agentv1.InteractionResponse{Result: &agentv1.InteractionResponse_AskQuestionInteractionResponse{
		AskQuestionInteractionResponse: &agentv1.AskQuestionInteractionResponse{
			Result: &agentv1.AskQuestionResult{Result: &agentv1.AskQuestionResult_Success{Success: ok}},
		},
	}}))
	if len(o.Text) > answerText+100 || proto.Size(o.Card) > 100<<10 {
		t.Errorf("%d bytes for the model, %d for the client", len(o.Text), proto.Size(o.Card))
	}
}

func TestAskQuestionInput(t *testing.T) {
	option := `{"id":"a","label":"A"},{"id":"b","label":"B"}`
	many := strings.TrimSuffix(strings.Repeat(`{"id":"a","label":"A"},`, 21), ",")
	for input, want := range map[string]string{
		`{}`: "1 to 10 questions", `{"questions":[]}`: "1 to 10 questions",
		`{"questions":[{"id":"q","prompt":"?","options":[{"id":"a","label":"A"}]}]}`:                                            "2 to 20 options",
		`{"questions":[{"id":"q","prompt":"?","options":[` + many + `]}]}`:                                                      "2 to 20 options",
		`{"questions":[{"id":"q","prompt":" ","options":[` + option + `]}]}`:                                                    "prompt is required",
		`{"questions":[{"prompt":"?","options":[` + option + `]}]}`:                                                             "id of its own",
		`{"questions":[{"id":"q","prompt":"?","options":[` + option + `]},{"id":"q","prompt":"?","options":[` + option + `]}]}`: "id of its own",
		`{"questions":[{"id":"q","prompt":"?","options":[{"id":"a","label":"A"},{"id":"a","label":"B"}]}]}`:                     "option needs an id of its own",
		`{"questions":"all"}`: "questions must not be a string",
	} {
		st := beginAsk(Call{}, json.RawMessage(input), shellEnv()).Start()
		if o := over(t, st); !o.IsError || st.Query != nil || !strings.Contains(o.Text, want) {
			t.Errorf("%s: got %q, want %q", input, o.Text, want)
		}
	}
}

func TestCreatePlan(t *testing.T) {
	const input = `{"name":"p","overview":"o","plan":"# p","todos":[{"id":"1","content":"do it"}]}`
	m := beginPlan(Call{ID: "call_q"}, json.RawMessage(input), shellEnv())
	asked(t, m, `{"create_plan_request_query":{"tool_call_id":"call_q","args":{"plan":"# p","name":"p","overview":"o","todos":[{"id":"1","content":"do it","status":"TODO_STATUS_PENDING"}]}}}`)
	waitsForEver(t, m)
	o := over(t, m.Answered(answerMessage(t, `{"id":7,"create_plan_request_response":{"result":{"success":{},"plan_uri":"file:///p.md"}}}`)))
	if o.IsError || !o.EndsTurn || o.Plan == nil || o.Plan.Name != "p" || o.Plan.Text != "# p" || o.Plan.URI != "file:///p.md" || o.Plan.ID == "" {
		t.Errorf("got %+v, plan %+v", o, o.Plan)
	}
	if got := o.Card.GetCreatePlanToolCall(); got.GetResult().GetSuccess() == nil || got.GetResult().GetPlanUri() != "file:///p.md" || got.GetArgs().GetName() != "p" {
		t.Errorf("the card says %v", got)
	}

	for answer, want := range map[string]string{
		`{"create_plan_request_response":{"result":{"error":{"error":"too long"}}}}`: "The plan was not taken: too long. Change it",
		`{"create_plan_request_response":{"result":{}}}`:                             "The plan was not taken. Ask",
		`{"create_plan_request_response":{}}`:                                        "The plan was not taken. Ask",
		`{"switch_mode_request_response":{"approved":{}}}`:                           "The plan was not taken. Ask",
	} {
		m := beginPlan(Call{}, json.RawMessage(input), shellEnv())
		m.Start()
		o := over(t, m.Answered(answerMessage(t, answer)))
		if !o.IsError || o.EndsTurn || o.Plan != nil || !strings.HasPrefix(o.Text, want) {
			t.Errorf("%s: got %q, ends the turn %v", answer, o.Text, o.EndsTurn)
		}
	}
	for input, want := range map[string]string{
		`{"plan":"x"}`: "name and plan", `{"name":"x","plan":" "}`: "name and plan",
		`{"name":"x","plan":"y","todos":[` + strings.TrimSuffix(strings.Repeat(`{"id":"1"},`, 101), ",") + `]}`: "at most 100",
	} {
		if o := over(t, beginPlan(Call{}, json.RawMessage(input), shellEnv()).Start()); !o.IsError || !strings.Contains(o.Text, want) {
			t.Errorf("%.40s: %q", input, o.Text)
		}
	}
}

// A plan of the same name is the same plan (R39).
func TestPlanIDs(t *testing.T) {
	id := func(name string) string { return (&planInput{Name: name}).planID() }
	if id("Add tests") != id(" add  Tests\n") || id("Add tests") == id("Add test") {
		t.Errorf("ids: %s, %s, %s", id("Add tests"), id(" add  Tests\n"), id("Add test"))
	}
}

func TestSwitchMode(t *testing.T) {
	for target, want := range map[string]agentv1.AgentMode{
		"agent": agentv1.AgentMode_AGENT_MODE_AGENT, "ask": agentv1.AgentMode_AGENT_MODE_ASK, "PLAN": agentv1.AgentMode_AGENT_MODE_PLAN,
	} {
		name := strings.ToLower(target)
		m := beginMode(Call{ID: "call_q"}, json.RawMessage(`{"target_mode_id":"`+target+`","explanation":"why"}`), shellEnv())
		asked(t, m, `{"switch_mode_request_query":{"args":{"target_mode_id":"`+name+`","explanation":"why","tool_call_id":"call_q"}}}`)
		waitsForEver(t, m)
		o := over(t, m.Answered(answerMessage(t, `{"id":7,"switch_mode_request_response":{"approved":{}}}`)))
		if o.IsError || o.Mode != want || o.Text != "Switched to "+name+" mode." || o.Card.GetSwitchModeToolCall().GetResult().GetSuccess().GetToModeId() != name {
			t.Errorf("%s: %+v", target, o)
		}
	}
	for answer, want := range map[string]string{
		`{"switch_mode_request_response":{"rejected":{"reason":"stay"}}}`: "refused: stay. Go on",
		`{"switch_mode_request_response":{}}`:                             "refused. Go on",
		`{"create_plan_request_response":{"result":{"success":{}}}}`:      "refused. Go on",
		`{}`: "refused. Go on",
	} {
		m := beginMode(Call{}, json.RawMessage(`{"target_mode_id":"plan"}`), shellEnv())
		m.Start()
		o := over(t, m.Answered(answerMessage(t, answer)))
		if !o.IsError || o.Mode != agentv1.AgentMode_AGENT_MODE_UNSPECIFIED || !strings.Contains(o.Text, want) || o.Card.GetSwitchModeToolCall().GetResult().GetRejected() == nil {
			t.Errorf("%s: %q, mode %v", answer, o.Text, o.Mode)
		}
	}
	for _, target := range []string{"", "debug", "agents"} {
		st := beginMode(Call{}, json.RawMessage(`{"target_mode_id":"`+target+`"}`), shellEnv()).Start()
		if o := over(t, st); !o.IsError || st.Query != nil || !strings.Contains(o.Text, "must be agent, ask or plan") {
			t.Errorf("%s: %q", target, o.Text)
		}
	}
}
