package cursortool

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const (
	// webConsent is how long a client may take to let a search or a fetch go ahead: some never
	// answer.
	webConsent = 10 * time.Minute
	searchText = 16 << 10 // bytes of the results of a search
	fetchText  = 32 << 10 // bytes of a page
)

const searchDescription = `Search the web for what is newer than what you know or what you are not sure of: documentation, versions, error messages. ` +
	`Use a few precise words; name the year only when it matters. Read a promising page with WebFetch.`

const searchSchema = `{
"type": "object",
"properties": {
	"search_term": {"type": "string", "minLength": 1, "description": "What to search for"},
	"explanation": {"type": "string", "description": "Why, in a sentence, for the user"}
},
"required": ["search_term"]
}`

// searchInput is what a model gives to WebSearch.
type searchInput struct {
	Term        string `json:"search_term"`
	Explanation string `json:"explanation"`
}

func (in *searchInput) check() error {
	if strings.TrimSpace(in.Term) == "" {
		return errors.New("search_term is required and must not be blank")
	}
	return nil
}

// search searches the web once the client agrees (section 5.11).
type search struct {
	quiet
	call  Call
	in    searchInput
	env   *Env
	timer timer
	going bool // the client has agreed
}

func beginSearch(call Call, args json.RawMessage, env *Env) Machine {
	s := &search{call: call, env: env, timer: timer{after: webConsent}}
	err := decode(args, &s.in)
	if err == nil && env.Search == nil {
		err = errors.New("there is no search here: go on without")
	}
	if err != nil {
		return settled{Outcome: s.fail("WebSearch error: " + err.Error())}
	}
	return s
}

func searchCard(args json.RawMessage) *agentv1.ToolCall {
	s := &search{}
	peek(args, &s.in)
	return s.card(nil)
}

func (s *search) args() *agentv1.WebSearchArgs {
	return &agentv1.WebSearchArgs{SearchTerm: s.in.Term, ToolCallId: string(s.call.ID)}
}

func (s *search) card(res *agentv1.WebSearchResult) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_WebSearchToolCall{
		WebSearchToolCall: &agentv1.WebSearchToolCall{Args: s.args(), Result: res},
	}}
}

// Start asks for consent.
func (s *search) Start() Step {
	return Step{Wake: tickNow, Query: &agentv1.InteractionQuery{Query: &agentv1.InteractionQuery_WebSearchRequestQuery{
		WebSearchRequestQuery: &agentv1.WebSearchRequestQuery{Args: s.args()},
	}}}
}

// Answered searches, or ends the call.
func (s *search) Answered(r *agentv1.InteractionResponse) Step {
	res := r.GetWebSearchRequestResponse()
	if res.GetApproved() == nil {
		reason := res.GetRejected().GetReason()
		return Step{Done: &Outcome{
			Text: webRefused("search", reason), IsError: true,
			Card: s.card(&agentv1.WebSearchResult{
				Result: &agentv1.WebSearchResult_Rejected{Rejected: &agentv1.WebSearchRejected{Reason: brief(reason)}},
			}),
		}}
	}
	s.going = true
	return Step{Local: s.run}
}

// run only reads what does not change once the search is going.
func (s *search) run(ctx context.Context) Outcome {
	text, isError := s.env.Search(ctx, s.in.Term)
	text = cutEnd(clean(text), searchText)
	if text == "" {
		text = "Nothing was found."
	}
	if isError {
		return s.fail(text)
	}
	return Outcome{Text: text, Card: s.card(&agentv1.WebSearchResult{
		Result: &agentv1.WebSearchResult_Success{Success: &agentv1.WebSearchSuccess{
			References: []*agentv1.WebSearchReference{{Title: s.in.Term, Chunk: text}},
		}},
	})}
}

// Tick gives up a client that does not answer.
func (s *search) Tick(now time.Time) Step {
	if s.going {
		return Step{}
	}
	over, left := s.timer.tick(now)
	if over {
		return Step{Done: new(s.fail("WebSearch error: " + webSilent))}
	}
	return Step{Wake: left}
}

func (s *search) fail(text string) Outcome {
	return Outcome{Text: text, IsError: true, Card: s.card(&agentv1.WebSearchResult{
		Result: &agentv1.WebSearchResult_Error{Error: &agentv1.WebSearchError{Error: text}},
	})}
}

const webSilent = "the user's client did not say within 10 minutes whether to go ahead: go on without."

func webRefused(what, reason string) string {
	return "The " + what + " was refused" + because(reason) + ". Do not try it again: go on without, or ask the user."
}

// cutEnd returns s without its end when it is longer than limit bytes.
func cutEnd(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head := cutBefore(s, limit)
	return head + leftOut(len(s)-len(head))
}

// Finished ends the call with what was found.
func (s *search) Finished(o Outcome) Step { return Step{Done: &o} }
