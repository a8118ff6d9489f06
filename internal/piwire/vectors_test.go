package piwire

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"testing/iotest"

	"github.com/fxamacker/cbor/v2"
)

// vector is a line of testdata.
type vector struct {
	Name, Kind, Hex, Category, Error string
	Message                          any
}

func (v vector) stream(tb testing.TB) []byte {
	tb.Helper()
	b, err := hex.DecodeString(v.Hex)
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

func vectors(tb testing.TB, file string) []vector {
	tb.Helper()
	f, err := os.Open(filepath.Join("testdata", file+".jsonl"))
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	var all []vector
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			tb.Fatal(err)
		}
		all = append(all, v)
	}
	if lines.Err() != nil || len(all) == 0 {
		tb.Fatalf("%s: %d vectors, %v", file, len(all), lines.Err())
	}
	return all
}

// decodeAny decodes a payload of either direction.
func decodeAny(kind string, payload []byte) (any, error) {
	if kind == "client" {
		return DecodeClient(payload)
	}
	return DecodeServer(payload)
}

func appendAny(dst []byte, m any) ([]byte, error) {
	if c, ok := m.(ClientMessage); ok {
		return AppendClient(dst, c)
	}
	return AppendServer(dst, m.(ServerMessage))
}

// readAll reads messages until the stream ends or fails, and makes sure that the
// reader then stays where it is.
func readAll(tb testing.TB, kind string, src io.Reader) ([]any, error) {
	tb.Helper()
	var read func() (any, error)
	if kind == "client" {
		r := NewClientReader(src, MaxFrame)
		read = func() (any, error) { return r.Read() }
	} else {
		r := NewServerReader(src, MaxFrame)
		read = func() (any, error) { return r.Read() }
	}
	var all []any
	for {
		m, err := read()
		if err != nil {
			if _, again := read(); !errors.Is(again, err) {
				tb.Fatalf("reader goes on after %v: %v", err, again)
			}
			return all, err
		}
		all = append(all, m)
	}
}

// oracle decodes CBOR with an independent library, numbers as float64.
func oracle(tb testing.TB, payload []byte) any {
	tb.Helper()
	v, err := oracleDecode(payload)
	if err != nil {
		tb.Fatalf("oracle refuses %x: %v", payload, err)
	}
	return v
}

func oracleDecode(payload []byte) (any, error) {
	mode, err := cbor.DecOptions{
		DupMapKey: cbor.DupMapKeyEnforcedAPF, IndefLength: cbor.IndefLengthForbidden, TagsMd: cbor.TagsForbidden,
		UTF8: cbor.UTF8RejectInvalid, MaxNestedLevels: 256, MaxArrayElements: 1 << 21, MaxMapPairs: 1 << 21,
		DefaultMapType: reflect.TypeFor[map[string]any](),
	}.DecMode()
	if err != nil {
		return nil, err
	}
	var v any
	if err := mode.Unmarshal(payload, &v); err != nil {
		return nil, err
	}
	return floats(v), nil
}

func floats(v any) any {
	switch v := v.(type) {
	case uint64:
		return float64(v)
	case int64:
		return float64(v)
	case []any:
		for i := range v {
			v[i] = floats(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = floats(v[k])
		}
	}
	return v
}

func TestVectorsDecodeAndEncode(t *testing.T) {
	for _, file := range []string{"vectors", "lenient"} {
		for _, v := range vectors(t, file) {
			t.Run(file+"/"+v.Name, func(t *testing.T) {
				got, err := readAll(t, v.Kind, bytes.NewReader(v.stream(t)))
				if !errors.Is(err, io.EOF) || len(got) != 1 {
					t.Fatalf("%d messages, %v", len(got), err)
				}
				payload, err := appendAny(nil, got[0])
				if err != nil {
					t.Fatal(err)
				}
				if again := oracle(t, payload); !reflect.DeepEqual(again, v.Message) {
					t.Errorf("encoded %v\nwant    %v", again, v.Message)
				}
				back, err := decodeAny(v.Kind, payload)
				if err != nil || !reflect.DeepEqual(back, got[0]) {
					t.Errorf("decoded %#v, %v\nwant    %#v", back, err, got[0])
				}
			})
		}
	}
}

func TestVectorsCanonicalLength(t *testing.T) {
	for _, v := range vectors(t, "vectors") { // key order is free, the size is not
		payload := v.stream(t)[headerSize:]
		m, err := decodeAny(v.Kind, payload)
		if err != nil {
			t.Fatal(v.Name, err)
		}
		again, err := appendAny(nil, m)
		if err != nil || len(again) != len(payload) {
			t.Errorf("%s: %d bytes, %v; want %d", v.Name, len(again), err, len(payload))
		}
	}
}

func TestVectorsAtEverySplit(t *testing.T) {
	for _, v := range vectors(t, "vectors") {
		stream := v.stream(t)
		if len(stream) > 700 {
			continue
		}
		want, err := readAll(t, v.Kind, bytes.NewReader(stream))
		if !errors.Is(err, io.EOF) {
			t.Fatal(v.Name, err)
		}
		sources := map[int]io.Reader{-1: iotest.OneByteReader(bytes.NewReader(stream)), -2: iotest.DataErrReader(bytes.NewReader(stream))}
		for cut := range stream {
			sources[cut] = io.MultiReader(bytes.NewReader(stream[:cut]), bytes.NewReader(stream[cut:]))
		}
		for cut, src := range sources {
			got, err := readAll(t, v.Kind, src)
			if !errors.Is(err, io.EOF) || !reflect.DeepEqual(got, want) {
				t.Fatalf("%s cut at %d: %v, %v", v.Name, cut, got, err)
			}
		}
		for cut := 1; cut < len(stream); cut++ {
			if got, err := readAll(t, v.Kind, bytes.NewReader(stream[:cut])); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("%s ends at %d: %v, %v", v.Name, cut, got, err)
			}
		}
	}
}

func TestNegativeVectors(t *testing.T) {
	stages := map[string]Stage{"cbor": StageFrame, "schema": StageSchema}
	for _, v := range vectors(t, "negative") {
		t.Run(v.Name, func(t *testing.T) {
			for _, src := range []io.Reader{
				bytes.NewReader(v.stream(t)), iotest.OneByteReader(bytes.NewReader(v.stream(t))),
			} {
				_, err := readAll(t, v.Kind, src)
				var e *Error
				if !errors.As(err, &e) {
					t.Fatalf("got %v", err)
				}
				if e.Error() != v.Error {
					t.Errorf("got  %s\nwant %s", e, v.Error)
				}
				if want := stages[v.Category]; want != 0 && e.Stage != want {
					t.Errorf("stage %d, want %d", e.Stage, want)
				}
			}
		})
	}
}
