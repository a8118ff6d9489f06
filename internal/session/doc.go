// Package session says what an agent session is: its vocabulary, its events, its
// state, and the rules that turn a command into events. It does no I/O, reads no
// clock, draws no random numbers and starts no goroutine, so the same events
// always give the same state. Start reading here.
//
//	Command ──Decide──▶ Event… ──Apply──▶ State ──Advance──▶ Event…
//	                                        └────Effects───▶ what must be running
//
// A command is a wish of a client: [State.Decide] refuses it or returns the events
// it causes. [State.Apply] folds one event into the state and cannot fail, because
// history has already happened. [State.Advance] returns what follows by itself (the
// next pass, the tools of a pass, the end of a run). [State.Effects] lists the work
// outside the process that the state wants to be running; the actor compares it
// with what is running, and starts or stops the difference. After a crash
// [State.Recover] settles what nobody drives any more, and the same functions go on.
package session
