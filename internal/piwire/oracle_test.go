package piwire

import (
	"encoding/binary"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// sameAsOracle fails when we accept an item that the independent library refuses
// or reads as another value.
func sameAsOracle(tb interface{ Errorf(string, ...any) }, item []byte) {
	if checkPayload(item) != "" {
		return
	}
	want, err := oracleDecode(item)
	if err != nil {
		tb.Errorf("oracle refuses %x: %v", item, err)
		return
	}
	d := decoder{cborReader: cborReader{b: item}}
	v := d.value()
	if d.bad { // byte strings are all that values lack
		return
	}
	if got, err := oracleDecode([]byte(v.enc)); err != nil || !reflect.DeepEqual(got, want) {
		tb.Errorf("%x: %v, %v; want %v", item, got, err, want)
	}
	j, err := ValueFromJSON(v.AppendJSON(nil), maxDepth)
	if err != nil || j != v {
		tb.Errorf("%x: through JSON %s, %v; want %s", item, j, err, v)
	}
}

func TestItemsAgreeWithOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) { sameAsOracle(t, drawCBOR(t, 4)) })
}

// drawCBOR draws an item, mostly right, in lengths that need not be the shortest.
func drawCBOR(t *rapid.T, depth int) []byte {
	major := rapid.IntRange(0, 7).Draw(t, "major")
	if depth == 0 && (major == majorArray || major == majorMap) {
		major = majorText
	}
	switch major {
	case majorUint, majorNegative:
		return drawHead(t, byte(major), rapid.OneOf(rapid.Uint64Range(0, 300), rapid.Uint64Max(MaxCount+1)).Draw(t, "argument"))
	case majorBytes, majorText:
		s := rapid.OneOf(rapid.StringN(0, 8, 40), rapid.SampledFrom([]string{"\xff", "\xed\xa0\x80", "\xc0\x80"})).Draw(t, "text")
		return append(drawHead(t, byte(major), uint64(len(s))), s...)
	case majorArray, majorMap:
		n := rapid.IntRange(0, 5).Draw(t, "length")
		b := drawHead(t, byte(major), uint64(n))
		for range n {
			if major == majorMap {
				key := rapid.StringN(0, 2, 8).Draw(t, "key")
				b = append(append(b, drawHead(t, majorText, uint64(len(key)))...), key...)
			}
			b = append(b, drawCBOR(t, depth-1)...)
		}
		return b
	case majorTag:
		return rapid.SliceOfN(rapid.Byte(), 0, 12).Draw(t, "noise")
	default:
		f := rapid.OneOf(rapid.Float64(), rapid.Map(rapid.Int64Range(-1<<53, 1<<53), func(n int64) float64 { return float64(n) })).Draw(t, "float")
		return rapid.SampledFrom([][]byte{{simpleTrue}, {simpleFalse}, {simpleNull}, float64Item(f), {0xf7}}).Draw(t, "simple")
	}
}

func float64Item(f float64) []byte {
	return binary.BigEndian.AppendUint64([]byte{simpleFloat}, math.Float64bits(f))
}

// drawHead writes an argument in any form that holds it.
func drawHead(t *rapid.T, major byte, arg uint64) []byte {
	if rapid.Bool().Draw(t, "shortest") {
		return appendHead(nil, major, arg)
	}
	least := 0
	for size := 1; size < 8 && arg>>(8*size) != 0; size *= 2 {
		least++
	}
	form := rapid.IntRange(least, 3).Draw(t, "form")
	b := []byte{major<<5 | byte(24+form)}
	for shift := 8*(1<<form) - 8; shift >= 0; shift -= 8 {
		b = append(b, byte(arg>>shift))
	}
	return b
}
