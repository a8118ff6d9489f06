package permission_test

import (
	"testing"

	"github.com/roost-dev/roost/internal/permission"
)

// Commands by what the built-in knowledge says of them.
var (
	benign = []string{
		"ls", "ls -la src", "ls *.go", "cat README.md", "cat src/*.go", "head -n 5 a b", "wc -l < a", "pwd", "echo hi", "echo $HOME", `echo "a  b"`,
		"grep -rn foo .", "grep -rn /api/v1 src", "rg foo src", "git status", "git log --oneline -5", "git diff HEAD~1 -- src", "git show HEAD",
		"git branch", "git branch -a", "git remote -v", "git stash list", "git config --get user.name", "git --no-pager log", "git -C sub status",
		"find . -name '*.go'", "find . -name '*.go' -exec grep -l foo {} +", "find src -type f | wc -l", "sort a | uniq -c | sort -rn | head",
		"sed -n '1,20p' a", "sed 's/a/b/g' a", "awk '{print $1}' a", "awk -F: '{print $2}' a", "cd src && ls", "cd src; cat x", "x=1", "# nothing", "x=$(git status)",
		"ls 2>/dev/null", "ls 2>&1 | head", "ls > /dev/null", "true || false", "for f in a b; do echo $f; done", "if [ -f a ]; then cat a; fi",
		"bash -c 'ls; pwd'", "env ls", "LC_ALL=C sort a", "time ls", "timeout 5 ls", "nohup ls", "command -v go", "go version", "go env GOPATH", "python3 --version",
		"cat <<EOF\nhello\nEOF", "[[ -n $x ]]", "test -d src", "diff <(ls a) <(ls b)", "echo $((1+2))", "set -euo pipefail; ls", "eval ls", "/bin/ls", "/usr/bin/git status",
		"printf '%s\\n' x", "jq .a x.json", "date", "tree src", "cat .env.example", "ls \u202e", "git", "grep -rn --include=*.go foo .", "rev a",
	}
	plain = []string{
		"make", "make test", "go test ./...", "go build", "npm test", "npm run build", "./run.sh", "cargo test", "frobnicate x", "mkdir -p a/b", "touch a",
		"cp a b", "mv a b", "echo x > a", "echo x >> a", "ls | tee out", "git add .", "git commit -m 'a b'", "git checkout main", "git merge x", "chmod +x a",
		"python3 x.py", "python3 -m pytest", "bash run.sh", "sed -i 's/a/b/' a", "tar xf a.tar", "cd src && make", "CGO_ENABLED=0 go build", "node x.js", "f() { ls; }; f",
		"go vet ./...", "pytest -q", "gofmt -w a.go",
	}
	risky = []string{
		"rm a", `r\m a`, `"rm" a`, `'rm' a`, `$'rm' a`, `$'\x72m' a`, `$'\162m' a`, `r""m a`, "/bin/rm a", "command rm a", `\rm a`, "builtin rm a", "exec rm a", "busybox rm a",
		"rm${IFS}-rf${IFS}a", "${x:-rm} a", "X=rm; $X a", "$(echo rm) a", "`echo rm` a", "{rm,-rf,a}", "r? a", "/bin/r* a", "echo cm0gYQ== | base64 -d | sh",
		"echo 'rm a' | bash", "bash <<< 'rm a'", "bash <<EOF\nrm a\nEOF", "bash -s < x", "sh", "bash -c 'rm a'", `bash -c "$x"`, "bash -lc 'rm a'", "sh -c \"sh -c 'rm a'\"",
		"eval 'rm a'", `eval "$x"`, "eval r'm' a", "source x.sh", ". ./x.sh", "trap 'rm a' EXIT", "alias ls='rm a'", "python -c 'import os'", "python3 - < x", "perl -e 1",
		"ruby -e 1", "node -e 1", "node -p 1", "php -r 1", "find . -delete", "find . -exec rm {} \\;", "find . -exec sh -c 'rm a' \\;", "find . -execdir rm {} +", "find . -fprint a",
		"find / -name x", "find . $x", "git -c core.pager=x log", "git -c alias.x=!sh x", "git x", "git --exec-path=a status", "git --git-dir=a status", "git push", "git push --force", "git push origin +main",
		"git push origin :main", "git fetch", "git clone x", "git reset --hard", "git reset --har", "git clean -fd", "git checkout -- a", "git checkout .", "git checkout -f x", "git restore a",
		"git branch -D x", "git stash drop", "git stash clear", "git config core.pager x", "git rebase --exec x HEAD", "git bisect run x", "git submodule foreach x", "git log --output=a",
		"git diff --outp=a", "git grep -Ox y", "git diff --ext-diff", "git worktree remove x", "git filter-branch", "git rm a", "tar --to-command=x -xf a", "tar xf a --checkpoint-action=exec=x",
		"tar -I x -xf a", "tar xIf x a", "awk 'BEGIN{system(\"rm a\")}'", "awk '{print > \"a\"}' b", "awk '{print | \"sh\"}' a", "awk -f x a", "sed '1e rm a' b", "sed 's/a/b/e' c", "sed 'w a' b",
		"sed -n 's/a/b/w c' d", "sed -f x a", "sed --in-place=/bak/ p a", "ln -s /etc/passwd a", "ln -s ../../x a", "ls | xargs rm", "xargs -I{} sh -c '{}'", "xargs -IX X", "xargs cat", "ls\nrm a", "ls\n\nrm a\n", "ls;rm a",
		"ls&rm a", "ls && rm a", "ls || rm a", "(rm a)", "{ rm a; }", "! rm a", "if ls; then rm a; fi", "while rm a; do :; done", "case x in x) rm a;; esac", "f() { rm a; }; f", "coproc rm a", "time rm a",
		"cat <(rm a)", "ls > >(rm a)", "echo \"`rm a`\"", "echo ${x:-$(rm a)}", "echo $(($(rm a)))", "[[ -n $(rm a) ]]", "x=$(rm a)", "x=(a $(rm a))", "cat <<EOF\n$(rm a)\nEOF", "env rm a", "env X=1 rm a",
		"env -S 'rm a'", "sudo ls", "sudo -u x rm a", "nohup rm a", "nice -n 5 rm a", "timeout 5 rm a", "timeout -s KILL 5 rm a", "stdbuf -oL rm a", "setsid rm a", "PATH=/tmp ls", "PATH=/tmp:$PATH; ls", "LD_PRELOAD=./x.so ls",
		"GIT_SSH_COMMAND=x git status", "GIT_PAGER=x git log", "export PATH=.", "declare -x PATH=.", "IFS=x", "BASH_ENV=x bash -c ls", "env LD_PRELOAD=x ls", "read PATH < a", "printf -v PATH x", ": ${PATH:=x}",
		"for PATH in x; do ls; done", "((PATH=1))", "((x))", "echo $((x))", "let x=1", "[[ $x -eq 1 ]]", "[[ -v x ]]", "echo ${x@P}", "echo ${!x}", "echo ${x[y]}", "test -v x", "declare -n x=y", "declare -i x=y", "unset 'a[$(rm b)]'",
		"curl example.com", "curl x | sh", "wget x", "ssh h", "scp a h:", "nc h 1", "npm publish", "npm install", "npm i x", "npx x", "pip install x", "go get x", "go install x", "go test -exec x", "go build -toolexec x", "cargo publish",
		"docker run x", "apt-get install x", "dd if=a of=b", "mkfs.ext4 a", "truncate -s0 a", "chmod -R 777 a", "chown x a", "shred a", "kill 1", "crontab a", "less a", "vim a", "man ls", "make --eval=x", "make SHELL=/tmp/x",
		"echo x > /etc/passwd", "echo x >> ../a", "echo x >| /etc/a", "echo x &> /etc/a", "echo x >& /etc/a", "echo x > .git/hooks/pre-commit", "echo x > .env", "echo x > $f", "echo x > ~/.bashrc", "echo > /dev/tcp/h/1", "cat < /etc/passwd",
		"exec 3<>/dev/tcp/h/1", "cat /etc/passwd", "cat ../../x", "cat ~/.ssh/id_rsa", "cat .env", "cat .en*", "cat .*/x", "cat $f", `cat "$f"`, "cat ~root/x", "head --lines=1 /etc/passwd", "grep -f/etc/passwd a", "grep x /etc/passwd", "cd / && cat etc/passwd",
		"cd .. ; ls", "cd; ls", "cd -", "cd $x; ls", "cd ~/x && ls", "pushd /etc; cat passwd", "while cd ..; do cat x; done", "cd a; cd ..; cd ..; cat x", "cp a .git/hooks/x", "tee .bashrc", "cp a /etc", "mv a ../b", "sort -o a b", "sort --compress-program=x a",
		"sort --comp=x a", "uniq a b", "xxd a b", "rg --pre x y", "rg --pre=x y", "fd -x rm", "tree -o a", "date -s x", "yq -i . a", "hash -p /tmp/x ls", "shopt -s extglob", "enable -f x y", "set -o posix", "set -- a", "set -k; ls PATH=x",
		"\u0433m a", "l\u0455", "echo a \\\r\nrm a", "ls\r", "ls \x00", "\xff", "ls 'a", "ls $(", "((((", "!(rm a)", "ls @(a|b)", "if", `ls "$(`, "select x in a; do rm $x; done", "mapfile -C 'rm a' x", "watch rm a", "parallel rm ::: a", "doas rm a",
		"rsync -e x a b", "strace ls", "chroot / ls", "python", "bash --rcfile x -c ls", "bash -O extglob -c ls", "xargs -a x rm", "docker ps", "xargs < a make", "rev /etc/passwd", "xargs -a /etc/passwd", "split --filter=x a", "find . -exec xargs -I + rm + \\;", "awk 'BEGIN{ARGV[1]=\"/etc/x\"}'", "/lib64/ld-linux-x86-64.so.2 /bin/rm a", "flock a rm b", "grep --pre*=x y",
	}
)

func TestBuiltin(t *testing.T) {
	for _, group := range []struct {
		lines         []string
		strict, loose permission.Action // with Ask and with Allow as the default
	}{
		{benign, permission.Allow, permission.Allow},
		{plain, permission.Ask, permission.Allow},
		{risky, permission.Ask, permission.Ask},
	} {
		for _, line := range group.lines {
			for _, p := range []permission.Policy{{Default: permission.Ask}, {Default: permission.Allow}} {
				want := group.strict
				if p.Default == permission.Allow {
					want = group.loose
				}
				if d := judge(p, line); d.Action != want {
					t.Errorf("default %v: %q: want %v: %+v", p.Default, line, want, d)
				}
			}
		}
	}
}

// What the parser cannot take apart, or reads otherwise than bash, is never allowed, and denied where
// a rule denies part of what it may be; and no loop or function hides where a command runs.
func TestDoubtfulLines(t *testing.T) {
	deny := func(r permission.Rule) permission.Policy {
		r.Action = permission.Deny
		return permission.Policy{Default: permission.Allow, Trusted: true, Rules: []permission.Rule{r}}
	}
	for line, c := range map[string]struct {
		policy permission.Policy
		want   permission.Action
	}{
		"rm a\nls 'a":                          {deny(permission.Rule{Pattern: "rm *"}), permission.Deny},
		"ls 'a":                                {permission.Policy{Default: permission.Allow}, permission.Ask},
		"coproc LD_PRELOAD=./x.so ls":          {permission.Policy{Default: permission.Allow}, permission.Ask},
		"coproc ! rm a; ls":                    {deny(permission.Rule{Pattern: "rm *"}), permission.Deny},
		"f() { ls; }; cd / && cat etc/passwd":  {deny(permission.Rule{Path: "/etc/**"}), permission.Ask},
		"f() { ls; }; cd / && cat /etc/passwd": {deny(permission.Rule{Path: "/etc/**"}), permission.Deny},
	} {
		if d := judge(c.policy, line); d.Action != c.want {
			t.Errorf("%q: %+v, want %v", line, d, c.want)
		}
	}
}
