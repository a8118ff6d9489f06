package permission

import "strings"

// fileTools says which of our tools work on the path in "path", and which of them write.
var fileTools = map[string]struct{ write bool }{
	"read": {}, "ls": {}, "grep": {}, "find": {}, "write": {true}, "edit": {true},
}

// mainNames are the names that a tool's main argument goes by, the first that is there.
var mainNames = []string{"path", "file_path", "filepath", "file", "filename", "url", "uri", "command", "query", "name"}

// toolPieces judges a call of any tool but bash: one piece, with all the paths it names.
func toolPieces(tool string, in []field, where place) []piece {
	known, isFile := fileTools[tool]
	main := ""
	for _, name := range mainNames {
		if text, ok := top(in, name); ok {
			main = text
			break
		}
	}
	p := piece{risk: ordinary}
	if isFile {
		main, _ = top(in, "path")
		if main == "" {
			main = "."
		}
		p.touches = []touch{{path: main, write: known.write}}
		if !known.write {
			p.risk = harmless
		}
	} else {
		p.touches = namedPaths(in)
	}
	p.words = []word{literal(main)}
	p.text = tool + " " + literal(main).show
	p.place(where)
	p.grantTool(tool, isFile)
	return []piece{p}
}

// namedPaths lists the texts of an unknown tool's input that are paths by their names.
func namedPaths(in []field) []touch {
	var list []touch
	for _, f := range in {
		for _, hint := range []string{"path", "file", "dir", "folder", "cwd"} {
			if strings.Contains(f.name, hint) && f.text != "" && !strings.Contains(f.text, "://") {
				list = append(list, touch{path: f.text, write: true})
				break
			}
		}
	}
	return list
}

// place resolves the piece's paths and lets them raise its risk.
func (p *piece) place(where place) {
	for i := range p.touches {
		t := &p.touches[i]
		t.at = where.resolve(t.path)
		level, why := where.weigh(*t)
		p.raise(level, why)
		if where.unknown && !strings.HasPrefix(t.path, "/") && !strings.HasPrefix(t.path, "~") {
			p.anyPath = true // for rules about paths as well, also where nothing else is a question
		}
	}
}

// grantTool sets what grants the piece: the tool within the directory when nothing about the
// call is special; otherwise this path alone, and nothing at all for a tool whose other
// arguments are not known here.
func (p *piece) grantTool(tool string, isFile bool) {
	switch {
	case p.risk < risky && isFile:
		p.prefix = tool + ":./**"
	case p.risk < risky:
		p.prefix = tool + ":*"
	case isFile:
		p.exact = tool + ":" + literal(p.touches[0].at[0]).show
	}
}
