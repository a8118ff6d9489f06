package cursortest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"

	"google.golang.org/protobuf/types/known/structpb"

	agentv1 "github.com/roost-dev/roost/proto/agent/v1"
)

// customTools is the provider of a client's own tools.
const customTools = "custom-user-tools"

// Tool is a custom tool of the client.
type Tool struct {
	Name, Description string
	// Schema is a JSON schema; an object without properties if nil.
	Schema map[string]any
	// Call carries it out. Its error is a result with is_error.
	Call func(ctx context.Context, args map[string]any) (string, error)
}

func (t Tool) definition() *agentv1.McpToolDefinition {
	schema := t.Schema
	if schema == nil {
		schema = map[string]any{"type": "object"}
	}
	value, err := structpb.NewValue(schema)
	if err != nil {
		panic(fmt.Sprintf("the schema of the tool %s is not JSON: %v", t.Name, err))
	}
	return &agentv1.McpToolDefinition{
		Name: customTools + "-" + t.Name, Description: t.Description, InputSchema: value,
		ProviderIdentifier: customTools, ToolName: t.Name,
	}
}

// mcpTools is nil without tools.
func (c *Client) mcpTools() *agentv1.McpTools {
	if len(c.o.Tools) == 0 {
		return nil
	}
	tools := new(agentv1.McpTools)
	for _, t := range c.o.Tools {
		tools.McpTools = append(tools.McpTools, t.definition())
	}
	return tools
}

func callTool(ctx context.Context, e *Exec) error {
	result := e.Client.callTool(ctx, e.Args.GetMcpArgs())
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_McpResult{McpResult: result}})
	return nil
}

func (c *Client) callTool(ctx context.Context, args *agentv1.McpArgs) *agentv1.McpResult {
	if p := args.GetProviderIdentifier(); p != customTools {
		return &agentv1.McpResult{Result: &agentv1.McpResult_ServerNotFound{
			ServerNotFound: &agentv1.McpServerNotFound{Name: p, AvailableServers: []string{customTools}},
		}}
	}
	notFound := &agentv1.McpToolNotFound{Name: args.GetToolName()}
	for _, t := range c.o.Tools {
		if t.Name != args.GetToolName() {
			notFound.AvailableTools = append(notFound.AvailableTools, t.Name)
			continue
		}
		in := map[string]any{}
		for name, value := range args.GetArgs() {
			in[name] = value.AsInterface()
		}
		text, err := t.Call(ctx, in)
		if err != nil {
			text = err.Error()
		}
		return &agentv1.McpResult{Result: &agentv1.McpResult_Success{Success: &agentv1.McpSuccess{
			IsError: err != nil,
			Content: []*agentv1.McpToolResultContentItem{{Content: &agentv1.McpToolResultContentItem_Text{Text: &agentv1.McpTextContent{Text: text}}}},
		}}}
	}
	return &agentv1.McpResult{Result: &agentv1.McpResult_ToolNotFound{ToolNotFound: notFound}}
}

// describe gives the context that the server has to ask for (section 3.9).
func describe(_ context.Context, e *Exec) error {
	terminals, err := e.Client.terminalsFolder()
	if err != nil {
		return err
	}
	workspace := e.Client.path("")
	rc := &agentv1.RequestContext{
		Env: &agentv1.RequestContextEnv{
			OsVersion: runtime.GOOS, WorkspacePaths: []string{workspace}, Shell: "sh", TerminalsFolder: terminals,
			TimeZone: "UTC", ProjectFolder: workspace, ProcessWorkingDirectory: new(workspace),
			SandboxSupported: new(false), ComputerUseSupported: new(false), IsWorkingDirHomeDir: new(false),
		},
		Tools:               e.Client.mcpTools().GetMcpTools(),
		SupportsMcpAuth:     new(true),
		GitRepoInfoComplete: new(true),
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_RequestContextResult{
		RequestContextResult: &agentv1.RequestContextResult{Result: &agentv1.RequestContextResult_Success{
			Success: &agentv1.RequestContextSuccess{RequestContext: rc},
		}},
	}})
	return nil
}

// diagnose finds nothing wrong with a file that is there.
func diagnose(_ context.Context, e *Exec) error {
	path := e.Args.GetDiagnosticsArgs().GetPath()
	result := &agentv1.DiagnosticsResult{Result: &agentv1.DiagnosticsResult_Success{Success: &agentv1.DiagnosticsSuccess{Path: path}}}
	if _, err := os.Stat(e.Client.path(path)); err != nil {
		result.Result = &agentv1.DiagnosticsResult_FileNotFound{FileNotFound: &agentv1.DiagnosticsFileNotFound{Path: path}}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_DiagnosticsResult{DiagnosticsResult: result}})
	return nil
}

// maxFetch is how much of a page is read, in bytes.
const maxFetch = 2 << 20

func fetch(ctx context.Context, e *Exec) error {
	url := e.Args.GetFetchArgs().GetUrl()
	result := new(agentv1.FetchResult)
	if s, err := get(ctx, url); err != nil {
		result.Result = &agentv1.FetchResult_Error{Error: &agentv1.FetchError{Url: url, Error: err.Error()}}
	} else {
		result.Result = &agentv1.FetchResult_Success{Success: s}
	}
	e.Send(&agentv1.ExecClientMessage{Message: &agentv1.ExecClientMessage_FetchResult{FetchResult: result}})
	return nil
}

func get(ctx context.Context, url string) (*agentv1.FetchSuccess, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	once := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := once.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxFetch))
	if err != nil {
		return nil, err
	}
	return &agentv1.FetchSuccess{
		Url: url, Content: string(body), StatusCode: int32(resp.StatusCode), ContentType: resp.Header.Get("Content-Type"),
	}, nil
}
