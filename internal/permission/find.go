package permission

import (
	"slices"
	"strings"
)

// Tests and actions of find that only look and print, with the number of their arguments.
var findPlain = map[string]int{
	"-name": 1, "-iname": 1, "-path": 1, "-ipath": 1, "-wholename": 1, "-regex": 1, "-iregex": 1, "-regextype": 1, "-type": 1, "-xtype": 1,
	"-maxdepth": 1, "-mindepth": 1, "-size": 1, "-mtime": 1, "-mmin": 1, "-atime": 1, "-amin": 1, "-ctime": 1, "-cmin": 1, "-newer": 1,
	"-perm": 1, "-user": 1, "-group": 1, "-uid": 1, "-gid": 1, "-links": 1, "-inum": 1, "-samefile": 1, "-printf": 1, "-fstype": 1,
	"-print": 0, "-print0": 0, "-ls": 0, "-prune": 0, "-quit": 0, "-empty": 0, "-executable": 0, "-readable": 0, "-writable": 0, "-depth": 0,
	"-mount": 0, "-xdev": 0, "-not": 0, "-a": 0, "-o": 0, "-and": 0, "-or": 0, "-true": 0, "-false": 0, "-nouser": 0, "-nogroup": 0,
	"-H": 0, "-P": 0, "-daystart": 0, "!": 0, "(": 0, ")": 0, ",": 0,
}

// find judges what find does with what it finds.
func (c *command) find() verdict {
	v := verdict{operands: []word{}}
	args := c.args
	for len(args) > 0 {
		head := args[0]
		args = args[1:]
		n, plain := findPlain[head.text]
		switch {
		case !head.known():
			v.operands = append(v.operands, head)
			if strings.HasPrefix(head.text, string(anything)) || head.option() || head.free() {
				v.risk, v.why, v.opaque = risky, "what it does is known only when it runs", true
			}
		case plain:
			args = args[min(n, len(args)):]
		case slices.Contains([]string{"-exec", "-execdir", "-ok", "-okdir"}, head.text):
			args = c.findExec(args, v.operands)
		case head.text == "-delete":
			v.risk, v.why = risky, destroys
		case head.option():
			v.risk, v.why, v.opaque = risky, "it writes files or does what is not known", true
		default:
			v.operands = append(v.operands, head)
		}
	}
	return v
}

// findExec judges the command that find runs, and returns the arguments after it. The names
// it is given begin with where find was told to look, so they are no options.
func (c *command) findExec(args, starts []word) []word {
	end := 0
	for end < len(args) && args[end].text != ";" && (args[end].text != "+" || end == 0 || args[end-1].text != "{}") {
		end++
	}
	inner := slices.Clone(args[:end])
	for i, w := range inner {
		if !strings.Contains(w.text, "{}") {
			continue
		}
		inner[i] = unknown(w.show)
		if w.text == "{}" && i > 0 && len(starts) < 2 {
			inner[i].glob = true
			inner[i].text = strings.Join(append(texts(starts), string(anything)), "/")
		}
	}
	if len(inner) > 0 {
		c.command(inner, nil)
	}
	return args[min(end+1, len(args)):]
}

func texts(words []word) []string {
	var list []string
	for _, w := range words {
		list = append(list, w.text)
	}
	return list
}
