package permission

import (
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// bashTool is the tool whose argument is a command line.
const bashTool = "bash"

// Limits on what is taken apart; beyond them a command is a question.
const (
	maxCommand = 64 << 10 // bytes of one command line
	maxOpeners = 2000     // brackets, which nest in the parser
	maxNested  = 6        // command lines within command lines
	maxPieces  = 500
	maxCwds    = 16 // directories that a command may be in
)

// script collects the pieces of a bash call, those of command lines within it included.
type script struct {
	pieces []piece
	cds    []word // where it goes, in order
	loops  bool   // it has loops or functions, so cds may happen any number of times
	lost   bool   // it goes where only running it tells
}

// reader reads one command line into a script.
type reader struct {
	*script
	src   string
	depth int
}

func bashPieces(in []field, where place) []piece {
	line, ok := top(in, "command")
	s := &script{}
	if ok {
		s.read(line, 0)
	} else {
		s.cannotRead("", "it has no command")
	}
	if len(s.pieces) == 0 {
		s.add(piece{text: printable(line), words: []word{literal(line)}}) // assignments, comments
	}
	s.finish(where)
	return s.pieces
}

// read takes a command line apart. It never panics, because a parser of a language like this
// one may have a bug that hostile input finds.
func (s *script) read(line string, depth int) {
	before := len(s.pieces)
	defer func() {
		if recover() != nil {
			s.pieces = s.pieces[:before]
			s.cannotRead(line, "it cannot be parsed")
		}
	}()
	if why := unreadable(line, depth); why != "" {
		s.cannotRead(line, why)
		return
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(line), "")
	if err != nil {
		s.cannotRead(line, "it cannot be parsed")
		return
	}
	r := &reader{script: s, src: line, depth: depth}
	syntax.Walk(file, r.visit)
}

// unreadable says why a command line is not even parsed: it is too much, or has characters
// that the parser and bash do not agree on.
func unreadable(line string, depth int) string {
	openers := 0
	for _, c := range line {
		switch {
		case c == utf8.RuneError, c < ' ' && c != '\n' && c != '\t', c == 0x7f:
			return "it has control characters or is not UTF-8"
		case strings.ContainsRune("({[`", c):
			openers++
		}
	}
	for _, opener := range []string{"if", "while", "until", "case", "!", "time", "for", "coproc", "function"} {
		openers += strings.Count(line, opener+" ") + strings.Count(line, opener+"\n") + strings.Count(line, opener+"\t")
	}
	if len(line) > maxCommand || openers > maxOpeners || depth > maxNested {
		return "it is too long or too deep to be looked through"
	}
	return ""
}

// cannotRead notes a command line that may do anything.
func (s *script) cannotRead(line, why string) {
	s.add(piece{text: printable(line), words: []word{unknown(line)}, risk: risky, why: why, opaque: true, unread: true, once: true, anyPath: true})
}

// add takes a piece in; what is too much is one piece that may be anything.
func (s *script) add(p piece) {
	switch {
	case len(s.pieces) < maxPieces:
		s.pieces = append(s.pieces, p)
	case len(s.pieces) == maxPieces:
		s.pieces = append(s.pieces, piece{
			text: "…", words: []word{unknown("…")}, risk: risky, why: "it is too long to be looked through", opaque: true, once: true, anyPath: true,
		})
	}
}

// question notes something about the shell itself that cannot be foreseen.
func (r *reader) question(n syntax.Node, why string) {
	text := r.source(n)
	r.add(piece{text: printable(text), words: []word{unknown(text)}, risk: risky, why: why, opaque: true, once: true, anyPath: true})
}

func (r *reader) source(n syntax.Node) string {
	from, to := int(n.Pos().Offset()), int(n.End().Offset()) //nolint:gosec // within maxCommand
	if from > to || to > len(r.src) {
		return ""
	}
	return r.src[from:to]
}

// visit is called for every node, those within words too. A kind of node that it does not
// know is a question.
func (r *reader) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case nil, *syntax.File, *syntax.CallExpr, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted,
		*syntax.CmdSubst, *syntax.ProcSubst, *syntax.Subshell, *syntax.Block, *syntax.IfClause, *syntax.BinaryCmd,
		*syntax.CaseClause, *syntax.CaseItem, *syntax.TestClause, *syntax.ParenTest, *syntax.ArrayExpr, *syntax.TimeClause,
		*syntax.BinaryArithm, *syntax.UnaryArithm, *syntax.ParenArithm, *syntax.Comment:
	case *syntax.CoprocClause: // what the parser takes for the program may be an assignment or a reserved word
		r.cannotRead(r.source(n), "it is not clear what a coprocess runs")
	case *syntax.Stmt:
		r.statement(n)
	case *syntax.Redirect:
		r.redirect(n)
	case *syntax.WhileClause, *syntax.FuncDecl, *syntax.ForClause, *syntax.CStyleLoop:
		r.loops = true
		if loop, ok := n.(*syntax.CStyleLoop); ok {
			r.arithmetic(loop, loop.Init, loop.Cond, loop.Post)
		}
	case *syntax.WordIter:
		r.variable(n.Name.Value, n)
	case *syntax.Assign:
		r.assign(n)
	case *syntax.ArrayElem:
		r.arithmetic(n, n.Index)
	case *syntax.DeclClause:
		r.declare(n)
	case *syntax.ArithmExp:
		r.arithmetic(n, n.X)
	case *syntax.ArithmCmd:
		r.arithmetic(n, n.X)
	case *syntax.ParamExp:
		r.expansion(n)
	case *syntax.UnaryTest:
		if n.Op == syntax.TsVarSet || n.Op == syntax.TsRefVar {
			r.question(n, "it evaluates the name of a variable")
		}
	case *syntax.BinaryTest:
		r.comparison(n)
	default:
		r.question(n, "it uses a feature of the shell that is not looked into")
	}
	return true
}

// statement judges the simple command of a statement.
func (r *reader) statement(s *syntax.Stmt) {
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	words := make([]word, len(call.Args))
	for i, arg := range call.Args {
		words[i] = r.word(arg)
	}
	r.command(words, r.stdin(s.Redirs))
}

// stdin returns what a heredoc or a here-string gives a command to read.
func (r *reader) stdin(redirs []*syntax.Redirect) *word {
	for _, redir := range redirs {
		var from *syntax.Word
		switch redir.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			from = redir.Hdoc
		case syntax.WordHdoc:
			from = redir.Word
		default:
		}
		if from == nil {
			continue
		}
		w := r.word(from)
		if redir.Op != syntax.WordHdoc && (strings.Contains(r.source(from), `\`) || redir.Op == syntax.DashHdoc) {
			w = unknown(w.text) // whether backslashes and tabs stay depends on the quoting of its end
		}
		return &w
	}
	return nil
}

func (r *reader) redirect(n *syntax.Redirect) {
	p := piece{}
	switch n.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		return
	case syntax.RdrIn:
	case syntax.DplIn, syntax.DplOut:
		target := r.word(n.Word)
		if target.known() && strings.Trim(target.text, "0123456789-") == "" {
			return
		}
		p.risk = ordinary
	default:
		p.risk = ordinary
	}
	target := r.word(n.Word)
	op := n.Op.String()
	p.words = []word{{text: op, show: op}, target}
	p.text = shown(p.words)
	if target.known() {
		p.touches = []touch{{path: target.text, write: n.Op != syntax.RdrIn}}
		if isDevice(target.text) {
			p.risk = harmless
		}
	} else {
		p.anyPath, p.once = true, true
		p.raise(risky, "the file is known only when it runs")
	}
	r.add(p)
}

// finish resolves paths once all the directories are known that the script may be in, and
// says what grants each piece.
func (s *script) finish(where place) {
	where.cwds, where.unknown = s.cwds(where)
	moved := where.unknown || len(where.cwds) > 1
	left := where.unknown
	for _, cwd := range where.cwds {
		if _, ok := where.inside(cwd); !ok {
			left = true
		}
	}
	for i := range s.pieces {
		p := &s.pieces[i]
		before := p.risk
		p.place(where)
		if p.risk != before || left {
			p.prefix = ""
		}
		relative := func() bool { return moved && !isCd(p) }
		if !p.once && !relative() {
			p.exact = bashTool + ":" + p.text
		}
	}
}

func isCd(p *piece) bool {
	return len(p.words) > 0 && (p.words[0].text == "cd" || p.words[0].text == "pushd")
}

// cwds returns every directory that the script may be in at some point, whatever the order
// its commands run in.
func (s *script) cwds(where place) (list []string, more bool) {
	list = []string{where.dir}
	if s.lost || s.loops && len(s.cds) > 0 {
		return list, true
	}
	for _, cd := range s.cds {
		from := place{dir: where.dir, home: where.home, cwds: list}
		for _, at := range from.resolve(cd.text) {
			list = appendNew(list, at)
		}
		if len(list) > maxCwds {
			return list[:1], true
		}
	}
	return list, false
}
