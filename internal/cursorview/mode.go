package cursorview

import (
	"github.com/roost-dev/roost/internal/session"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// WireMode returns the protocol's word for a session's mode (section 8.1). Multitask is to a session
// the same as agent, so it is kept when the client was in it.
func WireMode(mode session.Mode, client agentv1.AgentMode) agentv1.AgentMode {
	switch mode {
	case session.ModeAsk:
		return agentv1.AgentMode_AGENT_MODE_ASK
	case session.ModePlan:
		return agentv1.AgentMode_AGENT_MODE_PLAN
	case session.ModeDebug:
		return agentv1.AgentMode_AGENT_MODE_DEBUG
	case session.ModeAgent:
	}
	if client == agentv1.AgentMode_AGENT_MODE_MULTITASK {
		return client
	}
	return agentv1.AgentMode_AGENT_MODE_AGENT
}

// SessionMode returns the session's word for a mode of the protocol. One that has none, or is not
// known, is agent.
func SessionMode(mode agentv1.AgentMode) session.Mode {
	switch mode {
	case agentv1.AgentMode_AGENT_MODE_ASK:
		return session.ModeAsk
	case agentv1.AgentMode_AGENT_MODE_PLAN:
		return session.ModePlan
	case agentv1.AgentMode_AGENT_MODE_DEBUG:
		return session.ModeDebug
	default:
		return session.ModeAgent
	}
}
