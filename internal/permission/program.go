package permission

import "strings"

// versioned are programs that say their version and do nothing else when asked to.
var (
	versioned = []string{
		"bash", "bun", "cargo", "clang", "cmake", "deno", "docker", "gcc", "g++", "gh", "git", "go", "gofmt", "java", "javac", "jq", "kubectl",
		"make", "node", "npm", "npx", "perl", "php", "pip", "pip3", "pnpm", "python", "python3", "rg", "ruby", "rustc", "rustup", "tsc", "uv", "yarn",
	}
	versionFlags = []string{"--version", "version"}
)

// silent are programs whose arguments are neither paths nor anything that matters.
var silent = []string{
	"echo", "true", "false", ":", "pwd", "whoami", "id", "uname", "arch", "nproc", "sleep", "seq", "expr", "basename", "dirname",
	"type", "which", "whereis", "tty", "printenv", "uptime", "groups", "break", "continue", "return", "exit", "shift", "wait", "jobs",
	"times", "umask", "free", "cal", "locale", "getconf", "tput", "logname", "factor", "yes", "ulimit",
}

// readers are programs that read the paths they are given and print, with any option.
var readers = []string{
	"cat", "head", "tail", "wc", "ls", "dir", "stat", "du", "df", "nl", "tac", "rev", "cut", "tr", "paste", "join", "comm", "column", "expand",
	"unexpand", "fold", "fmt", "strings", "od", "hexdump", "diff", "cmp", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum",
	"sha512sum", "cksum", "sum", "b2sum", "base64", "base32", "readlink", "realpath", "zcat", "bzcat", "xzcat", "zstdcat", "jq",
	"tsort", "look", "readelf", "getfacl", "lsattr",
}

// writers are programs that change the paths they are given within reason.
var writers = []string{"cp", "mv", "mkdir", "touch", "ln", "link", "tee", "rmdir", "patch", "csplit", "gzip", "gunzip", "bzip2", "xz", "zstd", "unzip", "gofmt", "goimports", "prettier"}

const destroys = "it deletes or overwrites files"

// risks are programs that are a question whatever their arguments.
var risks = []struct {
	why    string
	opaque bool
	names  []string
}{
	{destroys, false, []string{"rm", "shred", "dd", "mkfs", "truncate", "wipefs", "fdisk", "sfdisk", "parted", "unlink", "srm", "wipe", "mkswap", "blkdiscard", "fallocate", "rename"}},
	{"it changes who may use files", false, []string{"chown", "chgrp", "setfacl", "chattr", "setcap", "chcon"}},
	{"it ends processes", false, []string{"kill", "killall", "pkill", "xkill", "fuser"}},
	{"it changes the system", true, []string{
		"shutdown", "reboot", "halt", "poweroff", "init", "telinit", "systemctl", "service", "launchctl", "crontab", "at", "batch", "mount", "umount",
		"losetup", "swapon", "swapoff", "iptables", "ip6tables", "nft", "ufw", "ip", "ifconfig", "route", "sysctl", "modprobe", "insmod", "rmmod", "useradd",
		"userdel", "usermod", "groupadd", "passwd", "chpasswd", "visudo", "update-alternatives", "ldconfig", "hostnamectl", "defaults", "security",
		"chroot", "unshare", "nsenter", "setpriv", "capsh", "bwrap", "runuser", "su", "pkexec", "systemd-run", "doas",
	}},
	{"it uses the network", false, []string{
		"curl", "wget", "ssh", "scp", "sftp", "rsync", "nc", "ncat", "netcat", "socat", "telnet", "ftp", "tftp", "lftp", "aria2c", "ping", "ping6", "traceroute",
		"dig", "nslookup", "host", "whois", "http", "https", "xh", "httpie", "twine", "gh", "glab", "aws", "gcloud", "gsutil", "az", "kubectl", "helm",
		"terraform", "ansible", "ansible-playbook", "apt", "apt-get", "aptitude", "dpkg", "dnf", "yum", "rpm", "zypper", "apk", "pacman", "brew", "snap", "flatpak",
		"nix", "nix-env", "nix-shell", "pip", "pip2", "pip3", "pipx", "conda", "mamba", "gem", "npx", "pnpx", "bunx", "uvx", "ssh-copy-id", "ssh-keygen", "mail",
		"sendmail", "mutt", "openssl", "vercel", "netlify", "heroku", "fly", "flyctl", "ngrok", "cloudflared", "psql", "mysql", "mongo", "mongosh", "redis-cli",
	}},
	{"it runs other programs", true, []string{
		"docker", "podman", "nerdctl", "docker-compose", "lxc", "qemu-system-x86_64", "vim", "vi", "nvim", "view", "ex", "ed", "emacs", "nano", "less", "more",
		"most", "man", "info", "gdb", "lldb", "expect", "script", "screen", "tmux", "parallel", "watch", "entr", "source", ".", "alias", "unalias", "shopt",
		"enable", "hash", "bind", "complete", "compgen", "compopt", "history", "fc", "let", "osascript", "open", "xdg-open", "start", "cmd", "powershell", "pwsh",
		"ltrace", "strace", "perf", "dbus-send", "busctl", "m4", "dc", "rlwrap", "sshpass", "faketime", "fakeroot", "proot", "rundll32", "start-stop-daemon",
		"flock", "setarch", "linux32", "linux64", "xvfb-run", "valgrind", "hyperfine", "torsocks", "proxychains", "proxychains4", "firejail", "numactl",
		"prlimit", "cpulimit", "choom", "ssh-agent", "gosu", "su-exec", "tini", "dumb-init", "runcon", "sg", "newgrp", "aa-exec", "dbus-run-session", "cpio", "pax",
		"run-parts", "logrotate", "pdflatex", "latex", "tex", "ctags", "cscope", "nmap", "tcpdump", "sqlite3", "octave", "gnuplot", "ghci", "scala", "jshell",
	}},
}

// interpreters are programs that run code, with the options that give it on the command line.
// A number at the end of the name is its version.
var interpreters = map[string]string{
	"python": "c", "pypy": "c", "perl": "eE", "ruby": "e", "node": "eprp", "nodejs": "eprp", "php": "rBRE", "lua": "e", "luajit": "e",
	"tclsh": "c", "rscript": "e", "deno": "e", "bun": "e", "guile": "c", "racket": "e", "elixir": "e", "erl": "e", "groovy": "e", "swift": "e",
	"sh": "c", "bash": "c", "dash": "c", "zsh": "c", "ksh": "c", "ash": "c", "fish": "c", "rbash": "c", "csh": "c", "tcsh": "c", "mksh": "c",
}

// shells are the interpreters whose code is read as bash reads it, near enough to judge it.
var shells = []string{"sh", "bash", "dash", "ash", "ksh", "zsh", "rbash", "mksh"}

// network says which subcommands of programs for development fetch or publish.
var network = map[string]string{
	"npm":     " install i in add ci cit it publish unpublish update up upgrade exec x create init uninstall un rm link login logout adduser token access owner deprecate dist-tag audit config set pack star team hook ",
	"pnpm":    " install i add ci publish update up upgrade exec dlx create init remove rm link login fetch import config env ",
	"yarn":    " install add publish upgrade up dlx create init remove link login import config set npm global ",
	"cargo":   " install publish add update fetch login owner yank search uninstall ",
	"uv":      " add pip sync tool run lock publish remove python venv self ",
	"poetry":  " add install update publish remove self config lock ",
	"go":      " get install mod work ",
	"gem":     " install push ",
	"bundle":  " install add update exec ",
	"rustup":  " install update self toolchain default component target ",
	"dotnet":  " add restore publish nuget tool ",
	"mvn":     " deploy ",
	"compose": " install require update ",
}

// special returns the judge of a program whose arguments decide.
func special(name string) func(*command) verdict {
	switch name {
	case "cd", "pushd", "popd":
		return (*command).changeDir
	case "git":
		return (*command).git
	case "find", "gfind":
		return (*command).find
	case "xargs", "gxargs":
		return (*command).xargs
	case "env", "genv":
		return (*command).env
	case "eval":
		return (*command).eval
	case "trap":
		return (*command).trap
	case "sed", "gsed":
		return (*command).sed
	case "awk", "gawk", "mawk", "nawk":
		return (*command).awk
	case "go":
		return (*command).goTool
	case "read", "mapfile", "readarray", "getopts", "unset", "printf":
		return (*command).setsVariables
	case "test", "[":
		return (*command).test
	case "grep", "egrep", "fgrep", "zgrep", "rg", "ag", "ack", "fd", "fdfind":
		return (*command).search
	case "set":
		return (*command).shellOptions
	case "exec", "command":
		return (*command).execute
	}
	if _, ok := network[name]; ok {
		return (*command).developer
	}
	if _, ok := guarded[name]; ok {
		return (*command).guard
	}
	return nil
}

// guarded are programs that are what the tables say unless they get certain options.
var guarded = map[string]struct {
	risk   risk
	shorts string
	longs  string
	most   int // operands; 0 for any number
	why    string
	opaque bool
}{
	"tar":      {ordinary, "IF", "--to-command --checkpoint-action --use-compress-program --rsh-command --info-script --new-volume-script", 0, "it runs other programs", true},
	"bsdtar":   {ordinary, "IF", "--use-compress-program", 0, "it runs other programs", true},
	"sort":     {harmless, "oT", "--output --compress-program --temporary-directory --files0-from", 0, "it writes files or runs programs", true},
	"uniq":     {harmless, "", "", 1, "it writes its second file", false},
	"xxd":      {harmless, "r", "-revert", 1, "it writes its second file", false},
	"tree":     {harmless, "oR", "--output --fromfile", 0, "it writes files", false},
	"file":     {harmless, "CfmSzZ", "--compile --files-from --magic-file --uncompress", 0, "it writes or runs more than it names", false},
	"date":     {harmless, "sf", "--set --file", 0, "it sets the clock", false},
	"hostname": {harmless, "bF", "--file --boot", -1, "it sets the name of the machine", false},
	"yq":       {harmless, "is", "--inplace --split-exp --in-place", 0, "it writes files", false},
	"split":    {ordinary, "", "--filter", 0, "it runs other programs", true},
	"install":  {ordinary, "", "--strip-program", 0, "it runs other programs", true},
	"chmod":    {ordinary, "R", "--recursive", 0, "it changes a whole tree", false},
	"make":     {ordinary, "E", "--eval", 0, "it runs what it is given", true},
	"gmake":    {ordinary, "E", "--eval", 0, "it runs what it is given", true},
	"zip":      {ordinary, "TmU", "--unzip-command --test --move", 0, "it runs other programs or deletes", true},
}

// guard judges a program of the table above.
func (c *command) guard() verdict {
	g := guarded[strings.ToLower(c.name)]
	bundle := c.name == "tar" && len(c.args) > 0 && !c.args[0].option() && strings.ContainsAny(c.args[0].text, g.shorts)
	operands := len(operandsOf(c.args))
	tooMany := g.most > 0 && operands > g.most || g.most < 0 && operands > 0
	if bundle || tooMany || c.has(g.shorts, strings.Fields(g.longs)...) || g.most != 0 && c.anyGlob() {
		return verdict{risk: risky, why: g.why, opaque: g.opaque, write: true}
	}
	v := verdict{risk: g.risk, write: g.risk == ordinary}
	if g.risk == ordinary {
		v.prefix = c.kind()
		if c.name != "make" && c.name != "gmake" {
			v.prefix = 0
		}
	}
	return v
}

func (c *command) anyGlob() bool {
	for _, w := range c.args {
		if !w.known() {
			return true
		}
	}
	return false
}

// developer judges a program that builds and tests, and also fetches and publishes.
func (c *command) developer() verdict {
	list := network[c.name]
	operands := operandsOf(c.args)
	if len(operands) > 0 && (!operands[0].known() || strings.Contains(list, " "+operands[0].text+" ")) {
		return verdict{risk: risky, why: "it uses the network, and may run what it fetches", opaque: true}
	}
	if len(operands) == 0 && (c.name == "yarn" || c.name == "bundle") {
		return verdict{risk: risky, why: "it installs packages"}
	}
	if len(c.args) > 0 && c.args[0].option() {
		return verdict{risk: risky, why: "its options come first, so what it does is not plain"}
	}
	return c.unknownProgram()
}

// goTool judges the go command.
func (c *command) goTool() verdict {
	if c.has("", "--exec", "--toolexec", "--vettool", "-exec", "-toolexec", "-vettool") || c.goOption("exec", "toolexec", "vettool") {
		return verdict{risk: risky, why: "it runs a program that it is given", opaque: true}
	}
	if len(c.args) > 0 {
		switch c.args[0].text {
		case "version", "doc":
			return verdict{}
		case "env":
			if !c.goOption("w", "u") && !c.anyGlob() {
				return verdict{}
			}
			return verdict{risk: risky, why: "it changes the settings of go"}
		case "generate":
			return verdict{risk: ordinary, prefix: 2}
		case "clean":
			return verdict{risk: risky, why: destroys}
		}
	}
	return c.developer()
}

// goOption looks for options that the go command takes with one dash or two.
func (c *command) goOption(names ...string) bool {
	for _, w := range c.args {
		name, _, _ := strings.Cut(strings.TrimLeft(w.text, "-"), "=")
		for _, n := range names {
			if w.option() && name == n {
				return true
			}
		}
	}
	return false
}
