package permission

import (
	"slices"
	"strings"
)

// wrapper is a program that runs the command in its arguments.
type wrapper struct {
	flags  string // short options without a value
	valued string // short options with a value
	longs  []string
	skip   int // arguments before the command
	risk   risk
	why    string
}

var wrappers = map[string]wrapper{
	"nohup":      {},
	"setsid":     {flags: "cfw", longs: []string{"--wait", "--fork"}},
	"time":       {flags: "pv"},
	"nice":       {flags: "0123456789", valued: "n", longs: []string{"--adjustment"}},
	"ionice":     {flags: "t", valued: "cn", longs: []string{"--class", "--classdata", "--ignore"}},
	"timeout":    {flags: "fv", valued: "sk", longs: []string{"--signal", "--kill-after", "--foreground", "--preserve-status", "--verbose"}, skip: 1},
	"gtimeout":   {flags: "fv", valued: "sk", longs: []string{"--signal", "--kill-after", "--foreground", "--preserve-status", "--verbose"}, skip: 1},
	"stdbuf":     {valued: "ioe", longs: []string{"--input", "--output", "--error"}},
	"gstdbuf":    {valued: "ioe", longs: []string{"--input", "--output", "--error"}},
	"builtin":    {},
	"busybox":    {},
	"toybox":     {},
	"chronic":    {flags: "ve"},
	"unbuffer":   {flags: "p"},
	"caffeinate": {flags: "disu", valued: "t"},
	"taskset":    {flags: "a", skip: 1},
	"sudo":       {flags: "AbEHnPSik", valued: "ugCDhpRTU", risk: risky, why: "it runs with the rights of another user"},
}

// unwrap judges the command in the arguments of a wrapper.
func (c *command) unwrap(w wrapper) verdict {
	inner, ok := w.inner(c.args)
	if !ok || len(inner) > 0 && inner[0].option() {
		return verdict{risk: risky, why: "which program it runs is not plain", opaque: true}
	}
	if len(inner) == 0 {
		return verdict{risk: max(w.risk, ordinary), why: w.why}
	}
	c.command(inner, c.stdin)
	return verdict{risk: w.risk, why: w.why, noPaths: true}
}

// inner returns the command in the arguments of a wrapper, unless an option is not known.
func (w wrapper) inner(args []word) ([]word, bool) {
	for len(args) > 0 {
		head := args[0]
		if !head.option() || !head.known() {
			break
		}
		args = args[1:]
		if head.text == "--" {
			break
		}
		if strings.HasPrefix(head.text, "--") {
			name, _, hasValue := strings.Cut(head.text, "=")
			if !slices.Contains(w.longs, name) || !hasValue && slices.Contains(longsWithValue, name) {
				return nil, false
			}
			continue
		}
		takes, ok := w.cluster(head.text[1:])
		if !ok || takes && len(args) == 0 {
			return nil, false
		}
		if takes {
			args = args[1:]
		}
	}
	if len(args) < w.skip || slices.ContainsFunc(args[:min(w.skip, len(args))], func(w word) bool { return !w.known() }) {
		return nil, false
	}
	return args[w.skip:], true
}

// longsWithValue are long options of wrappers that are understood with "=" only.
var longsWithValue = []string{
	"--adjustment", "--class", "--classdata", "--signal", "--kill-after", "--input", "--output", "--error",
	"--max-args", "--max-procs", "--max-lines", "--delimiter", "--unset", "--chdir",
}

// cluster tells whether short options take the next argument as a value.
func (w wrapper) cluster(letters string) (takes, ok bool) {
	for i, r := range letters {
		if strings.ContainsRune(w.valued, r) {
			return i+len(string(r)) == len(letters), true
		}
		if !strings.ContainsRune(w.flags, r) {
			return false, false
		}
	}
	return false, true
}

// execute judges exec and command, which run their arguments or say what those are.
func (c *command) execute() verdict {
	if c.name == "command" && c.has("vV") && !c.anyGlob() && c.args[0].option() {
		return verdict{noPaths: true}
	}
	if len(c.args) == 0 {
		return verdict{}
	}
	return c.unwrap(wrapper{flags: "pcl", valued: "a"})
}

// env judges env, whose assignments come before the command.
func (c *command) env() verdict {
	w := wrapper{flags: "i0v", valued: "u", longs: []string{"--ignore-environment", "--null", "--unset", "--debug"}}
	inner, ok := w.inner(c.args)
	if !ok {
		return verdict{risk: risky, why: "which program it runs is not plain", opaque: true}
	}
	for len(inner) > 0 {
		name, _, found := strings.Cut(inner[0].text, "=")
		if !found {
			break
		}
		if !isMild(name) {
			c.setting(name, inner[0].show)
		}
		inner = inner[1:]
	}
	if len(inner) > 0 {
		c.command(inner, c.stdin)
	}
	return verdict{noPaths: true}
}

// xargs judges xargs: what it reads becomes arguments that are not known.
func (c *command) xargs() verdict {
	w := wrapper{
		flags: "0rtxpo", valued: "nLPsEdI",
		longs: []string{"--null", "--no-run-if-empty", "--verbose", "--max-args", "--max-procs", "--max-lines", "--delimiter"},
	}
	inner, ok := w.inner(c.args)
	if !ok {
		return verdict{risk: risky, why: "which program it runs is not plain", opaque: true}
	}
	if len(inner) == 0 {
		return verdict{noPaths: true} // it echoes
	}
	inner = slices.Clone(inner)
	for i, arg := range c.args[:len(c.args)-len(inner)] {
		for j := range inner {
			replace := strings.TrimPrefix(arg.text, "-I") // in the option or the one after it
			if i > 0 && strings.HasSuffix(c.args[i-1].text, "I") {
				replace = arg.text
			} else if replace == arg.text {
				continue
			}
			if replace != "" && strings.Contains(inner[j].text, replace) {
				inner[j] = unknown(inner[j].text)
			}
		}
	}
	c.command(append(inner, unknown("…")), nil)
	return verdict{noPaths: true}
}

// changeDir judges cd and notes where it goes.
func (c *command) changeDir() verdict {
	operands := operandsOf(c.args)
	switch {
	case c.name == "popd":
		return verdict{noPaths: true} // back to where it was before
	case len(operands) == 0:
		operands = []word{{text: "~", show: "~"}}
	case len(operands) > 1, !operands[0].known(), operands[0].text == "-", strings.HasPrefix(operands[0].text, "+"):
		c.lost = true
		return verdict{risk: risky, why: "the directory it goes to is known only when it runs", operands: []word{}}
	}
	c.cds = append(c.cds, operands[0])
	return verdict{operands: operands}
}

// setsVariables judges builtins whose operands are names of variables.
func (c *command) setsVariables() verdict {
	operands := operandsOf(c.args)
	if c.name == "printf" {
		if len(c.args) < 2 || c.args[0].known() && !strings.HasPrefix(c.args[0].text, "-v") {
			return verdict{noPaths: true}
		}
		operands = []word{literal(strings.TrimPrefix(c.args[0].text, "-v"))}
		if c.args[0].text == "-v" {
			operands = c.args[1:2]
		}
	}
	for _, w := range operands {
		if !w.known() || !plainName.MatchString(w.text) || !isMild(w.text) {
			return verdict{risk: risky, why: "programs may act on the variable it sets", opaque: true, once: true, noPaths: true}
		}
	}
	if c.has("Ca", "-C") && c.name != "read" {
		return verdict{risk: risky, why: "it runs what it is given", opaque: true}
	}
	return verdict{noPaths: true}
}

// test judges the builtin test, which only with -v looks into what it is given.
func (c *command) test() verdict {
	for _, w := range c.args {
		if w.text == "-v" || w.text == "-R" {
			return verdict{risk: risky, why: "it evaluates the name of a variable", opaque: true, noPaths: true}
		}
	}
	return verdict{noPaths: true}
}

// shellOptions judges set: the options that make a script stop at errors are plain.
func (c *command) shellOptions() verdict {
	for _, w := range c.args {
		if !w.known() || strings.Trim(w.text, "-+euxo") != "" && !slices.Contains([]string{"pipefail", "errexit", "nounset", "xtrace"}, w.text) {
			return verdict{risk: risky, why: "it changes how the shell reads, or its arguments", opaque: true, noPaths: true}
		}
	}
	return verdict{noPaths: true}
}
