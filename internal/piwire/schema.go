package piwire

import (
	"bytes"
	_ "embed" // for schema.json
)

//go:embed schema.json
var schema []byte

// JSONSchema returns a JSON Schema (2020-12) of both directions: messages as JSON
// values, each kind under its name in $defs, ClientMessage and ServerMessage at
// the top. The bytes are always the same; the copy belongs to the caller.
//
// For a payload that is well-formed CBOR the schema and the decoders agree. It
// cannot say what lies below: no byte strings, depth 64, unique keys.
func JSONSchema() []byte { return bytes.Clone(schema) }
