package config

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/roost-dev/roost/internal/session"
)

// config decodes the whole document.
func (d *decoder) config(c *Config, v value) {
	var defaultModel, aliases value
	d.mapping(v, fields{
		"providers":        func(v value) { d.providers(&c.Providers, v) },
		"default_model":    func(v value) { defaultModel = v },
		"aliases":          func(v value) { aliases = v },
		"default_thinking": enum(d, &c.DefaultThinking, session.ThinkingLevels...),
		"workspace":        func(v value) { d.workspace(&c.Workspace, v) },
		"pi":               func(v value) { d.pi(&c.Pi, v) },
		"cursor":           func(v value) { d.cursor(&c.Cursor, v) },
		"limits":           func(v value) { d.limits(&c.Limits, v) },
		"retention":        func(v value) { d.retention(&c.Retention, v) },
		"http":             func(v value) { d.http(&c.HTTP, v) },
		"log":              func(v value) { d.log(&c.Log, v) },
		"mcp_servers":      func(v value) { d.mcpServers(&c.MCPServers, v) },
		"permissions":      func(v value) { d.permissions(&c.Permissions, v) },
		"hooks":            func(v value) { d.hooks(&c.Hooks, v) },
		"compaction":       func(v value) { d.compaction(&c.Compaction, v) },
		"subagents":        func(v value) { d.subagents(&c.Subagents, v) },
		"web":              func(v value) { d.web(&c.Web, v) },
		"prompt":           func(v value) { d.prompt(&c.Prompt, v) },
	})
	if len(d.problems) > 0 && len(c.Providers) == 0 {
		return // the environment would be blamed for the file's mistakes
	}
	if len(c.Providers) == 0 {
		d.envProviders(c)
	}
	c.DefaultModel = firstModel(c.Providers)
	if defaultModel.path != "" {
		if ref, ok := d.modelRef(c, defaultModel); ok {
			c.DefaultModel = ref
		}
	}
	d.aliases(c, aliases)
}

func (d *decoder) workspace(w *Workspace, v value) {
	d.mapping(v, fields{
		"confine":     d.boolean(&w.Confine),
		"default_dir": d.path(&w.DefaultDir),
	})
}

func (d *decoder) pi(p *Pi, v value) {
	d.mapping(v, fields{
		"prompt_response": enum(d, &p.PromptResponse, PromptSettled, PromptAccepted),
	})
}

func (d *decoder) cursor(c *Cursor, v value) {
	d.mapping(v, fields{
		"event_stream_clients": func(v value) {
			d.list(v, func(v value) { d.parsed(&c.EventStreamClients, v, parseClientType) })
		},
		"local_tools": d.boolean(&c.LocalTools),
	})
}

// clientType is a word that a client says in a header.
var clientType = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

func parseClientType(s string) (string, error) {
	if !clientType.MatchString(s) {
		return "", fmt.Errorf("%s is not a type of client such as ide, cli or sdk", quote(s))
	}
	return s, nil
}

func (d *decoder) compaction(c *Compaction, v value) {
	d.mapping(v, fields{
		"auto":    d.boolean(&c.Auto),
		"reserve": d.integer(&c.Reserve, 1000, 1_000_000),
		"keep":    d.integer(&c.Keep, 0, 1_000_000),
	})
}

func (d *decoder) subagents(s *Subagents, v value) {
	d.mapping(v, fields{
		"depth":    d.integer(&s.Depth, 0, 8),
		"parallel": d.integer(&s.Parallel, 1, 64),
	})
}

func (d *decoder) web(w *Web, v value) {
	d.mapping(v, fields{
		"fetch":         d.boolean(&w.Fetch),
		"allow_private": d.boolean(&w.AllowPrivate),
		"search":        func(v value) { d.search(&w.Search, v) },
	})
}

func (d *decoder) prompt(p *Prompt, v value) {
	d.mapping(v, fields{"user_rules": d.path(&p.UserRules)})
}

func (d *decoder) limits(l *Limits, v value) {
	d.mapping(v, fields{
		"sessions":    d.integer(&l.Sessions, 1, 1_000_000),
		"connections": d.integer(&l.Connections, 1, 100_000),
		"body_bytes":  d.size(&l.BodyBytes, 64<<10, 256<<20),
		"idle_unload": d.duration(&l.IdleUnload, time.Second, 720*time.Hour),
		"heartbeat":   d.duration(&l.Heartbeat, time.Second, 5*time.Minute),
	})
}

func (d *decoder) retention(r *Retention, v value) {
	d.mapping(v, fields{
		"sessions": d.integer(&r.Sessions, 0, 1_000_000),
		"age":      orZero(&r.Age, d.duration(&r.Age, time.Hour, 87_600*time.Hour)),
		"size":     orZero(&r.Size, d.size(&r.Size, 1<<20, 1<<40)),
	})
}

func (d *decoder) http(h *HTTP, v value) {
	d.mapping(v, fields{
		"origins": func(v value) {
			d.list(v, func(v value) { d.parsed(&h.Origins, v, parseOrigin) })
		},
		"hosts": func(v value) {
			d.list(v, func(v value) { d.parsed(&h.Hosts, v, parseHost) })
		},
		"tokens": func(v value) {
			d.list(v, func(v value) { d.token(&h.Tokens, v) })
		},
		"insecure_bind": d.boolean(&h.InsecureBind),
	})
}

// parsed appends the text of v in the form that parse gives it.
func (d *decoder) parsed(dst *[]string, v value, parse func(string) (string, error)) {
	var s string
	if d.str(&s)(v); s == "" {
		return
	}
	s, err := parse(s)
	if err != nil {
		d.problemf(v, "%v", err)
		return
	}
	*dst = append(*dst, s)
}

func (d *decoder) token(dst *[]Token, v value) {
	var (
		t      Token
		digest string
	)
	before := len(d.problems)
	d.mapping(v, fields{"name": d.str(&t.Name), "sha256": d.str(&digest)})
	raw, err := hex.DecodeString(digest)
	switch {
	case len(d.problems) > before:
		return
	case t.Name == "" || digest == "":
		d.problemf(v, "needs name and sha256")
		return
	case err != nil || len(raw) != len(t.SHA256):
		d.problemf(v, "sha256 must be the 64 hexadecimal digits of the token's SHA-256")
		return
	}
	if t.Name == "token" {
		d.problemf(v, "the name token is the server's own; choose another")
		return
	}
	copy(t.SHA256[:], raw)
	for _, other := range *dst {
		if other.Name == t.Name {
			d.problemf(v, "a second token with the name %s", quote(t.Name))
			return
		}
	}
	*dst = append(*dst, t)
}

func (d *decoder) log(l *Log, v value) {
	level := "info"
	d.mapping(v, fields{
		"level":  enum(d, &level, "debug", "info", "warn", "error"),
		"format": enum(d, &l.Format, LogText, LogJSON),
	})
	l.Level = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}[level]
}
