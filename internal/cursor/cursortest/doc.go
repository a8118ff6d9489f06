// Package cursortest is a client of Cursor's agent protocol for tests: it does over real HTTP what the
// official SDK does, with faults on demand, and says which rules of the protocol the server broke.
//
//	Client.Run ─▶ run (retries) ─▶ attempt ─▶ stream (RunSSE + BidiAppend, or Run) ─▶ server
//	                                  │ ▲
//	                       executions, blobs, answers      checker ─▶ Result.Violations
//
// A Client is what the SDK keeps of one agent between its turns: the conversation's id, the last
// checkpoint, the blobs, and a machine to run tools on, which is a real directory. Section numbers in
// comments are those of the protocol's description.
package cursortest
