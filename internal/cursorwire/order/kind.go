package order

import agentv1 "github.com/roost-dev/roost/proto/agent/v1"

// KindOf tells what order means for a client's message: a run and a prewarm start; heartbeats,
// answers about blobs and a cancel need no order; all else does, in particular the chunks, results
// and closing of one execution.
func KindOf(m *agentv1.AgentClientMessage) Kind {
	switch m.GetMessage().(type) {
	case *agentv1.AgentClientMessage_RunRequest, *agentv1.AgentClientMessage_PrewarmRequest:
		return Start
	case *agentv1.AgentClientMessage_ClientHeartbeat, *agentv1.AgentClientMessage_KvClientMessage:
		return Free
	case *agentv1.AgentClientMessage_ExecClientControlMessage:
		if m.GetExecClientControlMessage().GetHeartbeat() != nil {
			return Free
		}
	case *agentv1.AgentClientMessage_ConversationAction:
		if m.GetConversationAction().GetCancelAction() != nil {
			return Free
		}
	}
	return Ordered
}
