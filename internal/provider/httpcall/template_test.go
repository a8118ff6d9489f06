package httpcall_test

import (
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/roost-dev/roost/internal/provider/httpcall"
)

func TestTemplate(t *testing.T) {
	const field = `"content":"`
	learn := func(data, value string) *httpcall.Template {
		var tpl httpcall.Template
		tpl.Learn([]byte(data), field, value, 7)
		return &tpl
	}
	tpl := learn(`{"id":1,"d":{"content":"abc"},"f":null}`, "abc")
	for _, tc := range []struct {
		name, data, want string
		ok               bool
	}{
		{"another text", `{"id":1,"d":{"content":"xyz 🌍"},"f":null}`, "xyz 🌍", true},
		{"empty", `{"id":1,"d":{"content":""},"f":null}`, "", true},
		{"escapes", `{"id":1,"d":{"content":"a\"b\\\n\u00e9\ud83c\udf0d"},"f":null}`, "a\"b\\\né🌍", true},
		{"a lone surrogate", `{"id":1,"d":{"content":"\ud83c"},"f":null}`, "\uFFFD", true},
		{"another id", `{"id":2,"d":{"content":"abc"},"f":null}`, "", false},
		{"another end", `{"id":1,"d":{"content":"abc"},"f":"stop"}`, "", false},
		{"one more field", `{"id":1,"d":{"content":"abc","x":"y"},"f":null}`, "", false},
		{"the end inside the text", `{"id":1,"d":{"content":"a"},"f":null}"},"f":null}`, "", false},
		{"an escaped end", `{"id":1,"d":{"content":"a\"},"f":null}`, "", false},
		{"a bad escape", `{"id":1,"d":{"content":"a\x"},"f":null}`, "", false},
		{"a control character", "{\"id\":1,\"d\":{\"content\":\"a\nb\"},\"f\":null}", "", false},
		{"invalid UTF-8", "{\"id\":1,\"d\":{\"content\":\"\xff\"},\"f\":null}", "", false},
		{"too short", `{"id":1,"d":{"content":"`, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if s, ok := tpl.Match([]byte(tc.data)); s != tc.want || ok != tc.ok {
				t.Errorf("got %q, %v", s, ok)
			}
		})
	}
	if tpl.Kind != 7 {
		t.Errorf("kind %d", tpl.Kind)
	}
	for name, bad := range map[string][2]string{
		"two places":    {`{"content":"abc","d":{"content":"abc"}}`, "abc"},
		"no place":      {`{"contents":"abc"}`, "abc"},
		"another value": {`{"content":"abc"}`, "xyz"},
		"no value":      {`{"content":""}`, ""},
		"no end":        {`{"content":"abc`, "abc"},
	} {
		if _, ok := learn(bad[0], bad[1]).Match([]byte(bad[0])); ok {
			t.Errorf("%s was learnt", name)
		}
	}
}

// What a template matches, a JSON parser reads in the same way.
func FuzzTemplate(f *testing.F) {
	f.Add(`abc`)
	f.Add(`a\"b\\`)
	f.Add(`\ud83c\udf0d`)
	f.Add(`"},"f":"`)
	f.Fuzz(func(t *testing.T, inside string) {
		var tpl httpcall.Template
		tpl.Learn([]byte(`{"d":{"content":"abc"},"f":null}`), `"content":"`, "abc", 0)
		data := []byte(`{"d":{"content":"` + inside + `"},"f":null}`)
		got, ok := tpl.Match(data)
		if !ok {
			return
		}
		var v struct {
			D map[string]string
			F *string
		}
		if err := json.Unmarshal(data, &v); err != nil || v.D["content"] != got || len(v.D) != 1 || v.F != nil || !utf8.ValidString(got) {
			t.Fatalf("%s: %q, the parser says %v, %v", data, got, v, err)
		}
	})
}
