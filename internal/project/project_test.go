package project_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/project"
)

// tree writes files, given as path and text, into a new directory and returns it.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, o project.Options) project.Project {
	t.Helper()
	p, err := project.Read(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func paths(p project.Project) []string {
	var list []string
	for _, r := range p.Rules {
		list = append(list, fmt.Sprintf("%s %s", r.Path, r.Kind))
	}
	return list
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	g, _ := json.MarshalIndent(got, "", " ")
	w, _ := json.MarshalIndent(want, "", " ")
	if string(g) != string(w) {
		t.Errorf("%s: got\n%s\nwant\n%s", what, g, w)
	}
}

func TestFromTheRepositoryDown(t *testing.T) {
	dir := tree(t, map[string]string{
		"AGENTS.md": "above the repository", "repo/.git/HEAD": "ref: refs/heads/feature/x\n",
		"repo/AGENTS.md": "top", "repo/CLAUDE.md": "top too", "repo/a/CLAUDE.md": "middle",
		"repo/a/b/AGENTS.md": "here", "repo/a/b/c/AGENTS.md": "below",
	})
	work := filepath.Join(dir, "repo", "a", "b")
	p := read(t, project.Options{Dir: work})
	top := filepath.ToSlash(filepath.Join(dir, "repo"))
	equal(t, "rules", paths(p), []string{top + "/AGENTS.md always", top + "/CLAUDE.md always", top + "/a/CLAUDE.md always", "AGENTS.md always"})
	equal(t, "branch", p.Branch, "feature/x")

	p = read(t, project.Options{Dir: work, Confined: true})
	equal(t, "confined rules", paths(p), []string{"AGENTS.md always"})
	equal(t, "confined branch", p.Branch, "")
}

func TestWithoutARepositoryNothingAboveCounts(t *testing.T) {
	dir := tree(t, map[string]string{"AGENTS.md": "above", "a/AGENTS.md": "here"})
	p := read(t, project.Options{Dir: filepath.Join(dir, "a")})
	equal(t, "rules", paths(p), []string{"AGENTS.md always"})
}

func TestOneTextCountsOnce(t *testing.T) {
	dir := tree(t, map[string]string{".git/HEAD": "0123", "AGENTS.md": "same", "a/CLAUDE.md": "same\n", "a/b/x": ""})
	if err := os.Symlink("AGENTS.md", filepath.Join(dir, "CLAUDE.md")); err != nil {
		t.Fatal(err)
	}
	p := read(t, project.Options{Dir: filepath.Join(dir, "a")})
	if len(p.Rules) != 1 || len(p.Notices) != 0 || p.Branch != "" {
		t.Errorf("got %+v", p)
	}
}

func TestWorktree(t *testing.T) {
	dir := tree(t, map[string]string{"main/.git/worktrees/w/HEAD": "ref: refs/heads/w", "w/.git": "gitdir: ../main/.git/worktrees/w\n"})
	equal(t, "branch", read(t, project.Options{Dir: filepath.Join(dir, "w")}).Branch, "w")
	equal(t, "confined", read(t, project.Options{Dir: filepath.Join(dir, "w"), Confined: true}).Branch, "")
}

func TestCursorRules(t *testing.T) {
	dir := tree(t, map[string]string{
		".cursor/rules/a.mdc":   "---\ndescription: Always so\nglobs: *.go\nalwaysApply: true\n---\n\nA\n",
		".cursor/rules/b.mdc":   "---\ndescription:\nglobs: *.{c,h}, src/**/*.go # two\nalwaysApply: false\n---\nB",
		".cursor/rules/c.mdc":   "---\ndescription: \"When: it\\u2019s\"\nglobs:\n---\nC",
		".cursor/rules/d.mdc":   "D, without front matter",
		".cursor/rules/e.mdc":   "---\r\nglobs:\r\n  - 'a b/*.ts'\r\n  - \"*.tsx\"\r\n---\r\nE\r\n",
		".cursor/rules/f.mdc":   "---\ndescription: never closed\nF",
		".cursor/rules/g.md":    "not a rule",
		".cursor/rules/h.mdc":   "---\nalwaysApply: true\n---\n",
		".cursor/rules/sub/i.c": "",
	})
	p := read(t, project.Options{Dir: dir, Confined: true})
	equal(t, "rules", p.Rules, []project.Rule{
		{Path: ".cursor/rules/a.mdc", Kind: project.Always, Globs: []string{"*.go"}, Description: "Always so", Text: "A"},
		{Path: ".cursor/rules/b.mdc", Kind: project.Glob, Globs: []string{"*.{c,h}", "src/**/*.go"}, Text: "B"},
		{Path: ".cursor/rules/c.mdc", Kind: project.Agent, Description: "When: it’s", Text: "C"},
		{Path: ".cursor/rules/d.mdc", Kind: project.Manual, Text: "D, without front matter"},
		{Path: ".cursor/rules/e.mdc", Kind: project.Glob, Globs: []string{"a b/*.ts", "*.tsx"}, Text: "E"},
	})
	if len(p.Notices) != 1 || !strings.Contains(p.Notices[0], "f.mdc") {
		t.Errorf("notices: %q", p.Notices)
	}
}

func TestSkills(t *testing.T) {
	user := tree(t, map[string]string{
		"deploy/SKILL.md": "---\nname: deploy\ndescription: the user's\n---\n", "pdf/SKILL.md": "---\nname: pdf\ndescription: >\n  Read PDF\n  files.\n---\n",
	})
	dir := tree(t, map[string]string{
		".roost/skills/deploy/SKILL.md": "---\nname: deploy\ndescription: the project's\n---\nbody",
		".claude/skills/plain/SKILL.md": "no front matter", ".claude/skills/README.md": "", ".cursor/skills/empty/x": "",
	})
	p := read(t, project.Options{Dir: dir, Confined: true, UserSkills: user})
	equal(t, "skills", p.Skills, []project.Skill{
		{Name: "deploy", Description: "the project's", Path: ".roost/skills/deploy/SKILL.md"},
		{Name: "plain", Path: ".claude/skills/plain/SKILL.md"},
		{Name: "pdf", Description: "Read PDF files.", Path: filepath.ToSlash(user) + "/pdf/SKILL.md"},
	})
	if len(p.Notices) != 1 || !strings.Contains(p.Notices[0], "another skill") {
		t.Errorf("notices: %q", p.Notices)
	}
	p = read(t, project.Options{Dir: dir, UserSkills: filepath.Join(user, "none")})
	if len(p.Skills) != 2 || len(p.Notices) != 0 {
		t.Errorf("without a user's directory: %+v", p)
	}
}

func TestNothingOutsideIsRead(t *testing.T) {
	secret := tree(t, map[string]string{"key": "SECRET", "s/SKILL.md": "---\nname: SECRET\n---"})
	dir := tree(t, map[string]string{"x": ""})
	for link, to := range map[string]string{
		"AGENTS.md": "key", ".cursor/rules/a.mdc": "key", ".roost/skills/s": "s", ".claude/skills": ".",
	} {
		path := filepath.Join(dir, filepath.FromSlash(link))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Symlink(filepath.Join(secret, to), path)); err != nil {
			t.Fatal(err)
		}
	}
	p := read(t, project.Options{Dir: dir, Confined: true})
	if len(p.Rules)+len(p.Skills) != 0 || len(p.Notices) != 4 {
		t.Errorf("got %+v", p)
	}
}

func TestLimits(t *testing.T) {
	files := map[string]string{"AGENTS.md": strings.Repeat("é line of text\n", 4000)}
	for i := range 120 {
		files[fmt.Sprintf(".cursor/rules/%03d.mdc", i)] = fmt.Sprintf("rule %d %s", i, strings.Repeat("x", 1000*(i%3)))
	}
	p := read(t, project.Options{Dir: tree(t, files), Confined: true})
	total := 0
	for _, r := range p.Rules {
		total += len(r.Text)
		if len(r.Text) > project.MaxFile+200 || !utf8.ValidString(r.Text) {
			t.Errorf("%s: %d bytes", r.Path, len(r.Text))
		}
	}
	if total > project.MaxTotal+1000 || total < project.MaxTotal/2 {
		t.Errorf("%d bytes in all", total)
	}
	if !strings.Contains(p.Rules[0].Text, "The file has 64000 bytes; the rest is not shown") || len(p.Rules[0].Text) < project.MaxFile-100 {
		t.Errorf("the cut is not marked: %.100q", p.Rules[0].Text[len(p.Rules[0].Text)-100:])
	}
	if len(p.Notices) == 0 || len(p.Notices) > 50 {
		t.Errorf("%d notices", len(p.Notices))
	}
}

func TestHostileTextIsNeutralised(t *testing.T) {
	p := read(t, project.Options{Dir: tree(t, map[string]string{
		"AGENTS.md": "\ufeffa\x1b[31m\x00b\u202ec\xffd\U000e0041e\u200bf\tg\r\nh👩\u200d💻",
	}), Confined: true})
	equal(t, "text", p.Rules[0].Text, "a\ufffd[31m\ufffdb\ufffdc\ufffdd\ufffde\ufffdf\tg\nh👩\u200d💻")
}

func TestHash(t *testing.T) {
	dir := tree(t, map[string]string{"AGENTS.md": "one", ".roost/skills/s/SKILL.md": "---\nname: s\n---"})
	o := project.Options{Dir: dir, Confined: true}
	first := read(t, o)
	if first.Hash() != read(t, o).Hash() || len(first.Hash()) != 64 {
		t.Error("the same files have different hashes")
	}
	for name, text := range map[string]string{"AGENTS.md": "two", ".roost/skills/s/SKILL.md": "---\nname: s\ndescription: d\n---"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if next := read(t, o); next.Hash() == first.Hash() {
			t.Errorf("%s does not change the hash", name)
		} else {
			first = next
		}
	}
}

func TestErrors(t *testing.T) {
	if _, err := project.Read(t.Context(), project.Options{Dir: "relative"}); err == nil {
		t.Error("a relative directory was accepted")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := project.Read(ctx, project.Options{Dir: tree(t, map[string]string{"AGENTS.md": "a"})}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func FuzzRule(f *testing.F) {
	for _, s := range []string{
		"", "---\n", "---\n---\n", "---\na: b\n---\nx", "---\nglobs: [a, 'b', \"c\"] # d\n---\nx", "---\ndescription: |\n  a\n  b\n---\nx",
		"---\nglobs:\n- a\n-\n---\nx", "---\ndescription: 'it''s'\n---\nx", "---\nglobs: [\n---\nx", "---\na: \"\\\n---\nx", "---\n- a\n---\nx", "---\na: b\na: b\n---\nx",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		dir := tree(t, map[string]string{".cursor/rules/a.mdc": string(b), ".roost/skills/a/SKILL.md": string(b)})
		p := read(t, project.Options{Dir: dir, Confined: true})
		for _, r := range p.Rules {
			if !utf8.ValidString(r.Text+r.Description) || len(r.Text) > project.MaxFile+200 || strings.ContainsAny(r.Text, "\x00\x1b\r") {
				t.Errorf("rule %q", r)
			}
			if r.Kind == project.Glob && len(r.Globs) == 0 || slices.Contains(r.Globs, "") {
				t.Errorf("globs %q", r.Globs)
			}
		}
		for _, s := range p.Skills {
			if s.Name == "" || strings.Contains(s.Name+s.Description, "\n") {
				t.Errorf("skill %q", s)
			}
		}
	})
}
