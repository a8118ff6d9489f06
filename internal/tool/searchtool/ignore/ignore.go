// Package ignore decides which files a search leaves out, by the rules of ignore files as
// git has them. It reads no files: a walk hands it their text.
package ignore

import (
	"regexp"
	"strings"

	"github.com/roost-dev/roost/internal/tool/searchtool/glob"
)

// maxRules is the number of rules of one file that count.
const maxRules = 10_000

// Rules are the rules of one ignore file. They are immutable.
type Rules struct{ rules []rule }

// rule is one line.
type rule struct {
	negate  bool // "!": what matches is not ignored after all
	dirOnly bool // "/" at the end: matches directories only
	base    bool // no other slash: matches the last element of the path, at any depth
	literal string
	suffix  bool           // literal is what the path ends with, not all of it
	re      *regexp.Regexp // nil when literal says it all
}

// Parse reads an ignore file. Lines that are no valid pattern match nothing, as in git.
func Parse(text string) *Rules {
	r := new(Rules)
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\uFEFF"), "\n") {
		line = trimBlanks(strings.TrimSuffix(line, "\r"))
		if p, ok := parseRule(line); ok && len(r.rules) < maxRules {
			r.rules = append(r.rules, p)
		}
	}
	return r
}

// trimBlanks cuts spaces at the end, except one behind a backslash.
func trimBlanks(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ' ':
			continue
		case '\\':
			i++
			if i == len(line) {
				return line
			}
		}
		end = i + 1
	}
	return line[:end]
}

func parseRule(line string) (p rule, ok bool) {
	if line == "" || line[0] == '#' {
		return p, false
	}
	line, p.negate = strings.CutPrefix(line, "!")
	line, p.dirOnly = strings.CutSuffix(line, "/")
	p.base = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return p, false
	}
	const special = `*?[\`
	if !strings.ContainsAny(line, special) {
		p.literal = line
		return p, true
	}
	if p.base && line[0] == '*' && !strings.ContainsAny(line[1:], special) {
		p.literal, p.suffix = line[1:], true
		return p, true
	}
	re, err := glob.CompileIgnore(line)
	p.re = re
	return p, err == nil
}

func (p *rule) matches(path, base string, isDir bool) bool {
	if p.dirOnly && !isDir {
		return false
	}
	if p.base {
		path = base
	}
	switch {
	case p.re != nil:
		return p.re.MatchString(path)
	case p.suffix:
		return strings.HasSuffix(path, p.literal)
	default:
		return path == p.literal
	}
}

// decide returns what the last rule that matches says, if there is one. The path is relative
// to the directory of the file.
func (r *Rules) decide(path, base string, isDir bool) (ignored, decided bool) {
	if r == nil {
		return false, false
	}
	for i := len(r.rules) - 1; i >= 0; i-- {
		if r.rules[i].matches(path, base, isDir) {
			return !r.rules[i].negate, true
		}
	}
	return false, false
}

// Dir holds the rules that apply in a directory: its own and, by Parent, those of the
// directories above it. It is immutable once it is used.
type Dir struct {
	Parent  *Dir
	Path    string // relative to the topmost directory, with slashes; "" for that one
	Ignore  *Rules // of .ignore, which rank above all others
	Git     *Rules // of .gitignore
	Exclude *Rules // of .git/info/exclude, which rank below all others
}

// Ignored tells whether an entry of the directory is left out. Path is relative to the
// topmost directory. That a directory above is left out is for the caller to see.
func (d *Dir) Ignored(path string, isDir bool) bool {
	base := path[strings.LastIndexByte(path, '/')+1:]
	for _, kind := range []func(*Dir) *Rules{
		func(d *Dir) *Rules { return d.Ignore }, func(d *Dir) *Rules { return d.Git }, func(d *Dir) *Rules { return d.Exclude },
	} {
		for at := d; at != nil; at = at.Parent {
			if ignored, decided := kind(at).decide(at.relative(path), base, isDir); decided {
				return ignored
			}
		}
	}
	return false
}

func (d *Dir) relative(path string) string {
	if d.Path == "" {
		return path
	}
	return strings.TrimPrefix(path, d.Path+"/")
}
