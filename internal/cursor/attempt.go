package cursor

import (
	"fmt"

	"github.com/roost-dev/roost/internal/cursortool"
	"github.com/roost-dev/roost/internal/cursorwire"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// attempt is what a client wants with a link: a run_request, or a prewarm_request that a message
// follows.
type attempt struct {
	conversation string
	identity     string // of the run, the same in every attempt
	state        *agentv1.ConversationStateStructure
	action       *agentv1.ConversationAction // nil until the message after a prewarm

	model     string
	effort    cursorwire.Effort
	system    string // the client's own system prompt
	subagent  string // the kind of subagent that it is; empty for none
	piOnly    bool
	noContext bool
	mcp       *agentv1.McpTools
	mcpFiles  *agentv1.McpFileSystemOptions
	agents    cursortool.Agents
	blobs     []*agentv1.PreFetchedBlob

	offer string // the blob with the tools on offer
	told  int    // turns that a client was told of before

	joined string // the prompt that has become a steer of a run of another protocol
}

// piHarness is the harness of clients that have pi's tools and no others.
const piHarness = "pi"

func readAttempt(m *agentv1.AgentClientMessage, l link) attempt {
	h := l.Headers()
	a := attempt{identity: h.OriginalRequestID}
	switch r := m.GetMessage().(type) {
	case *agentv1.AgentClientMessage_RunRequest:
		run := r.RunRequest
		a.conversation, a.state, a.action = run.GetConversationId(), run.GetConversationState(), run.GetAction()
		a.model, a.effort = cursorwire.RequestedModel(run.GetRequestedModel(), run.GetModelDetails())
		a.system, a.subagent, a.piOnly = run.GetCustomSystemPrompt(), run.GetSubagentTypeName(), run.GetHarness() == piHarness
		a.noContext, a.mcp, a.mcpFiles, a.blobs = run.GetExcludeWorkspaceContext(), run.GetMcpTools(), run.GetMcpFileSystemOptions(), run.GetPreFetchedBlobs()
		a.agents = readAgents(run.GetSelectedSubagentModels(), run.GetSubagentModelOverrides())
		if id := run.GetRunId(); id != "" {
			a.identity = id
		}
	case *agentv1.AgentClientMessage_PrewarmRequest:
		p := r.PrewarmRequest
		a.conversation, a.state = p.GetConversationId(), p.GetConversationState()
		a.model, a.effort = cursorwire.RequestedModel(p.GetRequestedModel(), p.GetModelDetails())
		a.system, a.subagent, a.piOnly = p.GetCustomSystemPrompt(), p.GetSubagentTypeName(), p.GetHarness() == piHarness
		a.noContext, a.mcp, a.mcpFiles, a.blobs = p.GetExcludeWorkspaceContext(), p.GetMcpTools(), p.GetMcpFileSystemOptions(), p.GetPreFetchedBlobs()
		a.agents = readAgents(p.GetSelectedSubagentModels(), p.GetSubagentModelOverrides())
	}
	if a.identity == "" {
		a.identity = l.RequestID()
	}
	return a
}

func readAgents(models []*agentv1.RequestedModel, overrides []*agentv1.SubagentModelOverride) cursortool.Agents {
	var a cursortool.Agents
	for _, m := range models {
		if id := m.GetModelId(); id != "" {
			a.Models = append(a.Models, id)
		}
	}
	for _, o := range overrides {
		choice := o.GetModel().GetModelId()
		switch {
		case o.GetDisabled():
			choice = "disabled"
		case o.GetInherit():
			choice = "inherit"
		}
		if a.Overrides == nil {
			a.Overrides = make(map[string]string)
		}
		a.Overrides[o.GetSubagentType()] = choice
	}
	return a
}

// resumes reports whether the client wants no more than that the last run goes on.
func (a *attempt) resumes() bool { return a.action.GetResumeAction() != nil }

// promptID is the id that makes a repeated message the same one: the client's id of the message or,
// because some clients give their messages none (section 3.1), that of the run with what tells the
// message from one that was queued behind it (section 2.4).
func (a *attempt) promptID() string {
	if id := cursorwire.UserMessage(a.action).GetMessageId(); id != "" {
		return limitID(id)
	}
	if id := a.action.GetExecutePlanAction().GetKickoffMessageId(); id != "" {
		return limitID(id)
	}
	said := cursorwire.BlobIDOf([]byte(cursorwire.UserMessage(a.action).GetText()))
	return limitID(fmt.Sprintf("run:%s:%d:%.8s", a.identity, len(a.state.GetTurns()), said))
}
