// Package cursorwire is Cursor's agent protocol as bytes, seen from a server: Connect envelopes and
// the end of a stream, appends, messages in protobuf and in JSON, errors with the details that a
// client acts on, headers, and the ids of blobs. The messages themselves are generated from tables
// of facts (cursorwire/generate).
//
// It stands between HTTP and whoever gives messages a meaning:
//
//	POST BidiAppend ─▶ ReadAppend ─▶ DecodeClient ─▶ order.Stream ─▶ front end
//	POST Run ─▶ EnvelopeReader ─▶ DecodeClient ─▶ front end
//	stream ◀─ AppendMessage, AppendEnd ◀─ AgentServerMessage, Error ◀─ front end
//
// A client uses the same pieces the other way round, which is what the tests do.
//
// Unknown fields are normal: clients are newer than any table, and a good part of the protocol is
// left out on purpose. A decoded message keeps them, and encoding it writes them again; that holds
// for protobuf only, in JSON they are lost.
//
// Text is not checked: a string of a decoded message may hold anything. Nothing here starts a
// goroutine, reads a clock or keeps state beyond one reader. Section numbers in comments are those of
// the description of the protocol from which the tables come.
package cursorwire
