package control

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connectgzip"
	"github.com/klauspost/compress/zstd"
)

// compressors are what answers are compressed with, the better one first.
var compressors = []connect.Compressor{&zstdCompressor{}, connectgzip.New()}

// zstdWindow is how far back, in bytes, zstd refers. It bounds what a stream costs in memory.
const zstdWindow = 128 << 10

// zstdCompressor implements connect.Compressor. It keeps encoders and decoders, because a new one
// costs more than what most answers take.
type zstdCompressor struct{ encoders, decoders sync.Pool }

func (*zstdCompressor) Name() string { return "zstd" }

func (c *zstdCompressor) Compress(dst io.Writer) (io.WriteCloser, error) {
	if e, ok := c.encoders.Get().(*zstd.Encoder); ok {
		e.Reset(dst)
		return &zstdWriter{e, &c.encoders}, nil
	}
	e, err := zstd.NewWriter(dst, zstd.WithEncoderConcurrency(1), zstd.WithLowerEncoderMem(true),
		zstd.WithWindowSize(zstdWindow), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return nil, err
	}
	return &zstdWriter{e, &c.encoders}, nil
}

func (c *zstdCompressor) Decompress(src io.Reader) (io.ReadCloser, error) {
	if d, ok := c.decoders.Get().(*zstd.Decoder); ok {
		if err := d.Reset(src); err != nil {
			return nil, err
		}
		return &zstdReader{d, &c.decoders}, nil
	}
	// It must not unpack a small message whole by itself: the caller stops at a limit.
	d, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(8<<20), zstd.WithDecodeBuffersBelow(0))
	if err != nil {
		return nil, err
	}
	return &zstdReader{d, &c.decoders}, nil
}

type zstdWriter struct {
	*zstd.Encoder
	pool *sync.Pool
}

func (w *zstdWriter) Close() error {
	err := w.Encoder.Close()
	w.Reset(nil)
	w.pool.Put(w.Encoder)
	return err
}

type zstdReader struct {
	*zstd.Decoder
	pool *sync.Pool
}

func (r *zstdReader) Close() error {
	if err := r.Reset(nil); err != nil {
		return err
	}
	r.pool.Put(r.Decoder)
	return nil
}

// acceptedEncoding chooses what a client's answer is compressed with, nil for nothing: of what it
// takes, what it likes best, and of equals the better one (RFC 9110, section 12.5.3).
func acceptedEncoding(h http.Header) connect.Compressor {
	weights := make(map[string]float64)
	for part := range strings.SplitSeq(strings.Join(h.Values("Accept-Encoding"), ","), ",") {
		name, params, _ := strings.Cut(part, ";")
		weight := 1.0
		if q, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			weight, _ = strconv.ParseFloat(q, 64) // 0 for what is no number
		}
		weights[strings.ToLower(strings.TrimSpace(name))] = weight
	}
	var best connect.Compressor
	most := 0.0
	for _, c := range compressors {
		weight, named := weights[c.Name()]
		if !named {
			weight = weights["*"]
		}
		if weight > most {
			best, most = c, weight
		}
	}
	return best
}
