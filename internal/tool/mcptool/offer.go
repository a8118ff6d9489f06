package mcptool

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/roost-dev/roost/internal/tool"
)

const (
	maxTools       = 512  // of one server
	maxEntries     = 1000 // of one list of resources or prompts
	maxPages       = 100
	maxIdentifier  = 1 << 10 // bytes of a name or URI that is sent back to the server
	maxDescription = 4 << 10 // bytes of a tool's description
	maxProblems    = 20      // with the tools of one server
)

var (
	errPages      = errors.New("its list does not end")
	errIdentifier = errors.New("its name is longer than " + tool.Size(maxIdentifier))
)

// offer is what a server says it can do. It is never changed.
type offer struct {
	tools     []*remote
	problems  []error // with single tools
	resources bool
}

// equal tells whether models would see the same.
func (o offer) equal(p offer) bool {
	return o.resources == p.resources && slices.EqualFunc(o.tools, p.tools, func(a, b *remote) bool {
		return a.spec.Name == b.spec.Name && a.spec.Description == b.spec.Description &&
			a.spec.Repeatable == b.spec.Repeatable && bytes.Equal(a.spec.Schema, b.spec.Schema)
	})
}

// ask asks a server what it offers.
func (s *server) ask(ctx context.Context, l *link) (offer, error) {
	var o offer
	caps := &mcp.ServerCapabilities{}
	if hello := l.session.InitializeResult(); hello != nil && hello.Capabilities != nil {
		caps = hello.Capabilities
	}
	o.resources = caps.Resources != nil
	if caps.Tools == nil {
		return o, nil
	}
	list, err := pages(maxTools, func(cursor string) ([]candidate, string, error) {
		res, err := l.session.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil || res == nil {
			return nil, "", err
		}
		return s.candidates(res.Tools), res.NextCursor, nil
	})
	if err != nil {
		return o, err
	}
	s.choose(&o, list)
	return o, nil
}

// candidate is a tool that is wanted, or why it cannot be used. It holds little of what the
// server sent, however much that was.
type candidate struct {
	name string // the server's own
	tool *remote
	err  error
}

func (s *server) candidates(page []*mcp.Tool) []candidate {
	var all []candidate
	for _, t := range page {
		if t == nil || s.cfg.Tools != nil && !slices.Contains(s.cfg.Tools, t.Name) {
			continue
		}
		c := candidate{name: t.Name}
		if len(t.Name) > maxIdentifier {
			c.name, c.err = tool.Cut(t.Name, 100), errIdentifier
		} else {
			c.tool, c.err = newRemote(s, t)
		}
		all = append(all, c)
	}
	return all
}

// choose takes each tool that can be used, once.
func (s *server) choose(o *offer, list []candidate) {
	missing := slices.Clone(s.cfg.Tools)
	seen := map[string]bool{}
	problem := func(format string, args ...any) {
		if len(o.problems) < maxProblems {
			o.problems = append(o.problems, fmt.Errorf(format, args...))
		}
	}
	for _, c := range list {
		if seen[c.name] {
			continue
		}
		seen[c.name] = true
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == c.name })
		if c.err != nil {
			problem("tool %q cannot be used: %w", cleanLine(c.name, 100), c.err)
		} else {
			o.tools = append(o.tools, c.tool)
		}
	}
	for _, name := range missing {
		problem("it has no tool %q", name)
	}
	slices.SortFunc(o.tools, func(a, b *remote) int { return cmp.Compare(a.spec.Name, b.spec.Name) })
}

// newRemote returns the tool that a server describes.
func newRemote(s *server, t *mcp.Tool) (*remote, error) {
	schema, err := inputSchema(t.InputSchema)
	if err != nil {
		return nil, err
	}
	text := clean(tool.Cut(cmp.Or(t.Description, t.Title), maxDescription))
	r := &remote{server: s, name: t.Name, spec: tool.Spec{
		Name:        toolName(s.cfg.Name, t.Name),
		Description: tool.Cut(cmp.Or(text, "A tool of the MCP server "+s.cfg.Name), maxDescription),
		Schema:      schema,
	}}
	if a := t.Annotations; a != nil && s.cfg.TrustAnnotations {
		r.spec.Repeatable = a.ReadOnlyHint || a.IdempotentHint
	}
	return r, nil
}

// pages gathers a list that comes in pages, up to limit entries.
func pages[T any](limit int, page func(cursor string) ([]T, string, error)) ([]T, error) {
	var (
		all    []T
		cursor string
	)
	for range maxPages {
		var (
			some []T
			next string
		)
		err := guarded(func() (err error) { some, next, err = page(cursor); return err })
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		if len(all) >= limit {
			return all[:limit], nil
		}
		if next == "" {
			return all, nil
		}
		cursor = next
	}
	return nil, errPages
}
