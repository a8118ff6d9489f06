package fstool

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/workspace"
)

const readText = "Read a file. Text is shown up to 2000 lines or 50 KiB; go on with offset and limit. Pictures (JPEG, PNG, GIF, WebP, BMP) are shown as pictures."

type readParams struct {
	Path   string `json:"path"`
	Offset int    `json:"offset"`
	Limit  int    `json:"limit"`
}

type reader struct {
	images chan struct{} // holds a value while a picture is decoded: one at a time, for memory
}

func newReader() *reader { return &reader{images: make(chan struct{}, 1)} }

func (r *reader) run(ctx context.Context, root *workspace.Root, in readParams) (res tool.Result, err error) {
	name, err := root.Resolve(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	f, info, err := root.OpenFile(name)
	if err != nil {
		return tool.Result{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	defer workspace.EndReads(ctx, f)()

	in.Path = tool.CleanName(root.Show(name))
	buf := bufio.NewReaderSize(untilDone{ctx, f}, chunk)
	start, err := buf.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return tool.Result{}, unreadable(in.Path, err)
	}
	if kind := imageKind(start); kind != "" {
		return r.image(ctx, f, info.Size(), in.Path, kind)
	}
	if isBinary(start) {
		return tool.Result{}, fmt.Errorf("%s is a binary file of %s, which cannot be shown as text. Use bash, for example with file, strings or xxd", in.Path, tool.Size(info.Size()))
	}
	text, err := readLines(buf, in)
	return tool.Result{Text: text}, err
}

func unreadable(path string, err error) error {
	if pe, ok := errors.AsType[*os.PathError](err); ok {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", path, err)
}

// untilDone is a reader that ends with its context.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u untilDone) Read(p []byte) (int, error) {
	if u.ctx.Err() != nil {
		return 0, context.Cause(u.ctx)
	}
	return u.r.Read(p)
}
