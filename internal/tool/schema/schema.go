// Package schema checks a tool's input: first against the JSON Schema that the model was
// shown, then by a strict decode into the tool's own struct. Its errors are written for the
// model, which has only them to correct itself with.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/roost-dev/roost/internal/tool"
)

// ErrInput is what every error of Decode is.
var ErrInput = errors.New("invalid input")

// maxError bounds a validator's message, which quotes the value it complains about.
const maxError = 400

// Schema is the checked form of a JSON Schema for an object. It is immutable.
type Schema struct {
	raw      json.RawMessage
	parsed   *jsonschema.Schema
	resolved *jsonschema.Resolved
}

// Parse reads a JSON Schema of draft 2020-12 or 7 whose type is "object".
func Parse(raw []byte) (*Schema, error) {
	s := &Schema{parsed: new(jsonschema.Schema)}
	if err := json.Unmarshal(raw, s.parsed); err != nil {
		return nil, fmt.Errorf("parse schema: %w", err)
	}
	if s.parsed.Type != "object" {
		return nil, fmt.Errorf("parse schema: its type is %q, want object", s.parsed.Type)
	}
	resolved, err := s.parsed.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("resolve schema: %w", err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return nil, fmt.Errorf("parse schema: %w", err)
	}
	s.raw, s.resolved = compact.Bytes(), resolved
	return s, nil
}

// MustParse is Parse for schemas that are part of the program; it panics on an error.
func MustParse(raw []byte) *Schema {
	s, err := Parse(raw)
	if err != nil {
		panic(err)
	}
	return s
}

// Raw returns the schema without superfluous space. The caller must not change it.
func (s *Schema) Raw() json.RawMessage { return s.raw }

// Decode checks input and decodes it into v, a pointer to a struct. Members that are null
// count as absent, because models write them for parameters they do not use. Errors are
// ErrInput, name the parameter, and list the parameters that are right.
func (s *Schema) Decode(input json.RawMessage, v any) error {
	if len(bytes.TrimSpace(input)) == 0 {
		input = json.RawMessage("{}")
	}
	var members map[string]any
	if err := json.Unmarshal(input, &members); err != nil {
		return s.invalid("it must be a JSON object")
	}
	for name, m := range members {
		if m == nil {
			delete(members, name)
		}
	}
	if members == nil {
		members = map[string]any{}
	}
	if err := s.resolved.Validate(members); err != nil {
		return s.invalid(explain(err))
	}
	// A second encoding turns 2.0, an integer by the schema, into 2, an integer by Go.
	data, err := json.Marshal(members)
	if err != nil {
		return s.invalid(err.Error())
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return s.invalid(err.Error())
	}
	return nil
}

func (s *Schema) invalid(why string) error {
	return fmt.Errorf("%w: %s. Parameters: %s", ErrInput, tool.Cut(tool.Clean(why), maxError), s.parameters())
}

// explain shortens the path of schema keywords to the parameter's path.
func explain(err error) string {
	text := err.Error()
	for _, noise := range []string{"validating root: ", "validating ", "/properties"} {
		text = strings.ReplaceAll(text, noise, "")
	}
	return text
}

// parameters lists the schema's properties: "path (string, required), limit (integer)".
func (s *Schema) parameters() string {
	names := s.parsed.PropertyOrder
	if len(names) == 0 {
		for name := range s.parsed.Properties {
			names = append(names, name)
		}
		slices.Sort(names)
	}
	var list []string
	for _, name := range names {
		kind := s.parsed.Properties[name].Type
		if slices.Contains(s.parsed.Required, name) {
			kind += ", required"
		}
		list = append(list, fmt.Sprintf("%s (%s)", name, kind))
	}
	return strings.Join(list, ", ")
}
