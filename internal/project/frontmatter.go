package project

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// errFrontMatter is what the errors of a file's front matter are.
var errFrontMatter = errors.New("its front matter cannot be read")

// maxFields bounds the keys of a front matter.
const maxFields = 64

// value is what a key holds: text, or a list when it was written as one.
type value struct {
	text   string
	list   []string
	isList bool
}

// strings returns the elements of a list, or of a text with commas outside braces.
func (v value) strings() []string {
	parts := v.list
	if !v.isList {
		parts = splitCommas(v.text)
	}
	var out []string
	for _, p := range parts {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}

// splitCommas splits at commas that are not inside braces, as "*.{c,h}, *.go".
func splitCommas(s string) []string {
	var parts []string
	depth, from := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '{':
			depth++
		case '}':
			depth = max(0, depth-1)
		case ',':
			if depth == 0 {
				parts = append(parts, s[from:i])
				from = i + 1
			}
		}
	}
	return append(parts, s[from:])
}

// frontMatter splits a file into the fields between its "---" lines and the text below them.
// A file that does not begin with "---" is all text. The fields are a small part of YAML,
// read so that what people write works: one key a line, plain, quoted, folded and literal
// text, and lists of text in both forms. A "*" needs no quotes. Anything else, nested keys
// above all, is an error.
func frontMatter(file string) (map[string]value, string, error) {
	rest, ok := strings.CutPrefix(file, "---\n")
	if !ok {
		return nil, file, nil
	}
	lines := strings.Split(rest, "\n")
	for i, l := range lines {
		if t := strings.TrimRight(l, " \t"); t == "---" || t == "..." {
			fields, err := parseFields(lines[:i])
			return fields, strings.TrimLeft(strings.Join(lines[i+1:], "\n"), "\n"), err
		}
	}
	return nil, "", fmt.Errorf("%w: it has no closing ---", errFrontMatter)
}

func parseFields(lines []string) (map[string]value, error) {
	fields := make(map[string]value)
	for len(lines) > 0 {
		l := lines[0]
		if t := strings.TrimSpace(l); t == "" || t[0] == '#' {
			lines = lines[1:]
			continue
		}
		key, rest, ok := strings.Cut(l, ":")
		if !ok || strings.TrimSpace(key) != key || key == "" || rest != "" && rest[0] != ' ' && rest[0] != '\t' {
			return nil, fmt.Errorf("%w: %q is not a key with a value", errFrontMatter, line(l, 60))
		}
		if _, twice := fields[key]; twice || len(fields) == maxFields {
			return nil, fmt.Errorf("%w: the key %q comes twice, or there are too many", errFrontMatter, line(key, 60))
		}
		n := 1
		for n < len(lines) && continues(lines[n]) {
			n++
		}
		v, err := parseValue(strings.TrimSpace(rest), lines[1:n])
		if err != nil {
			return nil, fmt.Errorf("%w (%s)", err, line(key, 60))
		}
		fields[key] = v
		lines = lines[n:]
	}
	return fields, nil
}

// continues reports whether a line belongs to the key above it.
func continues(l string) bool {
	return strings.TrimSpace(l) == "" || l[0] == ' ' || l[0] == '\t' || l == "-" || strings.HasPrefix(l, "- ")
}

// parseValue reads what stands behind a key and in the lines below it.
func parseValue(first string, more []string) (value, error) {
	switch {
	case isBlock(first):
		return value{text: blockText(first[0] == '|', more)}, nil
	case first != "" && (first[0] == '"' || first[0] == '\'' || first[0] == '['):
		first = strings.TrimSpace(first + " " + strings.Join(strings.Fields(strings.Join(more, " ")), " "))
		if first[0] == '[' {
			return flowList(first)
		}
		return quoted(first)
	case first == "" || first[0] == '#':
		return blockList(more)
	}
	words := []string{plain(first)}
	for _, l := range more {
		if l = plain(strings.TrimSpace(l)); l != "" {
			words = append(words, l)
		}
	}
	return value{text: strings.Join(words, " ")}, nil
}

// isBlock reports the start of a folded or literal text: ">", "|", with "-" or "+".
func isBlock(s string) bool {
	s, _, _ = strings.Cut(s, " #")
	switch strings.TrimSpace(s) {
	case ">", "|", ">-", "|-", ">+", "|+":
		return true
	}
	return false
}

// blockText joins the lines of a block, with their ends when it is literal.
func blockText(literal bool, lines []string) string {
	var out []string
	for _, l := range lines {
		out = append(out, strings.TrimSpace(l))
	}
	if literal {
		return strings.TrimSpace(strings.Join(out, "\n"))
	}
	return strings.Join(strings.Fields(strings.Join(out, " ")), " ")
}

// blockList reads "- element" lines; no lines at all are an empty text.
func blockList(lines []string) (value, error) {
	v := value{}
	for _, l := range lines {
		l = strings.TrimSpace(l)
		if l == "" || l[0] == '#' {
			continue
		}
		rest, ok := strings.CutPrefix(l, "-")
		if !ok || rest != "" && rest[0] != ' ' {
			return value{}, fmt.Errorf("%w: %q is neither a list's element nor text", errFrontMatter, line(l, 60))
		}
		e, err := scalar(strings.TrimSpace(rest))
		if err != nil {
			return value{}, err
		}
		v.list, v.isList = append(v.list, e), true
	}
	return v, nil
}

// flowList reads "[a, 'b', "c"]".
func flowList(s string) (value, error) {
	end := strings.LastIndexByte(s, ']')
	if end < 0 || plain(strings.TrimSpace(s[end+1:])) != "" {
		return value{}, fmt.Errorf("%w: a list is not closed", errFrontMatter)
	}
	v := value{isList: true}
	for _, part := range splitCommas(s[1:end]) {
		e, err := scalar(strings.TrimSpace(part))
		if err != nil {
			return value{}, err
		}
		v.list = append(v.list, e)
	}
	return v, nil
}

func scalar(s string) (string, error) {
	if s == "" || s[0] != '"' && s[0] != '\'' {
		return plain(s), nil
	}
	v, err := quoted(s)
	return v.text, err
}

// quoted reads a text in quotes, behind which only a comment may stand.
func quoted(s string) (value, error) {
	q := s[0]
	for i := 1; i < len(s); i++ {
		switch {
		case q == '"' && s[i] == '\\':
			i++
		case q == '\'' && s[i] == q && i+1 < len(s) && s[i+1] == q:
			i++
		case s[i] == q:
			if rest := strings.TrimSpace(s[i+1:]); rest != "" && rest[0] != '#' {
				return value{}, fmt.Errorf("%w: text behind a closing quote", errFrontMatter)
			}
			return unquote(s[:i+1])
		}
	}
	return value{}, fmt.Errorf("%w: a quote is not closed", errFrontMatter)
}

func unquote(s string) (value, error) {
	if s[0] == '\'' {
		return value{text: strings.ReplaceAll(s[1:len(s)-1], "''", "'")}, nil
	}
	var text string
	if err := json.Unmarshal([]byte(strings.ReplaceAll(s, "\t", " ")), &text); err != nil {
		return value{}, fmt.Errorf("%w: an escape that is not one of JSON's", errFrontMatter)
	}
	return value{text: text}, nil
}

// plain drops a comment behind a text without quotes.
func plain(s string) string {
	if strings.HasPrefix(s, "#") {
		return ""
	}
	s, _, _ = strings.Cut(s, " #")
	return strings.TrimSpace(s)
}
