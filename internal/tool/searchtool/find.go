package searchtool

import (
	"cmp"
	"context"
	"fmt"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/workspace"
)

const findText = "Find files and directories by name or path. Names of directories end in a slash. What ignore files (.gitignore, .ignore) leave out is not found. Paths in the result can be used as they are."

const findLimit = 1000 // names shown unless asked otherwise

type findParams struct {
	Pattern string `json:"pattern"`
	Path    string `json:"path"`
	Limit   int    `json:"limit"`
}

func find(ctx context.Context, root *workspace.Root, in findParams) (string, error) {
	match, err := filter(in.Pattern)
	if err != nil {
		return "", fmt.Errorf("pattern: %w", err)
	}
	start, err := root.Resolve(cmp.Or(in.Path, "."))
	if err != nil {
		return "", err
	}
	if info, err := root.Lstat(start); err != nil {
		return "", err
	} else if !info.IsDir() {
		return "", fmt.Errorf("%s is not a directory; give the directory to look in", root.Show(start))
	}
	limit := cmp.Or(in.Limit, findLimit)
	var head tool.Head
	more := false
	w := walker{root: root}
	w.visit = func(e entry) error {
		if !match(e.rel) {
			return nil
		}
		line := tool.CleanName(root.Show(e.name))
		if e.mode.IsDir() {
			line += "/"
		}
		if head.Lines() == limit || !head.Add(line) {
			more = true
			return errStop
		}
		return nil
	}
	if err := w.walk(ctx, start); err != nil {
		return "", err
	}
	return found(&head, limit, more, w.missed()), nil
}

// found returns the result of a find.
func found(head *tool.Head, limit int, more bool, missed string) string {
	text := head.String()
	switch {
	case head.Lines() == 0 && !more:
		text = "No files found"
	case more && head.Lines() == limit:
		text = tool.Notice(text, fmt.Sprintf("The first %d are shown; there are more. Use a narrower pattern or path, or a higher limit.", limit))
	case more:
		text = tool.Notice(text, fmt.Sprintf("The first %d are shown, as the output reached its limit. Use a narrower pattern or path.", head.Lines()))
	}
	if missed != "" {
		text = tool.Notice(text, missed)
	}
	return text
}
