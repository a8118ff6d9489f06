package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// decoder turns YAML nodes into a Config and collects what is wrong on the way. Expansion
// happens here, on values that are already parsed, so that no variable can add YAML.
type decoder struct {
	file     string
	getenv   func(string) string
	problems []Problem
	warnings []string
	keyEnv   []string
}

// value is a node with its place in the document, such as "providers.fake.models[0]".
type value struct {
	node ast.Node
	path string
}

// fields says how each key of a mapping is decoded.
type fields map[string]func(value)

// Parse checks the text of a configuration file. The path names the file in errors, and
// relative paths within it start at its directory; nothing is read from it. getenv looks
// up the variables of ${NAME}. Errors about the text are of type [*Error].
func Parse(path string, data []byte, getenv func(string) string) (*Config, error) {
	d := &decoder{file: path, getenv: getenv}
	c := defaults()
	c.Path = path
	root, ok := d.parse(data)
	if ok {
		d.config(c, value{node: root})
	}
	return d.finish(c)
}

// finish returns c, or the problems.
func (d *decoder) finish(c *Config) (*Config, error) {
	if len(d.problems) > 0 {
		return nil, newError(d.file, d.problems)
	}
	slices.Sort(d.keyEnv)
	c.KeyEnv = slices.Compact(d.keyEnv)
	c.Warnings = d.warnings
	return c, nil
}

// parse returns the one document in data; nil when it is empty.
func (d *decoder) parse(data []byte) (root ast.Node, ok bool) {
	// The parser is not ours; a file that breaks it is a file that is wrong.
	defer func() {
		if r := recover(); r != nil {
			d.problemf(value{}, "not valid YAML")
			root, ok = nil, false
		}
	}()
	tokens := lexer.Tokenize(string(data))
	if tk := tooDeep(tokens); tk != nil {
		d.problems = append(d.problems, Problem{tk.Position.Line, tk.Position.Column, "not valid YAML: nested too deeply"})
		return nil, false
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		d.syntax(err)
		return nil, false
	}
	for _, doc := range file.Docs {
		if doc.Body == nil {
			continue
		}
		if root != nil {
			d.problemf(value{node: doc.Body}, "a second document; a configuration has one")
			return nil, false
		}
		root = doc.Body
	}
	return root, true
}

// The parser's time grows with the square of the nesting, so that is bounded first, far
// above what a configuration needs.
const (
	maxFlowDepth = 32  // open [ and {
	maxColumn    = 200 // of a "- "; nested lists move to the right
)

// tooDeep returns the token at which the nesting passes its limits, or nil.
func tooDeep(tokens token.Tokens) *token.Token {
	depth := 0
	for _, tk := range tokens {
		if tk.Type == token.SequenceStartType || tk.Type == token.MappingStartType {
			depth++
		}
		if tk.Type == token.SequenceEndType || tk.Type == token.MappingEndType {
			depth--
		}
		if depth > maxFlowDepth || tk.Type == token.SequenceEntryType && tk.Position.Column > maxColumn {
			return tk
		}
	}
	return nil
}

// syntax records an error of the parser. Its own text would show the line, which may hold
// a secret, so only the message and the place are taken.
func (d *decoder) syntax(err error) {
	p := Problem{Text: "not valid YAML"}
	if syntaxErr, ok := errors.AsType[yaml.Error](err); ok {
		p.Text = "not valid YAML: " + syntaxErr.GetMessage()
		if tk := syntaxErr.GetToken(); tk != nil && tk.Position != nil {
			p.Line, p.Column = tk.Position.Line, tk.Position.Column
		}
	}
	d.problems = append(d.problems, p)
}

// problemf records a problem at v; without a node it belongs to no line.
func (d *decoder) problemf(v value, format string, args ...any) {
	p := Problem{Text: fmt.Sprintf(format, args...)}
	if v.path != "" {
		p.Text = v.path + ": " + p.Text
	}
	if v.node != nil {
		if tk := v.node.GetToken(); tk != nil && tk.Position != nil {
			p.Line, p.Column = tk.Position.Line, tk.Position.Column
		}
	}
	d.problems = append(d.problems, p)
}

func (d *decoder) warnf(format string, args ...any) {
	d.warnings = append(d.warnings, fmt.Sprintf(format, args...))
}

// mapping decodes each entry of a mapping by its key. An empty value is an empty mapping,
// so that a section may have all its keys commented out.
func (d *decoder) mapping(v value, f fields) {
	d.entries(v, func(key string, entry value, at value) {
		decode, ok := f[key]
		if !ok {
			d.problemf(at, "%s", unknown("key", key, slices.Sorted(maps.Keys(f))))
			return
		}
		decode(entry)
	})
}

// entries calls visit for each entry of a mapping in order; at is the place of its key.
func (d *decoder) entries(v value, visit func(key string, entry, at value)) {
	if isNull(v.node) {
		return
	}
	m, ok := v.node.(ast.MapNode)
	if !ok {
		d.wrongType(v, "a mapping (key: value)")
		return
	}
	for it := m.MapRange(); it.Next(); {
		at := value{it.Key(), v.path}
		key, ok := it.Key().(*ast.StringNode)
		if !ok {
			d.problemf(at, "a key must be plain text; quote it if it is")
			continue
		}
		visit(key.Value, value{it.Value(), join(v.path, key.Value)}, at)
	}
}

// list decodes each element of a sequence. An empty value is an empty sequence.
func (d *decoder) list(v value, decode func(value)) {
	if isNull(v.node) {
		return
	}
	s, ok := v.node.(*ast.SequenceNode)
	if !ok {
		d.wrongType(v, "a list")
		return
	}
	for i, n := range s.Values {
		decode(value{n, fmt.Sprintf("%s[%d]", v.path, i)})
	}
}

// wrongType records that v is not what was wanted. It does not show the value.
func (d *decoder) wrongType(v value, want string) {
	switch v.node.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		d.problemf(v, "must be %s; YAML anchors, aliases and tags are not supported", want)
	case *ast.NullNode, nil:
		d.problemf(v, "has no value; give %s or remove the key", want)
	default:
		d.problemf(v, "must be %s", want)
	}
}

func isNull(n ast.Node) bool {
	if n == nil {
		return true
	}
	_, null := n.(*ast.NullNode)
	return null
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// dir is where relative paths of the file start.
func (d *decoder) dir() string { return filepath.Dir(d.file) }
