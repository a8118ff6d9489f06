// Package httpcall makes one request to a provider over HTTP and reads its streamed
// answer. It is what the dialects share: between a dialect's encoder and its decoder.
//
//	encode ─▶ Client.Stream ─▶ POST ─▶ sse.Events ─▶ Decoder ─▶ provider.Part…
//
// It owns the connection's manners: time limits, redirects, keys, the two forms of a base
// URL, and the translation of every refusal and breakage into a provider.Error.
package httpcall
