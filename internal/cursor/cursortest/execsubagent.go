package cursortest

import (
	"context"
	"fmt"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// subagent runs a child agent on the same server (section 5.7) and answers when it is done; it never
// works in the background. What the server does wrong with the child counts for the parent.
func subagent(ctx context.Context, e *Exec) error {
	args := e.Args.GetSubagentArgs()
	child, err := e.Client.child(e, args)
	result := new(agentv1.SubagentResult)
	var res *Result
	if err == nil {
		mode := agentv1.AgentMode_AGENT_MODE_UNSPECIFIED
		if args.GetMode() == agentv1.TaskMode_TASK_MODE_PLAN {
			mode = agentv1.AgentMode_AGENT_MODE_PLAN
		}
		res, err = child.Run(ctx, Prompt{Text: args.GetPrompt(), Mode: mode})
	}
	if res != nil {
		for _, v := range res.Violations {
			e.a.r.checker.add(fmt.Sprintf("subagent %s: %s", child.ConversationID(), v))
		}
	}
	if err != nil {
		failed := &agentv1.SubagentError{Error: err.Error()}
		if child != nil {
			failed.AgentId = new(child.ConversationID())
		}
		result.Result = &agentv1.SubagentResult_Error{Error: failed}
	} else {
		result.Result = &agentv1.SubagentResult_Success{Success: &agentv1.SubagentSuccess{
			AgentId: child.ConversationID(), FinalMessage: new(res.Text), ToolCallCount: int32(len(res.Cards)),
		}}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_SubagentResult{SubagentResult: result}})
	return nil
}

// child returns the child to be resumed, or a new one.
func (c *Client) child(e *Exec, args *agentv1.SubagentArgs) (*Client, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if id := args.GetResumeAgentId(); id != "" {
		child := c.children[id]
		if child == nil {
			return nil, fmt.Errorf("there is no subagent %s", id)
		}
		return child, nil
	}
	o := c.o
	o.ConversationID = ""
	if args.GetModelId() != "" {
		o.Model = args.GetModelId()
	}
	root := e.RequestID
	if c.o.Subagent != nil {
		root = c.o.Subagent.RootRequestID
	}
	o.Subagent = &Subagent{
		Type: args.GetSubagentType(), ParentRequestID: e.RequestID, RootRequestID: root, ToolCallID: args.GetToolCallId(),
		Direct: args.GetDirectMetaParentChildSubagent(),
	}
	child := New(o)
	c.children[child.ConversationID()] = child
	return child, nil
}
