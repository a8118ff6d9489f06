package transcript

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/roost-dev/roost/internal/session"
)

// Markdown writes a session for people: what was said as it is, thinking as quotations, and
// tool calls with their results between fences that no text can close. Images are named.
func Markdown(w io.Writer, s *session.State) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# %s\n\n", oneLine(title(s)))
	for _, f := range facts(s) {
		fmt.Fprintf(b, "- %s: %s\n", f.Name, oneLine(f.Value))
	}
	for _, it := range s.Transcript() {
		switch it := it.(type) {
		case *session.User:
			fmt.Fprintf(b, "\n## %s\n", speaker(it))
			markdownBlocks(b, it.Blocks)
		case *session.Assistant:
			fmt.Fprintf(b, "\n## Assistant (%s)\n", oneLine(it.Model.ID))
			markdownBlocks(b, it.Blocks)
			if note := ending(it); note != "" {
				fmt.Fprintf(b, "\n*%s*\n", oneLine(note))
			}
		case *session.Tool:
			fmt.Fprintf(b, "\n### Result of %s%s\n", oneLine(it.Name), toolNote(it))
			if it.Output != "" {
				fmt.Fprintf(b, "\n%s", fenced("", it.Output))
			}
			for _, img := range it.Images {
				fmt.Fprintf(b, "\n*Image: %s, %d bytes*\n", oneLine(img.MIME), img.Size)
			}
		}
	}
	return b.Flush()
}

func markdownBlocks(w io.Writer, blocks []session.Block) {
	for _, b := range blocks {
		switch b := b.(type) {
		case session.Text:
			if b.Text != "" {
				fmt.Fprintf(w, "\n%s\n", strings.TrimRight(b.Text, "\n"))
			}
		case session.Reasoning:
			if b.Text != "" {
				fmt.Fprintf(w, "\n> %s\n", strings.ReplaceAll(strings.TrimSpace(b.Text), "\n", "\n> "))
			}
		case session.Image:
			fmt.Fprintf(w, "\n*Image: %s, %d bytes*\n", oneLine(b.MIME), b.Size)
		case session.ToolCall:
			fmt.Fprintf(w, "\n### Call of %s\n\n%s", oneLine(b.Name), fenced("json", b.Input))
		}
	}
}

// speaker says who wrote a message.
func speaker(u *session.User) string {
	if u.Note != session.NoteNone {
		return "Note from the server"
	}
	return "User"
}

// fact is a line about the session.
type fact struct{ Name, Value string }

func facts(s *session.State) []fact {
	var list []fact
	add := func(name, value string) {
		if value != "" {
			list = append(list, fact{name, value})
		}
	}
	add("Session", string(s.ID))
	add("Directory", s.Cwd)
	add("Model", modelName(s.Model))
	if s.CreatedAt > 0 {
		add("Begun", clock(s.CreatedAt))
	}
	if n := s.Usage.Total(); n > 0 {
		add("Tokens", fmt.Sprint(n))
	}
	return list
}

func title(s *session.State) string { return cmp.Or(s.Name, "Session "+string(s.ID)) }

// ending says how an answer ended when it did not end well.
func ending(a *session.Assistant) string {
	switch a.Status {
	case session.Streaming:
		return "still being written"
	case session.Failed:
		return "failed: " + cmp.Or(a.Error, "no reason is known")
	case session.Aborted:
		return "aborted"
	case session.Complete:
	}
	switch a.Stop {
	case session.StopLength:
		return "cut off: the answer reached the limit of its length"
	case session.StopRefusal:
		return "declined"
	case session.StopNone, session.StopEnd, session.StopToolUse:
	}
	return ""
}

func toolNote(t *session.Tool) string {
	switch t.Status {
	case session.Streaming:
		return " (running)"
	case session.Failed, session.Aborted:
		return " (error)"
	case session.Complete:
	}
	return ""
}

// oneLine returns s on one line, without control characters.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, s)
}

// fenced returns text between fences longer than any run of backticks in it.
func fenced(language, text string) string {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	return fence + language + "\n" + strings.TrimRight(text, "\n") + "\n" + fence + "\n"
}
