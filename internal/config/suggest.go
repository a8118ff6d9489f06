package config

import (
	"fmt"
	"slices"
	"strings"
)

// unknown says that a word is none of the known ones, and which it probably meant.
func unknown(what, word string, known []string) string {
	if near, ok := nearest(word, known); ok {
		return fmt.Sprintf("unknown %s %s; did you mean %q?", what, quote(word), near)
	}
	return fmt.Sprintf("unknown %s %s; known: %s", what, quote(word), strings.Join(known, ", "))
}

// quote quotes text of the file, shortened.
func quote(s string) string {
	if r := []rune(s); len(r) > 60 {
		return fmt.Sprintf("%q...", string(r[:60]))
	}
	return fmt.Sprintf("%q", s)
}

// nearest returns the known word that differs least from word, when it differs by less than
// a third of its letters.
func nearest(word string, known []string) (string, bool) {
	word = strings.ReplaceAll(strings.ToLower(word), "-", "_")
	best, bestDistance := "", 1<<30
	for _, k := range known {
		if d := distance(word, strings.ReplaceAll(k, "-", "_")); d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best, best != "" && bestDistance <= (len(best)+2)/3
}

// distance counts the letters to add, remove or replace to make b of a. Words longer than
// 64 bytes are not like any key, so they are not measured.
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		prev := slices.Clone(row)
		row[0] = i + 1
		for j := range len(b) {
			change := prev[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, prev[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
