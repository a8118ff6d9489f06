// Package order puts the appends of a client back into order. A client has up to 16 of them in
// flight on several sockets, repeats one whose reply got lost, loses one for good, and starts to count
// anew when it uses the id of a stream again (sections 2.2 to 2.4 of the protocol's description).
//
//	ReadAppend ─▶ Accept ─▶ what may be applied now
//	timer at Deadline ─▶ Expire ─▶ what waited too long for a lost one
//
// It holds messages and decides; it stores nothing, starts nothing and reads no clock. Whoever uses
// it makes a message durable before the append is acknowledged, and never lets an append wait.
package order

import "time"

// Kind is what order means for a message.
type Kind int

// The kinds.
const (
	// Ordered messages are applied in the order of their numbers.
	Ordered Kind = iota
	// Free messages are applied as soon as there is a run.
	Free
	// Start messages begin a run, and an epoch with it.
	Start
)

// Message is one append.
type Message[T any] struct {
	// Seq is its number; 0 or less also stands for an absent one.
	Seq  int64
	Kind Kind
	// Hash tells a repeated Start from a new one; it is not needed for other kinds.
	Hash [32]byte
	// Size counts against Limits.Bytes.
	Size int
	// Value is handed back when the message may be applied.
	Value T
}

// Limits bound what a Stream holds.
type Limits struct {
	// Messages and Bytes bound what waits for a lost message. Beyond them nothing waits.
	Messages, Bytes int
	// Gap is how long a message waits for those before it.
	Gap time.Duration
}

// DefaultLimits are the recommended ones (section 2.2).
var DefaultLimits = Limits{Messages: 64, Bytes: 128 << 20, Gap: 10 * time.Second}

// Result is what follows from a message, or from time.
type Result[T any] struct {
	// Ready may be applied now, in this order.
	Ready []T
	// NewEpoch is true if the first of Ready starts a run: what came before concerns another one.
	NewEpoch bool
	// Duplicate is true for a message that was received before. It is acknowledged all the same.
	Duplicate bool
	// Late is true for a message that was given up for lost, and is applied after its successors.
	Late bool
	// Skipped is how many numbers were given up for lost, and is worth a line in the log.
	Skipped int64
	// Dropped is how many messages of the former epoch were waiting when a new one began. They are
	// gone.
	Dropped int
}
