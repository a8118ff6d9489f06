package mcptool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/roost-dev/roost/internal/tool"
)

const (
	maxSchema      = 64 << 10 // bytes of a tool's schema
	maxSchemaDepth = 64
	maxProperties  = 500 // of the top level
)

var (
	errSchemaType  = errors.New("the schema of its input is not one of an object")
	errSchemaSize  = errors.New("the schema of its input is larger than " + tool.Size(maxSchema))
	errSchemaDepth = errors.New("the schema of its input is nested too deeply")
)

// inputSchema returns a server's schema as all providers take it: the type at the top is
// "object", there are properties, there is no "$schema", and alternatives at the top are
// put together. Texts in it are clean. Equal schemas give equal bytes.
func inputSchema(in any) (json.RawMessage, error) {
	if in == nil {
		in = map[string]any{}
	}
	top, ok := cleanValue(in, 0).(map[string]any)
	if !ok || !isObjectType(top["type"]) {
		return nil, errSchemaType
	}
	top["type"] = "object"
	for _, key := range []string{"$schema", "$id", "id"} {
		delete(top, key)
	}
	props, ok := top["properties"].(map[string]any)
	if !ok {
		props = map[string]any{}
	}
	top["properties"] = props
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		mergeBranches(top, props, key)
	}
	for name, p := range props {
		if _, ok := p.(map[string]any); !ok {
			props[name] = map[string]any{} // "true" is a schema too, but few providers know
		}
	}
	if len(props) > maxProperties {
		return nil, fmt.Errorf("%w: it has %d properties", errSchemaSize, len(props))
	}
	fixRequired(top, props)
	return encodeSchema(top)
}

// isObjectType accepts what can only be meant as an object.
func isObjectType(t any) bool {
	switch t := t.(type) {
	case nil:
		return true
	case string:
		return t == "object"
	case []any:
		return slices.Contains(t, any("object"))
	}
	return false
}

// mergeBranches adds the properties of the alternatives at the top to those of the whole.
// What every branch of allOf requires is required; what one of several may is not.
func mergeBranches(top, props map[string]any, key string) {
	branches, _ := top[key].([]any)
	delete(top, key)
	for _, b := range branches {
		branch, _ := b.(map[string]any)
		more, _ := branch["properties"].(map[string]any)
		for name, p := range more {
			if _, known := props[name]; !known {
				props[name] = p
			}
		}
		if required, ok := branch["required"].([]any); ok && key == "allOf" {
			own, _ := top["required"].([]any)
			top["required"] = append(own, required...)
		}
	}
}

// fixRequired keeps the names that are properties, once each.
func fixRequired(top, props map[string]any) {
	names, _ := top["required"].([]any)
	var kept []string
	for _, n := range names {
		name, ok := n.(string)
		if _, known := props[name]; ok && known && !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	delete(top, "required")
	if len(kept) > 0 {
		top["required"] = kept
	}
}

// cleanValue returns a copy of v whose texts are clean. Beyond the largest depth it puts
// tooDeep, which no schema holds.
func cleanValue(v any, depth int) any {
	if depth > maxSchemaDepth {
		return tooDeep{}
	}
	switch v := v.(type) {
	case string:
		return clean(v)
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = cleanValue(e, depth+1)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			out[clean(key)] = cleanValue(e, depth+1)
		}
		return out
	}
	return v
}

// tooDeep makes the encoding fail.
type tooDeep struct{}

// MarshalJSON returns errSchemaDepth.
func (tooDeep) MarshalJSON() ([]byte, error) { return nil, errSchemaDepth }

func encodeSchema(top map[string]any) (json.RawMessage, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err := enc.Encode(top)
	switch {
	case errors.Is(err, errSchemaDepth):
		return nil, errSchemaDepth
	case err != nil:
		return nil, fmt.Errorf("the schema of its input: %w", err)
	case out.Len() > maxSchema:
		return nil, errSchemaSize
	}
	return bytes.TrimSpace(out.Bytes()), nil
}
