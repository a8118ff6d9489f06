package fstool

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"

	"github.com/roost-dev/roost/internal/tool"
)

// fit returns the picture within the limits: its own bytes when they are, else a copy. The
// note tells about a copy.
func fit(ctx context.Context, data []byte, img image.Image, f format) (out tool.Image, note string, err error) {
	size := img.Bounds().Size()
	if max(size.X, size.Y) <= maxSide && len(data) <= tool.MaxImage && f.mime != "image/bmp" {
		return tool.Image{MIME: f.mime, Data: data}, "", nil
	}
	mime := f.as
	for side := maxSide; side > 0; side /= 2 {
		if ctx.Err() == nil {
			img = shrink(img, side)
		}
		for {
			if ctx.Err() != nil {
				return tool.Image{}, "", context.Cause(ctx)
			}
			data, err := encode(img, mime)
			if err != nil {
				return tool.Image{}, "", err
			}
			if len(data) <= tool.MaxImage {
				b := img.Bounds()
				return tool.Image{MIME: mime, Data: data}, fmt.Sprintf(", shown as %s, %dx%d", mime, b.Dx(), b.Dy()), nil
			}
			if mime == "image/jpeg" {
				break
			}
			mime = "image/jpeg" // noisy pictures are small only this way
		}
	}
	return tool.Image{}, "", fmt.Errorf("%w: it does not become small enough", errImage)
}

// shrink returns img with its longer side at most side pixels, in the same proportions.
func shrink(img image.Image, side int) image.Image {
	size := img.Bounds().Size()
	longer := max(size.X, size.Y)
	if longer <= side {
		return img
	}
	dst := image.NewRGBA(image.Rect(0, 0, max(1, size.X*side/longer), max(1, size.Y*side/longer)))
	draw.BiLinear.Scale(dst, dst.Bounds(), img, img.Bounds(), draw.Src, nil)
	return dst
}

func encode(img image.Image, mime string) ([]byte, error) {
	var buf bytes.Buffer
	if mime == "image/png" {
		err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&buf, img)
		return buf.Bytes(), err
	}
	err := jpeg.Encode(&buf, img, &jpeg.Options{Quality: 85})
	return buf.Bytes(), err
}
