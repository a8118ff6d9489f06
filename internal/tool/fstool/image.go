package fstool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"os"

	"golang.org/x/image/bmp"
	"golang.org/x/image/webp"

	"github.com/roost-dev/roost/internal/tool"
)

const (
	maxSide   = 2000     // pixels of a picture's longer side, as returned
	maxPixels = 40 << 20 // of a file: what most cameras make, and 320 MB at the worst
	maxFile   = 32 << 20 // bytes of a picture's file
)

var errImage = errors.New("picture cannot be used")

// format is a kind of picture that is read.
type format struct {
	mime   string
	as     string // MIME type of the copy when one is made
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

var formats = map[string]format{
	"jpeg": {"image/jpeg", "image/jpeg", jpeg.DecodeConfig, jpeg.Decode},
	"png":  {"image/png", "image/png", png.DecodeConfig, png.Decode},
	"gif":  {"image/gif", "image/png", gif.DecodeConfig, gif.Decode},
	"webp": {"image/webp", "image/png", webp.DecodeConfig, webp.Decode},
	"bmp":  {"image/bmp", "image/png", bmp.DecodeConfig, bmp.Decode},
}

// imageKind recognises a picture by its first bytes; it is "" for anything else.
func imageKind(start []byte) string {
	has := func(magic string) bool { return bytes.HasPrefix(start, []byte(magic)) }
	switch {
	case has("\xff\xd8\xff"):
		return "jpeg"
	case has("\x89PNG\r\n\x1a\n"):
		return "png"
	case has("GIF87a"), has("GIF89a"):
		return "gif"
	case has("RIFF") && len(start) >= 12 && string(start[8:12]) == "WEBP":
		return "webp"
	case has("BM") && len(start) >= 26 && bytes.Equal(start[6:10], make([]byte, 4)):
		return "bmp" // two letters are little: the reserved bytes must be zero as well
	}
	return ""
}

// image returns the picture in f, made smaller when it is over the limits.
func (r *reader) image(ctx context.Context, f *os.File, size int64, path, kind string) (tool.Result, error) {
	if size > maxFile {
		return tool.Result{}, fmt.Errorf("%s: %w: its file has %s, at most %s can be read", path, errImage, tool.Size(size), tool.Size(maxFile))
	}
	select {
	case r.images <- struct{}{}:
		defer func() { <-r.images }()
	case <-ctx.Done():
		return tool.Result{}, context.Cause(ctx)
	}
	data, err := io.ReadAll(io.NewSectionReader(f, 0, maxFile))
	if err != nil {
		return tool.Result{}, unreadable(path, err)
	}
	img, err := load(data, formats[kind])
	if err != nil {
		return tool.Result{}, fmt.Errorf("%s: %w", path, err)
	}
	out, note, err := fit(ctx, data, img, formats[kind])
	if err != nil {
		return tool.Result{}, fmt.Errorf("%s: %w", path, err)
	}
	text := fmt.Sprintf("%s: picture, %s, %dx%d pixels%s", path, formats[kind].mime, img.Bounds().Dx(), img.Bounds().Dy(), note)
	return tool.Result{Text: text, Images: []tool.Image{out}}, nil
}

// load decodes a picture after a look at how large it would become. Also pictures that are
// passed on unchanged are decoded: a provider refuses a broken one, and then, as it is in
// the history, every later request too.
func load(data []byte, f format) (img image.Image, err error) {
	defer func() {
		if p := recover(); p != nil { // decoders of other people, bytes of anybody
			err = fmt.Errorf("%w: its decoder gave up: %v", errImage, p)
		}
	}()
	cfg, err := f.config(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errImage, err)
	}
	if cfg.Width <= 0 || cfg.Height <= 0 || cfg.Width > maxPixels/cfg.Height {
		return nil, fmt.Errorf("%w: it has %dx%d pixels, at most %d million can be read", errImage, cfg.Width, cfg.Height, maxPixels>>20)
	}
	if img, err = f.decode(bytes.NewReader(data)); err != nil {
		return nil, fmt.Errorf("%w: %w", errImage, err)
	}
	return img, nil
}
