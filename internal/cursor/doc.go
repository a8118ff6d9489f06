// Package cursor is the front end of Cursor's agent protocol, the server's side of it: a client runs
// the tools, roost runs the model.
//
//	BidiAppend, RunSSE, Run, RunPoll ─▶ link ─▶ driver ─▶ Engine.Do
//	client ◀─ link ◀─ cursorview ◀─ driver ◀─ Engine.Watch
//
// A link is one client's connection for one attempt of a run. A driver, one goroutine a link, turns
// its messages into commands and the session's events into messages, and has the client carry out
// the tool calls. What must outlive both is in the event log.
package cursor
