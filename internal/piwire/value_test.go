package piwire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestValueFromJSONReduces(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{" [ 1 , {\"a\" : [ ] } ] \n", `[1,{"a":[]}]`},
		{`"\ud800"`, `"` + "\uFFFD" + `"`},
		{`"\udc00x"`, `"` + "\uFFFD" + `x"`},
		{`"\ud800\ud800\udc00"`, `"` + "\uFFFD\U00010000" + `"`},
		{`"\ud83d\ude00"`, `"😀"`},
		{`"\ud83dA"`, `"` + "\uFFFD" + `A"`},
		{`"\b\f\n\r\t\"\\\/\u0041"`, `"\u0008\u000c\n\r\t\"\\/A"`},
		{"\"a\xffb\"", `"a` + "\uFFFD" + `b"`},
		{"{\"\xff\":1,\"\xfe\":2}", `{"` + "\uFFFD" + `":2}`},
		{`{"a":1,"b":2,"a":[3]}`, `{"a":[3],"b":2}`},
		{`{"a":1,"\u0061":2}`, `{"a":2}`},
		{`{"x":{"a":1,"a":2},"y":0}`, `{"x":{"a":2},"y":0}`},
		{`9007199254740991`, `9007199254740991`},
		{`9007199254740992`, `"9007199254740992"`},
		{`-9007199254740992`, `"-9007199254740992"`},
		{`123456789012345678901234567890`, `"123456789012345678901234567890"`},
		{`1e300`, `"1e300"`},
		{`-1e999`, `"-1e999"`},
		{`9007199254740993.5`, `"9007199254740993.5"`},
		{`1e3`, `1000`},
		{`1.0`, `1`},
		{`1E-2`, `0.01`},
		{`1e-7`, `1e-07`},
		{`1e-999`, `0`},
		{`-0`, `-0`},
		{`0`, `0`},
	} {
		v, err := ValueFromJSON([]byte(tt.in), ToolCallLevels)
		if err != nil || v.String() != tt.want {
			t.Errorf("%q: %s, %v; want %s", tt.in, v, err, tt.want)
		}
	}
}

func TestValueFromJSONDepth(t *testing.T) {
	nest := func(n int, open, inner, closing string) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(closing, n)
	}
	for _, tt := range []struct {
		in     string
		levels int
		fits   bool
	}{
		{`1`, 0, true},
		{`[]`, 0, true},
		{`{}`, 0, true},
		{`[1]`, 0, false},
		{`{"a":1}`, 0, false},
		{nest(57, "[", "1", "]"), ToolCallLevels, true},
		{nest(58, "[", "1", "]"), ToolCallLevels, false},
		{nest(57, `{"k":`, "[]", "}"), ToolCallLevels, true},
		{nest(58, `{"k":`, "[]", "}"), ToolCallLevels, false},
		{nest(64, "[", "1", "]"), 1000, true},
		{nest(65, "[", "1", "]"), 1000, false},
		{nest(9000, "[", "1", "]"), ToolItemLevels, false},
	} {
		v, err := ValueFromJSON([]byte(tt.in), tt.levels)
		if err != nil {
			t.Fatal(err)
		}
		text, isText := v.Text()
		if tt.fits == isText || isText && text != tt.in || !tt.fits && v.height != 0 {
			t.Errorf("%.20s with %d levels: text %t %.20s", tt.in, tt.levels, isText, text)
		}
	}
	wide := "[" + strings.Repeat("0,", maxContainer) + "0]"
	v, err := ValueFromJSON([]byte(wide), ToolItemLevels)
	if text, ok := v.Text(); err != nil || !ok || text != wide {
		t.Errorf("a wide array: %v, %t", err, ok)
	}
	v, err = ValueFromJSON([]byte(`{"a":[[1]],"a":1}`), ToolItemLevels)
	if err != nil || v.height != 1 {
		t.Errorf("height %d, %v; dropped entries do not count", v.height, err)
	}
}

func TestValueFromJSONErrors(t *testing.T) {
	for _, in := range []string{"", " ", "nul", "{", "[1,]", "1 2", "'a'", `"\x"`, `{"a"}`, "NaN", strings.Repeat("[", 20_000)} {
		if v, err := ValueFromJSON([]byte(in), ToolItemLevels); !errors.Is(err, ErrNotJSON) || !v.IsZero() {
			t.Errorf("%.10q: %s, %v", in, v, err)
		}
	}
	if _, err := ValueFromJSON(make([]byte, MaxFrame+1), ToolItemLevels); !errors.Is(err, ErrValueTooLarge) {
		t.Errorf("got %v", err)
	}
}

func TestValueFromJSONManyRepeatedKeys(t *testing.T) { // ends quickly: not quadratic
	var b strings.Builder
	b.WriteString(`{"first":0`)
	for i := range 200_000 {
		fmt.Fprintf(&b, `,"a":%d,"%d":0`, i, i%1000)
	}
	b.WriteString("}")
	v, err := ValueFromJSON([]byte(b.String()), ToolItemLevels)
	if err != nil || !strings.HasPrefix(v.String(), `{"first":0,"a":199999,"0":0,`) {
		t.Errorf("%.40s, %v", v, err)
	}
}

func TestValueAgreesWithEncodingJSON(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawJSON(t, 5)
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		v, err := ValueFromJSON(text, ToolCallLevels)
		if err != nil {
			t.Fatal(err)
		}
		var got any
		if err := json.Unmarshal(v.AppendJSON(nil), &got); err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: %v, %v", text, got, err)
		}
		again, err := ValueFromJSON(v.AppendJSON(nil), ToolCallLevels)
		if err != nil || again != v {
			t.Fatalf("%s is not stable: %s, %v", v, again, err)
		}
		marshaled, err := json.Marshal(v)
		if err != nil || !json.Valid(marshaled) {
			t.Fatalf("%s: %s, %v", v, marshaled, err)
		}
	})
}

func TestValueAccessors(t *testing.T) {
	var none Value
	if !none.IsZero() || none.String() != "" {
		t.Error("the zero Value is no value")
	}
	if b, err := json.Marshal(none); err != nil || string(b) != "null" {
		t.Errorf("%s, %v", b, err)
	}
	if Null().IsZero() || Null().String() != "null" {
		t.Error("null is a value")
	}
	if s, ok := TextValue("a\xff").Text(); !ok || s != "a\uFFFD" {
		t.Errorf("%q, %t", s, ok)
	}
	for _, v := range []Value{none, Null()} {
		if s, ok := v.Text(); ok {
			t.Errorf("%s is text %q", v, s)
		}
	}
}
