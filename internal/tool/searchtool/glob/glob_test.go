package glob_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/roost-dev/roost/internal/tool/searchtool/glob"
)

func TestCompile(t *testing.T) {
	for _, c := range []struct {
		pattern string
		yes, no []string
	}{
		{"*.go", []string{"a.go", ".go"}, []string{"a/b.go", "a.gox", "go"}},
		{"**/*.go", []string{"a.go", "x/a.go", "x/y/a.go"}, []string{"a.c"}},
		{"src/**", []string{"src/a", "src/a/b"}, []string{"src", "srcs/a"}},
		{"src/**/t", []string{"src/t", "src/a/t", "src/a/b/t"}, []string{"srct", "src/at"}},
		{"a**b", []string{"ab", "axxb"}, []string{"a/b"}},
		{"?.c", []string{"a.c", "é.c"}, []string{"ab.c", "/.c"}},
		{"[a-c]x", []string{"ax", "cx"}, []string{"dx", "x"}},
		{"[!a-c]x", []string{"dx", "]x"}, []string{"ax", "/x"}},
		{"[+-9]x", []string{"+x", "9x"}, []string{"/x"}},
		{"[]a]", []string{"]", "a"}, []string{"b"}},
		{"[[:digit:]_]", []string{"1", "_"}, []string{"a", ":"}},
		{"*.{c,h}", []string{"a.c", "a.h"}, []string{"a.ch", "a.{c,h}"}},
		{"{a,b/{c,d}}/*", []string{"a/x", "b/c/x", "b/d/x"}, []string{"b/x"}},
		{"{**/,}x", []string{"x", "a/x"}, []string{"ax"}},
		{`\*\{`, []string{"*{"}, []string{"a{"}},
		{"a+(b)", []string{"a+(b)"}, []string{"aab"}},
		{"a\nb*", []string{"a\nbc\nd"}, nil},
	} {
		re, err := glob.Compile(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		for _, p := range c.yes {
			if !re.MatchString(p) {
				t.Errorf("%s does not match %q", c.pattern, p)
			}
		}
		for _, p := range c.no {
			if re.MatchString(p) {
				t.Errorf("%s matches %q", c.pattern, p)
			}
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, p := range []string{"[a", "[", "[!", "[]", `a\`, `[\`, "[[:nope:]]", "{a", "a\xff", strings.Repeat("x", 5000), strings.Repeat("{", 3000) + strings.Repeat("}", 1000)} {
		if _, err := glob.Compile(p); !errors.Is(err, glob.ErrPattern) {
			t.Errorf("%.20q: got %v", p, err)
		}
	}
}

func TestHostilePatternsTakeNoTime(t *testing.T) {
	name := strings.Repeat("a", 4000)
	start := time.Now()
	for _, p := range []string{strings.Repeat("*a", 500) + "b", strings.Repeat("**/", 500) + "b", strings.Repeat("{a,aa}", 200) + "b"} {
		re, err := glob.Compile(p)
		if err != nil {
			t.Fatalf("%.20s: %v", p, err)
		}
		if re.MatchString(name) {
			t.Errorf("%.20s matches", p)
		}
	}
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("took %v", took)
	}
}

func FuzzCompile(f *testing.F) {
	for _, s := range []string{"*.go", "**/a", "[a-z]", "{a,b}", `\`, "[[:alpha:]]", "a/**/b"} {
		f.Add(s, "a/b.go")
	}
	f.Fuzz(func(_ *testing.T, pattern, name string) {
		if re, err := glob.Compile(pattern); err == nil {
			re.MatchString(name)
		}
		if re, err := glob.CompileIgnore(pattern); err == nil {
			re.MatchString(name)
		}
	})
}
