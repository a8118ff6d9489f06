package piwire

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"
)

// readValue decodes one item as a free value at depth 0.
func readValue(tb testing.TB, h string) (Value, bool) {
	tb.Helper()
	b, err := hex.DecodeString(h)
	if err != nil {
		tb.Fatal(err)
	}
	d := decoder{cborReader: cborReader{b: b}}
	v := d.value()
	return v, !d.bad && d.pos == len(b)
}

func TestKnownEncodings(t *testing.T) {
	for _, tt := range []struct{ json, hex string }{
		{"null", "f6"},
		{"false", "f4"},
		{"true", "f5"},
		{"0", "00"},
		{"1", "01"},
		{"10", "0a"},
		{"23", "17"},
		{"24", "1818"},
		{"25", "1819"},
		{"100", "1864"},
		{"1000", "1903e8"},
		{"1000000", "1a000f4240"},
		{"1000000000000", "1b000000e8d4a51000"},
		{"9007199254740991", "1b001fffffffffffff"},
		{"-1", "20"},
		{"-10", "29"},
		{"-24", "37"},
		{"-25", "3818"},
		{"-100", "3863"},
		{"-1000", "3903e7"},
		{"-1000000", "3a000f423f"},
		{"-9007199254740991", "3b001ffffffffffffe"},
		{"1.1", "fb3ff199999999999a"},
		{"-0", "fb8000000000000000"},
		{`""`, "60"},
		{`"IETF"`, "6449455446"},
		{`"ü"`, "62c3bc"},
		{`"水"`, "63e6b0b4"},
		{`"𐅑"`, "64f0908591"},
		{"\"\ufeffx\"", "64efbbbf78"},
		{`[]`, "80"},
		{`[1,2,3]`, "83010203"},
		{`[1,[2,3],[4,5]]`, "8301820203820405"},
		{`{"a":1,"b":[2,3]}`, "a26161016162820203"},
		{`{"__proto__":null,"":0}`, "a2695f5f70726f746f5f5ff66000"},
	} {
		v, err := ValueFromJSON([]byte(tt.json), ToolCallLevels)
		if got := hex.EncodeToString([]byte(v.enc)); err != nil || got != tt.hex {
			t.Errorf("%s: encoded %s, %v; want %s", tt.json, got, err, tt.hex)
		}
		back, ok := readValue(t, tt.hex)
		if !ok || back != v || back.String() != tt.json {
			t.Errorf("%s: decoded %s, %t; want %s", tt.hex, back, ok, tt.json)
		}
	}
}

func TestNonCanonicalFormsAreNormalised(t *testing.T) {
	for _, tt := range []struct{ hex, canonical string }{
		{"1800", "00"},
		{"1b0000000000000017", "17"},
		{"3900ff", "38ff"},
		{"fb3ff0000000000000", "01"},
		{"fbc000000000000000", "21"},
		{"fb433fffffffffffff", "1b001fffffffffffff"},
		{"fb0000000000000000", "00"},
		{"780161", "6161"},
		{"7b000000000000000161", "6161"},
		{"9a0000000101", "8101"},
		{"b9000178016100", "a1616100"},
	} {
		v, ok := readValue(t, tt.hex)
		if got := hex.EncodeToString([]byte(v.enc)); !ok || got != tt.canonical {
			t.Errorf("%s: %s, %t; want %s", tt.hex, got, ok, tt.canonical)
		}
	}
}

func TestCBORFaults(t *testing.T) {
	const (
		safe   = faultLength
		simple = "Unsupported CBOR simple value or floating-point width"
		finite = "Decoded CBOR number must be finite"
		keys   = "CBOR map keys must be strings"
		twice  = "CBOR map contains a duplicate key"
	)
	for _, tt := range []struct{ hex, want string }{
		{"", faultTruncated},
		{"18", faultTruncated},
		{"1c", "Malformed CBOR additional information"},
		{"5f", "Indefinite-length CBOR byte strings are not supported"},
		{"7f", "Indefinite-length CBOR text strings are not supported"},
		{"9f", "Indefinite-length CBOR arrays are not supported"},
		{"bf", "Indefinite-length CBOR maps are not supported"},
		{"1f", "Indefinite-length CBOR items are not supported"},
		{"c000", "CBOR tags are not supported"},
		{"df", "CBOR tags are not supported"},
		{"f7", simple},
		{"e0", simple},
		{"f820", simple},
		{"f93c00", simple},
		{"fa3f800000", simple},
		{"fc", simple},
		{"ff", "CBOR break marker is not supported"},
		{"fb7ff0000000000000", finite},
		{"fb7ff8000000000000", finite},
		{"fb7ff0", faultTruncated},
		{"42ff", faultTruncated},
		{"62ff", faultTruncated},
		{"8201", faultTruncated},
		{"a1", faultTruncated},
		{"a16161", faultTruncated},
		{"0000", faultTrailing},
		{"a10100", keys},
		{"a140", keys},
		{"a2810101", keys},
		{"a1f7", simple},
		{"a2616101616102", twice},
		{"a26161016161ff", twice},
		{"a261610178016102", twice},
		{"61ff", faultUTF8},
		{"62c080", faultUTF8},
		{"63eda080", faultUTF8},
		{"1b0020000000000000", safe},
		{"3b0020000000000000", safe},
		{"3b001fffffffffffff", faultInteger},
		{"fb4340000000000000", faultInteger},
		{"fb7e37e43c8800759c", faultInteger},
		{"9bffffffffffffffff", safe},
		{"5a01000001", "CBOR byte string length exceeds configured limit of 16777216"},
		{"7a01000001", "CBOR text string length exceeds configured limit of 16777216"},
		{"7a01000000", faultTruncated},
		{"9a000f4241", "CBOR array length exceeds configured limit of 1000000"},
		{"9a000f4240", faultTruncated},
		{"ba000f4241", "CBOR map length exceeds configured limit of 1000000"},
		{strings.Repeat("81", 65), faultDepth},
		{strings.Repeat("81", 65) + "c0", faultDepth},
		{strings.Repeat("81", 64) + "a16100f6", faultDepth},
		{strings.Repeat("81", 64) + "f6", ""},
		{strings.Repeat("81", 64) + "a0", ""},
		{strings.Repeat("a16161", 64) + "80", ""},
		{strings.Repeat("a16161", 65) + "80", faultDepth},
		{"43010203", ""},
		{"a0", ""},
	} {
		b, err := hex.DecodeString(tt.hex)
		if err != nil {
			t.Fatal(err)
		}
		if got := checkPayload(b); got != tt.want {
			t.Errorf("%.20s…: %q, want %q", tt.hex, got, tt.want)
		}
	}
	if _, ok := readValue(t, "8143010203"); ok {
		t.Error("a byte string is no JSON value")
	}
}

func TestDuplicateKeysInLargeMap(t *testing.T) {
	for _, n := range []int{1, smallMap - 1, smallMap, smallMap + 1, 300} {
		var body []byte
		for i := range n {
			body = appendInt(appendText(body, strings.Repeat("k", i+1)), int64(i))
		}
		m := append(appendHead(nil, majorMap, uint64(n)), body...)
		if fault := checkPayload(m); fault != "" {
			t.Errorf("%d keys: %s", n, fault)
		}
		m = append(appendHead(nil, majorMap, uint64(n+1)), body...)
		for _, i := range []int{1, n} {
			again := append(appendText(append([]byte(nil), m...), strings.Repeat("k", i)), 0)
			if fault := checkPayload(again); !strings.Contains(fault, "duplicate") {
				t.Errorf("%d keys and number %d again: %q", n, i, fault)
			}
		}
	}
}

func TestAppendNumberForms(t *testing.T) {
	for f, want := range map[float64]string{
		3: "03", -1: "20", 0: "00", 0.5: "fb3fe0000000000000", MaxCount: "1b001fffffffffffff", 5e-324: "fb0000000000000001",
	} {
		if got := hex.EncodeToString(appendNumber(nil, f)); got != want {
			t.Errorf("%v: %s, want %s", f, got, want)
		}
	}
	if got := hex.EncodeToString(appendNumber(nil, math.Copysign(0, -1))); got != "fb8000000000000000" {
		t.Errorf("-0: %s", got)
	}
}
