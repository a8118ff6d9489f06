package mcptool

import (
	"encoding/json"
	"errors"
	"net/netip"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/roost-dev/roost/internal/tool"
	"github.com/roost-dev/roost/internal/tool/schema"
)

var goodName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func TestToolName(t *testing.T) {
	for _, c := range []struct{ server, remote, want string }{
		{"files", "read_file", "mcp__files__read_file"},
		{"a-b", "X9", "mcp__a-b__X9"},
		{"my.server", "read", "mcp__my_server__read__"},
		{"s", "read/file", "mcp__s__read_file__"},
		{"s", "__", "mcp__s____"},
		{"s", "", "mcp__s____"},
		{"s", "日本", "mcp__s____"},
		{"s", strings.Repeat("x", 100), "mcp__s__xxxx"},
	} {
		got := toolName(c.server, c.remote)
		if exact := !strings.HasSuffix(c.want, "__") && len(c.remote) < 60; exact && got != c.want || !strings.HasPrefix(got, c.want) || !goodName.MatchString(got) {
			t.Errorf("toolName(%q, %q) = %q, want %q", c.server, c.remote, got, c.want)
		}
	}
}

// Different tools have different names, also when the parts are made to look like another.
func TestToolNamesAreUnique(t *testing.T) {
	piece := rapid.StringMatching(`[ab_./é]{0,6}|a{55,70}`)
	rapid.Check(t, func(t *rapid.T) {
		s1, r1, s2, r2 := piece.Draw(t, "s1"), piece.Draw(t, "r1"), piece.Draw(t, "s2"), piece.Draw(t, "r2")
		if (s1 != s2 || r1 != r2) && toolName(s1, r1) == toolName(s2, r2) {
			t.Fatalf("(%q, %q) and (%q, %q) are both %s", s1, r1, s2, r2, toolName(s1, r1))
		}
	})
}

func FuzzToolName(f *testing.F) {
	f.Add("files", "read")
	f.Add("", "\xff__")
	f.Add("a__b", strings.Repeat("_", 80))
	f.Fuzz(func(t *testing.T, server, remote string) {
		if name := toolName(server, remote); !goodName.MatchString(name) {
			t.Fatalf("%q", name)
		}
	})
}

func TestInputSchema(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`null`, `{"properties":{},"type":"object"}`},
		{`{}`, `{"properties":{},"type":"object"}`},
		{`{"type":["object","null"],"$schema":"x","$id":"y"}`, `{"properties":{},"type":"object"}`},
		{`{"type":"object","properties":{"a":true,"b":{"type":"integer","maximum":10.0}},"required":["a","a","z",1]}`, `{"properties":{"a":{},"b":{"maximum":10,"type":"integer"}},"required":["a"],"type":"object"}`},
		{`{"type":"object","anyOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{}}}]}`, `{"properties":{"a":{"type":"string"},"b":{}},"type":"object"}`},
		{`{"allOf":[{"properties":{"a":{}},"required":["a"]},5],"properties":{"b":{}},"required":["b"]}`, `{"properties":{"a":{},"b":{}},"required":["b","a"],"type":"object"}`},
		{`{"type":"object","properties":{"a":{"description":"<x>\u001b[31m\u202e"}}}`, `{"properties":{"a":{"description":"<x>�"}},"type":"object"}`},
	} {
		var in any
		if err := json.Unmarshal([]byte(c.in), &in); err != nil {
			t.Fatal(err)
		}
		got, err := inputSchema(in)
		if err != nil || string(got) != c.want {
			t.Errorf("%s:\n got %s, %v\nwant %s", c.in, got, err, c.want)
		}
	}
}

func TestInputSchemaErrors(t *testing.T) {
	deep := strings.Repeat(`{"properties":{"a":`, 40) + "{}" + strings.Repeat("}}", 40)
	for in, want := range map[string]error{
		`{"type":"string"}`: errSchemaType, `[]`: errSchemaType, `"x"`: errSchemaType, `{"type":["string"]}`: errSchemaType, `{"type":5}`: errSchemaType,
		deep: errSchemaDepth,
		`{"description":"` + strings.Repeat("x", maxSchema) + `"}`: errSchemaSize,
	} {
		var v any
		if err := json.Unmarshal([]byte(in), &v); err != nil {
			t.Fatal(err)
		}
		if got, err := inputSchema(v); !errors.Is(err, want) {
			t.Errorf("%.60s: %s, %v", in, got, err)
		}
	}
}

func FuzzInputSchema(f *testing.F) {
	for _, s := range []string{`null`, `{"type":"object","properties":{"a":{"$ref":"#"}}}`, `{"oneOf":[{"properties":null}],"required":{}}`, `{"allOf":{},"properties":[]}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var in any
		if json.Unmarshal(data, &in) != nil {
			return
		}
		out, err := inputSchema(in)
		if err != nil {
			return
		}
		var top map[string]any
		if err := json.Unmarshal(out, &top); err != nil || top["type"] != "object" || len(out) > maxSchema {
			t.Fatalf("%s: %v", out, err)
		}
		for _, key := range []string{"$schema", "anyOf", "oneOf", "allOf"} {
			if _, ok := top[key]; ok {
				t.Fatalf("%s is in %s", key, out)
			}
		}
		again, err := inputSchema(top)
		if err != nil || string(again) != string(out) {
			t.Fatalf("not stable: %s, then %s, %v", out, again, err)
		}
	})
}

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext\né日":        "plain\ttext\né日",
		"a\r\nb\rc":              "a\nb\nc",
		"\x1b[1;31mred\x1b[0m":   "red",
		"\x1b]0;title\x07x":      "x",
		"\x1b]8;;u\x1b\\link":    "link",
		"\x1b(B\x1bMx":           "x",
		"lone \x1b":              "lone \uFFFD",
		"\u009b31m\x07\x7f":      "\uFFFD31m\uFFFD\uFFFD",
		"\u202eevil\u2066":       "\uFFFDevil\uFFFD",
		"hi\U000E0041\U000E007F": "hi\uFFFD\uFFFD",
		"\xff\x00":               "\uFFFD\uFFFD",
	} {
		if got := clean(in); got != want {
			t.Errorf("clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := cleanLine(" a\n\x1b[1mb  c\t", 100); got != "a b c" {
		t.Errorf("cleanLine: %q", got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31m\x1b]0;\x07")
	f.Add("\xe2\x80\xae\xff")
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if !utf8.ValidString(got) || strings.ContainsAny(got, "\x00\x1b\r\u202e\u009b") {
			t.Fatalf("%q became %q", s, got)
		}
		if again := clean(got); again != got {
			t.Fatalf("not stable: %q, then %q", got, again)
		}
	})
}

func TestFit(t *testing.T) {
	many := strings.Repeat("x\n", tool.MaxLines+10)
	for _, c := range []struct {
		name, text string
		limit      int
	}{{"bytes", strings.Repeat("é", 5000), 1000}, {"lines", many, 40 << 10}, {"both", strings.Repeat(many, 10), 1 << 20}} {
		got := fit(c.text, c.limit, "")
		text, notice, _ := strings.Cut(got, "\n\n[")
		if len(text) > min(c.limit, tool.MaxBytes) || strings.Count(text, "\n") >= tool.MaxLines || !strings.Contains(notice, "Ask for less") || !utf8.ValidString(got) {
			t.Errorf("%s: %d bytes, %d lines, notice %q", c.name, len(text), strings.Count(text, "\n"), notice)
		}
	}
	if got := fit("short\n", 1000, ""); got != "short\n" {
		t.Errorf("%q", got)
	}
	if got := fit(many, 1000, "/does/not/exist"); !strings.Contains(got, "could not be kept") {
		t.Errorf("%q", got)
	}
}

func TestPublicAddresses(t *testing.T) {
	for ip, want := range map[string]bool{
		"8.8.8.8": true, "2001:4860:4860::8888": true,
		"127.0.0.1": false, "10.1.2.3": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false,
		"0.0.0.0": false, "::1": false, "fe80::1": false, "fd00::1": false, "::ffff:10.0.0.1": false, "224.0.0.1": false,
	} {
		if got := public(netip.MustParseAddr(ip)); got != want {
			t.Errorf("public(%s) = %v", ip, got)
		}
		if err := refuseInside("tcp", netip.AddrPortFrom(netip.MustParseAddr(ip), 80).String(), nil); (err == nil) != want {
			t.Errorf("refuseInside(%s) = %v", ip, err)
		}
	}
}

// The schemas of the built-in tools are ones that the checker takes.
func TestOwnSchemas(t *testing.T) {
	var in struct {
		Server string `json:"server"`
	}
	if err := listResourcesSchema.Decode([]byte(`{"server":"a"}`), &in); err != nil || in.Server != "a" {
		t.Error(err)
	}
	if err := listResourcesSchema.Decode([]byte(`{"x":1}`), &in); !errors.Is(err, schema.ErrInput) {
		t.Error(err)
	}
}
