package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/roost-dev/roost/internal/config"
	"github.com/roost-dev/roost/internal/cursor"
	"github.com/roost-dev/roost/internal/datadir"
	"github.com/roost-dev/roost/internal/permission"
	"github.com/roost-dev/roost/internal/pi"
	"github.com/roost-dev/roost/internal/session"
)

// judge decides about tool calls by the user's configuration and what people have allowed.
// It is safe for concurrent use.
type judge struct {
	cfg    config.Permissions
	policy permission.Policy
	grants *grants
}

var actions = map[config.Action]permission.Action{
	config.ActionAllow: permission.Allow,
	config.ActionAsk:   permission.Ask,
	config.ActionDeny:  permission.Deny,
}

func newJudge(cfg config.Permissions, g *grants) *judge {
	j := &judge{cfg: cfg, grants: g, policy: permission.Policy{Default: actions[cfg.Default]}}
	j.policy.Home, _ = os.UserHomeDir() // without it "~" is unknown, and asked about
	for _, r := range cfg.Rules {
		j.policy.Rules = append(j.policy.Rules, permission.Rule{Tool: r.Tool, Pattern: r.Pattern, Path: r.Path, Action: actions[r.Action]})
	}
	return j
}

// judge implements the engine's question.
func (j *judge) judge(s *session.State, c session.ToolCall) session.Verdict {
	policy := j.policy
	policy.Trusted = slices.ContainsFunc(j.cfg.Trusted, func(dir string) bool { return within(dir, s.Cwd) })
	input := json.RawMessage(c.Input)
	if len(input) == 0 {
		input = json.RawMessage("{}")
	}
	d := policy.Judge(permission.Call{Tool: c.Name, Input: input, Dir: s.Cwd}, permission.Grants(slices.Concat(s.Grants, j.grants.in(s.Cwd))))
	switch d.Action {
	case permission.Allow:
		return session.Verdict{}
	case permission.Ask:
		if s.Origin != pi.Origin && s.Origin != cursor.Origin { // version 1 of pi's protocol has no way to ask
			return session.Verdict{Query: &session.Query{Reason: d.Reason, Grants: d.Remember}, Limit: j.cfg.AskTimeout.Milliseconds()}
		}
		if j.cfg.WithoutClient == config.ActionAllow {
			return session.Verdict{}
		}
		return session.Verdict{Refusal: "This call needs the person's permission, and this client has no way to ask: " + d.Reason}
	case permission.Deny:
	}
	return session.Verdict{Refusal: "This call is not allowed: " + d.Reason}
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// grants is what people have allowed for always, by working directory, in a file of the data
// directory. It is safe for concurrent use.
type grants struct {
	path string

	mu  sync.Mutex
	all map[string][]string
}

func openGrants(path string) (*grants, error) {
	g := &grants{path: path, all: make(map[string][]string)}
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return g, nil
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(text, &g.all); err != nil {
		return nil, fmt.Errorf("%s: %w; mend or remove it", path, err)
	}
	return g, nil
}

// in returns what is allowed in a working directory.
func (g *grants) in(dir string) []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.all[dir]
}

// add keeps more of what is allowed in a working directory.
func (g *grants) add(dir string, more []string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	all := maps.Clone(g.all)
	all[dir] = permission.Grants(g.all[dir]).With(more...)
	if err := writeJSON(g.path, all); err != nil {
		return err
	}
	g.all = all
	return nil
}

// writeJSON replaces a private file of the data directory.
func writeJSON(path string, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return datadir.Replace(path, append(text, '\n'))
}
