package order_test

import (
	"testing"

	"github.com/roost-dev/roost/internal/cursorwire/order"
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

func TestKindOf(t *testing.T) {
	action := func(a *agentv1.ConversationAction) *agentv1.AgentClientMessage {
		return &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ConversationAction{ConversationAction: a}}
	}
	control := func(c *agentv1.ExecClientControlMessage) *agentv1.AgentClientMessage {
		return &agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ExecClientControlMessage{ExecClientControlMessage: c}}
	}
	for name, c := range map[string]struct {
		m    *agentv1.AgentClientMessage
		want order.Kind
	}{
		"run":         {&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_RunRequest{}}, order.Start},
		"prewarm":     {&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_PrewarmRequest{}}, order.Start},
		"heartbeat":   {&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ClientHeartbeat{}}, order.Free},
		"blob answer": {&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_KvClientMessage{}}, order.Free},
		"exec result": {&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_ExecClientMessage{}}, order.Ordered},
		"answer":      {&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_InteractionResponse{}}, order.Ordered},
		"exec heartbeat": {control(&agentv1.ExecClientControlMessage{Message: &agentv1.ExecClientControlMessage_Heartbeat{
			Heartbeat: &agentv1.ExecClientHeartbeat{Id: 1},
		}}), order.Free},
		"exec close": {control(&agentv1.ExecClientControlMessage{Message: &agentv1.ExecClientControlMessage_StreamClose{
			StreamClose: &agentv1.ExecClientStreamClose{Id: 1},
		}}), order.Ordered},
		"cancel": {action(&agentv1.ConversationAction{Action: &agentv1.ConversationAction_CancelAction{CancelAction: &agentv1.CancelAction{}}}), order.Free},
		"steer": {action(&agentv1.ConversationAction{Action: &agentv1.ConversationAction_UserMessageAction{
			UserMessageAction: &agentv1.UserMessageAction{},
		}}), order.Ordered},
		"unknown": {&agentv1.AgentClientMessage{}, order.Ordered},
		"nothing": {nil, order.Ordered},
	} {
		if got := order.KindOf(c.m); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}
