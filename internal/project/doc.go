// Package project reads what a project tells agents: AGENTS.md and CLAUDE.md, Cursor's rules
// and skills. It runs before the first pass of a session, and again when somebody asks
// whether the files changed; package prompt turns what it returns into words.
//
//	files ──Read──▶ Project: rules, skills, notices ──▶ prompt.Context
//
// The files are data of strangers: they are read through a workspace.Root, bounded, and with
// control characters neutralised, and nothing in them is executed or expanded.
package project

// Limits on what is read.
const (
	MaxFile   = 24 << 10 // bytes of one file that are kept
	MaxTotal  = 96 << 10 // bytes of all rules and descriptions together
	MaxRules  = 100      // rules
	MaxSkills = 100      // skills
)

const (
	maxLevels      = 64   // directories from the repository's root to the working directory
	maxEntries     = 1000 // entries read of one directory
	maxGlobs       = 64   // globs of one rule
	maxName        = 64   // characters of a skill's name
	maxDescription = 1024 // characters of a description
	maxNotices     = 50
)

// Kind says when a rule applies.
type Kind string

// The kinds of rule.
const (
	Always Kind = "always" // in every session
	Glob   Kind = "glob"   // when files that match Globs are worked on
	Agent  Kind = "agent"  // when the model finds that Description fits
	Manual Kind = "manual" // when the user names it
)

// Rule is an instruction of the project. Path is as file tools accept it: relative to the
// working directory with slashes when the file is inside, else absolute.
type Rule struct {
	Path        string   `json:"path"`
	Kind        Kind     `json:"kind"`
	Globs       []string `json:"globs,omitempty"` // as written; for Kind Glob at least one
	Description string   `json:"description,omitempty"`
	Text        string   `json:"text"` // valid UTF-8 of at most MaxFile bytes and a notice
}

// Skill is a folder with instructions for one kind of task. Path is that of its SKILL.md,
// which the model reads when it needs it.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Path        string `json:"path"`
}

// Project is what Read found. It is plain data and may be stored as JSON.
type Project struct {
	Rules   []Rule   `json:"rules,omitempty"`
	Skills  []Skill  `json:"skills,omitempty"`
	Branch  string   `json:"branch,omitempty"`  // git's branch; empty when there is none or it cannot be read
	Notices []string `json:"notices,omitempty"` // for a person: what was left out, and why
}
