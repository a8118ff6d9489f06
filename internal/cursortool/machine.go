// Package cursortool is the tools that a client of Cursor's agent protocol runs (section 5 of the
// protocol's description): what a model is told of each, what is asked of the client to carry out a
// call, and what the model and the client's own transcript are told of the answer.
//
//	call ─▶ Set.Begin ─▶ Machine ─▶ Step (requests, a query) ─▶ client
//	                        ▲  answers, closes, errors, time ◀─────┘
//	                        └─▶ Outcome (text for the model, a ToolCall for the client)
//
// Everything here is a function of its arguments: machines do no I/O and read no clock. Whoever
// drives one gives the ids, sends, keeps what has to last, and tells it what comes back.
package cursortool

import (
	"context"
	"encoding/json"
	"time"

	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// Machine carries out one call. It is used by one goroutine. After a Step that is Done nothing more
// of it is called.
type Machine interface {
	// Start is called once, before everything else.
	Start() Step
	// Result takes a message of the client for request n (from 0, in the order of Step.Requests).
	// It need not be of the kind that was asked for: a client may answer with an error of another
	// kind, or with no result at all.
	Result(n int, m *agentv1.ExecClientMessage) Step
	// Closed says that request n has ended: no more messages come for it, though there was no
	// result that ended it.
	Closed(n int) Step
	// Thrown says that request n failed in the client, or was given up for reason.
	Thrown(n int, reason string, unsupported bool) Step
	// Answered takes the answer to the query. One that does not fit counts as a rejection.
	Answered(r *agentv1.InteractionResponse) Step
	// Finished takes what Step.Local returned.
	Finished(o Outcome) Step
	// Tick is called at the time that Step.Wake asked for, and when a background shell has news.
	Tick(now time.Time) Step
}

// Step is what is to be done next. The zero Step is to wait.
type Step struct {
	// Requests are sent to the client, in this order.
	Requests []Request
	// Query is asked; its id is set by whoever sends it.
	Query *agentv1.InteractionQuery
	// Output is added to what the call has shown so far.
	Output string
	// Live goes to the client as it is: what it shows while the call runs.
	Live []*agentv1.InteractionUpdate
	// Local is run outside of the machine's goroutine; what it returns goes to Finished.
	Local func(context.Context) Outcome
	// Wake asks for Tick this long from now; a later one replaces it.
	Wake time.Duration
	// Abort lists the requests that the client is told to give up.
	Abort []int
	// Done ends the call.
	Done *Outcome
}

// Request is one execution that is asked of the client.
type Request struct {
	// Message has neither id nor exec_id yet.
	Message *agentv1.ExecServerMessage
	// Unsafe says that it may change something or be noticed, so it must not be sent a second time
	// when nobody knows what became of the first.
	Unsafe bool
	// Patience is how long the client may be silent about it; 0 means that a person may be asked
	// first and that there is no limit but the safety net of the driver.
	Patience time.Duration
}

// Outcome is how a call ended.
type Outcome struct {
	Text    string // for the model; never empty
	IsError bool
	Images  []Image
	Card    *agentv1.ToolCall // for the client, with arguments and result; never nil

	EndsTurn bool                // nothing more is asked of the model in this run
	Mode     agentv1.AgentMode   // the mode from now on; unspecified for no change
	Todos    []*agentv1.TodoItem // the list from now on, when HasTodos
	HasTodos bool
	Plan     *Plan  // a plan that was accepted
	Shell    *Shell // a command that goes on in the background
}

// Image is a picture for the model.
type Image struct {
	MIME string // as the bytes say
	Data []byte
	Blob []byte // the id of a blob that the client holds, when Data is empty
}

// Plan is an accepted plan.
type Plan struct{ ID, Name, Text, URI string }

// Route says which tool of which MCP server a function stands for.
type Route struct {
	Provider string `json:"provider,omitempty"` // provider_identifier
	Server   string `json:"server,omitempty"`   // server_identifier
	Tool     string `json:"tool,omitempty"`
	Name     string `json:"name,omitempty"` // McpArgs.name
}

// Definition is a tool as it is offered to the model. It can be kept as JSON.
type Definition struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"` // JSON Schema, its type is "object"
	Arm         string          `json:"arm"`    // the field of agent.v1.ToolCall; what headers filter by
	MCP         *Route          `json:"mcp,omitempty"`
	Routes      []Route         `json:"routes,omitempty"` // of the one function that stands for many tools
}

// Call is a use of a tool.
type Call struct {
	ID    session.CallID
	Name  string
	Input string // the JSON text as the model wrote it; "" means {}
}

// Env is what a machine knows of the client and its conversation when a call begins.
type Env struct {
	Root      string // the client's workspace, absolute in the client's own notation; "" when unknown
	Terminals string // the folder of the terminals' files; "" when unknown
	Session   string // the conversation's id
	Request   string // the original request id of the run
	Model     string // as the client named it
	Todos     []*agentv1.TodoItem
	Plans     map[string]*agentv1.PlanRegistryEntry
	Shells    *Shells // of the conversation; never nil
	Agents    Agents

	Fetch  func(ctx context.Context, url string) (text string, isError bool)   // nil: the client fetches
	Search func(ctx context.Context, query string) (text string, isError bool) // nil: there is no search
	PiOnly bool                                                                // the client has pi's tools and not the usual ones (its harness says so)
	NoPi   bool                                                                // the client has said that it has none of pi's tools
}

// Agents says which subagents and models a call may name.
type Agents struct {
	Types  []AgentType
	Models []string // that the client offers for subagents; empty for any
	// Overrides maps a subagent type to the model the user has chosen for it: a model id, "inherit"
	// or "disabled".
	Overrides map[string]string
}

// AgentType is a kind of subagent.
type AgentType struct{ Name, Description string }
