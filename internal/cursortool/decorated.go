package cursortool

import (
	"regexp"
	"strings"
)

var (
	decoratedHead = regexp.MustCompile(`^\[[^\]\n]+#[0-9A-Fa-f]{2,16}\]$`)
	decoratedLine = regexp.MustCompile(`^[ *]?\d+[:|]`)
)

// decorated reports whether a client has put a heading and line numbers into a file's content, as
// oh-my-pi does: "[a.txt#0927]\n1:line1". size is the file's by the client's word: a file that really
// looks like that has the size of its content.
func decorated(content string, size int64) bool {
	head, rest, found := strings.Cut(content, "\n")
	if !found || !decoratedHead.MatchString(head) || int64(len(content)) == size {
		return false
	}
	line, _, _ := strings.Cut(rest, "\n")
	return decoratedLine.MatchString(line)
}
