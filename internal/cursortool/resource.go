package cursortool

import (
	"encoding/json"
	"errors"
	"fmt"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

const resourceDescription = `Read a resource of an MCP server of the user's client. With downloadPath it is written to a file instead of shown.`

const resourceSchema = `{
"type": "object",
"properties": {
	"server": {"type": "string", "minLength": 1, "description": "The server"},
	"uri": {"type": "string", "minLength": 1, "description": "The resource"},
	"downloadPath": {"type": "string", "description": "The file to write it to, absolute or relative to the workspace"}
},
"required": ["server", "uri"]
}`

// resourceInput is what a model gives to FetchMcpResource.
type resourceInput struct {
	Server   string `json:"server"`
	URI      string `json:"uri"`
	Download string `json:"downloadPath"`
	Snake    string `json:"download_path"`
}

func (in *resourceInput) check() error {
	if in.Server == "" || in.URI == "" {
		return errors.New("server and uri are required")
	}
	return nil
}

func (in *resourceInput) args(path string) *agentv1.ReadMcpResourceExecArgs {
	a := &agentv1.ReadMcpResourceExecArgs{Server: clean(in.Server), Uri: clean(in.URI)}
	if path != "" {
		a.DownloadPath = new(clean(path))
	}
	return a
}

func resourceCard(args json.RawMessage) *agentv1.ToolCall {
	var in resourceInput
	peek(args, &in)
	return resourceCall(in.args(first(in.Download, in.Snake)))
}

func resourceCall(args *agentv1.ReadMcpResourceExecArgs) *agentv1.ToolCall {
	return &agentv1.ToolCall{Tool: &agentv1.ToolCall_ReadMcpResourceToolCall{ReadMcpResourceToolCall: &agentv1.ReadMcpResourceToolCall{Args: args}}}
}

func beginResource(call Call, args json.RawMessage, env *Env) Machine {
	var in resourceInput
	if err := decode(args, &in); err != nil {
		return refuse(resourceCard(args), "FetchMcpResource error: "+err.Error())
	}
	request := in.args(resolve(env.Root, first(in.Download, in.Snake)))
	request.ToolCallId = string(call.ID)
	x := &exchange{tool: "FetchMcpResource", env: env, card: resourceCall(request)}
	ask := Request{Message: &agentv1.ExecServerMessage{Message: &agentv1.ExecServerMessage_ReadMcpResourceExecArgs{ReadMcpResourceExecArgs: request}}, Patience: patience}
	if request.DownloadPath != nil { // it writes a file
		ask.Unsafe, ask.Patience = true, 0
	}
	x.begin = func() Step {
		return x.try(way{ask, func(m *agentv1.ExecClientMessage) (Step, bool) {
			if r := m.GetReadMcpResourceExecResult(); r != nil {
				return resourceResult(x, r), true
			}
			return Step{}, false
		}})
	}
	return x
}

func resourceResult(x *exchange, res *agentv1.ReadMcpResourceExecResult) Step {
	x.card.GetReadMcpResourceToolCall().Result = res
	switch r := res.GetResult().(type) {
	case *agentv1.ReadMcpResourceExecResult_Success:
		return resourceContent(x, r.Success)
	case *agentv1.ReadMcpResourceExecResult_Rejected:
		return x.refused(r.Rejected.GetReason())
	case *agentv1.ReadMcpResourceExecResult_NotFound:
		return x.failCard("the server has no resource "+clean(r.NotFound.GetUri()), x.card)
	default:
		return x.fail(first(clean(res.GetError().GetError()), "the client could not read the resource"))
	}
}

func resourceContent(x *exchange, ok *agentv1.ReadMcpResourceSuccess) Step {
	if path := ok.GetDownloadPath(); path != "" {
		return x.done(Outcome{Text: "Written to " + clean(path) + ".", Card: x.card})
	}
	blob := ok.GetBlob()
	if len(blob) == 0 {
		text := first(cutMiddle(clean(ok.GetText()), mcpText), "(the resource is empty)")
		if at := ok.GetOutputLocation(); at.GetFilePath() != "" {
			text += fmt.Sprintf("\n[All of it, %d bytes, is in %s]", at.GetSizeBytes(), clean(at.GetFilePath()))
		}
		return x.done(Outcome{Text: text, Card: x.card})
	}
	mime := imageMIME(blob)
	if mime == "" || len(blob) > maxImage {
		return x.done(Outcome{Text: fmt.Sprintf("[%s, %d bytes, which cannot be shown. Read it with a downloadPath.]", first(clean(ok.GetMimeType()), "binary"), len(blob)), Card: x.card})
	}
	return x.done(Outcome{Text: fmt.Sprintf("[%s, %d bytes]", mime, len(blob)), Card: x.card, Images: []Image{{MIME: mime, Data: blob}}})
}
