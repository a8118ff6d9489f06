package cursortest

import (
	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// query has a question answered. Only those of a kind that waits for a person pause the detector of
// stalls (section 1.7).
func (a *attempt) query(q *agentv1.InteractionQuery) {
	human := q.GetAskQuestionInteractionQuery() != nil || q.GetSwitchModeRequestQuery() != nil || q.GetMcpAuthRequestQuery() != nil
	if human {
		a.stall.pause()
	}
	a.tasks.Go(func() {
		if answer := a.c.o.Answer(a.ctx, q); answer != nil {
			answer.Id = q.GetId()
			a.stream.send(&agentv1.AgentClientMessage{Message: &agentv1.AgentClientMessage_InteractionResponse{InteractionResponse: answer}}, nil)
		} else {
			<-a.ctx.Done()
		}
		if !human {
			return
		}
		select {
		case a.answered <- struct{}{}:
		case <-a.ctx.Done():
		}
	})
}

// DefaultAnswer is what the SDK answers without a user (section 3.6).
func DefaultAnswer(q *agentv1.InteractionQuery) *agentv1.InteractionResponse {
	r := &agentv1.InteractionResponse{Id: q.GetId()}
	switch q.GetQuery().(type) {
	case *agentv1.InteractionQuery_WebSearchRequestQuery:
		r.Result = &agentv1.InteractionResponse_WebSearchRequestResponse{WebSearchRequestResponse: &agentv1.WebSearchRequestResponse{
			Result: &agentv1.WebSearchRequestResponse_Approved_{Approved: new(agentv1.WebSearchRequestResponse_Approved)},
		}}
	case *agentv1.InteractionQuery_WebFetchRequestQuery:
		r.Result = &agentv1.InteractionResponse_WebFetchRequestResponse{WebFetchRequestResponse: &agentv1.WebFetchRequestResponse{
			Result: &agentv1.WebFetchRequestResponse_Approved_{Approved: new(agentv1.WebFetchRequestResponse_Approved)},
		}}
	case *agentv1.InteractionQuery_SwitchModeRequestQuery:
		r.Result = &agentv1.InteractionResponse_SwitchModeRequestResponse{SwitchModeRequestResponse: &agentv1.SwitchModeRequestResponse{
			Result: &agentv1.SwitchModeRequestResponse_Approved_{Approved: new(agentv1.SwitchModeRequestResponse_Approved)},
		}}
	case *agentv1.InteractionQuery_CreatePlanRequestQuery:
		r.Result = &agentv1.InteractionResponse_CreatePlanRequestResponse{CreatePlanRequestResponse: &agentv1.CreatePlanRequestResponse{
			Result: &agentv1.CreatePlanResult{Result: &agentv1.CreatePlanResult_Success{Success: new(agentv1.CreatePlanSuccess)}},
		}}
	case *agentv1.InteractionQuery_McpAuthRequestQuery:
		r.Result = &agentv1.InteractionResponse_McpAuthRequestResponse{McpAuthRequestResponse: &agentv1.McpAuthRequestResponse{
			Result: &agentv1.McpAuthRequestResponse_Rejected_{Rejected: &agentv1.McpAuthRequestResponse_Rejected{Reason: "nobody is there to log in"}},
		}}
	case *agentv1.InteractionQuery_AskQuestionInteractionQuery:
		r.Result = &agentv1.InteractionResponse_AskQuestionInteractionResponse{AskQuestionInteractionResponse: &agentv1.AskQuestionInteractionResponse{
			Result: &agentv1.AskQuestionResult{Result: &agentv1.AskQuestionResult_Rejected{Rejected: &agentv1.AskQuestionRejected{
				Reason: "Interactive questions are not supported in local SDK runs",
			}}},
		}}
	}
	return r
}
