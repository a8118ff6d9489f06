package piwire

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"testing"
	"testing/iotest"
)

func addVectors(f *testing.F, kind string, skip int) {
	f.Helper()
	for _, file := range []string{"vectors", "lenient", "negative"} {
		for _, v := range vectors(f, file) {
			if kind == "" || v.Kind == kind {
				f.Add(v.stream(f)[min(skip, len(v.Hex)/2):])
			}
		}
	}
}

// FuzzFrame compares a stream read at once and byte by byte.
func FuzzFrame(f *testing.F) {
	addVectors(f, "", 0)
	f.Add([]byte{0, 0, 0, 1, 'a', 0, 0, 0, 0, 0, 0, 0, 2, 'b'})
	f.Fuzz(func(t *testing.T, stream []byte) {
		a := NewFrameReader(bytes.NewReader(stream), FromClient, 1000)
		b := NewFrameReader(iotest.OneByteReader(bytes.NewReader(stream)), FromClient, 1000)
		size := 0
		for {
			p, errA := a.Next()
			q, errB := b.Next()
			if !bytes.Equal(p, q) || (errA == nil) != (errB == nil) {
				t.Fatalf("%q, %v and %q, %v", p, errA, q, errB)
			}
			if errA == nil {
				size += headerSize + len(p)
				continue
			}
			if errA.Error() != errB.Error() || errors.Is(errA, io.EOF) != (size == len(stream)) {
				t.Fatalf("%v and %v after %d of %d", errA, errB, size, len(stream))
			}
			return
		}
	})
}

func FuzzCBOR(f *testing.F) {
	addVectors(f, "", headerSize)
	f.Fuzz(func(t *testing.T, item []byte) { sameAsOracle(t, item) })
}

func FuzzClientMessage(f *testing.F) {
	addVectors(f, "client", headerSize)
	fuzzMessage(f, "client")
}

func FuzzServerMessage(f *testing.F) {
	addVectors(f, "server", headerSize)
	fuzzMessage(f, "server")
}

// fuzzMessage checks that decoder, generic pass and schema agree, and that what
// was decoded can be encoded and decoded again.
func fuzzMessage(f *testing.F, kind string) {
	f.Helper()
	schema := validators(f)[kind]
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := decodeAny(kind, payload)
		var e *Error
		switch {
		case err == nil:
			if fault := checkPayload(payload); fault != "" {
				t.Fatalf("accepted %x: %s", payload, fault)
			}
		case !errors.As(err, &e):
			t.Fatalf("got %v", err)
		case e.Stage != StageSchema:
			return
		}
		if bySchema := schema.Validate(oracle(t, payload)); (bySchema == nil) != (err == nil) {
			t.Fatalf("%x: decoder %v, schema %v", payload, err, bySchema)
		}
		if err != nil {
			return
		}
		again, err := appendAny(nil, m)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeAny(kind, again)
		if err != nil || !reflect.DeepEqual(back, m) {
			t.Fatalf("%#v, %v; want %#v", back, err, m)
		}
	})
}

func FuzzValueFromJSON(f *testing.F) {
	for _, s := range []string{
		`null`, `[1,2.5,"x",{"a":{}}]`, `{"a":1,"a":2}`, `"\ud800\u0000"`, `-0`, `1e300`, `{"k":[[[[1]]]]}`, "\"\xff\"", `0.1e-5`, ``, `[`,
	} {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, text []byte, levels int) {
		v, err := ValueFromJSON(text, levels)
		if (err == nil) != json.Valid(text) {
			t.Fatalf("%q: %v", text, err)
		}
		if err != nil {
			return
		}
		d := decoder{cborReader: cborReader{b: []byte(v.enc)}}
		if back := d.value(); d.bad || back != v || int(v.height) > max(levels, 0) {
			t.Fatalf("%q: %s is not canonical, height %d", text, v, v.height)
		}
		again, err := ValueFromJSON(v.AppendJSON(nil), levels)
		if err != nil || again != v {
			t.Fatalf("%q: %s, %v; want %s", text, again, err, v)
		}
	})
}
