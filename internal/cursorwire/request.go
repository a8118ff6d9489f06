package cursorwire

import (
	"slices"
	"strings"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const maxConversationID = 128

// ValidConversationID reports whether id may name a conversation, and so a file: 1 to 128 letters,
// digits, "-" and "_" (section 3.1).
func ValidConversationID(id string) bool {
	foreign := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
	}
	return id != "" && len(id) <= maxConversationID && !strings.ContainsFunc(id, foreign)
}

// Effort is how much a model shall think, in the protocol's words.
type Effort string

// The efforts. EffortUnset asks for the model's own default.
const (
	EffortUnset    Effort = ""
	EffortDisabled Effort = "disabled"
	EffortLow      Effort = "low"
	EffortMedium   Effort = "medium"
	EffortHigh     Effort = "high"
	EffortXHigh    Effort = "xhigh"
	EffortMax      Effort = "max"
)

var effortParameters = []string{
	"thinking_effort", "reasoning", "reasoning_effort", "thinking_intensity",
	"anthropic_thinking_effort", "openai_reasoning_effort",
}

// RequestedModel returns which model a run wants (section 3.1): the requested one, else that of the
// details, else "default". A variant "model:effort" is split at its last colon; a parameter for the
// effort counts more than the variant. An effort that is not known counts as unset.
func RequestedModel(requested *agentv1.RequestedModel, details *agentv1.ModelDetails) (model string, effort Effort) {
	model = strings.TrimSpace(requested.GetModelId())
	if i := strings.LastIndexByte(model, ':'); requested.GetIsVariantStringRepresentation() && i > 0 {
		model, effort = model[:i], parseEffort(model[i+1:])
	}
	for _, p := range requested.GetParameters() {
		if slices.Contains(effortParameters, p.GetId()) && strings.TrimSpace(p.GetValue()) != "" {
			effort = parseEffort(p.GetValue())
			break
		}
	}
	if model == "" {
		model = strings.TrimSpace(details.GetModelId())
	}
	if model == "" {
		model = "default"
	}
	return model, effort
}

func parseEffort(s string) Effort {
	switch e := Effort(strings.ToLower(strings.TrimSpace(s))); e {
	case EffortDisabled, EffortLow, EffortMedium, EffortHigh, EffortXHigh, EffortMax:
		return e
	case "none", "off", "false":
		return EffortDisabled
	case "minimal":
		return EffortLow
	default:
		return EffortUnset
	}
}

// RequestedMode returns the mode of a run (section 3.1): that of the user's message, else the one in
// which a plan is carried out, else plan for a request for one, else that of the conversation, else
// agent. A mode that this server cannot know the meaning of (triage, project, custom, newer ones)
// counts as agent.
func RequestedMode(action *agentv1.ConversationAction, state *agentv1.ConversationStateStructure) agentv1.AgentMode {
	for _, mode := range []agentv1.AgentMode{
		UserMessage(action).GetMode(),
		action.GetExecutePlanAction().GetExecutionMode(),
		planMode(action),
		state.GetMode(),
	} {
		switch mode {
		case agentv1.AgentMode_AGENT_MODE_UNSPECIFIED:
			continue
		case agentv1.AgentMode_AGENT_MODE_ASK, agentv1.AgentMode_AGENT_MODE_PLAN,
			agentv1.AgentMode_AGENT_MODE_DEBUG, agentv1.AgentMode_AGENT_MODE_MULTITASK:
			return mode
		default:
			return agentv1.AgentMode_AGENT_MODE_AGENT
		}
	}
	return agentv1.AgentMode_AGENT_MODE_AGENT
}

func planMode(action *agentv1.ConversationAction) agentv1.AgentMode {
	if action.GetStartPlanAction() != nil {
		return agentv1.AgentMode_AGENT_MODE_PLAN
	}
	return agentv1.AgentMode_AGENT_MODE_UNSPECIFIED
}

// UserMessage returns the user's message in an action, or nil if it has none.
func UserMessage(action *agentv1.ConversationAction) *agentv1.UserMessage {
	switch a := action.GetAction().(type) {
	case *agentv1.ConversationAction_UserMessageAction:
		return a.UserMessageAction.GetUserMessage()
	case *agentv1.ConversationAction_StartPlanAction:
		return a.StartPlanAction.GetUserMessage()
	case *agentv1.ConversationAction_InjectContextAction:
		return a.InjectContextAction.GetUserContext().GetUserMessage()
	default:
		return nil
	}
}

// Context returns the request context that came inside an action, or nil: then a server has to ask
// for it, or to fetch its parts (section 3.9).
func Context(action *agentv1.ConversationAction) *agentv1.RequestContext {
	switch a := action.GetAction().(type) {
	case *agentv1.ConversationAction_UserMessageAction:
		return a.UserMessageAction.GetRequestContext()
	case *agentv1.ConversationAction_ResumeAction:
		return a.ResumeAction.GetRequestContext()
	case *agentv1.ConversationAction_StartPlanAction:
		return a.StartPlanAction.GetRequestContext()
	case *agentv1.ConversationAction_ExecutePlanAction:
		return a.ExecutePlanAction.GetRequestContext()
	case *agentv1.ConversationAction_SubscriptionNotificationAction:
		return a.SubscriptionNotificationAction.GetRequestContext()
	case *agentv1.ConversationAction_InjectContextAction:
		return a.InjectContextAction.GetUserContext().GetRequestContext()
	default:
		return nil
	}
}
