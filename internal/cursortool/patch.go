package cursortool

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

const bom = "\ufeff"

var errNotEmpty = errors.New("old_string is empty but the file is not: give the text to replace, or use Write to replace all of it")

// patch returns content with old replaced by text, and how often that was. Line ends are not told
// apart when old is not found as it is. What is put in has the line ends of what it replaces, else
// those of the file; everything else stays as it is, byte for byte.
func patch(content, old, text string, all bool) (out string, n int, err error) {
	if old == "" {
		if strings.TrimPrefix(content, bom) != "" {
			return "", 0, errNotEmpty
		}
		return content + text, 1, nil
	}
	found := spans(content, old)
	switch {
	case len(found) == 0:
		return "", 0, notFound(content, old)
	case len(found) > 1 && !all:
		return "", 0, notUnique(content, found)
	}
	usual := ending(content)
	literal := lf(old) == lf(text) // the line ends are what is to be changed
	var b strings.Builder
	at := 0
	for _, s := range found {
		b.WriteString(content[at:s.from])
		switch gone := content[s.from:s.to]; {
		case literal || usual == "":
			b.WriteString(text)
		case strings.Contains(gone, "\n"):
			b.WriteString(ended(text, ending(gone)))
		default:
			b.WriteString(ended(text, usual))
		}
		at = s.to
	}
	b.WriteString(content[at:])
	return b.String(), len(found), nil
}

// span is a part of a text, in bytes.
type span struct{ from, to int }

// spans returns where old is in content: as it is, else with any line ends. A CR and the LF after it
// are never parted.
func spans(content, old string) []span {
	if found := exact(content, old); len(found) > 0 && !slices.ContainsFunc(found, func(s span) bool { return s.parts(content) }) {
		return found
	}
	flat, where := flatten(content)
	found := exact(flat, lf(old))
	for i, s := range found {
		found[i] = span{where(s.from), where(s.to)}
	}
	return found
}

// parts reports whether an edge of the span is between a CR and its LF.
func (s span) parts(content string) bool {
	within := func(i int) bool { return i > 0 && i < len(content) && content[i-1:i+1] == "\r\n" }
	return within(s.from) || within(s.to)
}

func exact(content, old string) []span {
	var found []span
	for at := 0; ; {
		i := strings.Index(content[at:], old)
		if i < 0 {
			return found
		}
		found = append(found, span{at + i, at + i + len(old)})
		at += i + len(old)
	}
}

// flatten returns text with LF only, and a function from positions in that to positions in text,
// which has to be called with growing ones. A CR belongs to the LF that it comes before.
func flatten(text string) (flat string, where func(int) int) {
	raw, done := 0, 0
	return lf(text), func(i int) int {
		for done < i {
			if strings.HasPrefix(text[raw:], "\r\n") {
				raw++
			}
			raw++
			done++
		}
		return raw
	}
}

func lf(text string) string { return strings.ReplaceAll(text, "\r\n", "\n") }

// ended returns text with the given line ends only.
func ended(text, ending string) string {
	if ending != "\r\n" {
		return lf(text)
	}
	return strings.ReplaceAll(lf(text), "\n", "\r\n")
}

// ending returns the line end that most lines of a text have, or "" when there is none.
func ending(text string) string {
	all, crlf := strings.Count(text, "\n"), strings.Count(text, "\r\n")
	switch {
	case all == 0:
		return ""
	case 2*crlf > all:
		return "\r\n"
	default:
		return "\n"
	}
}

func notFound(content, old string) error {
	if n := similar(content, old); n > 0 {
		return fmt.Errorf("old_string is not in the file. From line %d there is the same text with other white space: read these lines again and copy them exactly", n)
	}
	return errors.New("old_string is not in the file. Read the file again and copy the text exactly, white space included and without line numbers")
}

// similarWork bounds how many lines are compared to find what a model may have meant.
const similarWork = 1 << 20

// similar returns the number of the line from which content has old but for white space around the
// lines, or 0.
func similar(content, old string) int {
	have, want := lines(content), lines(strings.Trim(old, "\r\n"))
	for i := range have {
		have[i] = strings.TrimSpace(have[i])
	}
	for i := range want {
		want[i] = strings.TrimSpace(want[i])
	}
	work := 0
	for i := 0; i+len(want) <= len(have) && work < similarWork; i++ {
		j := 0
		for j < len(want) && have[i+j] == want[j] {
			j++
		}
		work += j + 1
		if j == len(want) && j > 0 {
			return i + 1
		}
	}
	return 0
}

func notUnique(content string, found []span) error {
	var where []string
	for _, s := range found[:min(len(found), 5)] {
		where = append(where, fmt.Sprint(1+strings.Count(content[:s.from], "\n")))
	}
	if len(found) > len(where) {
		where = append(where, "…")
	}
	return fmt.Errorf("old_string is not unique: it is in the file %d times (lines %s). Give more of the text around the one you mean, or set replace_all to change all of them", len(found), strings.Join(where, ", "))
}
