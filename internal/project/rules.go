package project

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/roost-dev/roost/internal/workspace"
)

// rulesOf reads the rules of one directory.
func (r *reader) rulesOf(dir workspace.Name) {
	for _, name := range []string{"AGENTS.md", "CLAUDE.md"} {
		if f, ok := r.open(dir.Join(name)); ok {
			r.add(Rule{Path: f.path, Kind: Always, Text: f.text}, f.size)
		}
	}
	rules := dir.Join(filepath.FromSlash(".cursor/rules"))
	for _, name := range r.entries(rules) {
		if !strings.HasSuffix(name, ".mdc") {
			continue
		}
		f, ok := r.open(rules.Join(name))
		if !ok {
			continue
		}
		rule, err := cursorRule(f)
		if err != nil {
			r.notice("%s is left out: %v", f.path, err)
			continue
		}
		r.add(rule, f.size)
	}
}

// cursorRule reads a rule of Cursor. alwaysApply decides first, then globs, then the
// description; a rule with none of them applies when the user names it.
func cursorRule(f file) (Rule, error) {
	fields, text, err := frontMatter(f.text)
	if err != nil {
		return Rule{}, err
	}
	rule := Rule{
		Path: f.path, Kind: Manual, Text: text,
		Description: line(fields["description"].text, maxDescription),
	}
	for _, g := range fields["globs"].strings() {
		if len(rule.Globs) < maxGlobs {
			rule.Globs = append(rule.Globs, line(g, maxDescription))
		}
	}
	switch {
	case fields["alwaysApply"].text == "true":
		rule.Kind = Always
	case len(rule.Globs) > 0:
		rule.Kind = Glob
	case rule.Description != "":
		rule.Kind = Agent
	}
	return rule, nil
}

// add takes a rule within the limits.
func (r *reader) add(rule Rule, size int64) {
	rule.Text = strings.TrimSpace(rule.Text)
	if rule.Text == "" {
		return
	}
	key := "text " + string(rule.Kind) + strings.Join(rule.Globs, ",") + "\n" + rule.Text
	if r.seen[key] { // a copy
		return
	}
	if len(r.project.Rules) == MaxRules {
		r.notice("%s is left out: there are more than %d rules", rule.Path, MaxRules)
		return
	}
	if !r.spend(len(rule.Description) + len(strings.Join(rule.Globs, ","))) {
		r.notice("%s is left out: rules and skills together are larger than %d bytes", rule.Path, MaxTotal)
		return
	}
	r.seen[key] = true
	text, cut := fit(rule.Text, min(MaxFile, r.left), size)
	if cut {
		r.notice("%s is cut: it has %d bytes, and a file may have %d, all together %d", rule.Path, size, MaxFile, MaxTotal)
	}
	rule.Text = text
	r.left -= min(len(text), r.left)
	r.project.Rules = append(r.project.Rules, rule)
}

// spend takes n bytes from what may still be kept, and reports whether they were there.
func (r *reader) spend(n int) bool {
	if n >= r.left {
		return false
	}
	r.left -= n
	return true
}

// Hash returns a fingerprint of the rules and skills, 64 hexadecimal digits: it differs
// whenever a model would be told something else. The branch and notices do not count.
func (p Project) Hash() string {
	b, err := json.Marshal(struct {
		Rules  []Rule
		Skills []Skill
	}{p.Rules, p.Skills})
	if err != nil { // text always encodes
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
