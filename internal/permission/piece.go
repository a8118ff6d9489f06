package permission

import (
	"slices"
	"strings"
)

// risk is what the built-in knowledge thinks of a piece.
type risk uint8

const (
	harmless risk = iota // reads, within the directory
	ordinary             // changes things within the directory, or is not known
	risky                // destroys, leaves the directory or the machine, or cannot be foreseen
)

// piece is what a call is taken apart into.
type piece struct {
	text  string
	words []word
	// readings are other forms that rules which ask or deny look at: without the program's
	// directory, without a program's own global options.
	readings [][]word
	runs     [][]word // what it may run, for rules that ask or deny
	normal   []word   // the form that rules which allow look at, when it is not words

	risk    risk
	why     string
	opaque  bool // it may run anything
	unread  bool // it is a command line that could not be taken apart
	once    bool // it cannot be granted for longer than once
	touches []touch
	anyPath bool // it may touch paths that are not in touches

	exact, prefix string // what grants it; "" for nothing
}

// touch is a path that a piece reads or writes, as it is written; it may hold anything.
type touch struct {
	path  string
	write bool
	// resolved paths: absolute, or "~…"; several when the directory may have been changed.
	at []string
}

// raise makes the piece at least so risky.
func (p *piece) raise(to risk, why string) {
	if to > p.risk {
		p.risk, p.why = to, why
	}
}

// allowedBy tells whether a pattern of a rule that allows matches.
func (p *piece) allowedBy(pattern []rune) bool {
	words := p.words
	if p.normal != nil {
		words = p.normal
	}
	if slices.Contains(pattern, '*') && slices.ContainsFunc(words, word.climbs) {
		return false // "rm build/*" is not meant for build/../..
	}
	return matches(pattern, joined(words), false)
}

// caughtBy tells whether a pattern of a rule that asks or denies matches.
func (p *piece) caughtBy(pattern []rune) answer {
	result := no
	for _, words := range append([][]word{p.words}, p.readings...) {
		text := joined(words)
		if matches(pattern, text, false) {
			return yes
		}
		if slices.Contains(text, anything) && matches(pattern, text, true) {
			result = maybe
		}
	}
	for _, words := range p.runs {
		if result == no && pattern[0] != many && matches(pattern, joined(words), true) {
			result = maybe
		}
	}
	return result
}

func joined(words []word) []rune {
	var out []rune
	for i, w := range words {
		if i > 0 {
			out = append(out, sep)
		}
		out = append(out, []rune(w.text)...)
	}
	return out
}

func shown(words []word) string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w.show
	}
	return strings.Join(list, " ")
}
