package permission

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// printable writes what a person cannot see as an escape, so that no text looks like another.
func printable(s string) string {
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

var ansiSimple = map[byte]byte{
	'a': 7, 'b': 8, 'e': 27, 'E': 27, 'f': 12, 'n': '\n', 'r': '\r', 't': '\t', 'v': 11,
	'\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// ansiC decodes the text of $'…'. What a decoder may see differently reads as anything.
func ansiC(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if plain, ok := ansiSimple[s[i]]; ok {
			b.WriteByte(plain)
			continue
		}
		r, used, isByte := ansiNumber(s[i:])
		switch {
		case used == 0: // bash keeps the backslash of an unknown escape; \cX is not worth knowing
			b.WriteRune(anything)
			continue
		case r == 0, !isByte && !utf8.ValidRune(r):
			b.WriteRune(anything)
		case isByte:
			b.WriteByte(byte(r))
		default:
			b.WriteRune(r)
		}
		i += used - 1
	}
	return b.String()
}

// ansiNumber reads an escape that gives a number, and returns how long it is.
func ansiNumber(s string) (r rune, used int, isByte bool) {
	skip, most, base := 1, 2, 16
	switch s[0] {
	case 'x':
		isByte = true
	case 'u':
		most = 4
	case 'U':
		most = 8
	default:
		skip, most, base, isByte = 0, 3, 8, true
	}
	end := skip
	for end < len(s) && end-skip < most {
		if _, err := strconv.ParseUint(s[end:end+1], base, 8); err != nil {
			break
		}
		end++
	}
	n, err := strconv.ParseUint(s[skip:end], base, 32)
	if err != nil {
		return 0, 0, isByte
	}
	return rune(n & 0x7fffffff), end, isByte //nolint:gosec // 31 bits fit
}
