package prompt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/project"
	"github.com/roost-dev/roost/internal/session"
)

// NoteMark begins every note, so that a note can be told from what a person wrote.
const NoteMark = "[Note from the server, not from the user]"

// Note returns what a model must be told when the context of a session changes from old to
// new, and "" when that is nothing. The caller adds it to the transcript as a user item and
// keeps it there as it is: the first message of the session stays what it was.
func Note(old, new Context) string {
	var b strings.Builder
	noteEnv(&b, old.Env, new.Env)
	if new.Client != old.Client && new.Client != "" {
		b.WriteString("\nThe client's instructions have changed. They say now:\n\n" + fenced(new.Client))
	}
	if !slices.Equal(old.UserRules, new.UserRules) {
		if len(new.UserRules) == 0 {
			b.WriteString("\nThe user's own rules no longer apply.\n")
		} else {
			b.WriteString("\nThe user's own rules have changed. These apply now:\n\n")
			writeUserRules(&b, new.UserRules)
		}
	}
	noteRules(&b, old.Rules, new.Rules)
	noteSkills(&b, old.Skills, new.Skills)
	if b.Len() == 0 {
		return ""
	}
	return NoteMark + "\n" + b.String()
}

// isNote reports whether a user item is a note.
func isNote(u *session.User) bool { return u.Note != session.NoteNone }

func noteEnv(b *strings.Builder, old, new Env) {
	before := old.facts()
	for _, f := range new.facts() {
		if !slices.Contains(before, f) {
			fmt.Fprintf(b, "\n%s is now: %s\n", f[0], f[1])
		}
	}
	after := new.facts()
	for _, f := range before {
		if !slices.ContainsFunc(after, func(g [2]string) bool { return f[0] == g[0] }) {
			fmt.Fprintf(b, "\n%s is no longer known.\n", f[0])
		}
	}
}

func noteRules(b *strings.Builder, old, new []project.Rule) {
	for _, r := range new {
		i := slices.IndexFunc(old, func(o project.Rule) bool { return o.Path == r.Path })
		if i >= 0 && sameRule(old[i], r) {
			continue
		}
		what := "is new"
		if i >= 0 {
			what = "has changed"
		}
		switch r.Kind {
		case project.Always:
			fmt.Fprintf(b, "\nThe rule %s %s. It says now:\n%s", oneLine(r.Path), what, fenced(r.Text))
		case project.Glob, project.Agent:
			fmt.Fprintf(b, "\nA rule %s; read its file before work that it concerns:\n%s", what, ruleLine(r))
		case project.Manual:
			if i >= 0 && old[i].Kind != project.Manual {
				fmt.Fprintf(b, "\nThe rule %s applies only when the user names it.\n", oneLine(r.Path))
			}
		}
	}
	for _, r := range old {
		if r.Kind != project.Manual && !slices.ContainsFunc(new, func(n project.Rule) bool { return n.Path == r.Path }) {
			fmt.Fprintf(b, "\nThe rule %s is gone and no longer applies.\n", oneLine(r.Path))
		}
	}
}

func noteSkills(b *strings.Builder, old, new []project.Skill) {
	for _, s := range new {
		if slices.Contains(old, s) {
			continue
		}
		what := "is new"
		if slices.ContainsFunc(old, func(o project.Skill) bool { return o.Name == s.Name }) {
			what = "has changed"
		}
		fmt.Fprintf(b, "\nA skill %s:\n%s", what, skillLine(s))
	}
	for _, s := range old {
		if !slices.ContainsFunc(new, func(n project.Skill) bool { return n.Name == s.Name }) {
			fmt.Fprintf(b, "\nThe skill %s is gone.\n", oneLine(s.Name))
		}
	}
}
