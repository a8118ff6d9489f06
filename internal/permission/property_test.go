package permission_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/permission"
)

func actions() *rapid.Generator[permission.Action] {
	return rapid.SampledFrom([]permission.Action{permission.Allow, permission.Ask, permission.Deny})
}

func rule() *rapid.Generator[permission.Rule] {
	return rapid.Custom(func(t *rapid.T) permission.Rule {
		return permission.Rule{
			Tool:    rapid.SampledFrom([]string{"", "bash", "b*", "read"}).Draw(t, "tool"),
			Pattern: rapid.SampledFrom([]string{"", "*", "rm *", "git push *", "git *", "make *", "ls", "> *", "cat a*", "* -rf *"}).Draw(t, "pattern"),
			Path:    rapid.SampledFrom([]string{"", "", "src/**", "**/.env", "/etc/**", "*", "a"}).Draw(t, "path"),
			Action:  actions().Draw(t, "action"),
		}
	})
}

func policy() *rapid.Generator[permission.Policy] {
	return rapid.Custom(func(t *rapid.T) permission.Policy {
		return permission.Policy{
			Default: actions().Draw(t, "default"),
			Rules:   rapid.SliceOfN(rule(), 0, 5).Draw(t, "rules"),
			Trusted: rapid.Bool().Draw(t, "trusted"),
		}
	})
}

// parsed are the commands that can stand in a bigger one.
func parsed() *rapid.Generator[string] {
	var list []string
	for _, group := range [][]string{benign, plain, risky} {
		for _, line := range group {
			if utf8.ValidString(line) && !strings.ContainsAny(line, "#\r\x00\n\uFFFD") && !strings.HasPrefix(line, "if") || line == "if [ -f a ]; then cat a; fi" {
				list = append(list, line)
			}
		}
	}
	return rapid.SampledFrom(list)
}

func TestDenyNeverWidens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, line := policy().Draw(t, "policy"), parsed().Draw(t, "line")
		before := judge(p, line)
		r := rule().Draw(t, "rule")
		r.Action = permission.Deny
		at := rapid.IntRange(0, len(p.Rules)).Draw(t, "at")
		p.Rules = append(append(append([]permission.Rule{}, p.Rules[:at]...), r), p.Rules[at:]...)
		if after := judge(p, line); after.Action < before.Action {
			t.Fatalf("%q: %+v became %+v", line, before, after)
		}
	})
}

func TestGrantsNeverOverrideDeny(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, line := policy().Draw(t, "policy"), parsed().Draw(t, "line")
		remember := judge(permission.Policy{}, line).Remember
		bare, granted := judge(p, line), judge(p, line, remember...)
		if granted.Action > bare.Action || bare.Action == permission.Deny && granted.Action != permission.Deny {
			t.Fatalf("%q: %+v became %+v", line, bare, granted)
		}
	})
}

// movesAway finds the commands that change the directory.
var movesAway = regexp.MustCompile(`\b(cd|pushd|popd)\b`)

// runsNothing finds lines without a command.
var runsNothing = regexp.MustCompile(`^(\[\[ .* \]\]|[A-Za-z_]\w*=\S*)$`)

func TestComposingNeverWidens(t *testing.T) {
	shapes := []string{
		"A && B", "A || B", "A; B", "A | B", "A |& B", "A & B", "A\nB", "(A); B", "{ A; }; B", "A; echo $(B)", "A; echo \"`B`\"", "A; cat <(B)", "A > >(B)",
		"if A; then B; fi", "while A; do B; done", "for i in 1 2; do A; B; done", "case x in x) A;; y) B;; esac", "f() { A; }; B", "! A; B", "time A; B",
		"x=$(A); B", "[[ -n $(A) ]] && B", "echo ${x:-$(A)}; B", "coproc A; B", "A; cat <<EOF\n$(B)\nEOF", "until A; do B; done", "echo $((1+$(A))); B",
	}
	rapid.Check(t, func(t *rapid.T) {
		p, a, b := policy().Draw(t, "policy"), parsed().Draw(t, "A"), parsed().Draw(t, "B")
		if strings.Contains(b+a, "`") {
			return // backquotes nest with more backslashes only
		}
		if runsNothing.MatchString(a) || runsNothing.MatchString(b) {
			return // alone it is judged as a whole, beside others it is nothing to judge
		}
		line := rapid.SampledFrom(shapes).Draw(t, "shape")
		line = strings.NewReplacer("A", a, "B", b).Replace(line)
		worst := max(judge(p, a).Action, judge(p, b).Action)
		d := judge(p, line)
		if movesAway.MatchString(line) && worst > permission.Ask {
			worst = permission.Ask // where the rest then runs is known only when it runs
		}
		if d.Action < worst && (p.Default != permission.Deny || !movesAway.MatchString(line)) {
			t.Fatalf("%q: %+v, though a part alone is %v", line, d, worst)
		}
	})
}

// The same words written in another way are judged the same.
func TestSpellingsAreEqual(t *testing.T) {
	words := [][]string{{"rm", "-rf", "a"}, {"git", "push", "origin"}, {"make", "x y"}, {"cat", "src/a"}, {"ls"}, {"cat", "/etc/passwd"}, {"frob", "é"}, {"git", "reset", "--hard"}}
	spell := func(t *rapid.T, w string) string {
		var b strings.Builder
		for _, r := range w {
			switch rapid.IntRange(0, 4).Draw(t, "quote") {
			case 0:
				b.WriteString("'" + string(r) + "'")
			case 1:
				b.WriteString(`"` + string(r) + `"`)
			case 2:
				b.WriteString(`\` + string(r))
			case 3:
				b.WriteString("$'" + string(r) + "'\"\"")
			default:
				if r == ' ' {
					b.WriteString(`\`)
				}
				b.WriteRune(r)
			}
		}
		return b.String()
	}
	rapid.Check(t, func(t *rapid.T) {
		p, w := policy().Draw(t, "policy"), rapid.SampledFrom(words).Draw(t, "words")
		quoted := make([]string, len(w))
		other := make([]string, len(w))
		for i := range w {
			quoted[i] = "'" + w[i] + "'"
			other[i] = spell(t, w[i])
		}
		space := rapid.SampledFrom([]string{" ", "  ", "\t", " \\\n "})
		line := space.Draw(t, "before") + strings.Join(other, space.Draw(t, "between")) + space.Draw(t, "after")
		want, got := judge(p, strings.Join(quoted, " ")), judge(p, line)
		if got.Action != want.Action || got.Parts[0].Text != want.Parts[0].Text || strings.Join(got.Remember, "\n") != strings.Join(want.Remember, "\n") {
			t.Fatalf("%q: %+v, want %+v", line, got, want)
		}
	})
}
