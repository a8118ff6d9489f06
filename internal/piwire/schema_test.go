package piwire

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/fxamacker/cbor/v2"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// validators are compiled from JSONSchema, one for each direction.
func validators(tb testing.TB) map[string]*jsonschema.Schema {
	tb.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(JSONSchema()))
	if err != nil {
		tb.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("pi.json", doc); err != nil {
		tb.Fatal(err)
	}
	return map[string]*jsonschema.Schema{
		"client": c.MustCompile("pi.json#/$defs/ClientMessage"),
		"server": c.MustCompile("pi.json#/$defs/ServerMessage"),
		"either": c.MustCompile("pi.json"),
	}
}

func TestSchemaIsTheCallersCopy(t *testing.T) {
	first := JSONSchema()
	clear(first)
	if bytes.Equal(first, JSONSchema()) {
		t.Error("changes with the copy")
	}
}

func TestSchemaAgreesOnVectors(t *testing.T) {
	schemas := validators(t)
	for _, file := range []string{"vectors", "lenient", "negative"} {
		for _, v := range vectors(t, file) {
			if v.Category == "framing" || v.Category == "cbor" {
				continue
			}
			err := schemas[v.Kind].Validate(oracle(t, v.stream(t)[headerSize:]))
			if (err == nil) != (file != "negative") {
				t.Errorf("%s/%s: %v", file, v.Name, err)
			}
			if file == "vectors" {
				other := map[string]string{"client": "server", "server": "client"}[v.Kind]
				if _, err := decodeAny(other, v.stream(t)[headerSize:]); err == nil || schemas[other].Validate(v.Message) == nil {
					t.Errorf("%s is accepted as a message of the %s", v.Name, other)
				}
				if err := schemas["either"].Validate(v.Message); err != nil {
					t.Errorf("%s: %v", v.Name, err)
				}
			}
		}
	}
}

// TestSchemaAgreesOnMutations changes every spot of every vector in every way and
// compares the verdicts of schema and decoder.
func TestSchemaAgreesOnMutations(t *testing.T) {
	schemas := validators(t)
	cases, accepted := 0, 0
	for _, v := range vectors(t, "vectors") {
		if len(v.Hex) > 6000 {
			continue
		}
		mutate(v.Message, func() {
			payload, err := cbor.Marshal(v.Message)
			if err != nil {
				t.Fatal(err)
			}
			_, err = decodeAny(v.Kind, payload)
			var e *Error
			if errors.As(err, &e) && e.Stage == StageFrame { // a deep value made deeper
				return
			}
			bySchema := schemas[v.Kind].Validate(v.Message)
			if (err == nil) != (bySchema == nil) {
				t.Errorf("%s: decoder %v, schema %v\n%v", v.Name, err, bySchema, v.Message)
			}
			cases++
			if err == nil {
				accepted++
			}
		})
	}
	if cases < 20_000 || accepted < 2000 {
		t.Errorf("only %d cases, %d of them accepted", cases, accepted)
	}
	t.Logf("%d cases, %d accepted", cases, accepted)
}

// otherTypes and otherWords are put in the place of values and of strings.
var (
	otherTypes = []any{nil, true, false, 0.0, 1.0, -1.0, 1.5, "", "text", []any{}, []any{nil}, map[string]any{}, []any{"text"}}
	otherWords = []any{
		"server_snapshot", "hello", "tool", "image", "toolCall", "error", "complete", "stop", "aborted", "idle", "high",
		"busy", "auth", "list", "detach", "steer", "item_finished", "item_updated",
	}
)

func replacements(old any) []any {
	if _, ok := old.(string); ok {
		return slices.Concat(otherTypes, otherWords)
	}
	return otherTypes
}

// mutate calls check after each single change inside v, and takes it back.
func mutate(v any, check func()) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			old := v[key]
			delete(v, key)
			check()
			for _, value := range replacements(old) {
				v[key] = value
				check()
			}
			v[key] = old
			mutate(old, check)
		}
		for _, key := range []string{"extra", "id", "name", "details", "usage", "errorMessage", "stopReason", "cwd"} {
			if _, there := v[key]; !there {
				v[key] = "x"
				check()
				delete(v, key)
			}
		}
	case []any:
		for i, old := range v[:min(len(v), 6)] { // long lists hold more of the same
			for _, value := range replacements(old) {
				v[i] = value
				check()
			}
			v[i] = old
			mutate(old, check)
		}
	}
}
