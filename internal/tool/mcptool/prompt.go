package mcptool

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/roost-dev/roost/internal/tool"
)

const maxArguments = 100 // of one prompt

// Prompt is a text that a server prepares for the user to send.
type Prompt struct {
	Server      string
	Name        string
	Description string
	Arguments   []PromptArgument
}

// PromptArgument is a value that the user gives to a prompt.
type PromptArgument struct {
	Name        string
	Description string
	Required    bool
}

// PromptMessage is one message of a prepared prompt.
type PromptMessage struct {
	Role   string // "user" or "assistant"
	Text   string
	Images []tool.Image
}

// Prompts returns a server's prompts, at most 1000, starting it when it does not run. The
// error is [ErrUnknown] for a name that is not configured.
func (m *Manager) Prompts(ctx context.Context, name string) ([]Prompt, error) {
	s, err := m.server(name)
	if err != nil {
		return nil, err
	}
	var list []Prompt
	err = s.call(ctx, nil, func(ctx context.Context, l *link, _ string) (err error) {
		list, err = pages(maxEntries, func(cursor string) ([]Prompt, string, error) {
			res, err := l.session.ListPrompts(ctx, &mcp.ListPromptsParams{Cursor: cursor})
			if err != nil || res == nil {
				return nil, "", err
			}
			return prompts(name, res.Prompts), res.NextCursor, nil
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// prompts keeps of a server's page what people need.
func prompts(name string, page []*mcp.Prompt) []Prompt {
	var all []Prompt
	for _, p := range page {
		if p == nil || len(p.Name) > maxIdentifier {
			continue
		}
		out := Prompt{Server: name, Name: p.Name, Description: cleanLine(p.Description, 500)}
		for _, a := range p.Arguments {
			if a != nil && len(a.Name) <= maxIdentifier && len(out.Arguments) < maxArguments {
				out.Arguments = append(out.Arguments, PromptArgument{a.Name, cleanLine(a.Description, 500), a.Required})
			}
		}
		all = append(all, out)
	}
	return all
}

// GetPrompt lets a server prepare a prompt with the user's arguments.
func (m *Manager) GetPrompt(ctx context.Context, name, prompt string, args map[string]string) ([]PromptMessage, error) {
	s, err := m.server(name)
	if err != nil {
		return nil, err
	}
	var res *mcp.GetPromptResult
	err = s.call(ctx, nil, func(ctx context.Context, l *link, _ string) (err error) {
		res, err = l.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: prompt, Arguments: args})
		return err
	})
	if err != nil {
		return nil, err
	}
	var all []PromptMessage
	for _, msg := range res.Messages {
		if msg == nil || len(all) == maxContents {
			continue
		}
		one := callResult(&mcp.CallToolResult{Content: []mcp.Content{msg.Content}}, s.cfg.MaxOutput, "")
		role := "user"
		if msg.Role == "assistant" {
			role = "assistant"
		}
		all = append(all, PromptMessage{Role: role, Text: one.Text, Images: one.Images})
	}
	return all, nil
}
