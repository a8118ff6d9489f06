// Package fstool holds the tools that work on single files and directories: read, edit,
// write and ls. They reach files through workspace.Root only.
package fstool

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/schema"
	"github.com/roost-dev/roost/internal/workspace"
)

//go:embed *.json
var schemas embed.FS

// New returns the tools read, edit, write and ls. Changes to one file queue up behind each
// other among the tools of one call of New, so a process calls it once.
func New() []tool.Tool {
	queue := newQueue()
	return []tool.Tool{
		define("read", true, readText, newReader().run),
		define("edit", false, editText, (&editor{queue: queue}).run),
		define("write", false, writeText, (&writer{queue: queue}).run),
		define("ls", true, lsText, ls),
	}
}

// fileTool is a tool whose work is a function of its checked input P.
type fileTool[P any] struct {
	spec   tool.Spec
	schema *schema.Schema
	tidy   func(json.RawMessage) json.RawMessage
	work   func(ctx context.Context, root *workspace.Root, in P) (tool.Result, error)
}

func define[P any](name string, repeatable bool, text string, work func(context.Context, *workspace.Root, P) (tool.Result, error)) tool.Tool {
	raw, err := schemas.ReadFile(name + ".json")
	if err != nil {
		panic(err) // the file is part of the program
	}
	s := schema.MustParse(raw)
	t := &fileTool[P]{
		spec:   tool.Spec{Name: name, Description: text, Schema: s.Raw(), Repeatable: repeatable},
		schema: s,
		work:   work,
	}
	if name == "edit" {
		t.tidy = tidyEdits
	}
	return t
}

func (t *fileTool[P]) Spec() tool.Spec { return t.spec }

func (t *fileTool[P]) Run(ctx context.Context, call tool.Call, _ func(tool.Progress)) tool.Result {
	input := call.Input
	if t.tidy != nil {
		input = t.tidy(input)
	}
	var in P
	if err := t.schema.Decode(input, &in); err != nil {
		return tool.Failure(fmt.Sprintf("%s: %v", t.spec.Name, err))
	}
	root, err := workspace.Open(call.Dir, call.Confined)
	if err != nil {
		return tool.Failure(tool.Clean(err.Error()))
	}
	res, err := t.work(ctx, root, in)
	if err = errors.Join(err, root.Close()); err != nil {
		return tool.Failure(tool.Cut(tool.Clean(advise(ctx, err)), tool.MaxNotice))
	}
	return res
}

// advise says what the model can do about an error, where that is not plain.
func advise(ctx context.Context, err error) string {
	text := err.Error()
	switch {
	case ctx.Err() != nil:
		return "Aborted: " + text
	case errors.Is(err, fs.ErrNotExist):
		return text + ". Use find or ls to see which files there are."
	case errors.Is(err, workspace.ErrIsDir):
		return text + ". Use ls to list it."
	case errors.Is(err, workspace.ErrNotRegular):
		return text + ". Only regular files can be used."
	}
	return text
}
