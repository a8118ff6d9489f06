package permission

import (
	"regexp"
	"slices"
	"strings"
)

const runsCode = "it runs code that is not looked into"

// interpreter judges a program that runs code; that of shells is looked into.
func (c *command) interpreter(codeOptions string) verdict {
	isShell := slices.Contains(shells, strings.ToLower(c.name))
	for i, w := range c.args {
		switch {
		case !w.known():
			return verdict{risk: risky, why: runsCode, opaque: true, once: true}
		case isShell && shellCode.MatchString(w.text):
			return c.shellCode(c.args[i+1:])
		case isShell && (shellOption.MatchString(w.text) || i > 0 && w.text == "pipefail" && strings.HasSuffix(c.args[i-1].text, "o")):
			continue
		case i == 0 && w.text == "-m" && len(c.args) > 1 && c.args[1].known() && !isShell:
			return verdict{risk: ordinary, prefix: 3}
		case w.option() || w.text == "-":
			once := w.text == "-" || strings.HasPrefix(w.text, "-s") || !strings.ContainsAny(w.text, codeOptions)
			return verdict{risk: risky, why: runsCode, opaque: true, once: once}
		case i == 0:
			return verdict{risk: ordinary, prefix: 2, runs: [][]word{c.args}} // a script, which may be on the PATH
		default:
			return verdict{risk: ordinary, runs: [][]word{c.args[i:]}} // a script after options of the shell
		}
	}
	if isShell && c.stdin != nil && c.stdin.known() {
		c.read(c.stdin.text, c.depth+1)
		return verdict{noPaths: true}
	}
	return verdict{risk: risky, why: "it runs what it reads", opaque: true, once: true}
}

var (
	shellCode   = regexp.MustCompile(`^-[elxu]*c$`)
	shellOption = regexp.MustCompile(`^(-[elxu]+o?|-o|--login|--norc|--noprofile)$`)
)

// shellCode judges what follows "bash -c".
func (c *command) shellCode(rest []word) verdict {
	if len(rest) == 0 || !rest[0].known() || rest[0].option() {
		return verdict{risk: risky, why: runsCode, opaque: true, once: true}
	}
	c.read(rest[0].text, c.depth+1)
	return verdict{noPaths: true}
}

// eval judges what its arguments say when they are put together.
func (c *command) eval() verdict {
	var line []string
	for _, w := range c.args {
		if !w.known() {
			return verdict{risk: risky, why: runsCode, opaque: true, once: true}
		}
		line = append(line, w.text)
	}
	c.read(strings.Join(line, " "), c.depth+1)
	return verdict{noPaths: true}
}

// trap judges the command that it sets.
func (c *command) trap() verdict {
	switch {
	case len(c.args) < 2 || c.args[0].text == "-":
		return verdict{noPaths: true}
	case !c.args[0].known() || c.args[0].option():
		return verdict{risk: risky, why: runsCode, opaque: true, once: true}
	}
	c.read(c.args[0].text, c.depth+1)
	return verdict{noPaths: true}
}

// Commands of sed that only print or change what it prints: an address, then p, d, q, = or a
// substitution without the flags e and w.
var sedCommand = regexp.MustCompile(`^\s*(` + sedAddress + `(\s*,\s*` + sedAddress + `)?\s*!?)?\s*(` +
	`[pdqg=nNhHGDPx]|s/([^/\\\n]|\\[^\n])*/([^/\\\n]|\\[^\n])*/[gpiI0-9]*|s\|([^|\\\n]|\\[^\n])*\|([^|\\\n]|\\[^\n])*\|[gpiI0-9]*` +
	`|s#([^#\\\n]|\\[^\n])*#([^#\\\n]|\\[^\n])*#[gpiI0-9]*|s,([^,\\\n]|\\[^\n])*,([^,\\\n]|\\[^\n])*,[gpiI0-9]*)?\s*$`)

const sedAddress = `(\$|[0-9]+(~[0-9]+)?|\+[0-9]+|/([^/\\\n]|\\[^\n])*/I?)`

// sed judges an invocation by its script.
func (c *command) sed() verdict {
	code := verdict{risk: risky, why: "its script may run programs or write files", opaque: true}
	scripts, files, inPlace, ok := c.sedArgs()
	if !ok {
		return code
	}
	for _, script := range scripts {
		for _, one := range strings.FieldsFunc(script.text, func(r rune) bool { return r == ';' || r == '\n' }) {
			if !sedCommand.MatchString(one) {
				return code
			}
		}
	}
	if inPlace {
		return verdict{risk: ordinary, write: true, operands: files}
	}
	return verdict{operands: files}
}

func (c *command) sedArgs() (scripts, files []word, inPlace, ok bool) {
	files = []word{}
	for i := 0; i < len(c.args); i++ {
		w := c.args[i]
		switch {
		case !w.known() && (w.free() || strings.HasPrefix(w.text, string(anything)) || w.option()):
			return nil, nil, false, false
		case w.text == "-e" || w.text == "--expression":
			if i++; i == len(c.args) || !c.args[i].known() {
				return nil, nil, false, false
			}
			scripts = append(scripts, c.args[i])
		case w.text == "-i" || w.text == "--in-place":
			inPlace = true
		case w.text == "-n" || w.text == "-E" || w.text == "-r" || w.text == "-s" || w.text == "-u" || w.text == "-z" || w.text == "-nE" || w.text == "-En":
		case w.option():
			return nil, nil, false, false
		default:
			files = append(files, w)
		}
	}
	if scripts == nil {
		if len(files) == 0 || !files[0].known() {
			return nil, nil, false, false
		}
		scripts, files = files[:1], files[1:]
	}
	return scripts, files, inPlace, true
}

// awk judges an invocation by its program: one that neither runs nor writes anything.
func (c *command) awk() verdict {
	code := verdict{risk: risky, why: "its program may run programs or write files", opaque: true}
	var operands []word
	for i := 0; i < len(c.args); i++ {
		w := c.args[i]
		switch {
		case !w.known():
			return code
		case w.text == "-F" || w.text == "-v":
			i++
		case strings.HasPrefix(w.text, "-F") || strings.HasPrefix(w.text, "-v"):
		case w.option():
			return code
		default:
			operands = append(operands, w)
		}
	}
	if len(operands) == 0 {
		return code
	}
	for _, bad := range []string{"system", "getline", "|", ">", "@", "\\", "ARG"} {
		if strings.Contains(operands[0].text, bad) {
			return code
		}
	}
	return verdict{operands: operands[1:]}
}

// search judges grep and its like; the first operand is a pattern, or comes before it.
func (c *command) search() verdict {
	if c.has("", "--pre", "--hostname-bin", "--search-zip", "--pager", "--exec", "--exec-batch") ||
		strings.HasPrefix(c.name, "fd") && c.has("xX") || c.name == "rg" && c.has("z") {
		return verdict{risk: risky, why: "it runs other programs", opaque: true}
	}
	if c.has("ef", "--regexp", "--file") {
		return verdict{}
	}
	operands := slices.Clone(c.args)
	i := slices.IndexFunc(operands, func(w word) bool { return !w.option() })
	if i >= 0 && operands[i].known() {
		operands = slices.Delete(operands, i, i+1)
	}
	return verdict{operands: operands}
}
