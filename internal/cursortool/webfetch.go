package cursortool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// fetchPatience is how long a client may take to fetch a page.
const fetchPatience = 2 * time.Minute

const fetchDescription = `Read a page of the web as text. Give a full http or https address that you know to exist, from the user, a search or another page; do not guess. ` +
	`Long pages are cut. It cannot log in.`

const fetchSchema = `{
"type": "object",
"properties": {
	"url": {"type": "string", "minLength": 1, "maxLength": 8192, "description": "The address, with http:// or https://"}
},
"required": ["url"]
}`

// fetchInput is what a model gives to WebFetch.
type fetchInput struct {
	URL string `json:"url"`
}

func (in *fetchInput) check() error {
	in.URL = strings.TrimSpace(in.URL)
	if len(in.URL) > 8192 {
		return errors.New("the url is longer than 8192 bytes")
	}
	u, err := url.Parse(in.URL)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.User != nil {
		return fmt.Errorf("%.200q is not a full http or https address without user name", in.URL)
	}
	return nil
}

// fetch reads a page once the client agrees: here, or in the client when it cannot be done here
// (section 5.11).
type fetch struct {
	call  Call
	in    fetchInput
	env   *Env
	timer timer
	going bool // the client has agreed
	hooks []*agentv1.HookAdditionalContext
}

func beginFetch(call Call, args json.RawMessage, env *Env) Machine {
	f := &fetch{call: call, env: env, timer: timer{after: webConsent}}
	if err := decode(args, &f.in); err != nil {
		return settled{Outcome: f.fail("WebFetch error: " + err.Error())}
	}
	return f
}

func fetchCard(args json.RawMessage) *agentv1.ToolCall {
	f := &fetch{}
	peek(args, &f.in)
	return f.card(nil)
}

func (f *fetch) args() *agentv1.WebFetchArgs {
	return &agentv1.WebFetchArgs{Url: f.in.URL, ToolCallId: string(f.call.ID)}
}

func (f *fetch) card(res *agentv1.WebFetchResult) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_WebFetchToolCall{
		WebFetchToolCall: &agentv1.WebFetchToolCall{Args: f.args(), Result: res},
	}}
}

// Start asks for consent.
func (f *fetch) Start() Step {
	return Step{Wake: tickNow, Query: &agentv1.InteractionQuery{Query: &agentv1.InteractionQuery_WebFetchRequestQuery{
		WebFetchRequestQuery: &agentv1.WebFetchRequestQuery{Args: f.args()},
	}}}
}

// Answered fetches, or ends the call.
func (f *fetch) Answered(r *agentv1.InteractionResponse) Step {
	res := r.GetWebFetchRequestResponse()
	if res.GetApproved() == nil {
		reason := res.GetRejected().GetReason()
		return Step{Done: &Outcome{
			Text: webRefused("fetch", reason), IsError: true,
			Card: f.card(&agentv1.WebFetchResult{
				Result: &agentv1.WebFetchResult_Rejected{Rejected: &agentv1.WebFetchRejected{Reason: brief(reason)}},
			}),
		}}
	}
	f.going = true
	if f.env.Fetch != nil {
		return Step{Local: f.run}
	}
	return Step{Requests: []Request{{
		Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_FetchArgs{
			FetchArgs: &agentv1.FetchArgs{Url: f.in.URL, ToolCallId: string(f.call.ID)},
		}},
		Patience: fetchPatience,
	}}}
}

// run only reads what does not change once the fetch is going.
func (f *fetch) run(ctx context.Context) Outcome {
	text, isError := f.env.Fetch(ctx, f.in.URL)
	if isError {
		return f.fail(cutEnd("WebFetch error: "+clean(text), fetchText))
	}
	return f.page(text)
}

func (f *fetch) page(text string) Outcome {
	text = cutEnd(clean(text), fetchText)
	if text == "" {
		text = "(the page is empty)"
	}
	return Outcome{Text: text, Card: f.card(&agentv1.WebFetchResult{
		Result: &agentv1.WebFetchResult_Success{Success: &agentv1.WebFetchSuccess{Url: f.in.URL, Markdown: text}},
	})}
}

// Result takes the page from a client that fetched it.
func (f *fetch) Result(_ int, m *agentv1.ExecClientMessage) Step {
	f.hooks = append(f.hooks, m.GetHookAdditionalContexts()...)
	if m.GetMessage() == nil {
		return Step{}
	}
	switch r := m.GetFetchResult().GetResult().(type) {
	case *agentv1.FetchResult_Success:
		if code := r.Success.GetStatusCode(); code >= 400 {
			return f.done(f.fail("WebFetch error: the server answered with status " + strconv.Itoa(int(code)) + ".\n" +
				cutEnd(clean(r.Success.GetContent()), fetchText/8)))
		}
		return f.done(f.page(r.Success.GetContent()))
	case *agentv1.FetchResult_Error:
		return f.done(f.fail("WebFetch error: the page could not be read" + because(r.Error.GetError()) + "."))
	default:
		return f.done(f.fail("WebFetch error: the client did not fetch. Its answer was: " + brief(foreign(m))))
	}
}

// Closed ends the call.
func (f *fetch) Closed(int) Step {
	return f.done(f.fail("WebFetch error: the client returned nothing."))
}

// Thrown ends the call.
func (f *fetch) Thrown(_ int, reason string, _ bool) Step {
	return f.done(f.fail("WebFetch error: the client could not fetch" + because(reason) + "."))
}

// Tick gives up a client that does not answer.
func (f *fetch) Tick(now time.Time) Step {
	if f.going {
		return Step{}
	}
	over, left := f.timer.tick(now)
	if over {
		return f.done(f.fail("WebFetch error: " + webSilent))
	}
	return Step{Wake: left}
}

func (f *fetch) fail(text string) Outcome {
	return Outcome{Text: text, IsError: true, Card: f.card(&agentv1.WebFetchResult{
		Result: &agentv1.WebFetchResult_Error{Error: &agentv1.WebFetchError{Url: f.in.URL, Error: text}},
	})}
}

func (f *fetch) done(o Outcome) Step {
	o.addHooks(f.hooks)
	return Step{Done: &o}
}

// Finished ends the call with what was found.
func (f *fetch) Finished(o Outcome) Step { return f.done(o) }
