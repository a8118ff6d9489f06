package permission

import (
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// place is where a call's paths are resolved. Links are not followed, for nothing is read:
// the file tools and the sandbox see to those.
type place struct {
	dir, home string
	// cwds are the directories that a command may be in; unknown says that there are more.
	cwds    []string
	unknown bool
}

// resolve returns the places that a path may mean: absolute, or "~…" where home is not known.
func (p place) resolve(name string) []string {
	switch {
	case name == "~" || strings.HasPrefix(name, "~/"):
		if p.home == "" {
			return []string{path.Clean(name)}
		}
		return []string{path.Join(p.home, name[1:])}
	case strings.HasPrefix(name, "~"), strings.HasPrefix(name, "/"):
		return []string{path.Clean(name)}
	}
	cwds := p.cwds
	if len(cwds) == 0 {
		cwds = []string{p.dir}
	}
	var at []string
	for _, cwd := range cwds {
		at = append(at, path.Join(cwd, name))
	}
	return at
}

// inside returns a path's form relative to the directory.
func (p place) inside(at string) (string, bool) {
	dir := path.Clean(p.dir)
	if at == dir {
		return ".", true
	}
	rel, ok := strings.CutPrefix(at, strings.TrimSuffix(dir, "/")+"/")
	return rel, ok
}

// weigh says how risky it is to touch a path.
func (p place) weigh(t touch) (risk, string) {
	for _, at := range t.at {
		if isDevice(at) {
			continue
		}
		rel, ok := p.inside(at)
		if !ok {
			return risky, "it leaves the session's directory"
		}
		if why := sensitive(rel, t.write); why != "" {
			return risky, why
		}
	}
	if p.unknown && !strings.HasPrefix(t.path, "/") {
		return risky, "the directory it runs in is known only when it runs"
	}
	if dotGlob(t.path) {
		return risky, "the pattern may mean a parent directory or hidden files"
	}
	return harmless, ""
}

// isDevice tells whether a path is one of the devices that hold nothing.
func isDevice(at string) bool {
	switch at {
	case "/dev/null", "/dev/zero", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/random", "/dev/urandom":
		return true
	}
	fd, ok := strings.CutPrefix(at, "/dev/fd/")
	return ok && fd != "" && strings.Trim(fd, "0123456789") == ""
}

// dotGlob tells whether a component begins with a dot and goes on with what is not known.
func dotGlob(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(c string) bool {
		return strings.HasPrefix(c, ".") && strings.ContainsRune(c, anything)
	})
}

// Names that hold secrets: reading one is a question as well.
var (
	secretDirs  = []string{".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".gcloud", ".password-store"}
	secretFiles = []string{
		".env", ".env.*", ".netrc", ".npmrc", ".pypirc", ".git-credentials", ".pgpass", ".envrc", "*.pem", "*.key", "*.p12",
		"*.pfx", "*.jks", "*.keystore", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "credentials", "credentials.json",
	}
	samples = []string{".env.example", ".env.sample", ".env.template", ".env.dist", "id_*.pub"}
)

// Names whose content is obeyed by programs, by roost or by the next model: writing one is a
// question.
var (
	obeyedDirs  = []string{".git", ".github", ".gitlab", ".circleci", ".buildkite", ".husky", ".roost", ".claude", ".cursor", ".codex", ".pi", ".agents", ".vscode", ".idea", ".devcontainer"}
	obeyedFiles = []string{
		".git", ".gitmodules", ".gitattributes", ".gitconfig", ".gitlab-ci.yml", ".travis.yml", "jenkinsfile", "azure-pipelines.yml", "bitbucket-pipelines.yml",
		".mcp.json", "agents.md", "claude.md", "gemini.md", ".cursorrules", ".pre-commit-config.yaml", ".bashrc", ".bash_profile",
		".profile", ".zshrc", ".zshenv", ".zprofile", ".inputrc", ".vimrc", ".exrc", ".yarnrc*", ".gdbinit", ".curlrc", ".wgetrc",
	}
)

// sensitive says what is special about a path below the directory, or "".
func sensitive(rel string, write bool) string {
	parts := strings.Split(strings.ToLower(rel), "/")
	name := parts[len(parts)-1]
	for _, dir := range parts {
		if slices.Contains(secretDirs, dir) {
			return "it may hold secrets"
		}
		if write && slices.Contains(obeyedDirs, dir) {
			return "programs act on what is written there"
		}
	}
	switch {
	case anyMatch(samples, name):
		return ""
	case anyMatch(secretFiles, name):
		return "it may hold secrets"
	case write && anyMatch(obeyedFiles, name):
		return "programs or models act on what is written there"
	}
	return ""
}

func anyMatch(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool {
		ok, err := path.Match(p, name)
		return ok && err == nil
	})
}

// pathPattern is the path of a rule.
type pathPattern struct {
	absolute string
	loose    [][]rune // for paths that are not wholly known
}

func newPathPattern(pattern string, where place) *pathPattern {
	abs := pattern
	switch {
	case strings.HasPrefix(pattern, "~/") && where.home != "":
		abs = where.home + pattern[1:]
	case !strings.HasPrefix(pattern, "/") && !strings.HasPrefix(pattern, "~"):
		abs = strings.TrimSuffix(escapeGlob(path.Clean(where.dir)), "/") + "/" + strings.TrimPrefix(pattern, "./")
	}
	p := &pathPattern{absolute: abs}
	for _, form := range []string{abs, strings.ReplaceAll(abs, "**/", ""), strings.TrimSuffix(abs, "/**")} {
		p.loose = append(p.loose, loosePath(form))
	}
	return p
}

func escapeGlob(dir string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, `{`, `\{`).Replace(dir)
}

// loosePath turns a doublestar pattern into one that matches at least as much.
func loosePath(pattern string) []rune {
	if i := strings.IndexAny(pattern, `[{\`); i >= 0 {
		pattern = pattern[:i] + "**"
	}
	pattern = strings.ReplaceAll(pattern, "**", string(many))
	return []rune(strings.ReplaceAll(pattern, "/", string(sep)))
}

// matches tells whether the rule matches a path that is wholly known, or may match another.
// A pattern that is not valid matches everything: it was written to keep something away.
func (p *pathPattern) matches(at string) answer {
	if strings.ContainsRune(at, anything) {
		text := []rune(strings.ReplaceAll(at, "/", string(sep)))
		if slices.ContainsFunc(p.loose, func(form []rune) bool { return matches(form, text, true) }) {
			return maybe
		}
		return no
	}
	ok, err := doublestar.Match(p.absolute, at)
	if ok || err != nil {
		return yes
	}
	return no
}

// some tells whether any path of a piece matches.
func (p *pathPattern) some(piece *piece) answer {
	result := no
	if piece.anyPath {
		result = maybe
	}
	for _, t := range piece.touches {
		for _, at := range t.at {
			result = max(result, p.matches(at))
		}
	}
	return result
}

// all tells whether every path of a piece is known and matches, and there is one.
func (p *pathPattern) all(piece *piece) bool {
	if piece.anyPath || len(piece.touches) == 0 || !doublestar.ValidatePattern(p.absolute) {
		return false
	}
	for _, t := range piece.touches {
		for _, at := range t.at {
			if p.matches(at) != yes {
				return false
			}
		}
	}
	return true
}
