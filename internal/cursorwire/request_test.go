package cursorwire

import (
	"strings"
	"testing"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

func TestValidConversationID(t *testing.T) {
	for id, valid := range map[string]bool{
		"c0a9d064-b7ae-47bd-bcb7-d85ca51c8055": true, "agent-a26c1f25": true, "a_B-9": true, strings.Repeat("x", 128): true,
		"": false, "..": false, "a/b": false, "a\\b": false, "a b": false, "é": false, "a\x00": false, "\xff": false, strings.Repeat("x", 129): false,
	} {
		if ValidConversationID(id) != valid {
			t.Errorf("%q: %v", id, !valid)
		}
	}
}

func TestRequestedModel(t *testing.T) {
	type parameter = agentv1.RequestedModel_ModelParameterValue
	details := &agentv1.ModelDetails{ModelId: "details"}
	for name, c := range map[string]struct {
		requested *agentv1.RequestedModel
		details   *agentv1.ModelDetails
		model     string
		effort    Effort
	}{
		"nothing":        {nil, nil, "default", ""},
		"details":        {&agentv1.RequestedModel{ModelId: " "}, details, "details", ""},
		"requested":      {&agentv1.RequestedModel{ModelId: " m "}, details, "m", ""},
		"no variant":     {&agentv1.RequestedModel{ModelId: "m:high"}, nil, "m:high", ""},
		"variant":        {&agentv1.RequestedModel{ModelId: "a:b:high", IsVariantStringRepresentation: true}, nil, "a:b", EffortHigh},
		"only an effort": {&agentv1.RequestedModel{ModelId: ":high", IsVariantStringRepresentation: true}, nil, ":high", ""},
		"odd variant":    {&agentv1.RequestedModel{ModelId: "m:odd", IsVariantStringRepresentation: true}, nil, "m", ""},
		"parameter": {&agentv1.RequestedModel{ModelId: "m:low", IsVariantStringRepresentation: true, Parameters: []*parameter{
			{Id: "other", Value: "max"}, {Id: "reasoning", Value: " "}, {Id: "reasoning_effort", Value: " XHigh "}, {Id: "reasoning", Value: "low"},
		}}, nil, "m", EffortXHigh},
		"off":     {&agentv1.RequestedModel{ModelId: "m", Parameters: []*parameter{{Id: "thinking_effort", Value: "off"}}}, nil, "m", EffortDisabled},
		"minimal": {&agentv1.RequestedModel{ModelId: "m", Parameters: []*parameter{{Id: "thinking_intensity", Value: "minimal"}}}, nil, "m", EffortLow},
	} {
		if model, effort := RequestedModel(c.requested, c.details); model != c.model || effort != c.effort {
			t.Errorf("%s: %q, %q", name, model, effort)
		}
	}
}

func userAction(mode agentv1.AgentMode) *agentv1.ConversationAction {
	return &agentv1.ConversationAction{Action: &agentv1.ConversationAction_UserMessageAction{UserMessageAction: &agentv1.UserMessageAction{
		UserMessage: &agentv1.UserMessage{Text: "hi", Mode: mode}, RequestContext: &agentv1.RequestContext{},
	}}}
}

func TestRequestedMode(t *testing.T) {
	state := func(mode agentv1.AgentMode) *agentv1.ConversationStateStructure {
		return &agentv1.ConversationStateStructure{Mode: &mode}
	}
	plan := &agentv1.ConversationAction{Action: &agentv1.ConversationAction_StartPlanAction{StartPlanAction: &agentv1.StartPlanAction{}}}
	execute := &agentv1.ConversationAction{Action: &agentv1.ConversationAction_ExecutePlanAction{ExecutePlanAction: &agentv1.ExecutePlanAction{
		ExecutionMode: agentv1.AgentMode_AGENT_MODE_MULTITASK,
	}}}
	for name, c := range map[string]struct {
		action *agentv1.ConversationAction
		state  *agentv1.ConversationStateStructure
		want   agentv1.AgentMode
	}{
		"nothing":         {nil, nil, agentv1.AgentMode_AGENT_MODE_AGENT},
		"message":         {userAction(agentv1.AgentMode_AGENT_MODE_ASK), state(agentv1.AgentMode_AGENT_MODE_PLAN), agentv1.AgentMode_AGENT_MODE_ASK},
		"state":           {userAction(0), state(agentv1.AgentMode_AGENT_MODE_DEBUG), agentv1.AgentMode_AGENT_MODE_DEBUG},
		"plan":            {plan, state(agentv1.AgentMode_AGENT_MODE_AGENT), agentv1.AgentMode_AGENT_MODE_PLAN},
		"carry out":       {execute, state(agentv1.AgentMode_AGENT_MODE_PLAN), agentv1.AgentMode_AGENT_MODE_MULTITASK},
		"unknown":         {userAction(99), state(agentv1.AgentMode_AGENT_MODE_PLAN), agentv1.AgentMode_AGENT_MODE_AGENT},
		"not for servers": {userAction(agentv1.AgentMode_AGENT_MODE_TRIAGE), nil, agentv1.AgentMode_AGENT_MODE_AGENT},
	} {
		if got := RequestedMode(c.action, c.state); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// What every kind of action carries, found by the names of its fields.
func TestActions(t *testing.T) {
	message, context := &agentv1.UserMessage{Text: "hi"}, &agentv1.RequestContext{}
	for name, c := range map[string]struct {
		action               *agentv1.ConversationAction
		hasMessage, hasExtra bool
	}{
		"user message": {userAction(0), true, true},
		"resume":       {&agentv1.ConversationAction{Action: &agentv1.ConversationAction_ResumeAction{ResumeAction: &agentv1.ResumeAction{RequestContext: context}}}, false, true},
		"start plan": {&agentv1.ConversationAction{Action: &agentv1.ConversationAction_StartPlanAction{
			StartPlanAction: &agentv1.StartPlanAction{UserMessage: message, RequestContext: context},
		}}, true, true},
		"execute plan": {&agentv1.ConversationAction{Action: &agentv1.ConversationAction_ExecutePlanAction{
			ExecutePlanAction: &agentv1.ExecutePlanAction{RequestContext: context},
		}}, false, true},
		"notification": {&agentv1.ConversationAction{Action: &agentv1.ConversationAction_SubscriptionNotificationAction{
			SubscriptionNotificationAction: &agentv1.SubscriptionNotificationAction{RequestContext: context},
		}}, false, true},
		"inject": {&agentv1.ConversationAction{Action: &agentv1.ConversationAction_InjectContextAction{InjectContextAction: &agentv1.InjectContextAction{
			Payload: &agentv1.InjectContextAction_UserContext{UserContext: &agentv1.UserContextInjection{UserMessage: message, RequestContext: context}},
		}}}, true, true},
		"cancel":  {&agentv1.ConversationAction{Action: &agentv1.ConversationAction_CancelAction{}}, false, false},
		"nothing": {nil, false, false},
	} {
		if got := UserMessage(c.action); (got != nil) != c.hasMessage || got != nil && got.GetText() != "hi" {
			t.Errorf("%s: message %v", name, got)
		}
		if got := Context(c.action); (got != nil) != c.hasExtra {
			t.Errorf("%s: context %v", name, got)
		}
	}
}

func TestBlobs(t *testing.T) {
	// SHA-256 of nothing.
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	id := BlobIDOf(nil)
	if id.String() != empty {
		t.Errorf("%s", id)
	}
	if back, ok := ParseBlobID(id.Bytes()); !ok || back != id {
		t.Errorf("%s, %v", back, ok)
	}
	for _, n := range []int{0, 31, 33} {
		if _, ok := ParseBlobID(make([]byte, n)); ok {
			t.Errorf("%d bytes are an id", n)
		}
	}
	m := &agentv1.RequestContext{FileContents: map[string]string{}}
	for name := range strings.SplitSeq("abcdefghijklmnop", "") {
		m.FileContents[name] = name
	}
	first, data, err := EncodeBlob(m)
	if err != nil || first != BlobIDOf(data) {
		t.Fatalf("%v", err)
	}
	for range 20 {
		if again, _, err := EncodeBlob(m); err != nil || again != first {
			t.Fatalf("%s, then %s, %v", first, again, err)
		}
	}
}
