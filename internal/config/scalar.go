package config

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// text returns a string value after expansion, the value as it is written, and whether
// both are usable. Variables it names are added to names when that is not nil.
func (d *decoder) text(v value, names *[]string) (expanded, written string, ok bool) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		written = n.Value
	case *ast.LiteralNode:
		written = n.Value.Value
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		d.problemf(v, "must be text; put it in quotes")
		return "", "", false
	default:
		d.wrongType(v, "text")
		return "", "", false
	}
	expanded, met, err := expand(written, d.getenv)
	if names != nil {
		*names = append(*names, met...)
	}
	if err != nil {
		d.problemf(v, "%v", err)
		return "", "", false
	}
	return expanded, written, true
}

// str sets dst to text that is not empty and has no control characters.
func (d *decoder) str(dst *string) func(value) {
	return func(v value) {
		s, _, ok := d.text(v, nil)
		switch {
		case !ok:
		case strings.TrimSpace(s) == "":
			d.problemf(v, "is empty")
		case strings.ContainsFunc(s, isControl):
			d.problemf(v, "has control characters")
		default:
			*dst = s
		}
	}
}

func (d *decoder) boolean(dst *bool) func(value) {
	return func(v value) {
		n, ok := v.node.(*ast.BoolNode)
		if !ok {
			d.wrongType(v, "true or false")
			return
		}
		*dst = n.Value
	}
}

// integer sets dst to a whole number between low and high.
func (d *decoder) integer(dst *int, low, high int) func(value) {
	return func(v value) {
		n, ok := v.node.(*ast.IntegerNode)
		if !ok {
			d.wrongType(v, "a whole number")
			return
		}
		i, err := strconv.Atoi(strings.ReplaceAll(n.Token.Value, "_", ""))
		if err != nil || i < low || i > high {
			d.problemf(v, "must be a decimal number from %d to %d", low, high)
			return
		}
		*dst = i
	}
}

// number sets dst to a number from 0 to a million.
func (d *decoder) number(dst *float64) func(value) {
	return func(v value) {
		var f float64
		switch n := v.node.(type) {
		case *ast.IntegerNode:
			f, _ = strconv.ParseFloat(n.Token.Value, 64)
		case *ast.FloatNode:
			f = n.Value
		default:
			d.wrongType(v, "a number")
			return
		}
		if !(f >= 0 && f <= 1e6) {
			d.problemf(v, "must be from 0 to 1000000")
			return
		}
		*dst = f
	}
}

// enum sets dst to one of known.
func enum[T ~string](d *decoder, dst *T, known ...T) func(value) {
	return func(v value) {
		s, written, ok := d.text(v, nil)
		if !ok {
			return
		}
		if !slices.Contains(known, T(s)) {
			words := make([]string, len(known))
			for i, k := range known {
				words[i] = string(k)
			}
			d.problemf(v, "%s", unknown("value", written, words))
			return
		}
		*dst = T(s)
	}
}

// duration sets dst to a duration such as "90s" between low and high.
func (d *decoder) duration(dst *time.Duration, low, high time.Duration) func(value) {
	return func(v value) {
		if n, ok := v.node.(*ast.IntegerNode); ok {
			d.problemf(v, "has no unit; write %ss for seconds", n.Token.Value)
			return
		}
		s, written, ok := d.text(v, nil)
		if !ok {
			return
		}
		t, err := time.ParseDuration(s)
		if err != nil {
			d.problemf(v, `%s is not a duration such as "90s", "10m" or "1h30m"`, quote(written))
			return
		}
		if t < low || t > high {
			d.problemf(v, "must be from %s to %s", low, high)
			return
		}
		*dst = t
	}
}

// orZero lets 0, which needs no unit, stand for "no limit"; other values are decoded by f.
func orZero[T ~int64](dst *T, f func(value)) func(value) {
	return func(v value) {
		if n, ok := v.node.(*ast.IntegerNode); ok && n.Token.Value == "0" {
			*dst = 0
			return
		}
		f(v)
	}
}

// sizeUnits are the units of sizes, longest first so that "B" is tried last.
var sizeUnits = []struct {
	name  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}

// size sets dst to a number of bytes such as "1MiB" between low and high.
func (d *decoder) size(dst *int64, low, high int64) func(value) {
	return func(v value) {
		if n, ok := v.node.(*ast.IntegerNode); ok {
			d.problemf(v, "has no unit; write %sB for bytes", n.Token.Value)
			return
		}
		s, written, ok := d.text(v, nil)
		if !ok {
			return
		}
		n, ok := parseSize(s)
		if !ok {
			d.problemf(v, `%s is not a size such as "64KiB", "1MiB" or "500kB"`, quote(written))
			return
		}
		if n < low || n > high {
			d.problemf(v, "must be from %s to %s", formatSize(low), formatSize(high))
			return
		}
		*dst = n
	}
}

func parseSize(s string) (int64, bool) {
	for _, u := range sizeUnits {
		digits, found := strings.CutSuffix(s, u.name)
		if !found {
			continue
		}
		n, err := strconv.ParseInt(strings.TrimSpace(digits), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/u.bytes {
			return 0, false
		}
		return n * u.bytes, true
	}
	return 0, false
}

func formatSize(n int64) string {
	for _, u := range []string{"B", "KiB", "MiB"} {
		if n < 1<<10 || n%(1<<10) != 0 {
			return strconv.FormatInt(n, 10) + u
		}
		n >>= 10
	}
	return strconv.FormatInt(n, 10) + "GiB"
}

// path sets dst to an absolute path. "~/" is the user's home; a relative path starts at
// the directory of the file.
func (d *decoder) path(dst *string) func(value) {
	return func(v value) {
		var s string
		if d.str(&s)(v); s == "" {
			return
		}
		if s == "~" || strings.HasPrefix(s, "~/") {
			home, err := os.UserHomeDir()
			if err != nil {
				d.problemf(v, "the home directory is unknown; write an absolute path")
				return
			}
			s = filepath.Join(home, s[1:])
		}
		if !filepath.IsAbs(s) {
			s = filepath.Join(d.dir(), s)
		}
		*dst = filepath.Clean(s)
	}
}

// secret returns text for a header. Nothing of it is ever shown, and the variables it
// comes from are recorded as holding keys.
func (d *decoder) secret(v value) (Secret, bool) {
	s, _, ok := d.text(v, &d.keyEnv)
	switch {
	case !ok:
		return Secret{}, false
	case strings.TrimSpace(s) == "":
		d.problemf(v, "is empty")
		return Secret{}, false
	case !headerText(s):
		d.problemf(v, "%v", errKeyText)
		return Secret{}, false
	}
	return NewSecret(s), true
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// headerText reports whether s may be the value of a header: visible ASCII and spaces.
func headerText(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' })
}
