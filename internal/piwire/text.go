package piwire

import (
	"fmt"
	"strings"
)

// MaxCount is the largest integer the protocol can carry, 2⁵³−1.
const MaxCount = 1<<53 - 1

// SafeText returns s with every run of invalid UTF-8 replaced by one U+FFFD. Text
// that did not come from a decoder here (tool output, file names, a provider) has
// to pass it before it is put into a message.
func SafeText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// ClampCount returns n moved into 0 to [MaxCount], the range of counts, revisions
// and timestamps.
func ClampCount(n int64) int64 { return min(max(n, 0), MaxCount) }

func overLimit(what string, limit uint32) string {
	return fmt.Sprintf("%s length exceeds configured limit of %d", what, limit)
}
