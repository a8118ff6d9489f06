package config

import "time"

// Permissions says which tool calls run, which are asked about and which are refused.
type Permissions struct {
	Default       Action // for calls that no rule is about
	Rules         []PermissionRule
	WithoutClient Action // ActionAllow or ActionDeny: what ActionAsk means when nobody can be asked
	Sandbox       Sandbox
	AskTimeout    time.Duration // how long a question is open before its call is refused
	Trusted       []string      // absolute directories below which what is risky is not asked about for that alone
}

// Action is what happens to a tool call.
type Action string

// The actions.
const (
	ActionAllow Action = "allow"
	ActionAsk   Action = "ask"
	ActionDeny  Action = "deny"
)

// PermissionRule is about the calls of a tool that fit all of its patterns.
type PermissionRule struct {
	Tool    string // a tool's name, with * for any text
	Pattern string // of the command or the argument; empty for any
	Path    string // of the file, a glob from the session's directory; empty for any
	Action  Action
}

// Sandbox says whether programs are confined by the kernel.
type Sandbox string

// The ways to run programs.
const (
	SandboxOff Sandbox = "off"
	SandboxOn  Sandbox = "on"
)

// Hooks are programs that run beside a session's work, in the order of the file.
type Hooks struct {
	BeforeTool   []Hook
	AfterTool    []Hook
	BeforePrompt []Hook
	RunEnd       []Hook
}

// Hook is a program that runs at a moment of a session.
type Hook struct {
	Match   string        // tools only: a tool's name, with * for any text; empty for every tool
	Command []string      // program and arguments, run without a shell; never empty
	Timeout time.Duration // 100 ms to 10 min
}

// DefaultHookTimeout is how long a hook may run that says nothing else.
const DefaultHookTimeout = 10 * time.Second

const (
	maxRules     = 1000
	maxHooks     = 100  // at one moment
	maxRulesText = 1024 // bytes of a pattern
)

func (d *decoder) permissions(p *Permissions, v value) {
	d.mapping(v, fields{
		"default":        enum(d, &p.Default, ActionAllow, ActionAsk, ActionDeny),
		"rules":          func(v value) { d.list(v, func(v value) { d.permissionRule(&p.Rules, v) }) },
		"without_client": enum(d, &p.WithoutClient, ActionAllow, ActionDeny),
		"ask_timeout":    d.duration(&p.AskTimeout, time.Second, 8760*time.Hour),
		"sandbox":        enum(d, &p.Sandbox, SandboxOff, SandboxOn),
		"trusted": func(v value) {
			d.list(v, func(v value) {
				var dir string
				if d.path(&dir)(v); dir != "" {
					p.Trusted = append(p.Trusted, dir)
				}
			})
		},
	})
	if len(p.Rules) > maxRules {
		d.problemf(v, "has more than %d rules", maxRules)
	}
}

func (d *decoder) permissionRule(dst *[]PermissionRule, v value) {
	var r PermissionRule
	before := len(d.problems)
	d.mapping(v, fields{
		"tool":    d.pattern(&r.Tool),
		"pattern": d.pattern(&r.Pattern),
		"path":    d.pattern(&r.Path),
		"action":  enum(d, &r.Action, ActionAllow, ActionAsk, ActionDeny),
	})
	if len(d.problems) == before && (r.Tool == "" || r.Action == "") {
		d.problemf(v, `needs tool, "*" for every tool, and action: allow, ask or deny`)
	}
	*dst = append(*dst, r)
}

// pattern is str for text that is matched against others.
func (d *decoder) pattern(dst *string) func(value) {
	return func(v value) {
		d.str(dst)(v)
		if len(*dst) > maxRulesText {
			d.problemf(v, "is longer than %d bytes", maxRulesText)
		}
	}
}

func (d *decoder) hooks(h *Hooks, v value) {
	moment := func(dst *[]Hook, ofTool bool) func(value) {
		return func(v value) {
			d.list(v, func(v value) { d.hook(dst, ofTool, v) })
			if len(*dst) > maxHooks {
				d.problemf(v, "has more than %d hooks", maxHooks)
			}
		}
	}
	d.mapping(v, fields{
		"before_tool":   moment(&h.BeforeTool, true),
		"after_tool":    moment(&h.AfterTool, true),
		"before_prompt": moment(&h.BeforePrompt, false),
		"run_end":       moment(&h.RunEnd, false),
	})
}

func (d *decoder) hook(dst *[]Hook, ofTool bool, v value) {
	h := Hook{Timeout: DefaultHookTimeout}
	before := len(d.problems)
	known := fields{
		"command": func(v value) { d.list(v, func(v value) { d.argument(&h.Command, v) }) },
		"timeout": d.duration(&h.Timeout, 100*time.Millisecond, 10*time.Minute),
	}
	if ofTool {
		known["match"] = d.pattern(&h.Match)
	}
	d.mapping(v, known)
	if len(d.problems) == before && (len(h.Command) == 0 || h.Command[0] == "") {
		d.problemf(v, "needs command, a list: a program and its arguments")
	}
	*dst = append(*dst, h)
}
