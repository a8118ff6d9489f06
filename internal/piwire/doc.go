// Package piwire is version 1 of pi's remote session protocol as bytes, in the
// form npm 0.84 speaks: length-prefixed frames, a strict subset of CBOR, closed
// messages in both directions, and a JSON Schema of them.
//
// It stands between a byte stream and whoever gives messages a meaning:
//
//	stream ─▶ FrameReader ─▶ DecodeClient ─▶ ClientMessage ─▶ front end
//	stream ◀─ AppendServerFrame ◀─ ServerMessage ◀─ front end
//
// A client uses the same pieces the other way round. [Reader] joins the first
// two steps.
//
// Decoding goes once over the payload, straight into the structs. Only when that
// pass meets something it does not accept does a second, generic pass find out
// whether the CBOR itself or the message was wrong, and words the error.
// Encoding appends to a buffer of the caller and uses no reflection.
//
// Every member of a union is a pointer; nil pointers inside an interface are a
// programming error. Nothing here starts a goroutine; a value may be used by
// several goroutines as long as none of them writes to it.
package piwire
