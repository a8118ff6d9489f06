package cursortool

import (
	"encoding/json"
	"fmt"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const deleteDescription = `Delete a file of the user's workspace. Directories cannot be deleted with it.`

const deleteSchema = `{
"type": "object",
"properties": {"path": {"type": "string", "minLength": 1, "description": "The file, absolute or relative to the workspace"}},
"required": ["path"]
}`

func deleteCard(args json.RawMessage) *agentv1.ToolCall {
	var in pathInput
	peek(args, &in)
	return deleteCall(&agentv1.DeleteArgs{Path: clean(in.path())})
}

func deleteCall(args *agentv1.DeleteArgs) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_DeleteToolCall{DeleteToolCall: &agentv1.DeleteToolCall{Args: args}}}
}

func beginDelete(call Call, args json.RawMessage, env *Env) Machine {
	var in pathInput
	if err := decode(args, &in); err != nil {
		return refuse(deleteCard(args), "Delete error: "+err.Error())
	}
	request := &agentv1.DeleteArgs{Path: resolve(env.Root, in.path()), ToolCallId: string(call.ID)}
	x := &exchange{tool: "Delete", env: env, card: deleteCall(request)}
	x.begin = func() Step {
		return x.try(way{
			Request{Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_DeleteArgs{DeleteArgs: request}}, Unsafe: true},
			func(m *agentv1.ExecClientMessage) (Step, bool) {
				if r := m.GetDeleteResult(); r != nil {
					return deleted(x, request.Path, r), true
				}
				return Step{}, false
			},
		})
	}
	return x
}

func deleted(x *exchange, path string, res *agentv1.DeleteResult) Step {
	x.card.GetDeleteToolCall().Result = res
	switch r := res.GetResult().(type) {
	case *agentv1.DeleteResult_Success:
		return x.done(Outcome{Text: "Deleted " + path + ".", Card: x.card})
	case *agentv1.DeleteResult_Rejected:
		return x.refused(r.Rejected.GetReason())
	case *agentv1.DeleteResult_FileNotFound:
		return x.failCard("there is no file "+path, x.card)
	case *agentv1.DeleteResult_NotFile:
		return x.failCard(fmt.Sprintf("%s is not a file but a %s", path, first(clean(r.NotFile.GetActualType()), "directory")), x.card)
	case *agentv1.DeleteResult_PermissionDenied:
		return x.failCard("the client may not delete "+path+because(r.PermissionDenied.GetClientVisibleError()), x.card)
	case *agentv1.DeleteResult_FileBusy:
		return x.failCard(path+" is in use", x.card)
	case *agentv1.DeleteResult_Error:
		return x.failCard(first(clean(r.Error.GetError()), "the client could not delete "+path), x.card)
	default:
		return x.fail("the client's answer does not say whether " + path + " was deleted")
	}
}
