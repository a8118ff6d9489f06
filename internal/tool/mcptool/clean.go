package mcptool

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/roost-dev/roost/internal/tool"
)

// terminal matches what terminals obey: CSI and OSC sequences, and two-character ones.
var terminal = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])`)

// clean returns what a server wrote as text that is data only: valid UTF-8 without control
// sequences, without characters that change the order of others, and without the invisible
// tag characters that hide text from people but not from models.
func clean(s string) string {
	s = strings.ReplaceAll(tool.Clean(s), "\r\n", "\n")
	if strings.ContainsRune(s, '\x1b') {
		s = terminal.ReplaceAllString(s, "")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r == '\r':
			return '\n'
		case unicode.IsControl(r), reorders(r), r >= 0xE0000 && r <= 0xE007F:
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// cleanLine is clean for text that takes one line of at most limit bytes.
func cleanLine(s string, limit int) string {
	return tool.Cut(strings.Join(strings.Fields(clean(tool.Cut(s, 4*limit))), " "), limit)
}

// reorders tells whether r is one of Unicode's explicit directional formatting characters.
func reorders(r rune) bool {
	return r >= 0x202A && r <= 0x202E || r >= 0x2066 && r <= 0x2069
}
