package fstool_test

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/image/bmp"

	"github.com/roost-dev/roost/internal/tool"
)

func noise(w, h int) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	r := rand.New(rand.NewPCG(1, 2))
	for i := range img.Pix {
		img.Pix[i] = byte(r.Uint32()) | byte(i%4/3*255)
	}
	return img
}

func encoded(t *testing.T, kind string, img image.Image) string {
	t.Helper()
	var buf bytes.Buffer
	var err error
	switch kind {
	case "jpeg":
		err = jpeg.Encode(&buf, img, nil)
	case "png":
		err = png.Encode(&buf, img)
	case "gif":
		err = gif.Encode(&buf, img, nil)
	case "bmp":
		err = bmp.Encode(&buf, img)
	}
	if err != nil {
		t.Fatal(err)
	}
	return buf.String()
}

// A WebP of one pixel; there is no encoder to make one.
const webpPixel = "UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA=="

func TestPictures(t *testing.T) {
	b := newBench(t)
	pixel, err := base64.StdEncoding.DecodeString(webpPixel)
	if err != nil {
		t.Fatal(err)
	}
	small, flat := noise(20, 10), image.NewGray(image.Rect(0, 0, 5000, 100))
	for _, c := range []struct {
		name, data, mime string
		same             bool
		width, height    int
	}{
		{"a.png", encoded(t, "png", small), "image/png", true, 20, 10},
		{"wrong-name.txt", encoded(t, "png", small), "image/png", true, 20, 10},
		{"a.jpg", encoded(t, "jpeg", small), "image/jpeg", true, 20, 10},
		{"a.gif", encoded(t, "gif", small), "image/gif", true, 20, 10},
		{"a.webp", string(pixel), "image/webp", true, 1, 1},
		{"a.bmp", encoded(t, "bmp", small), "image/png", false, 20, 10},
		{"wide.png", encoded(t, "png", flat), "image/png", false, 2000, 40},
		{"wide.jpg", encoded(t, "jpeg", flat), "image/jpeg", false, 2000, 40},
		{"noise.png", encoded(t, "png", noise(1900, 1200)), "image/jpeg", false, 1900, 1200},
	} {
		b.put(t, c.name, c.data)
		res := b.good(t, "read", in{"path": c.name})
		if len(res.Images) != 1 || !strings.Contains(res.Text, c.name) {
			t.Fatalf("%s: %d images, %q", c.name, len(res.Images), res.Text)
		}
		img := res.Images[0]
		if img.MIME != c.mime || len(img.Data) > tool.MaxImage || (string(img.Data) == c.data) != c.same {
			t.Errorf("%s: %s of %d bytes", c.name, img.MIME, len(img.Data))
		}
		if img.MIME == "image/webp" {
			continue
		}
		cfg, _, err := image.DecodeConfig(bytes.NewReader(img.Data))
		if err != nil || cfg.Width != c.width || cfg.Height != c.height {
			t.Errorf("%s: %dx%d, %v", c.name, cfg.Width, cfg.Height, err)
		}
	}
}

func TestBadPicturesAreRefused(t *testing.T) {
	b := newBench(t)
	whole := encoded(t, "png", noise(50, 50))
	b.put(t, "cut.png", whole[:len(whole)/2])
	b.bad(t, "read", in{"path": "cut.png"}, "cannot be used")

	// The header says 100,000 by 100,000 pixels: 40 GB when decoded.
	bomb := []byte(encoded(t, "png", image.NewGray(image.Rect(0, 0, 1, 1))))
	binary.BigEndian.PutUint32(bomb[16:], 100_000)
	binary.BigEndian.PutUint32(bomb[20:], 100_000)
	binary.BigEndian.PutUint32(bomb[29:], crcOf(bomb[12:29]))
	b.put(t, "bomb.png", string(bomb))
	b.bad(t, "read", in{"path": "bomb.png"}, "100000x100000 pixels")

	b.put(t, "huge.gif", "GIF89a"+strings.Repeat("\x01", 33<<20))
	b.bad(t, "read", in{"path": "huge.gif"}, "at most 32.0 MiB")

	b.put(t, "letters", "BMW and other makes of cars\n")
	if res := b.good(t, "read", in{"path": "letters"}); len(res.Images) != 0 {
		t.Error("text that begins with BM was taken for a picture")
	}
}

func TestShrunkPictureLooksTheSame(t *testing.T) {
	b := newBench(t)
	img := image.NewRGBA(image.Rect(0, 0, 3000, 3000))
	for y := range 3000 {
		for x := range 3000 {
			img.Set(x, y, color.RGBA{byte(x * 255 / 3000), byte(y * 255 / 3000), 100, 255})
		}
	}
	b.put(t, "a.png", encoded(t, "png", img))
	out, _, err := image.Decode(bytes.NewReader(b.good(t, "read", in{"path": "a.png"}).Images[0].Data))
	if err != nil {
		t.Fatal(err)
	}
	if r, g, _, _ := out.At(1500, 500).RGBA(); r>>8 < 185 || r>>8 > 197 || g>>8 < 58 || g>>8 > 69 {
		t.Errorf("colour at (1500,500) is %d, %d", r>>8, g>>8)
	}
}
