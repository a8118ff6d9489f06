package fstool

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/workspace"
)

const lsText = "List a directory, sorted by name without regard to case. Names of directories end in a slash; names that begin with a dot are shown."

const (
	lsLimit = 500     // entries shown unless asked otherwise
	lsMost  = 100_000 // entries read, so that a huge directory does not fill the memory
)

type lsParams struct {
	Path  string `json:"path"`
	Limit int    `json:"limit"`
}

func ls(_ context.Context, root *workspace.Root, in lsParams) (tool.Result, error) {
	name, err := root.Resolve(cmp.Or(in.Path, "."))
	if err != nil {
		return tool.Result{}, err
	}
	info, err := root.Lstat(name)
	if err != nil {
		return tool.Result{}, err
	}
	if !info.IsDir() {
		return tool.Result{}, fmt.Errorf("%s is not a directory; use read for a file", root.Show(name))
	}
	entries, more, err := root.ReadDir(name, lsMost)
	if err != nil {
		return tool.Result{}, err
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Name()), strings.ToLower(b.Name())), cmp.Compare(a.Name(), b.Name()))
	})
	return tool.Result{Text: list(root, name, entries, cmp.Or(in.Limit, lsLimit), more)}, nil
}

func list(root *workspace.Root, dir workspace.Name, entries []fs.DirEntry, limit int, more bool) string {
	if len(entries) == 0 {
		return tool.Notice("", "The directory is empty.")
	}
	var head tool.Head
	for _, e := range entries {
		line := tool.CleanName(e.Name())
		if isDir(root, dir, e) {
			line += "/"
		}
		if head.Lines() == limit || !head.Add(line) {
			break
		}
	}
	switch {
	case more:
		return tool.Notice(head.String(), fmt.Sprintf("The directory has more than %d entries; %d of them are shown. Use bash to look further.", lsMost, head.Lines()))
	case head.Lines() < min(limit, len(entries)):
		return tool.Notice(head.String(), fmt.Sprintf("Showing %d of %d entries: the output reached its limit. Use find with a pattern.", head.Lines(), len(entries)))
	case head.Lines() < len(entries):
		return tool.Notice(head.String(), fmt.Sprintf("Showing %d of %d entries. Use a higher limit to see more.", head.Lines(), len(entries)))
	}
	return head.String()
}

// isDir tells whether an entry is a directory, or a link to one that may be used.
func isDir(root *workspace.Root, dir workspace.Name, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	target, err := root.Resolve(string(dir.Join(e.Name())))
	if err != nil {
		return false
	}
	info, err := root.Lstat(target)
	return err == nil && info.IsDir()
}
