package prompt_test

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/project"
	"github.com/roost-dev/roost/internal/prompt"
)

func TestNote(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*prompt.Context)
		want   []string
	}{
		"directory":    {func(c *prompt.Context) { c.Env.Cwd = "/else" }, []string{"Working directory is now: /else"}},
		"no branch":    {func(c *prompt.Context) { c.Env.Branch = "" }, []string{"Git branch is no longer known."}},
		"user's rules": {func(c *prompt.Context) { c.UserRules = []string{"Be long."} }, []string{"These apply now", "Be long."}},
		"none of them": {func(c *prompt.Context) { c.UserRules = nil }, []string{"no longer apply"}},
		"rule changed": {func(c *prompt.Context) { c.Rules[0].Text = "Use ninja." }, []string{"The rule AGENTS.md has changed", "Use ninja."}},
		"rule gone":    {func(c *prompt.Context) { c.Rules = c.Rules[1:] }, []string{"The rule AGENTS.md is gone"}},
		"rule new": {func(c *prompt.Context) {
			c.Rules = append(c.Rules, project.Rule{Path: "N", Kind: project.Always, Text: "new"})
		}, []string{"The rule N is new", "new"}},
		"globs":         {func(c *prompt.Context) { c.Rules[1].Globs = []string{"*.rs"} }, []string{"match *.rs"}},
		"now manual":    {func(c *prompt.Context) { c.Rules[0].Kind = project.Manual }, []string{"AGENTS.md applies only when the user names it"}},
		"skill new":     {func(c *prompt.Context) { c.Skills = append(c.Skills, project.Skill{Name: "x", Path: "p"}) }, []string{"A skill is new:\n- x (p)"}},
		"skill changed": {func(c *prompt.Context) { c.Skills[0].Description = "other" }, []string{"A skill has changed:\n- pdf", "other"}},
		"skill gone":    {func(c *prompt.Context) { c.Skills = c.Skills[1:] }, []string{"The skill pdf is gone."}},
	} {
		next := someContext()
		c.change(&next)
		note := prompt.Note(someContext(), next)
		if !strings.HasPrefix(note, prompt.NoteMark+"\n") || next.Equal(someContext()) {
			t.Errorf("%s: note %q, equal %v", name, note, next.Equal(someContext()))
		}
		for _, want := range c.want {
			if !strings.Contains(note, want) {
				t.Errorf("%s: %q lacks %q", name, note, want)
			}
		}
		if n := strings.Count(note, "\n\n"); n > 3 {
			t.Errorf("%s: the note speaks of more than one change:\n%s", name, note)
		}
	}
}

func drawContext(t *rapid.T) prompt.Context {
	text := rapid.SampledFrom([]string{"", "a", "b"})
	c := prompt.Context{Env: prompt.Env{Cwd: text.Draw(t, "cwd"), Date: text.Draw(t, "date")}}
	for _, path := range []string{"p", "q"} {
		if rapid.Bool().Draw(t, path) {
			kind := rapid.SampledFrom([]project.Kind{project.Always, project.Glob, project.Agent}).Draw(t, "kind")
			c.Rules = append(c.Rules, project.Rule{Path: path, Kind: kind, Globs: []string{"g"}, Text: text.Draw(t, "text")})
			c.Skills = append(c.Skills, project.Skill{Name: path, Description: text.Draw(t, "description")})
		}
	}
	return c
}

// There is a note exactly when a model would be told something else.
func TestNoteWhenNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawContext(t), drawContext(t)
		if (prompt.Note(a, b) == "") != a.Equal(b) {
			t.Fatalf("equal is %v, the note %q", a.Equal(b), prompt.Note(a, b))
		}
		stored, err := json.Marshal(a)
		if err != nil {
			t.Fatal(err)
		}
		var back prompt.Context
		if err := json.Unmarshal(stored, &back); err != nil || prompt.Preamble(back) != prompt.Preamble(a) {
			t.Fatalf("a stored context tells something else (%v)", err)
		}
	})
}
