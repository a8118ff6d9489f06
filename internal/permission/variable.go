package permission

import (
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Variables that change what no program does but how it talks. Any other name in capitals may
// be one that a program obeys: PATH, LD_PRELOAD, GIT_SSH_COMMAND, GOFLAGS and hundreds more.
var mildVariables = []string{
	"CGO_ENABLED", "CI", "COLUMNS", "DEBUG", "DO_NOT_TRACK", "FORCE_COLOR", "GOARCH", "GOMAXPROCS", "GOOS", "LANG",
	"LANGUAGE", "LC_ALL", "LC_COLLATE", "LC_CTYPE", "LC_MESSAGES", "LINES", "NODE_ENV", "NO_COLOR", "PYTHONDONTWRITEBYTECODE",
	"PYTHONUNBUFFERED", "RUST_BACKTRACE", "RUST_LOG", "TERM", "TZ",
}

var (
	ownVariable = regexp.MustCompile(`^[a-z_][a-z0-9_]*$`)
	plainName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	number      = regexp.MustCompile(`^-?[0-9]+$`)
)

func isMild(name string) bool {
	if ownVariable.MatchString(name) {
		return !strings.HasPrefix(name, "npm_") && !strings.HasSuffix(name, "_proxy")
	}
	return slices.Contains(mildVariables, name)
}

// variable judges that a variable is set.
func (r *reader) variable(name string, n syntax.Node) {
	if !isMild(name) {
		r.setting(name, r.source(n))
	}
}

// setting notes that a variable is set that programs may obey. It is no part of a grant,
// because together with another command it means something else.
func (r *reader) setting(name, text string) {
	r.add(piece{
		text: printable(text), words: []word{literal(text)}, risk: risky, once: true, opaque: true,
		why: "programs may act on the variable " + printable(name),
	})
}

func (r *reader) assign(a *syntax.Assign) {
	if a.Name == nil {
		return // an argument of declare, which sees to it
	}
	r.variable(a.Name.Value, a)
	r.arithmetic(a, a.Index)
}

// declare judges declare, local, export, readonly and typeset; assignments among the
// arguments are visited by themselves.
func (r *reader) declare(d *syntax.DeclClause) {
	text := printable(r.source(d))
	r.add(piece{text: text, words: []word{literal(d.Variant.Value), literal(text)}})
	for _, a := range d.Args {
		if a.Name != nil || a.Value == nil {
			continue
		}
		// "-i" evaluates, "-n" makes a name mean another.
		if option := r.word(a.Value); !option.known() || !option.option() || strings.Trim(option.text, "-aAgprx") != "" {
			r.question(d, "it declares what only running it tells")
		}
	}
}

// arithmetic asks about expressions with variables: bash evaluates what is in them, and runs
// the commands it finds there.
func (r *reader) arithmetic(whole syntax.Node, exprs ...syntax.ArithmExpr) {
	for _, x := range exprs {
		if x == nil {
			continue
		}
		for n := range syntax.Preorder(x) {
			w, ok := n.(*syntax.Word)
			if ok && !r.isNumber(w) && w.Lit() != "@" && w.Lit() != "*" {
				r.question(whole, "arithmetic runs commands that it finds in variables")
				return
			}
		}
	}
}

// isNumber tells whether a word is a number, or one that the shell itself makes.
func (r *reader) isNumber(w *syntax.Word) bool {
	if number.MatchString(w.Lit()) {
		return true
	}
	if len(w.Parts) != 1 {
		return false
	}
	p, ok := w.Parts[0].(*syntax.ParamExp)
	return ok && (p.Length || p.Param != nil && p.Exp == nil && slices.Contains([]string{"#", "?", "$", "!"}, p.Param.Value))
}

func (r *reader) expansion(p *syntax.ParamExp) {
	const why = "the expansion runs what it finds in a variable"
	if p.Excl && p.Names == 0 {
		r.question(p, why)
	}
	r.arithmetic(p, p.Index)
	if p.Slice != nil {
		r.arithmetic(p, p.Slice.Offset, p.Slice.Length)
	}
	if p.Exp == nil {
		return
	}
	switch p.Exp.Op {
	case syntax.AssignUnset, syntax.AssignUnsetOrNull:
		r.variable(p.Param.Value, p)
	case syntax.OtherParamOps:
		if op := p.Exp.Word; op == nil || !slices.Contains([]string{"Q", "U", "u", "L", "E", "A", "a", "K", "k"}, op.Lit()) {
			r.question(p, why)
		}
	default:
	}
}

// comparison asks about "-eq" and the like, which evaluate both sides as arithmetic.
func (r *reader) comparison(b *syntax.BinaryTest) {
	switch b.Op {
	case syntax.TsEql, syntax.TsNeq, syntax.TsLeq, syntax.TsGeq, syntax.TsLss, syntax.TsGtr:
		for _, x := range []syntax.TestExpr{b.X, b.Y} {
			if w, ok := x.(*syntax.Word); !ok || !r.isNumber(w) {
				r.question(b, "arithmetic runs commands that it finds in variables")
				return
			}
		}
	default:
	}
}
