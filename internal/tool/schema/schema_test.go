package schema_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/roost-dev/roost/internal/tool/schema"
)

const example = `{
	"type": "object",
	"properties": {
		"path": {"type": "string", "minLength": 1},
		"limit": {"type": "integer", "minimum": 1, "maximum": 1000},
		"edits": {"type": "array", "items": {"type": "object", "properties": {"new": {"type": "string"}}, "required": ["new"]}}
	},
	"required": ["path"],
	"additionalProperties": false
}`

type params struct {
	Path  string
	Limit int
	Edits []struct{ New string }
}

func TestDecode(t *testing.T) {
	s := schema.MustParse([]byte(example))
	for _, in := range []string{
		`{"path":"a","limit":2}`, `{"path":"a","limit":2.0}`, `{"path":"a","limit":2e0}`,
		`{"limit":2,"path":"a","edits":null}`,
	} {
		var p params
		if err := s.Decode(json.RawMessage(in), &p); err != nil || p.Path != "a" || p.Limit != 2 {
			t.Errorf("%s: got %+v, %v", in, p, err)
		}
	}
}

func TestDecodeNamesWhatIsWrong(t *testing.T) {
	s := schema.MustParse([]byte(example))
	for _, c := range []struct{ in, want string }{
		{`{}`, `"path"`},
		{``, `"path"`},
		{`null`, `"path"`},
		{`{"path":null}`, `"path"`},
		{`{"path":""}`, `/path: minLength`},
		{`{"path":1}`, `/path: type: 1 has type "integer", want "string"`},
		{`{"path":"a","limit":0}`, `/limit: minimum`},
		{`{"path":"a","limit":1.5}`, `/limit: type`},
		{`{"path":"a","limit":"3"}`, `/limit: type`},
		{`{"path":"a","limit":1e300}`, `/limit: maximum`},
		{`{"path":"a","limit":1e999}`, `JSON object`},
		{`{"path":"a","edits":[{}]}`, `"new"`},
		{`{"path":"a","name":1}`, `name`},
		{`{"Path":"a"}`, `path`},
		{`[1]`, `JSON object`},
		{`"path"`, `JSON object`},
		{`{"path":"` + strings.Repeat("x", 5000) + `","limit":"` + strings.Repeat("y", 5000) + `"}`, `/limit: type`},
	} {
		var p params
		err := s.Decode(json.RawMessage(c.in), &p)
		if !errors.Is(err, schema.ErrInput) {
			t.Errorf("%.60s: got %v, want ErrInput", c.in, err)
			continue
		}
		text := err.Error()
		if !strings.Contains(text, c.want) || !strings.Contains(text, "path (string, required)") {
			t.Errorf("%.60s: %s\nwant it to name %s", c.in, text, c.want)
		}
		if len(text) > 1000 {
			t.Errorf("%.60s: message of %d bytes", c.in, len(text))
		}
	}
}

func TestParseRefusesWhatNoToolCanUse(t *testing.T) {
	for _, in := range []string{``, `{`, `{"type":"string"}`, `{"type":"object","properties":{"a":{"$ref":"#/nowhere"}}}`} {
		if _, err := schema.Parse([]byte(in)); err == nil {
			t.Errorf("%s: accepted", in)
		}
	}
}

func TestRawIsCompact(t *testing.T) {
	raw := string(schema.MustParse([]byte(example)).Raw())
	if strings.ContainsAny(raw, "\n\t") || !json.Valid([]byte(raw)) {
		t.Errorf("got %s", raw)
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{}`, `{"path":"a"}`, `{"path":"a","limit":2,"edits":[{"new":"\ud800"}]}`, `[`, `{"path":1e400}`} {
		f.Add(s)
	}
	s := schema.MustParse([]byte(example))
	f.Fuzz(func(t *testing.T, in string) {
		var p params
		if err := s.Decode(json.RawMessage(in), &p); err == nil && p.Path == "" {
			t.Error("accepted without a path")
		}
	})
}
