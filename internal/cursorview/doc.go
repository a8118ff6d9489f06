// Package cursorview shows a session to the clients of Cursor's agent protocol, and reads what they
// hold of one. It stands between the session's vocabulary and the protocol's messages:
//
//	session.Record ─▶ Updates ───▶ interaction_update    while a run goes on (sections 4.1, 4.2)
//	session.State ──▶ Projector ─▶ checkpoint and blobs  what a client keeps (section 6.1)
//	a client's state ─▶ Reconcile ─▶ Plan                which turns stay, which are taken over (6.6, 6.8)
//
// Everything is a function of its arguments and of what the same value was given before: no I/O, no
// clock. Nothing that is passed in is changed, except the receiver.
package cursorview
