package permission

import "strings"

// Symbols in patterns and texts that no word of a command can hold: a command with such
// bytes is not taken apart, and where quoting makes one of them, it reads as anything.
const (
	sep      = '\x00' // between words, or between the parts of a path
	anything = '\x01' // in texts: what only running it will tell
	many     = '\x02' // in patterns: any symbols
)

// answer says whether a rule matches.
type answer uint8

const (
	no answer = iota
	maybe
	yes
)

// wordPattern compiles a pattern that is matched word by word.
func wordPattern(pattern string) []rune {
	var out []rune
	for i, token := range strings.Fields(pattern) {
		if i > 0 {
			out = append(out, sep)
		}
		if token == "*" {
			out = append(out, many)
		} else {
			out = append(out, []rune(token)...)
		}
	}
	return out
}

// wholePattern compiles a glob whose "*" stands for anything.
func wholePattern(pattern string) []rune {
	return []rune(strings.ReplaceAll(pattern, "*", string(many)))
}

// matches tells whether a pattern matches a text. With loose, what is not known of the text is
// taken to be whatever makes it match.
func matches(pattern, text []rune, loose bool) bool {
	if n := len(pattern); n > 2 && pattern[n-1] == many && pattern[n-2] == sep && glob(pattern[:n-2], text, loose) {
		return true
	}
	return glob(pattern, text, loose)
}

// glob walks the text once and keeps the set of places in the pattern that it can be at, so
// its time is at most the product of both lengths.
func glob(pattern, text []rune, loose bool) bool {
	at, next := make([]bool, len(pattern)+1), make([]bool, len(pattern)+1)
	at[0] = true
	skipStars(pattern, at)
	for _, s := range text {
		clear(next)
		if loose && s == anything {
			reached := false
			for j := range at {
				reached = reached || at[j]
				next[j] = reached
			}
		} else {
			step(pattern, at, next, s)
		}
		skipStars(pattern, next)
		at, next = next, at
	}
	return at[len(pattern)]
}

func step(pattern []rune, at, next []bool, s rune) {
	for j, p := range pattern {
		if !at[j] {
			continue
		}
		inWord := s != sep && s != anything
		switch {
		case p == many, p == '*' && inWord:
			next[j] = true
		case p == '?' && inWord, p == s && s != anything:
			next[j+1] = true
		}
	}
}

func skipStars(pattern []rune, at []bool) {
	for j, p := range pattern {
		if at[j] && (p == many || p == '*') {
			at[j+1] = true
		}
	}
}
