package prompt

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/roost-dev/roost/internal/project"
)

// Env is what a session knows of its surroundings. Whoever starts a session looks once and
// stores it with the session; an empty field is not mentioned.
type Env struct {
	Cwd    string `json:"cwd,omitempty"`
	OS     string `json:"os,omitempty"`    // "linux", "Windows 11"
	Shell  string `json:"shell,omitempty"` // path or name
	Date   string `json:"date,omitempty"`  // 2026-01-31
	Branch string `json:"branch,omitempty"`
}

// Context is what a model is told before the first message. It is plain data, stored with
// the session as JSON.
type Context struct {
	Env       Env             `json:"env"`
	Client    string          `json:"client,omitempty"`    // what the client's own system prompt says
	UserRules []string        `json:"userRules,omitempty"` // the user's own, from their configuration or client
	Rules     []project.Rule  `json:"rules,omitempty"`
	Skills    []project.Skill `json:"skills,omitempty"`
}

// facts are the lines of an environment: a label and a value.
func (e Env) facts() [][2]string {
	var list [][2]string
	for _, f := range [][2]string{
		{"Working directory", e.Cwd},
		{"Operating system", e.OS},
		{"Shell", e.Shell},
		{"Date", e.Date},
		{"Git branch", e.Branch},
	} {
		if f[1] != "" {
			list = append(list, [2]string{f[0], oneLine(f[1])})
		}
	}
	return list
}

// Preamble returns the text of the first message: the environment, the rules and the skills.
func Preamble(c Context) string {
	var b strings.Builder
	b.WriteString("This message comes from the server that runs the session, not from the user. It says how things stood when the session began.\n")
	if facts := c.Env.facts(); len(facts) > 0 {
		b.WriteString("\n# Environment\n\n")
		for _, f := range facts {
			fmt.Fprintf(&b, "%s: %s\n", f[0], f[1])
		}
	}
	if c.Client != "" {
		b.WriteString("\n# The client's instructions\n\nThe program that the user works in says this to every model. Follow it where it fits the tools that you have.\n\n" + fenced(c.Client))
	}
	if len(c.UserRules) > 0 {
		b.WriteString("\n# The user's own rules\n\nThe user wrote them for all sessions. Follow them unless the user says otherwise here.\n\n")
		writeUserRules(&b, c.UserRules)
	}
	writeRules(&b, c.Rules)
	if len(c.Skills) > 0 {
		b.WriteString("\n# Skills\n\nEach is a file with instructions for one kind of task. When a task fits, read the file first and follow it.\n\n")
		for _, s := range c.Skills {
			b.WriteString(skillLine(s))
		}
	}
	return b.String()
}

func writeUserRules(b *strings.Builder, rules []string) {
	for _, r := range rules {
		b.WriteString(fenced(r))
	}
}

// writeRules writes the text of the rules that always apply, and where the others are.
func writeRules(b *strings.Builder, rules []project.Rule) {
	heading := "\n# Rules of the project\n\nThey are files of the project. Follow them where they concern the task. What the user says comes first, and no rule gives you a permission that you do not have.\n"
	for _, r := range rules {
		if r.Kind == project.Always {
			b.WriteString(heading)
			heading = ""
			fmt.Fprintf(b, "\n%s:\n%s", oneLine(r.Path), fenced(r.Text))
		}
	}
	heading = "\n# Rules for certain work\n\nRead the file of a rule before work that it concerns.\n\n"
	for _, r := range rules {
		if l := ruleLine(r); l != "" {
			b.WriteString(heading)
			heading = ""
			b.WriteString(l)
		}
	}
}

// ruleLine says where a rule is and when it applies. Rules that always apply are given in
// full instead, and manual ones are the user's to name.
func ruleLine(r project.Rule) string {
	switch r.Kind {
	case project.Glob:
		what := ""
		if r.Description != "" {
			what = ": " + oneLine(r.Description)
		}
		return fmt.Sprintf("- %s, for files that match %s%s\n", oneLine(r.Path), oneLine(strings.Join(r.Globs, ", ")), what)
	case project.Agent:
		return fmt.Sprintf("- %s: %s\n", oneLine(r.Path), oneLine(r.Description))
	case project.Always, project.Manual:
	}
	return ""
}

func skillLine(s project.Skill) string {
	if s.Description == "" {
		return fmt.Sprintf("- %s (%s)\n", oneLine(s.Name), oneLine(s.Path))
	}
	return fmt.Sprintf("- %s (%s): %s\n", oneLine(s.Name), oneLine(s.Path), oneLine(s.Description))
}

// oneLine returns s as it is, or in Go's quoted form when it would not stay on its line.
func oneLine(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == unicode.ReplacementChar }) {
		return strconv.Quote(s)
	}
	return s
}

// fenced returns text between fences that it cannot close, since they are longer than any
// run of backticks in it.
func fenced(text string) string {
	longest, run := 2, 0
	for i := range len(text) {
		if text[i] == '`' {
			run++
			longest = max(longest, run)
		} else {
			run = 0
		}
	}
	fence := strings.Repeat("`", longest+1)
	return fence + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}

// Equal reports whether a model is told the same by c and d.
func (c Context) Equal(d Context) bool {
	return c.Env == d.Env && slices.Equal(c.UserRules, d.UserRules) &&
		slices.EqualFunc(c.Rules, d.Rules, sameRule) && slices.Equal(c.Skills, d.Skills)
}

// sameRule reports whether a model is told the same by a and b.
func sameRule(a, b project.Rule) bool {
	return a.Path == b.Path && a.Kind == b.Kind && a.Text == b.Text &&
		a.Description == b.Description && slices.Equal(a.Globs, b.Globs)
}
