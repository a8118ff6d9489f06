package cursortool

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const askDescription = `Ask the user one or more questions with options to choose from, and wait for the answers. ` +
	`Use it when a decision is theirs and the way forward depends on it; not for what you can find out yourself, nor to confirm what they have asked for. ` +
	`Ask what belongs together at once, give options that are clear and exclude each other, the one you would take first.`

const askSchema = `{
"type": "object",
"properties": {
	"title": {"type": "string", "description": "A short heading"},
	"questions": {
		"type": "array", "minItems": 1, "maxItems": 10,
		"items": {
			"type": "object",
			"properties": {
				"id": {"type": "string", "description": "Tells the answers apart"},
				"prompt": {"type": "string", "minLength": 1, "description": "The question"},
				"options": {
					"type": "array", "minItems": 2, "maxItems": 20,
					"items": {
						"type": "object",
						"properties": {
							"id": {"type": "string", "description": "Tells the options apart"},
							"label": {"type": "string", "minLength": 1, "description": "What the user reads"}
						},
						"required": ["id", "label"]
					}
				},
				"allow_multiple": {"type": "boolean", "description": "More than one option may be chosen"}
			},
			"required": ["id", "prompt", "options"]
		}
	}
},
"required": ["questions"]
}`

const (
	maxQuestions = 10
	maxOptions   = 20
	freeText     = 8 << 10  // bytes of one written answer
	answerText   = 16 << 10 // bytes of all answers, for the model
)

// askInput is what a model gives to AskQuestion.
type askInput struct {
	Title     string `json:"title"`
	Questions []struct {
		ID      string `json:"id"`
		Prompt  string `json:"prompt"`
		Options []struct {
			ID    string `json:"id"`
			Label string `json:"label"`
		} `json:"options"`
		Multiple truth `json:"allow_multiple"`
	} `json:"questions"`
}

func (in *askInput) check() error {
	if n := len(in.Questions); n == 0 || n > maxQuestions {
		return fmt.Errorf("give 1 to %d questions", maxQuestions)
	}
	questions := map[string]bool{}
	for _, q := range in.Questions {
		if n := len(q.Options); n < 2 || n > maxOptions {
			return fmt.Errorf("question %q: give 2 to %d options", q.ID, maxOptions)
		}
		if strings.TrimSpace(q.Prompt) == "" {
			return fmt.Errorf("question %q: prompt is required", q.ID)
		}
		if q.ID == "" || questions[q.ID] {
			return errors.New("each question needs an id of its own")
		}
		questions[q.ID] = true
		options := map[string]bool{}
		for _, o := range q.Options {
			if o.ID == "" || options[o.ID] {
				return fmt.Errorf("question %q: each option needs an id of its own", q.ID)
			}
			options[o.ID] = true
		}
	}
	return nil
}

func (in *askInput) args() *agentv1.AskQuestionArgs {
	a := &agentv1.AskQuestionArgs{Title: in.Title}
	for _, q := range in.Questions {
		p := &agentv1.AskQuestionArgs_Question{Id: q.ID, Prompt: q.Prompt, AllowMultiple: bool(q.Multiple)}
		for _, o := range q.Options {
			p.Options = append(p.Options, &agentv1.AskQuestionArgs_Option{Id: o.ID, Label: o.Label})
		}
		a.Questions = append(a.Questions, p)
	}
	return a
}

// ask asks the user, for as long as they take (section 5.9).
type ask struct {
	quiet
	call Call
	in   askInput
}

func beginAsk(call Call, args json.RawMessage, _ *Env) Machine {
	a := &ask{call: call}
	if err := decode(args, &a.in); err != nil {
		text := "AskQuestion error: " + err.Error()
		return settled{Outcome: *a.done(text, true, &agentv1.AskQuestionResult{
			Result: &agentv1.AskQuestionResult_Error{Error: &agentv1.AskQuestionError{ErrorMessage: text}},
		}).Done}
	}
	return a
}

func askCard(args json.RawMessage) *agentv1.ToolCall {
	var in askInput
	peek(args, &in)
	return in.card(nil)
}

func (in *askInput) card(res *agentv1.AskQuestionResult) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_AskQuestionToolCall{
		AskQuestionToolCall: &agentv1.AskQuestionToolCall{Args: in.args(), Result: res},
	}}
}

// Start asks.
func (a *ask) Start() Step {
	return Step{Query: &agentv1.InteractionQuery{Query: &agentv1.InteractionQuery_AskQuestionInteractionQuery{
		AskQuestionInteractionQuery: &agentv1.AskQuestionInteractionQuery{Args: a.in.args(), ToolCallId: string(a.call.ID)},
	}}}
}

// Answered takes the answers.
func (a *ask) Answered(r *agentv1.InteractionResponse) Step {
	switch v := r.GetAskQuestionInteractionResponse().GetResult().GetResult().(type) {
	case *agentv1.AskQuestionResult_Success:
		ok := cleanAnswers(v.Success)
		return a.done(a.answers(ok), false, &agentv1.AskQuestionResult{Result: &agentv1.AskQuestionResult_Success{Success: ok}})
	case *agentv1.AskQuestionResult_Error:
		reason := brief(v.Error.GetErrorMessage())
		return a.done("The questions could not be asked"+because(reason)+". Go on without: say what you assume.", true,
			&agentv1.AskQuestionResult{Result: &agentv1.AskQuestionResult_Error{Error: &agentv1.AskQuestionError{ErrorMessage: reason}}})
	case *agentv1.AskQuestionResult_Async:
		return a.done("The user will answer later. Go on with what does not depend on the answers; do not ask again.", false,
			&agentv1.AskQuestionResult{Result: &agentv1.AskQuestionResult_Async{Async: &agentv1.AskQuestionAsync{}}})
	case *agentv1.AskQuestionResult_Rejected:
		return a.rejected(brief(v.Rejected.GetReason()))
	default:
		return a.rejected("")
	}
}

func (a *ask) rejected(reason string) Step {
	return a.done("The questions were not answered"+because(reason)+". Do not ask them again: go on with what seems best, and say what you assumed.", true,
		&agentv1.AskQuestionResult{Result: &agentv1.AskQuestionResult_Rejected{Rejected: &agentv1.AskQuestionRejected{Reason: reason}}})
}

func (a *ask) done(text string, isError bool, res *agentv1.AskQuestionResult) Step {
	return Step{Done: &Outcome{Text: text, IsError: isError, Card: a.in.card(res)}}
}

// answers lists each question with what was chosen and written.
func (a *ask) answers(ok *agentv1.AskQuestionSuccess) string {
	given := map[string]*agentv1.AskQuestionSuccess_Answer{}
	for _, an := range ok.GetAnswers() {
		given[an.GetQuestionId()] = an
	}
	var b strings.Builder
	b.WriteString("The user has answered.")
	for i, q := range a.in.Questions {
		an := given[q.ID]
		labels := map[string]string{}
		for _, o := range q.Options {
			labels[o.ID] = o.Label
		}
		var chosen []string
		for _, id := range an.GetSelectedOptionIds() {
			if l := labels[id]; l != "" {
				id = l
			}
			chosen = append(chosen, id)
		}
		fmt.Fprintf(&b, "\n\n%d. %s\n", i+1, q.Prompt)
		switch text := strings.TrimSpace(an.GetFreeformText()); {
		case len(chosen) == 0 && text == "":
			b.WriteString("(no answer)")
		case text == "":
			b.WriteString("Chosen: " + strings.Join(chosen, "; "))
		case len(chosen) == 0:
			b.WriteString("Written: " + text)
		default:
			b.WriteString("Chosen: " + strings.Join(chosen, "; ") + "\nWritten: " + text)
		}
	}
	return cutMiddle(b.String(), answerText)
}

func cleanAnswers(s *agentv1.AskQuestionSuccess) *agentv1.AskQuestionSuccess {
	ok := &agentv1.AskQuestionSuccess{}
	for _, an := range s.GetAnswers()[:min(len(s.GetAnswers()), maxQuestions)] {
		c := &agentv1.AskQuestionSuccess_Answer{
			QuestionId: brief(an.GetQuestionId()), FreeformText: cutMiddle(clean(an.GetFreeformText()), freeText),
		}
		for _, id := range an.GetSelectedOptionIds()[:min(len(an.GetSelectedOptionIds()), maxOptions)] {
			c.SelectedOptionIds = append(c.SelectedOptionIds, brief(id))
		}
		ok.Answers = append(ok.Answers, c)
	}
	return ok
}
