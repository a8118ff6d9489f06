package permission

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// command is a simple command whose program is known.
type command struct {
	*reader
	words []word
	name  string // the program without its directory
	args  []word // after the name
	stdin *word  // what a heredoc gives it to read; nil when there is none
}

// verdict is what the built-in knowledge says of a command.
type verdict struct {
	risk     risk
	why      string
	opaque   bool // it may run anything
	once     bool // what it does is not in its words, so it cannot be granted
	noPaths  bool // its words are no paths, and may be anything
	write    bool // it writes the paths it names
	operands []word
	readings [][]word // other forms for rules that ask or deny
	runs     [][]word // commands that the arguments of an unknown program may be
	prefix   int      // number of words that a grant for this kind of command names; 0 for none
}

var subcommand = regexp.MustCompile(`^[a-z][a-z0-9]*([-:][a-z0-9]+)*$`)

// systemDirs are where programs are found that a name without a directory means.
var systemDirs = []string{"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin"}

// command judges a simple command, and what it runs in turn.
func (r *reader) command(words []word, stdin *word) {
	head := words[0]
	if !head.known() || head.text == "" {
		r.add(piece{
			text: shown(words), words: append([]word{unknown("")}, words...), anyPath: true, risk: risky, opaque: true, once: true,
			why: "which program it runs is known only when it runs",
		})
		return
	}
	c := &command{reader: r, words: words, name: path.Base(head.text), args: words[1:], stdin: stdin}
	v := c.classify()
	p := piece{
		text: shown(words), words: words, readings: v.readings, runs: v.runs, risk: v.risk, why: v.why, opaque: v.opaque, once: v.once,
	}
	c.otherNames(&p)
	if !v.noPaths {
		c.paths(&p, v)
	}
	if slices.ContainsFunc(words, word.free) {
		p.once = true
	} else if v.prefix > 0 && v.prefix <= len(words) && !slices.ContainsFunc(words[:v.prefix], func(w word) bool { return !w.known() }) {
		p.prefix = bashTool + ":" + shown(words[:v.prefix]) + " *"
	}
	if slices.ContainsFunc(words, func(w word) bool { return !w.known() }) {
		p.once = true
	}
	r.add(p)
}

// otherNames adds the forms in which rules may mean the command: a rule against "rm" is one
// against /bin/rm too, and against RM where file names have no case.
func (c *command) otherNames(p *piece) {
	head := c.words[0].text
	rest := func(name string) []word { return append([]word{literal(name)}, c.args...) }
	if strings.Contains(head, "/") {
		p.readings = append(p.readings, rest(c.name))
		if slices.Contains(systemDirs, path.Dir(head)) {
			p.normal = rest(c.name)
		}
	}
	if lower := strings.ToLower(c.name); lower != c.name {
		p.readings = append(p.readings, rest(lower))
	}
}

// classify finds the program in the tables.
func (c *command) classify() verdict {
	head := c.words[0].text
	own := strings.Contains(head, "/") && !slices.Contains(systemDirs, path.Dir(head))
	v := c.lookup()
	switch {
	case strings.IndexFunc(head, func(r rune) bool { return r > '~' || r < ' ' }) >= 0:
		return verdict{risk: risky, why: "the program's name looks like another"}
	case own && v.risk == harmless:
		v = c.unknownProgram() // only its name is that of a harmless program
	}
	if !v.noPaths && v.risk < risky && slices.ContainsFunc(c.args, word.free) {
		v.risk, v.why = risky, "its arguments are known only when it runs"
	}
	return v
}

func (c *command) lookup() verdict {
	name := strings.ToLower(c.name)
	if len(c.args) == 1 && slices.Contains(versionFlags, c.args[0].text) && slices.Contains(versioned, name) {
		return verdict{noPaths: true}
	}
	if judge := special(name); judge != nil {
		return judge(c)
	}
	if w, ok := wrappers[name]; ok {
		return c.unwrap(w)
	}
	if base, _, _ := strings.Cut(name, "."); interpreters[strings.TrimRight(base, "0123456789")] != "" {
		return c.interpreter(interpreters[strings.TrimRight(base, "0123456789")])
	}
	for _, list := range risks {
		if slices.Contains(list.names, name) || strings.HasPrefix(name, "mkfs.") && list.why == destroys {
			return verdict{risk: risky, why: list.why, write: true, opaque: list.opaque}
		}
	}
	switch {
	case slices.Contains(silent, name):
		return verdict{noPaths: true}
	case slices.Contains(readers, name):
		return verdict{}
	case slices.Contains(writers, name):
		return verdict{risk: ordinary, write: true, prefix: 1}
	}
	return c.unknownProgram()
}

// unknownProgram judges a program that no table has. It may run what follows its name.
func (c *command) unknownProgram() verdict {
	v := verdict{risk: ordinary, prefix: c.kind()}
	if strings.HasPrefix(c.name, "ld-linux") || strings.HasPrefix(c.name, "ld.so") {
		v = verdict{risk: risky, why: "it runs the program that follows", opaque: true}
	}
	for i := range c.args[:min(len(c.args), maxRuns)] {
		v.runs = append(v.runs, c.args[i:])
	}
	return v
}

const maxRuns = 16 // arguments of an unknown program that may be the name of another

// kind returns how many words say what kind of command it is: the program, and what looks
// like a subcommand of it.
func (c *command) kind() int {
	if len(c.args) > 0 && subcommand.MatchString(c.args[0].text) {
		return 2
	}
	return 1
}

// paths notes the paths that the command's words may be.
func (c *command) paths(p *piece, v verdict) {
	operands := v.operands
	if operands == nil {
		operands = c.args
	}
	if strings.Contains(c.words[0].text, "/") && !slices.Contains(systemDirs, path.Dir(c.words[0].text)) {
		p.touches = append(p.touches, touch{path: c.words[0].text})
	}
	for _, w := range operands {
		if w.free() {
			p.anyPath = true
			continue
		}
		for _, name := range pathsIn(w) {
			p.touches = append(p.touches, touch{path: name, write: v.write})
		}
	}
}

// pathsIn returns the paths that a word may hold: itself, the value after "=", and what an
// option has attached.
func pathsIn(w word) []string {
	var list []string
	_, value, hasValue := strings.Cut(w.text, "=")
	if hasValue && value != "" {
		list = append(list, value)
	}
	switch {
	case !w.option():
		if w.text != "" && w.text != "-" {
			list = append(list, w.text)
		}
	default:
		if i := strings.IndexAny(w.text, "./~"); i >= 0 {
			list = append(list, w.text[i:])
		}
	}
	return list
}

// has tells whether an option may be among the arguments: a long one, also shortened as many
// programs allow, or a letter of short ones. A word that is not known may be any option.
func (c *command) has(shorts string, longs ...string) bool {
	for _, w := range c.args {
		if w.text == "--" {
			return false
		}
		name, _, hasValue := strings.Cut(w.text, "=")
		certain := hasValue && !w.free() && !strings.ContainsRune(name, anything)
		if !w.known() && !certain && (w.free() || strings.HasPrefix(w.text, "-") || strings.HasPrefix(w.text, string(anything))) {
			return true
		}
		switch {
		case strings.HasPrefix(name, "--"):
			if slices.ContainsFunc(longs, func(l string) bool { return strings.HasPrefix(l, name) }) {
				return true
			}
		case w.option() && strings.ContainsAny(w.text, shorts):
			return true
		}
	}
	return false
}

// operandsOf returns the arguments that are no options.
func operandsOf(args []word) []word {
	var list []word
	for i, w := range args {
		if w.text == "--" {
			return append(list, args[i+1:]...)
		}
		if !w.option() {
			list = append(list, w)
		}
	}
	return list
}
