package fstool

import (
	"context"
	"fmt"
	"strings"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/workspace"
)

const writeText = "Write a file: make it, with the directories above it, or replace all of its content. To change a part of a file use edit."

type writeParams struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

type writer struct{ queue *queue }

func (w *writer) run(ctx context.Context, root *workspace.Root, in writeParams) (tool.Result, error) {
	name, err := root.Resolve(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	leave, err := w.queue.enter(ctx, root.Real(name))
	if err != nil {
		return tool.Result{}, err
	}
	defer leave()
	if err := root.Replace(name, []byte(in.Content)); err != nil {
		return tool.Result{}, err
	}
	return tool.Result{Text: fmt.Sprintf("Wrote %s (%s) to %s.",
		count(len(in.Content), "byte"), count(lines(in.Content), "line"), tool.CleanName(root.Show(name)))}, nil
}

// lines counts the lines of a text; a line end after the last begins no new one.
func lines(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
