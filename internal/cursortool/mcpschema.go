package cursortool

import (
	"encoding/json"
	"slices"

	"google.golang.org/protobuf/types/known/structpb"
)

// maxSchema bounds the schema of a client's tool, in bytes, and maxSchemaDepth how deep it is.
const (
	maxSchema      = 64 << 10
	maxSchemaDepth = 64
)

// openSchema is that of a tool of which the arguments are not known.
var openSchema = json.RawMessage(`{"properties":{},"type":"object"}`)

// mcpSchema returns a client's schema as all providers take it (R17): its type is "object", there
// are properties, alternatives at the top are put together, and it names no dialect. Equal schemas
// give equal bytes. One that cannot be used is replaced by one that allows everything.
func mcpSchema(value *structpb.Value, text string) json.RawMessage {
	var in any
	if value != nil {
		in = value.AsInterface()
	} else if text == "" || len(text) > 4*maxSchema || json.Unmarshal([]byte(text), &in) != nil {
		return openSchema
	}
	top, ok := in.(map[string]any)
	if !ok || !plain(top, 0) {
		return openSchema
	}
	top["type"] = "object"
	props := objects(top["properties"])
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		join(top, props, key)
	}
	top["properties"] = props
	required(top, props)
	raw, err := json.Marshal(top)
	if err != nil || len(raw) > maxSchema {
		return openSchema
	}
	return raw
}

// plain takes the names of dialects out of a schema; it reports whether the schema is not too deep.
func plain(v any, depth int) bool {
	if depth > maxSchemaDepth {
		return false
	}
	switch v := v.(type) {
	case map[string]any:
		if s, ok := v["$schema"].(string); ok && s != "" {
			delete(v, "$schema")
		}
		if depth == 0 {
			delete(v, "$id")
		}
		for _, e := range v {
			if !plain(e, depth+1) {
				return false
			}
		}
	case []any:
		for _, e := range v {
			if !plain(e, depth+1) {
				return false
			}
		}
	}
	return true
}

// objects returns the properties that are schemas; "true" is one too, but few providers know.
func objects(v any) map[string]any {
	in, _ := v.(map[string]any)
	out := make(map[string]any, len(in))
	for name, p := range in {
		if _, ok := p.(map[string]any); !ok {
			p = map[string]any{}
		}
		out[name] = p
	}
	return out
}

// join adds the properties of alternatives at the top to those of the whole. What all of allOf
// demand stays demanded, what one of several may is not.
func join(top, props map[string]any, key string) {
	branches, _ := top[key].([]any)
	delete(top, key)
	for _, b := range branches {
		branch, _ := b.(map[string]any)
		for name, p := range objects(branch["properties"]) {
			if _, there := props[name]; !there {
				props[name] = p
			}
		}
		if more, ok := branch["required"].([]any); ok && key == "allOf" {
			have, _ := top["required"].([]any)
			top["required"] = slices.Concat(have, more)
		}
	}
}

// required leaves only names of properties in the list of what is demanded, each once.
func required(top, props map[string]any) {
	in, _ := top["required"].([]any)
	var names []string
	for _, r := range in {
		if name, ok := r.(string); ok && props[name] != nil && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	delete(top, "required")
	if len(names) > 0 {
		top["required"] = names
	}
}
