package permission

import (
	"regexp"
	"slices"
	"strings"
)

// Subcommands of git that read the repository, and those that change it in a way that git
// itself can undo. Any other name may be an alias, which may run anything.
var (
	gitReads = []string{
		"status", "log", "diff", "show", "blame", "annotate", "rev-parse", "rev-list", "ls-files", "ls-tree", "cat-file", "describe", "shortlog",
		"name-rev", "merge-base", "for-each-ref", "show-ref", "count-objects", "diff-tree", "diff-index", "diff-files", "whatchanged",
		"check-ignore", "check-attr", "version", "grep", "cherry", "range-diff", "show-branch", "verify-commit", "verify-tag", "fsck",
	}
	gitChanges = []string{
		"add", "commit", "switch", "checkout", "merge", "rebase", "cherry-pick", "revert", "mv", "init", "apply", "am", "notes", "format-patch",
		"branch", "tag", "stash", "worktree", "reset", "sparse-checkout", "reflog", "remote", "config", "bisect",
	}
	gitNetwork  = []string{"push", "fetch", "pull", "clone", "ls-remote", "submodule", "send-email", "fetch-pack", "send-pack", "request-pull", "svn", "p4", "lfs", "daemon", "archive", "bundle"}
	gitDestroys = []string{"clean", "rm", "restore", "filter-branch", "filter-repo", "gc", "prune", "update-ref", "replace", "update-index", "read-tree", "checkout-index", "symbolic-ref", "repack", "pack-refs"}
)

// gitLists says with which options and operands alone a subcommand only lists.
var gitLists = map[string]*regexp.Regexp{
	"branch":   regexp.MustCompile(`^(-[avr]+|-vv|--all|--remotes|--list|--show-current|--verbose|--no-color|--merged|--no-merged)$`),
	"tag":      regexp.MustCompile(`^(-l|-n[0-9]*|--list)$`),
	"stash":    regexp.MustCompile(`^(list|show|-p|--stat|stash@\{[0-9]+\})$`),
	"worktree": regexp.MustCompile(`^(list|--porcelain)$`),
	"remote":   regexp.MustCompile(`^(-v|--verbose|get-url|origin|upstream)$`),
	"reflog":   regexp.MustCompile(`^(show|HEAD|-n|-?[0-9]+|--oneline)$`),
	"config":   regexp.MustCompile(`^(--list|-l|--show-origin|--global|--local|--get|--get-all|[a-z]+\.[a-zA-Z.]+)$`),
}

// gitDiscards says with which arguments a subcommand throws work away.
var gitDiscards = map[string]struct{ shorts, longs string }{
	"reset":    {"", "--hard --merge --keep"},
	"checkout": {"fBpm", "--force --patch --merge --ours --theirs --pathspec-from-file"},
	"switch":   {"fC", "--force --discard-changes --force-create"},
	"branch":   {"DdfmMcC", "--delete --force --move --copy"},
	"tag":      {"df", "--delete --force"},
	"stash":    {"", "drop clear"},
	"worktree": {"fB", "remove prune --force"},
	"reflog":   {"", "expire delete"},
	"remote":   {"", "add remove rm rename set-url set-head set-branches prune update"},
	"notes":    {"f", "remove prune --force"},
}

// git judges a git command behind git's own options.
func (c *command) git() verdict {
	rest, ok := c.gitOptions()
	v := verdict{readings: [][]word{append([]word{literal("git")}, rest...)}}
	switch {
	case !ok:
		v.risk, v.why, v.opaque = risky, "its options make git run programs, or work elsewhere", true
		return v
	case len(rest) == 0:
		return v // it prints its help
	case !rest[0].known():
		v.risk, v.why, v.opaque, v.once = risky, "which command of git it runs is known only then", true, true
		return v
	}
	sub := *c
	sub.args = rest[1:]
	sub.gitCommand(rest[0].text, &v)
	v.prefix = min(v.prefix, len(c.words))
	if len(rest) != len(c.args) {
		v.prefix = 0
	}
	return v
}

// gitOptions skips git's own options; those that can make it run programs end it.
func (c *command) gitOptions() (rest []word, ok bool) {
	rest = c.args
	for len(rest) > 0 && rest[0].option() {
		switch rest[0].text {
		case "--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--version", "--help", "-v", "-h":
			rest = rest[1:]
		case "-C":
			if len(rest) < 2 || !rest[1].known() {
				return gitAfter(rest), false
			}
			rest = rest[2:] // the directory is among the paths that are judged
		default:
			return gitAfter(rest), false
		}
	}
	return rest, true
}

// gitAfter finds the subcommand behind options, for the rules.
func gitAfter(rest []word) []word {
	for len(rest) > 0 && rest[0].option() {
		n := 1
		if slices.Contains([]string{"-c", "-C", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix"}, rest[0].text) {
			n = 2
		}
		rest = rest[min(n, len(rest)):]
	}
	return rest
}

// gitCommand judges a subcommand; c.args are its arguments.
func (c *command) gitCommand(name string, v *verdict) {
	runs := c.has("", "--exec", "--ext-diff", "--textconv", "--filters", "--open-files-in-pager", "--upload-pack", "--receive-pack", "--template", "--output", "--extcmd") ||
		name == "grep" && c.has("O") || name == "rebase" && c.has("x") || name == "bisect" && c.hasWord("run")
	list, discards := gitLists[name], gitDiscards[name]
	switch {
	case runs && !slices.Contains(gitNetwork, name):
		v.risk, v.why, v.opaque = risky, "its options make git run programs or write files", true
	case slices.Contains(gitReads, name):
	case list != nil && c.all(list) && (name != "config" || !c.writesConfig()):
	case name == "config":
		v.risk, v.why, v.opaque = risky, "git's settings can name programs to run", true
	case slices.Contains(gitNetwork, name):
		c.gitNetwork(name, v)
	case slices.Contains(gitDestroys, name),
		c.has(discards.shorts, strings.Fields(discards.longs)...), c.hasWord(strings.Fields(discards.longs)...),
		name == "checkout" && c.discardsPaths():
		v.risk, v.why, v.write = risky, "it throws work away or rewrites the repository", true
	case slices.Contains(gitChanges, name):
		v.risk, v.prefix, v.write = ordinary, 2, true
	default:
		v.risk, v.why, v.opaque = risky, "it is no command of git that is known, and may be an alias", true
	}
}

// writesConfig tells whether more than one setting is named, or a value is.
func (c *command) writesConfig() bool {
	return len(operandsOf(c.args)) > 1 || len(operandsOf(c.args)) == 1 && !c.hasWord("--get", "--get-all") && c.hasWord("--list", "-l")
}

// discardsPaths tells whether git checkout is told paths rather than a branch.
func (c *command) discardsPaths() bool {
	return len(operandsOf(c.args)) > 1 && !c.hasWord("-b") || c.hasWord("--", ".", "HEAD") || c.anyGlob() ||
		slices.ContainsFunc(operandsOf(c.args), func(w word) bool { return strings.HasPrefix(w.text, ".") || strings.HasPrefix(w.text, ":") })
}

var remoteName = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// gitNetwork judges what talks to another repository. What a person grants for longer is
// pushing to, or fetching from, one remote by its name.
func (c *command) gitNetwork(name string, v *verdict) {
	v.risk, v.why = risky, "it uses the network"
	if !slices.Contains([]string{"push", "fetch", "pull"}, name) {
		v.opaque = name != "clone" && name != "ls-remote"
		return
	}
	v.prefix = 3
	for i, w := range c.args {
		switch {
		case !w.known(), w.option() && !slices.Contains([]string{"-u", "--set-upstream", "--tags", "--ff-only"}, w.text):
			v.prefix = 0
		case strings.HasPrefix(w.text, "+"), strings.HasPrefix(w.text, ":"):
			v.prefix, v.why = 0, "it overwrites or deletes what others have"
		case i == 0 && !remoteName.MatchString(w.text):
			v.prefix = 0
		}
	}
	if len(c.args) == 0 || c.args[0].option() {
		v.prefix = 0
	}
	if name == "push" && c.has("fd", "--force", "--force-with-lease", "--force-if-includes", "--delete", "--mirror", "--prune", "--all") {
		v.why = "it overwrites or deletes what others have"
	}
	if c.has("", "--upload-pack", "--receive-pack", "--exec") {
		v.opaque = true
	}
}

// hasWord tells whether one of the arguments is one of these.
func (c *command) hasWord(words ...string) bool {
	return slices.ContainsFunc(c.args, func(w word) bool { return slices.Contains(words, w.text) })
}

// all tells whether every argument is one that a subcommand lists with.
func (c *command) all(list *regexp.Regexp) bool {
	return !slices.ContainsFunc(c.args, func(w word) bool { return !w.known() || !list.MatchString(w.text) })
}
