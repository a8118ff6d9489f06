package fstool

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/roost-dev/roost/internal/tool"
)

const (
	contextLines = 4
	maxShown     = 20 << 10 // bytes of diff when patch and diff together are over the limit
)

// editDetails tells people what an edit did (SPEC pi 8.1).
type editDetails struct {
	Diff             string `json:"diff"`            // with line numbers, for reading
	Patch            string `json:"patch,omitempty"` // unified, for programs; absent when too large
	FirstChangedLine int    `json:"firstChangedLine"`
	Truncated        bool   `json:"truncated,omitempty"`
}

// details describes the change of a file in at most tool.MaxDetails bytes.
func details(path, before, after string) json.RawMessage {
	edits := udiff.Lines(before, after)
	u, err := udiff.ToUnifiedDiff("a/"+path, "b/"+path, before, edits, contextLines)
	if err != nil {
		return nil // only for edits that do not fit the text, which Lines does not return
	}
	d := editDetails{Diff: "", Patch: tool.Clean(u.String())}
	d.Diff, d.FirstChangedLine = numbered(u, max(lines(before), lines(after)))
	out, err := json.Marshal(d)
	for limit := maxShown; err == nil && len(out) > tool.MaxDetails; limit /= 2 {
		d.Patch, d.Truncated = "", true
		d.Diff = firstLines(d.Diff, limit)
		out, err = json.Marshal(d)
	}
	if err != nil {
		return nil // strings and numbers always have a JSON form
	}
	return out
}

// numbered writes a diff for people: a sign, the number of the line in the old file, or of a
// new line in the new one, and the line.
func numbered(u udiff.UnifiedDiff, lastLine int) (text string, firstChanged int) {
	var b strings.Builder
	width := len(fmt.Sprint(lastLine))
	for i, h := range u.Hunks {
		if i > 0 {
			fmt.Fprintf(&b, " %*s ...\n", width, "")
		}
		from, to := h.FromLine, h.ToLine
		for _, l := range h.Lines {
			sign, number := " ", from
			switch l.Kind {
			case udiff.Delete:
				sign = "-"
			case udiff.Insert:
				sign, number = "+", to
			case udiff.Equal:
			}
			if l.Kind != udiff.Equal && firstChanged == 0 {
				firstChanged = to
			}
			fmt.Fprintf(&b, "%s%*d %s\n", sign, width, number, strings.TrimRight(l.Content, "\r\n"))
			if l.Kind != udiff.Insert {
				from++
			}
			if l.Kind != udiff.Delete {
				to++
			}
		}
	}
	return tool.Clean(strings.TrimSuffix(b.String(), "\n")), firstChanged
}

// firstLines returns the whole lines in the first limit bytes of text.
func firstLines(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return text[:strings.LastIndexByte(text[:limit], '\n')+1] + "..."
}
