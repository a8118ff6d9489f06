package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// maxProblems bounds what one file can make us report.
const maxProblems = 50

// Problem is one thing that is wrong in a file.
type Problem struct {
	Line   int // from 1; 0 when it belongs to no line
	Column int // from 1
	Text   string
}

// Error is everything that is wrong in a file, in the order of its lines. It quotes keys
// and values as they are written in the file, never values after expansion and never a
// secret.
type Error struct {
	File     string
	Problems []Problem // at least one, at most 50
}

// Error returns one line per problem, "file:line:column: text".
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i > 0 {
			b.WriteByte('\n')
		}
		if p.Line == 0 {
			fmt.Fprintf(&b, "%s: %s", e.File, p.Text)
			continue
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s", e.File, p.Line, p.Column, p.Text)
	}
	return b.String()
}

func newError(file string, problems []Problem) *Error {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return &Error{File: file, Problems: problems[:min(len(problems), maxProblems)]}
}
