package mcptool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/schema"
)

// Resource is something that a server lets read.
type Resource struct {
	Server      string
	URI         string
	Name        string
	Description string
	MIME        string
	Size        int64 // bytes; 0 when the server does not say
}

// Resources returns a server's resources, at most 1000 and those with URIs of at most 1 KiB,
// starting it when it does not run.
// The error is [ErrUnknown] for a name that is not configured.
func (m *Manager) Resources(ctx context.Context, name string) ([]Resource, error) {
	s, err := m.server(name)
	if err != nil {
		return nil, err
	}
	var list []Resource
	err = s.call(ctx, nil, func(ctx context.Context, l *link, _ string) (err error) {
		list, err = pages(maxEntries, func(cursor string) ([]Resource, string, error) {
			res, err := l.session.ListResources(ctx, &mcp.ListResourcesParams{Cursor: cursor})
			if err != nil || res == nil {
				return nil, "", err
			}
			return resources(name, res.Resources), res.NextCursor, nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// resources keeps of a server's page what people and models need.
func resources(name string, page []*mcp.Resource) []Resource {
	var all []Resource
	for _, r := range page {
		if r != nil && len(r.URI) <= maxIdentifier {
			all = append(all, Resource{
				Server: name, URI: r.URI, Name: cleanLine(r.Name, 200),
				Description: cleanLine(r.Description, 500), MIME: cleanLine(r.MIMEType, 100), Size: r.Size,
			})
		}
	}
	return all
}

// ReadResource reads a resource into a result like a tool's: texts and images. A text that
// is too long is kept in outputDir as well, when that is not empty.
func (m *Manager) ReadResource(ctx context.Context, name, uri, outputDir string) (tool.Result, error) {
	s, err := m.server(name)
	if err != nil {
		return tool.Result{}, err
	}
	var res *mcp.ReadResourceResult
	err = s.call(ctx, nil, func(ctx context.Context, l *link, _ string) (err error) {
		res, err = l.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: uri})
		return err
	})
	if err != nil {
		return tool.Result{}, err
	}
	out := &mcp.CallToolResult{}
	for _, c := range res.Contents {
		out.Content = append(out.Content, &mcp.EmbeddedResource{Resource: c})
	}
	return callResult(out, s.cfg.MaxOutput, outputDir), nil
}

//go:embed list_resources.json
var listResourcesJSON []byte

//go:embed read_resource.json
var readResourceJSON []byte

var (
	listResourcesSchema = schema.MustParse(listResourcesJSON)
	readResourceSchema  = schema.MustParse(readResourceJSON)
)

// listResources is the tool mcp_list_resources.
type listResources struct{ m *Manager }

// Spec describes the tool.
func (*listResources) Spec() tool.Spec {
	return tool.Spec{
		Name:        "mcp_list_resources",
		Description: "List the resources (files, records, documents) that MCP servers offer, with the URIs to read them by.",
		Schema:      listResourcesSchema.Raw(),
		Repeatable:  true,
	}
}

// Run lists the resources of one server or of all that have any.
func (t *listResources) Run(ctx context.Context, call tool.Call, _ func(tool.Progress)) tool.Result {
	var in struct {
		Server string `json:"server"`
	}
	if err := listResourcesSchema.Decode(call.Input, &in); err != nil {
		return tool.Failure(err.Error())
	}
	names := []string{in.Server}
	if in.Server == "" {
		names = nil
		for _, s := range t.m.servers {
			if s.known().resources {
				names = append(names, s.cfg.Name)
			}
		}
	}
	var (
		text   strings.Builder
		failed int
	)
	for _, name := range names {
		list, err := t.m.Resources(ctx, name)
		if err != nil {
			failed++
			fmt.Fprintf(&text, "%s: %v\n", name, err)
			continue
		}
		fmt.Fprintf(&text, "%s: %d resources\n", name, len(list))
		for _, r := range list {
			fmt.Fprintf(&text, "  %s  %s\n", cleanLine(r.URI, 1000), strings.TrimSpace(r.Name+"  "+r.Description))
		}
	}
	out := fit(strings.TrimRight(text.String(), "\n"), defaultMaxOutput, call.OutputDir)
	if out == "" {
		out = "No MCP server offers resources."
	}
	return tool.Result{Text: out, IsError: failed > 0 && failed == len(names)}
}

// readResource is the tool mcp_read_resource.
type readResource struct{ m *Manager }

// Spec describes the tool.
func (*readResource) Spec() tool.Spec {
	return tool.Spec{
		Name:        "mcp_read_resource",
		Description: "Read a resource of an MCP server by its URI. List them with mcp_list_resources.",
		Schema:      readResourceSchema.Raw(),
		Repeatable:  true,
	}
}

// Run reads the resource.
func (t *readResource) Run(ctx context.Context, call tool.Call, _ func(tool.Progress)) tool.Result {
	var in struct {
		Server string `json:"server"`
		URI    string `json:"uri"`
	}
	if err := readResourceSchema.Decode(call.Input, &in); err != nil {
		return tool.Failure(err.Error())
	}
	res, err := t.m.ReadResource(ctx, in.Server, in.URI, call.OutputDir)
	if err != nil {
		return tool.Failure(err.Error())
	}
	return res
}
